"""Matrices of Dask that are chunked in rows: a QR tree, from the blocks to one triangle and back.

    A_i = Q_i R_i,   [R_1; R_2; ...] = Q R,   and so on until one R is left: R = W S V^H
    U_i = Q_i (the rows of Q that belong to R_i) W

That is the QR decomposition of a tall matrix by a tree (Demmel, Grigori, Hoemmen and Langou,
"Communication-optimal parallel and sequential QR and LU factorizations", SIAM J. Sci. Comput. 34
(2012), A206-A239).  The tree depends on the number of blocks alone, so the bits do too.

A triangle goes with a power of two for each column, by which it must be multiplied: so nothing
overflows, whatever the blocks hold.
"""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
from dask._task_spec import convert_legacy_graph

# How many triangles are joined: 8 of order 1,000 are 64 MB, and a million blocks are 7 levels.
_JOINED = 8

task = dask.delayed(pure=True)


def times_power(x, power):
    """x 2^power, where 2^power itself may be no number of the dtype."""
    real = x.real.dtype.type
    half = np.asarray(power) // 2
    for part in (half, power - half):
        factor = np.exp2(part).astype(real)
        x = x * (factor if factor.ndim else real(factor))
    return x


def _power_of(x):
    """That of the largest entry; 0 if there is none, or it is not finite."""
    most = float(abs(x).max()) if x.size else 0.0
    return int(np.frexp(most)[1]) if 0 < most < np.inf else 0


def _factors(parts):
    """Q of the columns [A B ...] of a block, and R with the powers of its columns."""
    powers = [_power_of(part) for part in parts]
    scaled = [times_power(part, -power) for part, power in zip(parts, powers, strict=True)]
    Q, R = np.linalg.qr(np.concatenate(scaled, axis=1) if len(parts) > 1 else scaled[0])
    return Q, (R, np.repeat(powers, [part.shape[1] for part in parts]))


def _triangle(*parts):
    return _factors(parts)[1]


def _join(triangles):
    """Q, cut to the rows of each triangle, and their common triangle."""
    power = np.max([power for _, power in triangles], axis=0)
    scaled = [times_power(R, own - power) for R, own in triangles]
    Q, R = np.linalg.qr(np.concatenate(scaled))
    ends = np.cumsum([len(part) for part in scaled[:-1]])
    return np.split(Q, ends), (R, power)


def _product(pieces, i, W):
    return pieces[i] @ W


def _vectors(block, W):
    return _factors([block])[0] @ W


class Tree:
    """The triangle of the columns [A B ...], all chunked alike in rows, and the way back.

    keep: the factors Q of the blocks of A are kept for it; without it they are made anew.
    """

    def __init__(self, *parts, keep=False):
        self._a, self._kept, self._levels = parts[0], None, []
        blocks = zip(*(part.to_delayed().ravel() for part in parts), strict=True)
        if keep:
            factors = [task(_factors, nout=2)(own) for own in blocks]
            self._kept, triangles = map(list, zip(*factors, strict=True))
        else:
            triangles = [task(_triangle)(*own) for own in blocks]
        while len(triangles) > 1:
            groups = [triangles[i : i + _JOINED] for i in range(0, len(triangles), _JOINED)]
            joined = [task(_join, nout=2)(group) for group in groups]
            counts = map(len, groups)
            self._levels.append([(Q, count) for (Q, _), count in zip(joined, counts, strict=True)])
            triangles = [triangle for _, triangle in joined]
        self.triangle = triangles[0]

    def left_vectors(self, W, columns, meta):
        """Q W, an array of so many columns with the blocks of A."""
        down = [W]
        for level in reversed(self._levels):
            down = [
                task(_product)(pieces, i, W)
                for (pieces, count), W in zip(level, down, strict=True)
                for i in range(count)
            ]
        call, blocks = np.matmul, self._kept
        if blocks is None:
            call, blocks = _vectors, _blocks_again(self._a)
        return da.concatenate(
            [
                da.from_delayed(task(call)(block, W), (rows, columns), meta=meta)
                for block, W, rows in zip(blocks, down, self._a.chunks[0], strict=True)
            ]
        )


def _blocks_again(a):
    """The blocks of an array with tasks of their own, so that none is kept for them.

    dask.graph_manipulation.clone() leaves aliases as they were, up to Dask 2026.8 at least.
    """
    graph = convert_legacy_graph(dict(a.__dask_graph__()))
    names = {
        key: (f"again-{key[0]}", *key[1:]) if isinstance(key, tuple) else f"again-{key}"
        for key in graph
    }
    graph = {names[key]: node.substitute(names, key=names[key]) for key, node in graph.items()}
    return da.Array(graph, f"again-{a.name}", a.chunks, meta=a).to_delayed().ravel()
