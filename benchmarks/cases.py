"""The cases of the run on the CPU, and the peers in each."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import tsvd
from testing import families, lapack

CLASSES = ("uniform_1", "chi", "toeplitz")  # they deflate almost wholly, a little, hardly
GRADED = ("geometric", "graded_down")  # condition numbers of 1/eps and 1e150
LEAST_DC = {500: 1.5, 1000: 1.5, 2000: 1.2, 4000: 1.0}  # targets: dbdsdc's time over ours
LEAST_TWISTED = {1000: 1.8, 2000: 3.0, 4000: 4.0}  # targets: the time of "dc" over ours


@dataclass
class Case:
    """One input, and the functions that decompose it; tsvd's function is the first.

    A function returns (L, s, R) or s. The ratio of a contender is its time over the time of another
    contender, which `against` names; the default is the first. `least` has targets: the least
    ratio of a contender.
    """

    group: str
    family: str
    n: int
    batch: int
    d: np.ndarray
    e: np.ndarray
    contenders: dict[str, Callable]
    least: dict[str, float] = field(default_factory=dict)
    against: dict[str, str] = field(default_factory=dict)


def cases(large=False):
    """All cases, small ones first. large: also the cases that take over a minute."""
    for family in CLASSES:
        for n, batch in ((8, 1), (8, 1000), (8, 10_000), (32, 1000)):
            yield _small(family, n, batch, {"numpy.linalg.svd": 1.0} if n == 8 else {})
    for family in CLASSES:
        yield _batch(family, 32, 10_000, 5.0)
    for n, batch in ((16, 10_000), (64, 1000), (128, 200)):
        yield _batch("uniform_1", n, batch, None)
    for family in CLASSES + GRADED:
        yield _values(family, 1000, {"dbdsqr, values only": 0.5} if family in CLASSES else {})
    for family in CLASSES:
        yield _values(family, 4000, {"dbdsqr, values only": 0.5})
    for n in (100, 500, 1000, 2000, 4000) if large else (100, 500, 1000, 2000):
        for family in CLASSES + GRADED if n == 500 else CLASSES:
            yield _vectors(family, n, n <= (2000 if large else 1000))
    for family in CLASSES:
        for n in LEAST_TWISTED:
            yield _twisted(family, n)


def _dense(d, e):
    n = d.shape[-1]
    B = np.zeros((*d.shape, n))
    i = np.arange(n)
    B[..., i, i] = d
    B[..., i[:-1], i[1:]] = e
    return B


def _small(family, n, batch, least):
    pairs = [families.make(family, n, seed=seed) for seed in range(batch)]
    d, e = (np.array(part) for part in zip(*pairs, strict=True))
    if batch == 1:
        d, e = d[0], e[0]
    B = _dense(d, e)
    contenders = {
        "tsvd.svd": lambda: tsvd.svd(d, e, device="cpu"),
        "numpy.linalg.svd": lambda: np.linalg.svd(B),
    }
    return Case("small", family, n, batch, d, e, contenders, least)


def _batch(family, n, batch, least):
    """One call, against NumPy's batch and a loop over the matrices."""
    case = _small(family, n, batch, {})
    B = _dense(case.d, case.e)

    def loop():
        L, s, R = np.empty((batch, n, n)), np.empty((batch, n)), np.empty((batch, n, n))
        for i in range(batch):
            L[i], s[i], R[i] = np.linalg.svd(B[i])
        return L, s, R

    contenders = case.contenders | {"numpy.linalg.svd, loop": loop}
    least = dict.fromkeys(list(contenders)[1:], least)
    return Case("batch", family, n, batch, case.d, case.e, contenders, least)


def _values(family, n, least):
    d, e = families.make(family, n)
    contenders = {
        "tsvd.svdvals": lambda: tsvd.svdvals(d, e, device="cpu"),
        "dbdsqr, values only": lambda: lapack.dbdsqr_values(d, e),
    }
    return Case("values", family, n, 1, d, e, contenders, least)


def _vectors(family, n, qr):
    """qr: also the QR methods. LAPACK's takes half a minute at n = 2000."""
    d, e = families.make(family, n)
    contenders = {
        "tsvd.svd, dc": lambda: tsvd.svd(d, e, method="dc", device="cpu"),
        "dbdsdc": lambda: lapack.dbdsdc(d, e),
    }
    if n <= 2000:
        B = _dense(d, e)
        contenders["numpy.linalg.svd"] = lambda: np.linalg.svd(B)
    if qr:
        contenders["tsvd.svd, qr"] = lambda: tsvd.svd(d, e, method="qr", device="cpu")
        contenders["dbdsqr"] = lambda: lapack.dbdsqr(d, e)
    least = {}
    if family in CLASSES:
        least = {"dbdsdc": LEAST_DC.get(n), "dbdsqr": 3.0 if n >= 500 else None}
    against = {name: "tsvd.svd, qr" for name in ("tsvd.svd, qr", "dbdsqr")}
    return Case("vectors", family, n, 1, d, e, contenders, least, against)


def _twisted(family, n):
    """Twisted factorisations, divide and conquer, and what a user gets who names no method."""
    d, e = families.make(family, n)
    contenders = {
        "tsvd.svd, twisted": lambda: tsvd.svd(d, e, method="twisted", device="cpu"),
        "tsvd.svd, dc": lambda: tsvd.svd(d, e, method="dc", device="cpu"),
        "tsvd.svd": lambda: tsvd.svd(d, e, device="cpu"),
    }
    least = {} if family == "uniform_1" else {"tsvd.svd, dc": LEAST_TWISTED[n]}
    return Case("twisted", family, n, 1, d, e, contenders, least)
