"""The largest singular values and their vectors, of matrices of all kinds, with a check."""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np

from . import _arrays, _krylov, _lazy, _operators, _space
from ._dense import svd
from ._options import real
from ._types import PartialSVDInfo, SVDResult

# A dense matrix goes to the full SVD from this part of its order on, or if its order is small.
_PART, _SMALL = 20, 100

_CHECKS = ("auto", "none", "probabilistic", "cholesky")
_VECTORS = (True, False, "u", "vh")
_SEED = 0


def svds(
    A,
    k=6,
    *,
    which="LM",
    tol=0,
    v0=None,
    maxiter=None,
    return_singular_vectors=True,
    rng=None,
    check="auto",
    center=None,
    full_output=False,
):
    """The k largest singular values and their vectors, of a matrix that may be sparse.

    It is checked that none was missed. Arguments that `scipy.sparse.linalg.svds` has
    too mean the same, but values are descending.

    Parameters
    ----------
    A : array_like, sparse matrix or operator, shape (m, n)
        A dense array, also of PyTorch, CuPy or JAX; a matrix or an array of
        `scipy.sparse`; a `scipy.sparse.linalg.LinearOperator`; or any object with
        `shape` and products, see Notes. float64, float32, complex128 and complex64
        are computed in their own precision, integers and bool as float64.
    k : int
        How many values, ``1 <= k <= min(m, n)``; 0 if A is empty.
    which : {"LM", "SM"}
        "LM": the largest values. "SM": the smallest ones, of dense arrays alone,
        by all values.
    tol : float
        The largest residual, over s1, that is asked for. 0: as small as the
        precision allows.
    v0 : array_like, shape (min(m, n),), optional
        The start vector: near left singular vectors if m < n, near right ones
        otherwise. None: a random one.
    maxiter : int, optional
        The most steps of all processes together. None: 20,000 or 10 min(m, n),
        whichever is more.
    return_singular_vectors : {True, False, "u", "vh"}
        True: ``(U, s, Vh)``. "u" and "vh": with None in place of the other
        vectors. False: s alone.
    rng : int or numpy.random.Generator, optional
        The source of random starts. None: seed 0, so a call has the same result
        again.
    check : {"auto", "probabilistic", "cholesky", "none"}
        How it is checked that no value above s_k was missed; see Notes. "auto" is
        "probabilistic". "cholesky" takes dense arrays alone.
    center : array_like, shape (n,), or True, optional
        A row that is subtracted from all rows of A, without a dense copy of a
        sparse A. True: the means of the columns, as for principal components.
    full_output : bool
        Return a pair, the result and a `PartialSVDInfo`.

    Returns
    -------
    SVDResult or ndarray
        ``(U, s, Vh)`` with shapes (m, k), (k,), (k, n), or what
        return_singular_vectors says. Values are descending. They are arrays of the
        library of A, if it is dense, and of NumPy otherwise.

    Raises
    ------
    ValueError
        k is out of range; an unknown name; NaN or infinity in A; which="SM" of a
        matrix that is not dense; shapes that do not fit.
    numpy.linalg.LinAlgError
        No convergence within maxiter; the check goes on to find missed values; NaN or
        infinity in a product; products that do not belong together or change, which
        the computed residuals show.
    TypeError
        The dtype is one that tsvd does not compute; a sparse array of another library
        than SciPy; an object without products.
    ModuleNotFoundError
        There is no SciPy.

    See Also
    --------
    svd : All values, or a part of them, of dense matrices.

    Notes
    -----
    Method: Golub-Kahan-Lanczos bidiagonalisation [1]_. Of the two bases only that of
    the shorter side is orthogonalised and kept [2]_, and restarts keep Ritz vectors
    [3]_ [4]_. Dense arrays with more than ``min(m, n) / 20`` values asked for, or on
    a GPU, go through the full SVD.

    Objects: ``matvec(v)`` or ``matmat(X)`` is ``A @ v``, ``rmatvec(u)`` or
    ``rmatmat(X)`` is ``A.conj().T @ u``. `dtype` says the precision. An object may
    have ``step(v, gamma)`` too, which reads A once: it sets ``u = A @ v - gamma * u``,
    with u of the step before, and returns the pair of ``|u|**2`` and
    ``A.conj().T @ u``. It keeps u itself, so rows may be anywhere. ``gamma == 0``
    forgets the u before. If m < n the products are used instead.

    Check: a small residual shows that a value is one of A, not that none was missed.
    "probabilistic" starts 32 steps from a random vector orthogonal to what was found,
    and more where their largest Ritz value is within its residual of s_k. What it finds
    above s_k is taken in, until a check finds nothing. Then with probability 0.999 there
    is no other value above ``(1 + eta) * s_k``, whatever A is [5]_: eta is 0.019 for a
    shorter side of 10,000. In practice far smaller gaps are seen, as vectors near s_k
    are known. "cholesky" shows it up to rounding errors, which eta is above:
    ``s_k**2 (1 + eta)**2 - (A^H A - V s^2 V^H)`` is positive definite.

    Accuracy: residuals ``|A v - s u|`` and ``|A^H u - s v|`` are computed, and at most
    ``50 eps s1``, or `tol` ``s1`` if that is more; eps is that of the dtype. In place of
    50 stand ``sqrt(m) / 8`` for a dense array with m > 160,000 and, for objects,
    whose sums are not known, ``4 sqrt(max(m, n))``, and for a sparse matrix a quarter
    of the entries of its longest row or column, up to 1,024: SciPy adds them one after
    the other, and of equal numbers all rounding errors may have one sign. With `center`
    residuals are relative to the norm of what is subtracted, if that is more than s1.
    ``U^H U`` and ``V^H V`` are within ``50 eps`` of the unit matrix, or twice that where
    entries are equal.

    Signs: the entry of largest magnitude in each column of U is real and positive.
    The same input and seed give the same bits on one machine.

    Work: products with A, and in each step a pass or two over the basis. Memory: the
    basis. It has up to ``4 k + 32`` vectors of the shorter side n, or ``2 / n`` times
    the entries of A if that is more, as then products take longer than its passes.

    References
    ----------
    .. [1] G. Golub and W. Kahan, "Calculating the singular values and
       pseudo-inverse of a matrix", SIAM Journal on Numerical Analysis, Series B, 2
       (1965), 205-224.
    .. [2] H. D. Simon and H. Zha, "Low-rank matrix approximation using the Lanczos
       bidiagonalization process with applications", SIAM J. Sci. Comput. 21 (2000),
       2257-2274.
    .. [3] K. Wu and H. Simon, "Thick-restart Lanczos method for large symmetric
       eigenvalue problems", SIAM J. Matrix Anal. Appl. 22 (2000), 602-616.
    .. [4] J. Baglama and L. Reichel, "Augmented implicitly restarted Lanczos
       bidiagonalization methods", SIAM J. Sci. Comput. 27 (2005), 19-42.
    .. [5] J. Kuczynski and H. Wozniakowski, "Estimating the largest eigenvalue by the
       power and Lanczos algorithms with a random start", SIAM J. Matrix Anal. Appl.
       13 (1992), 1094-1122.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from tsvd import linalg
    >>> A = sparse.diags_array(np.arange(1.0, 1001.0))
    >>> U, s, Vh = linalg.svds(A, k=3)
    >>> np.round(s, 9)
    array([1000.,  999.,  998.])

    Five copies of every value; none is missed:

    >>> A = sparse.kron(sparse.eye_array(5), A)
    >>> np.round(linalg.svds(A, k=7, return_singular_vectors=False), 9)
    array([1000., 1000., 1000., 1000., 1000.,  999.,  999.])
    """
    _check_names(which, return_singular_vectors, check)
    k, tol, rng = _whole("k", k), _tolerance(tol), _generator(rng)
    if maxiter is not None and _whole("maxiter", maxiter) < 1:
        raise ValueError(f"maxiter must be at least 1, not {maxiter}")
    if _lazy.is_lazy(A):
        A = _lazy.functions().rows_of(A)
    _operators.refuse_sparse_of_others(A)
    if _operators.is_sparse(A) or _operators.is_operator(A):
        _check_for_some(which, check)
        problem, wrap = _of_products(A, k, center, rng), None
    else:
        A, wrap, on_device = _array(A, center)
        _check_size(A.shape, k)
        if on_device or k == 0 or which == "SM" or _pays_to_find_all(A.shape, k):
            _start(v0, A.shape, _space.name_of(A), rng)
            found = _by_all(A, k, which)
            return _given_back(*found, wrap, return_singular_vectors, full_output)
        problem = _of_array(A)
    start = _start(v0, problem.shape, problem.matrix.dtype, rng)
    start = start.conj() if problem.transposed else start
    U, s, Vh, info = _solved(problem, k, tol, rng, start, maxiter, check)
    return _given_back(U, s, Vh, info, wrap, return_singular_vectors, full_output)


