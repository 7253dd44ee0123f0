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

import itertools

import dask
import dask.array as da
import numpy as np
from dask._task_spec import convert_legacy_graph

from . import _space

# How many triangles are joined: 8 of order 1,000 are 64 MB, and a million blocks are 7 levels.
_JOINED = 8

task = dask.delayed(pure=True)


def _largest(x):
    """The magnitude of the largest real or imaginary part; NaN if there is one."""
    parts = (x.real, x.imag) if _space.is_complex(x) else (x,)
    return float(np.max([float(abs(part).max()) for part in parts])) if x.size else 0.0


def _factors(parts, rows):
    """Q of the columns [A B ...] of a block, and R with the powers of its columns.

    rows: the first and the last one, for an error if they are not finite; None: that is none.
    """
    largest = np.array([_largest(part) for part in parts])
    if rows and not np.isfinite(largest).all():
        first, last = rows  # of what the caller gave they may be columns
        raise ValueError(f"NaN or infinity at indices {first} to {last} of the chunked dimension")
    powers = np.frexp(np.where(np.isfinite(largest), largest, 0))[1]
    scaled = [_space.by_power(part, -power) for part, power in zip(parts, powers, strict=True)]
    Q, R = np.linalg.qr(np.concatenate(scaled, axis=1) if len(parts) > 1 else scaled[0])
    return Q, (R, np.repeat(powers, [part.shape[1] for part in parts]))


def _triangle(parts, rows):
    return _factors(parts, rows)[1]


def _join(triangles):
    """Q, cut to the rows of each triangle, and their common triangle."""
    power = np.max([power for _, power in triangles], axis=0)
    scaled = [_space.by_power(R, (own - power)[None]) for R, own in triangles]
    Q, R = np.linalg.qr(np.concatenate(scaled))
    ends = np.cumsum([len(part) for part in scaled[:-1]]).tolist()
    return np.split(Q, ends), (R, power)


def _product(pieces, i, W):
    return pieces[i] @ W


def _vectors(block, W):
    return _factors([block], None)[0] @ W


class Tree:
    """The triangle of the columns [A B ...], all chunked alike in rows, and the way back.

    keep: the factors Q of the blocks of A are kept for it; without it they are made anew.
    check_finite: NaN and infinity are refused.
    """

    def __init__(self, *parts, keep=False, check_finite=True):
        self._a, self._kept, self._levels = parts[0], None, []
        blocks = zip(*(part.to_delayed().ravel() for part in parts), strict=True)
        ends = np.cumsum((0, *self._a.chunks[0])).tolist()
        rows = [(i, j - 1) if check_finite else None for i, j in itertools.pairwise(ends)]
        if keep:
            factors = map(task(_factors, nout=2), blocks, rows)
            self._kept, triangles = map(list, zip(*factors, strict=True))
        else:
            triangles = list(map(task(_triangle), blocks, rows))
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
