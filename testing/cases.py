"""Sizes, types, prepared matrices, and the report of failures over many matrices."""

import functools
from typing import NamedTuple

import numpy as np

from testing import families
from testing.measures import check_dense, dense_value_bound, dense_value_error
from testing.reference import singular_values
from tsvd import linalg

SIZES = (0, 1, 2, 3, 5, 17, 32, 33, 64, 100, 200)
DTYPES = (np.float64, np.float32)
RANGES = (1, 5, 10, 50, 1000)  # d and e uniform in [0, range], as in the published tables


class Case(NamedTuple):
    d: np.ndarray  # read-only
    e: np.ndarray
    s_ref: np.ndarray  # longdouble


@functools.cache
def case(family, n, dtype):
    """The matrix of a family with its reference; all tests share it."""
    return _case(*families.make(family, n, dtype))


@functools.cache
def real_cases():
    """The real matrices: name -> Case."""
    return {name: _case(d, e) for name, (d, e) in families.real().items()}


def _case(d, e):
    for array in (d, e):
        array.setflags(write=False)
    return Case(d, e, singular_values(d, e))


class Findings:
    """Collects failures over many matrices, and raises one error that names all of them."""

    def __init__(self):
        self.found = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None and self.found:
            raise AssertionError("\n" + "\n".join(self.found))

    def bound(self, where, measure, value, limit):
        if not value <= limit:  # also if value is NaN
            self.found.append(f"{where}: {measure} is {value:.4g}, over {limit:.4g}")

    def holds(self, where, what, truth):
        if not truth:
            self.found.append(f"{where}: not {what}")


def norm(d, e):
    """||B||_F; the squares of the entries must not overflow."""
    return float(np.sqrt(np.sum(np.float64(d) ** 2) + np.sum(np.float64(e) ** 2)))


def same_bits(a, b):
    """Whether two arrays, or two tuples of arrays, are equal to the last bit."""
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_bits, a, b))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def hold(findings, where, found, wrong):
    """Holds what check_dense() of measures.py returns."""
    for measure, (value, limit) in found.items():
        findings.bound(where, measure, value, limit)
    for what in wrong:
        findings.found.append(f"{where}: {what}")


def check_with_and_without_vectors(findings, where, A, s_ref, device, **options):
    """Holds the values of A with vectors in the economy size, and those alone."""
    result = linalg.svd(A, full_matrices=False, device=device, **options)
    hold(findings, where, *check_dense(A, result, s_ref))
    alone = linalg.svdvals(A, device=device, **options)
    hold(findings, f"{where} alone", *check_dense(A, (alone,), s_ref))
    finite = np.isfinite(result.S) & np.isfinite(alone)
    apart = dense_value_error(result.S[finite], alone[finite], np.max(s_ref))
    findings.bound(where, "values with and without vectors", apart, dense_value_bound(*A.shape))
