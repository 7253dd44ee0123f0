"""What is timed in two installations: each line is one call of tsvd.svd, again and again."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.cases import CLASSES
from testing import families

VALUES = {"compute_uv": False}


class Line(NamedTuple):
    name: str
    make: Callable  # () -> d, e
    options: dict  # of tsvd.svd, without device and out
    once: bool = False  # it takes so long that a single call has to do


def lines(device, wanted=None):
    """All lines, or those whose names begin with the parts of `wanted`."""
    for line in _on_cpu() if device == "cpu" else _on_cuda():
        if wanted is None or f"{line.name}/".startswith(f"{wanted}/"):
            yield line


def _on_cpu():
    """What takes long comes last."""
    for n in (8, 32, 100, 500, 1000):
        for family in CLASSES:
            yield _single("vectors", family, n)
            yield _single("values", family, n, **VALUES)
    for n in (100, 1000):
        yield _single("vectors", "uniform_1", n, "float32")
        yield _single("values", "uniform_1", n, "float32", **VALUES)
    for n in (32, 100, 500):
        for family in CLASSES:
            yield _single("qr", family, n, method="qr")
    yield _single("qr_values", "uniform_1", 1000, method="qr", **VALUES)
    for n in (32, 100):
        yield _single("givens", "uniform_1", n, method="givens", eps=1e-4)
    for family in CLASSES:
        yield _single("select", family, 1000, **_largest(100))
        yield _single("few", family, 100_000, **VALUES, **_largest(10))
    for n in (8, 32):
        for family in CLASSES:
            yield _batch(family, 10_000, n)
        yield _batch("uniform_1", 10_000, n, "float32")
        yield _batch("uniform_1", 10_000, n, "float64", **VALUES)
    for family in CLASSES:
        yield _single("values", family, 2000, **VALUES)
        yield _single("vectors", family, 2000)
    yield _single("values", "uniform_1", 10_000, **VALUES)


def _on_cuda():
    for n in (100, 500, 1024, 4096, 10_000):
        for family in CLASSES:
            yield _single("vectors", family, n, method="dc")
    for n in (1024, 4096):
        yield _single("vectors", "toeplitz", n, "float32", method="dc")
    for count, n in (
        *((100_000, 8), (100_000, 16), (100_000, 32)),
        *((10_000, 64), (1000, 128), (1000, 256)),
    ):
        for family in CLASSES[:2]:
            yield _batch(family, count, n)
        yield _batch("uniform_1", count, n, "float32")
        yield _batch("uniform_1", count, n, "float64", **VALUES)
    for n in (1000, 10_000, 100_000):
        for family in CLASSES:
            yield _single("values", family, n, **VALUES)
    yield _single("values", "uniform_1", 10_000, "float32", **VALUES)
    for family in CLASSES:
        yield _single("few", family, 1_000_000, **VALUES, **_largest(10))
        yield _single("select", family, 10_000, **_largest(100))
    for n in (500, 1000):
        yield _single("qr", "uniform_1", n, method="qr")
        yield _single("givens", "uniform_1", n, method="givens", eps=1e-8)
    yield _single("values", "uniform_1", 1_000_000, **VALUES)._replace(once=True)


def _largest(count):
    return {"select": "i", "select_range": (0, count - 1)}


def _single(group, family, n, dtype="float64", **options):
    def make():
        return families.make(family, n, np.dtype(dtype))

    return Line(f"{group}/{family}/{n}/{dtype}", make, options)


def _batch(family, count, n, dtype="float64", **options):
    def make():
        rng = np.random.default_rng(n)
        return tuple(_entries(family, rng, count, m).astype(dtype) for m in (n, n - 1))

    group = "batch_values" if options else "batch"
    return Line(f"{group}/{family}/{n}/{count}/{dtype}", make, options)


def _entries(family, rng, count, size):
    """As testing/families.py has them, for many matrices at once."""
    if family == "uniform_1":
        return rng.random((count, size))
    if family == "chi":
        return np.sqrt(rng.chisquare(np.arange(size, 0, -1), (count, size)))
    return np.ones((count, size))
