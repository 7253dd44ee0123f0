"""The blocks of small matrices for `python -m verification small`, and how they are given.

A block is some thousand matrices of one order for one call. Two of three hold a part of an
enumeration: all matrices whose entries are from a grid, for each method and type. The others are
random, of every kind that has made trouble for an algorithm.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from verification.stress import WHOLE

LARGEST = 12
SHARES = np.array([0.2, 2, 8, 12, 12, 10, 10, 10, 10, 3, 3, 3, 3])  # of the orders 0 to LARGEST
MATRICES = 2048  # of a block
FEW = 128  # of one whose matrices are given one by one
VECTORS = ("auto", "dc", "qr", "givens")
VALUES = ("auto", "dc", "qr", "givens", "bisect")
LAYOUTS = ("plain", "plain", "reversed", "gaps", "transposed", "folded", "foreign", "broadcast")
BROADCAST = 32, 64  # as many rows d and e; all pairs are matrices


@dataclass
class Block:
    """All that determines the matrices and the call."""

    method: str
    dtype: str
    n: int
    count: int  # of matrices
    vectors: bool
    lower: bool
    grid: str | None  # None: random
    start: int  # number of the first matrix of a grid; or the random seed
    layout: str = "plain"  # of d and e in memory
    eps: float | None = None
    part: tuple[int, int] | None = None
    intervals: bool = False  # one call for each matrix, with select="v"
    max_sweeps: int | None = None
    threads: int = 1


# ---- grids ----


def _grids(info):
    """name -> (order, entries). Every entry of a matrix is one of these."""
    eps, tiny, unit, top = (
        float(x) for x in (info.eps, info.tiny, info.smallest_subnormal, info.max)
    )
    ends = (0, 1, 1 + eps, eps, unit, tiny, tiny**0.5, top)
    all_sizes = (
        *ends,
        *(-1, 1 - eps / 2, eps / 2, eps**0.5, 2 * unit, 3 * unit, tiny - unit, tiny + unit),
        *(top / 2, top * (1 - eps), top**0.5, 3, 0.1, -top, -unit, 2),
    )
    return {
        "1": (1, all_sizes),
        "2": (2, all_sizes),
        "3, ends": (3, ends),
        "3, near one": (3, (0, 1, -1, 1 + eps, 1 - eps / 2, 2 * eps, eps**0.5)),
        "4, units": (4, (0, 1, eps, unit)),
        "4, signs": (4, (0, 1, -1)),
        "4, top": (4, (top, top / 2, tiny, 1)),
    }


GRIDS = {name: _grids(np.finfo(name)) for name in ("float64", "float32")}


def _enumerated():
    """All blocks of the enumerations, in an order in which each start of it is a mixture."""
    calls = [(m, True) for m in VECTORS] + [(m, False) for m in VALUES]
    blocks = []
    for (method, vectors), dtype in itertools.product(calls, GRIDS):
        for grid, (n, entries) in GRIDS[dtype].items():
            total = len(entries) ** (2 * n - 1)
            for start in range(0, total, MATRICES):
                lower = len(blocks) % 2 == 1
                count = min(MATRICES, total - start)
                blocks.append(Block(method, dtype, n, count, vectors, lower, grid, start))
    order = np.random.default_rng(0).permutation(len(blocks))
    return [blocks[i] for i in order]


ENUMERATED = _enumerated()


def _of_grid(block):
    n, entries = GRIDS[block.dtype][block.grid]
    entries = np.array(entries, block.dtype)
    number = block.start + np.arange(block.count)[:, None]
    return entries[number // len(entries) ** np.arange(2 * n - 1) % len(entries)]


# ---- random matrices ----


def block(seed, index):
    """Of three blocks two are enumerated, as long as there are any."""
    number = index - index // 3
    if index % 3 != 2 and number < len(ENUMERATED):
        return ENUMERATED[number]
    rng = np.random.default_rng([seed, index])
    n = int(rng.choice(LARGEST + 1, p=SHARES / SHARES.sum()))
    vectors = bool(rng.random() < 0.7)
    method = str(rng.choice(VECTORS if vectors else VALUES))
    made = Block(
        method=method,
        dtype=str(rng.choice(["float64", "float32"])),
        n=n,
        count=MATRICES,
        vectors=vectors,
        lower=bool(rng.random() < 0.3),
        grid=None,
        start=int(rng.integers(2**32)),
        layout=str(rng.choice(LAYOUTS)),
        threads=int(rng.choice([1, 1, 2])),
    )
    if rng.random() < 0.15 and method != "givens":  # which may converge too slowly
        made.eps = float(10.0 ** rng.uniform(-20, 2)) if rng.random() < 0.9 else 0.0
    if n and rng.random() < 0.2 and not (vectors and method in WHOLE):
        low, high = sorted(int(i) for i in rng.integers(0, n, 2))
        made.part = low, high
    elif n and rng.random() < 0.1 and made.eps is None and not (vectors and method in WHOLE):
        made.intervals, made.count, made.layout = True, FEW, "plain"
    if rng.random() < 0.1:
        made.max_sweeps = 10_000
    return made


def _entries(rng, kind, shape, info):
    """Entries of one kind. shape (m, 2n-1): a row has d1, e1, d2, ..., dn."""
    eps, unit, top = float(info.eps), float(info.smallest_subnormal), float(info.max)
    low, high = info.minexp - info.nmant, info.maxexp - 1
    if kind == "grid":
        entries = np.array(GRIDS[info.dtype.name]["2"][1])
        return entries[rng.integers(0, entries.size, shape)]
    if kind == "uniform":
        return rng.random(shape)
    if kind == "integers":
        return rng.integers(0, 3, shape).astype(float)
    if kind == "powers":
        return np.ldexp(1.0, rng.integers(low, high + 1, shape))
    if kind == "whole range":
        return np.ldexp(1 + rng.random(shape), rng.integers(low, high, shape))
    if kind == "denormals":
        sizes = 2.0 ** rng.uniform(0, info.nmant + 2, (shape[0], 1))
        return unit * np.floor(sizes * rng.random(shape))
    if kind == "largest":
        return top * rng.choice([1, 1 - eps, 1 / 2, 1 / 4, 0.7], shape)
    if kind == "equal":
        return rng.random((shape[0], 1)) * (1 + eps * rng.integers(-2, 3, shape))
    if kind == "near eps":
        return eps * np.exp2(rng.uniform(-2, 14, shape))
    if kind == "one and near":
        return 1 + eps * rng.integers(-8, 9, shape)
    if kind == "graded":
        return np.exp2(rng.uniform(-12, 12, (shape[0], 1)) * np.arange(shape[1]))
    if kind == "diagonal":
        return rng.choice([0.5, 1, 2], shape)
    return np.exp(8 * rng.standard_normal(shape))  # "spread"


KINDS = (
    *("grid", "uniform", "integers", "powers", "whole range", "denormals", "largest", "equal"),
    *("near eps", "one and near", "graded", "diagonal", "spread"),
)


def _random(made):
    """Rows of one kind; of one kind for d and another for e; or of two kinds mixed."""
    rng, info = np.random.default_rng(made.start), np.finfo(made.dtype)
    size = 2 * made.n - 1
    x = np.empty((made.count, size))
    runs = np.array_split(np.arange(made.count), 32)
    for rows in runs:
        one, other = rng.choice(KINDS, 2)
        shape = (rows.size, size)
        x[rows] = _entries(rng, str(one), shape, info)
        way = rng.random()
        if way < 0.6:
            mask = rng.random(shape) < 0.3 if way < 0.3 else np.arange(size) % 2 == 1
            x[rows] = np.where(mask, _entries(rng, str(other), shape, info), x[rows])
        if rng.random() < 0.3:
            x[rows] *= rng.choice([-1, 1], shape)
        if rng.random() < 0.3:
            x[rows] = np.where(rng.random(shape) < 0.15, 0, x[rows])
    return np.clip(x, -float(info.max), float(info.max)).astype(made.dtype)


def matrices(made):
    """d (count, n) and e (count, n-1)."""
    if made.n == 0:
        return np.empty((made.count, 0), made.dtype), np.empty((made.count, 0), made.dtype)
    x = _random(made) if made.grid is None else _of_grid(made)
    d, e = np.ascontiguousarray(x[:, ::2]), np.ascontiguousarray(x[:, 1::2])
    if made.layout == "broadcast":
        one, other = BROADCAST
        d, e = np.repeat(d[:one], other, axis=0), np.tile(e[:other], (one, 1))
    return d, e


def laid_out(made, d, e):
    """Arrays that hold the same matrices, with other strides, dimensions or bytes."""
    if made.layout == "broadcast":
        _, other = BROADCAST
        return d[::other, None, :], e[None, :other, :]
    return _laid_out(made.layout, d), _laid_out(made.layout, e)


def _laid_out(layout, x):
    if layout == "reversed":
        return np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]
    if layout == "gaps":
        return np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, 1::3]
    if layout == "transposed":
        return np.ascontiguousarray(x.T).T
    if layout == "folded":
        return x.reshape(2, 4, len(x) // 8, x.shape[1])
    if layout == "foreign":
        return x.astype(x.dtype.newbyteorder())
    return x
