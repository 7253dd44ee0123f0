"""Errors say what was likely meant, and what to call instead."""

import inspect
import re

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import tsvd
from tsvd import linalg

A = np.diag([3.0, 2.0, 1.0]) + np.diag([1.0, 1.0], 1)
DENSE = (linalg.svd, linalg.svdvals, linalg.inv, linalg.bidiagonalize)
BIDIAGONAL = (tsvd.svd, tsvd.svdvals)


class Lazy:
    """Stands for an array of Dask, which gives itself to NumPy when it is asked."""

    __module__ = "dask.array.core"
    shape, chunks = (3, 3), ((3,), (3,))

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("it was gathered")


class Series:
    """Stands for a column of pandas with gaps: NumPy sees objects."""

    __module__ = "pandas.core.series"

    def __array__(self, dtype=None, copy=None):
        return np.array([1.0, None, 2.0], object)


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "coo_array", "dia_matrix"])
def test_sparse(kind):
    sparse = getattr(scipy.sparse, kind)(A)
    for function in DENSE:
        with pytest.raises(TypeError, match=r"a is a sparse matrix.*svds.*a\.toarray\(\)"):
            function(sparse)
    for function in BIDIAGONAL:
        with pytest.raises(TypeError, match=r"d is a sparse .*d\.diagonal\(\), d\.diagonal\(1\)"):
            function(sparse, np.ones(2))
    s = tsvd.svdvals(sparse.diagonal(), sparse.diagonal(1))
    assert np.allclose(s, np.linalg.svd(A, compute_uv=False))


def test_linear_operator():
    for function in DENSE:
        with pytest.raises(TypeError, match=r"a is a linear operator.*svds"):
            function(aslinearoperator(A))


def test_lazy_arrays_are_not_gathered():
    for function in DENSE:
        with pytest.raises(TypeError, match=r"a\.compute\(\).*tsvd\.dask"):
            function(Lazy())
    with pytest.raises(TypeError, match=r"e is a lazy array.*e\.compute\(\)"):
        tsvd.svd(np.ones(4), Lazy())


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (None, "a is None"),
        (Series(), r"a\.to_numpy\(float\)"),
        (A.astype(object), r"a\.astype\(float\)"),
        ({1.0, 2.0}, "a is a set, give a list or an array"),
    ],
)
def test_objects(given, advice):
    for function in DENSE:
        with pytest.raises((TypeError, np.linalg.LinAlgError), match=advice):
            function(given)


def test_a_dense_matrix_without_e():
    for function in BIDIAGONAL:
        name = function.__name__
        with pytest.raises(TypeError, match=rf"'e'.*tsvd\.linalg\.{name}\(A\).*np\.diag\(A, 1\)"):
            function(A)
        with pytest.raises(ValueError, match=r"tsvd\.linalg\.svd"):
            function(A, False)
        with pytest.raises(TypeError, match=r"tsvd\.linalg\.svd"):
            function(A, full_matrices=False)


@pytest.mark.parametrize(
    ("keyword", "advice"),
    [
        ("k", r"select_range=\(0, k - 1\)"),
        ("n_components", "select_range"),
        ("driver", "method"),
        ("tol", "eps"),
        ("n_jobs", "threads"),
        ("subset_by_value", 'select="v"'),
        ("nonsense", None),
    ],
)
def test_keywords_of_others(keyword, advice):
    calls = [(f, (np.ones(3), np.ones(2))) for f in BIDIAGONAL]
    calls += [(f, (A,)) for f in (linalg.svd, linalg.svdvals)]
    for function, arguments in calls:
        with pytest.raises(TypeError) as caught:
            function(*arguments, **{keyword: 2})
        text = str(caught.value)
        assert text.startswith(f"{function.__name__}() got an unexpected keyword argument")
        assert repr(keyword) in text
        assert text.endswith(repr(keyword)) if advice is None else re.search(advice, text), text


def test_arguments_of_the_other_function():
    with pytest.raises(TypeError, match=r"the diagonals .* use tsvd\.svd"):
        linalg.svd(np.ones(3), np.ones(2))
    for function in BIDIAGONAL:
        with pytest.raises(ValueError, match=r"jacobi.*use tsvd\.linalg\.svd"):
            function(np.ones(3), np.ones(2), method="jacobi")
    with pytest.raises(ValueError, match="threads is an argument of its own"):
        tsvd.svd(np.ones(3), np.ones(2), tuning={"threads": 2})


def test_signatures_are_honest():
    """Nothing is shown that only serves these errors."""
    for function in (*BIDIAGONAL, *DENSE):
        parameters = inspect.signature(function).parameters.values()
        assert all(p.kind != p.VAR_KEYWORD for p in parameters)
    for function in BIDIAGONAL:
        assert inspect.signature(function).parameters["e"].default is inspect.Parameter.empty


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_that_is_not_finite(value, values_device):
    d, e = np.ones((2, 5)), np.ones((2, 4))
    e[1, 2] = e[1, 3] = value
    for function in BIDIAGONAL:
        with pytest.raises(ValueError, match=rf"matrix 1 .*: e\[1, 2\] is {value}"):
            function(d, e, device=values_device)
    with pytest.raises(ValueError, match=rf"d\[3\] is {value}"):
        tsvd.svdvals([1, 2, 3, value], [1, 1, 1], device=values_device)
    a = np.ones((4, 4))
    a[2, 1] = value
    for function in DENSE:
        with pytest.raises(ValueError, match=rf"a\[2, 1\] is {value}"):
            function(a, device=values_device)


def test_of_another_library():
    torch = pytest.importorskip("torch")
    a = torch.eye(3)
    a[1, 2] = torch.inf
    with pytest.raises(ValueError, match=r"a\[1, 2\] is inf"):
        linalg.svd(a)
    assert linalg.svdvals(torch.eye(3), device=torch.device("cpu")).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="77"):
        linalg.svdvals(np.eye(3), device=torch.device("cuda:77"))