# ---- arguments ----


def _check_names(which, vectors, check):
    if which not in ("LM", "SM"):
        text = f"which must be 'LM' or 'SM', not {which!r}"
        raise ValueError(f"{text}: singular values have no signs, the largest are 'LM'")
    if isinstance(vectors, np.ndarray) or vectors not in _VECTORS:
        raise ValueError(f"return_singular_vectors must be one of {_VECTORS}, not {vectors!r}")
    if check not in _CHECKS:
        raise ValueError(f"check must be one of {_CHECKS}, not {check!r}")


def _check_for_some(which, check):
    if which == "SM":
        raise ValueError(
            'which="SM" needs all values, and only dense arrays have them: give A.toarray(); '
            'which="LM" is for all kinds of A'
        )
    if check == "cholesky":
        raise ValueError('check="cholesky" takes dense arrays alone; "probabilistic" takes all')


def _whole(name, x):
    if isinstance(x, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, not {x!r}")
    try:
        return operator.index(x)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {x!r}") from None


def _tolerance(tol):
    tol = real("tol", 0 if tol is None else tol)
    if not 0 <= tol < 1:
        raise ValueError(f"tol must be at least 0 and below 1, not {tol}")
    return tol


def _generator(rng):
    if rng is None or isinstance(rng, (int, np.integer)):
        return np.random.default_rng(_SEED if rng is None else _whole("rng", rng))
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be an integer or a numpy.random.Generator, not {rng!r}")
    return rng


def _check_size(shape, k):
    if len(shape) != 2:
        raise ValueError(f"A must be one matrix, of two dimensions, not of shape {tuple(shape)}")
    least, most = min(1, *shape), min(shape)
    if not least <= k <= most:
        raise ValueError(
            f"k must be from {least} to {most}, as A has shape {tuple(shape)}; it is {k}"
        )


def _start(v0, shape, dtype, rng):
    """The start vector, of the length of the shorter side."""
    length = min(shape)
    if v0 is None:
        return _operators.random_vector(rng, length, dtype)
    v0 = np.asarray(v0)
    if v0.shape != (length,):
        raise ValueError(f"v0 must have shape ({length},), not {v0.shape}")
    if v0.dtype.kind not in "biufc" or (v0.dtype.kind == "c" and np.dtype(dtype).kind != "c"):
        raise TypeError(f"v0 has dtype {v0.dtype}, and A is computed in {dtype}")
    largest = np.max(np.abs(v0), initial=0)
    if not 0 < largest < np.inf:
        raise ValueError("v0 must not be zero or hold NaN or infinity")
    v0 = v0 / largest
    return (v0 / np.linalg.norm(v0)).astype(dtype)


# ---- kinds of A ----


class Problem(NamedTuple):
    """The largest values of A are 2^power times those of the matrix."""

    matrix: _operators.Products  # with no more columns than rows
    power: int
    transposed: bool  # the matrix is the transpose of A
    shape: tuple  # of A
    array: np.ndarray | None  # the matrix, if it is a dense array


def _array(A, center):
    """An array of the library of A, centred; what makes results of its own kind; where it lies."""
    x, space, _ = _space.given("A", A)
    on_device = _arrays.place_of(_arrays.DENSE, "A", x) not in (-1, None)
    wrap = None
    if not on_device and space is not np:
        wrap = _arrays.maker_on_host(x)
        x = np.asarray(_arrays.as_numpy("A", x))
    x = _space.computed("A", x)
    if center is not None:
        _check_size(x.shape, min(1, *x.shape))
        if center is True:
            means = x.sum(0) / max(len(x), 1)
        else:
            means = _arrays.from_host(_row(center, x.shape[1], _space.name_of(x)), x)
        x = x - means
    return x, wrap, on_device


def _row(center, n, dtype):
    row = np.asarray(center)
    row = row[0] if row.ndim == 2 and len(row) == 1 else row
    if row.shape != (n,):
        raise ValueError(f"center must be True or have shape ({n},), not {np.shape(center)}")
    if row.dtype.kind not in "biufc" or (row.dtype.kind == "c" and np.dtype(dtype).kind != "c"):
        raise TypeError(f"center has dtype {row.dtype}, and A is computed in {dtype}")
    if not np.isfinite(row).all():
        raise ValueError("center must not hold NaN or infinity")
    return row.astype(dtype)


def _of_array(A):
    scaled, power = _operators.dense(A)
    transposed = A.shape[0] < A.shape[1]
    scaled = scaled.T if transposed else scaled
    return Problem(_operators.Dense(scaled), power, transposed, A.shape, scaled)


def _of_products(A, k, center, rng):
    shape = tuple(A.shape)
    _check_size(shape, k)
    transposed = shape[0] < shape[1]
    if _operators.is_sparse(A):
        A, power = _operators.sparse(A)
        matrix = _operators.Sparse(A.T if transposed else A)
    else:
        matrix, power = _operators.operator(A, rng)
        matrix = _operators.Transposed(matrix) if transposed else matrix
    if center is not None:
        matrix = _centred(matrix, power, transposed, center)
    return Problem(matrix, power, transposed, shape, None)


def _centred(matrix, power, transposed, center):
    """The matrix is the transpose of A, scaled, or A itself, scaled."""
    m, n = matrix.shape[:: -1 if transposed else 1]
    ones = np.ones(m, matrix.dtype)
    if center is not True:
        row = _space.by_power(_row(center, n, matrix.dtype), -power)
    elif transposed:
        row = matrix.times(ones) / m
    else:
        row = matrix.adjoint_times(ones).conj() / m
    return _operators.Centred(matrix, *((row, ones) if transposed else (ones, row)))


# ---- all values, and some ----


def _pays_to_find_all(shape, k):
    order = min(shape)
    return k > order / _PART or order <= _SMALL


def _by_all(A, k, which):
    first = 0 if which == "LM" else min(A.shape) - k
    part = {} if k == 0 else {"select": "i", "select_range": (first, first + k - 1)}
    U, s, Vh = svd(A, full_matrices=False, **part)
    return U, s, Vh, PartialSVDInfo("full", 0, 0, 0, None, "all values", None, None, 0)


def _solved(problem, k, tol, rng, start, maxiter, check):
    matrix, check = problem.matrix, "probabilistic" if check == "auto" else check
    steps = max(20_000, 10 * matrix.shape[1]) if maxiter is None else maxiter
    budget = _krylov.Budget(steps)
    if k == 0:
        found, repaired = _krylov.Found(matrix, 0, tol), 0
    else:
        found, repaired = _krylov.leading(matrix, k, tol, rng, start, budget, check)
    eta = failure = None
    if check == "probabilistic":
        eta, failure = _krylov.check_gap(matrix.shape[1] - k), _krylov.CHECK_FAILURE
    elif check == "cholesky" and k > 0:
        eta, repaired = _krylov.certified(problem.array, found, rng, budget)
        failure = 0.0
    s, residuals = (_space.by_power(x, problem.power) for x in (found.s, found.residuals))
    U, Vh = found.U, found.V.conj().T
    if problem.transposed:
        U, Vh = found.V.conj(), found.U.T
    info = PartialSVDInfo(
        *("krylov", matrix.reads, budget.steps, budget.restarts, residuals),
        *(check, eta, failure, repaired),
    )
    return *_with_signs(U, s, Vh), info


def _with_signs(U, s, Vh):
    """The entry of largest magnitude in each column of U is real and positive."""
    if U.size == 0:
        return np.ascontiguousarray(U), s, np.ascontiguousarray(Vh)
    largest = np.take_along_axis(U, np.argmax(np.abs(U), axis=0)[None], axis=0)[0]
    turn = largest.conj() / np.abs(largest)
    return np.ascontiguousarray(U * turn), s, np.ascontiguousarray(Vh * turn.conj()[:, None])


def _given_back(U, s, Vh, info, wrap, vectors, full_output):
    if wrap is not None:
        U, s, Vh = (wrap(x) for x in (U, s, Vh))
    if vectors is True or vectors is np.True_:
        result = SVDResult(U, s, Vh)
    elif isinstance(vectors, str):
        result = SVDResult(U if vectors == "u" else None, s, Vh if vectors == "vh" else None)
    else:
        result = s
    return (result, info) if full_output else result
