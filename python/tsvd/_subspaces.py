"""What the singular vectors tell of subspaces: bases of range and null space, and angles."""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError

from . import _arrays, _space
from ._api import svd as bidiagonal_svd
from ._dense import bidiagonalize, svd, svdvals
from ._precision import in_own_precision


@in_own_precision
def orth(A, rcond=None, *, device=None, threads=None):
    """Orthonormal basis of the range of dense matrices.

    The first two arguments and the result are those of `scipy.linalg.orth`.

    Parameters
    ----------
    A : array_like, shape (..., m, n)
        The matrices; see `svd` for dtypes, batches and arrays of other libraries.
    rcond : float or array_like, shape (...), optional
        Singular values up to this part of the largest one count as zero. None:
        ``max(m, n) eps``, about as much as rounding moves a value.
    device, threads
        As in `svd`.

    Returns
    -------
    ndarray, shape (..., m, k)
        The basis in columns, k being the rank; an array of the library of A, and of
        the subclass of ndarray that A is of.

    Raises
    ------
    LinAlgError
        Matrices of a batch have several ranks; as of `svd`.
    TypeError, ValueError, MemoryError, RuntimeError
        As of `svd`.

    See Also
    --------
    null_space : What the matrices take to zero.

    Notes
    -----
    The basis are the left singular vectors of the values that do not count as zero
    [1]_. Large matrices are reduced to ``Q B P^H``, and Q is applied to the vectors
    of B; no right vector is formed.

    References
    ----------
    .. [1] G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition,
       Johns Hopkins University Press (2013), section 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> Q = linalg.orth([[1.0, 2.0], [2.0, 4.0], [2.0, 4.0]])
    >>> np.round(abs(3 * Q), 12)
    array([[1.],
           [2.],
           [2.]])
    """
    A, space, wrap = _space.given("A", A, device)
    A = _space.matrices("A", A)
    return wrap(_range(space, A, rcond, {"device": device, "threads": threads}))


@in_own_precision
def null_space(
    A,
    rcond=None,
    *,
    overwrite_a=False,
    check_finite=True,
    device=None,
    threads=None,
):
    """Orthonormal basis of the null space of dense matrices.

    The arguments and the result are those of `scipy.linalg.null_space`, which takes
    a `lapack_driver` as well.

    Parameters
    ----------
    A : array_like, shape (..., m, n)
        The matrices; see `svd` for dtypes, batches and arrays of other libraries.
    rcond : float or array_like, shape (...), optional
        As in `orth`.
    overwrite_a : bool
        Accepted for callers of SciPy. A is never written.
    check_finite : bool
        False: a matrix that holds NaN or infinity is no error, and gets NaN.
    device, threads
        As in `svd`.

    Returns
    -------
    ndarray, shape (..., n, n - k)
        The basis in columns, k being the rank; an array of the library of A, and of
        the subclass of ndarray that A is of.

    Raises
    ------
    LinAlgError
        Matrices of a batch have several ranks; as of `svd`.
    TypeError, ValueError, MemoryError, RuntimeError
        As of `svd`.

    See Also
    --------
    orth : The range of the matrices.

    Notes
    -----
    The basis are the right singular vectors of the values that count as zero, and
    those that complete the basis [1]_. Large matrices are reduced to ``Q B P^H``,
    and P is applied to the vectors of B; no left vector is formed.

    References
    ----------
    .. [1] G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition,
       Johns Hopkins University Press (2013), section 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> A = np.array([[1.0, 2.0, 2.0], [2.0, 4.0, 4.0]])
    >>> Z = linalg.null_space(A)
    >>> Z.shape, np.allclose(A @ Z, 0)
    ((3, 2), True)
    """
    A, space, wrap = _space.given("A", A, device)
    A, _ = _space.scaled(space, _space.matrices("A", A))
    options = {"check_finite": check_finite, "device": device, "threads": threads}
    m, n = A.shape[-2:]
    if _space.is_small(A):
        _, s, Vh = svd(A, full_matrices=m < n, **options)
        rank = _common_rank(A, s, rcond)
        Z = _space.adjoint(space, Vh[..., rank:, :])
        # PyTorch's conj() only marks numbers, and NumPy takes no such tensor
        return wrap(Z.resolve_conj() if hasattr(Z, "resolve_conj") else Z)
    form = bidiagonalize(A, **options)
    rank = _common_rank(A, form.svdvals(threads=threads), rcond)
    x = _inner_vectors(space, form, 2, rank, min(m, n), options)
    return wrap(form.apply_p(_extended(space, x, n, n - min(m, n))))


@in_own_precision
def subspace_angles(A, B, *, device=None, threads=None):
    """Angles between the ranges of dense matrices, the principal angles.

    The first two arguments and the result are those of `scipy.linalg.subspace_angles`.

    Parameters
    ----------
    A : array_like, shape (..., m, n)
        Matrices whose columns span the first subspaces; see `svd` for dtypes, batches
        and arrays of other libraries.
    B : array_like, shape (..., m, k)
        Those of the second subspaces, of the same library and place. Leading
        dimensions broadcast to those of A.
    device, threads
        As in `svd`.

    Returns
    -------
    ndarray, shape (..., q)
        The angles in radians, in descending order, q being the smaller of the ranks;
        an array of the library of A.

    Raises
    ------
    LinAlgError
        A and B have different numbers of rows; matrices of a batch have several
        ranks; as of `svd`.
    TypeError
        A and B are of different libraries; as of `svd`.
    ValueError, MemoryError, RuntimeError
        As of `svd`.

    See Also
    --------
    orth : The bases of the subspaces.

    Notes
    -----
    Angles above 45 degrees come from their cosines, the singular values of
    ``Qa^H Qb``; smaller ones from their sines, those of ``Qb - Qa Qa^H Qb`` [1]_.

    Columns are first scaled by powers of two to like size, as in [1]_. This leaves
    the subspaces, and tiny columns count as large ones do. A column that is zero but
    for rounding errors spans a direction then: leave it out, or pass ``orth(A)``.

    Accuracy: each angle to a small multiple of ``m eps`` times the condition of the
    scaled columns.

    References
    ----------
    .. [1] A. V. Knyazev and M. E. Argentati, "Principal angles between subspaces in
       an A-based scalar product: algorithms and perturbation estimates", SIAM J.
       Sci. Comput. 23 (2002), 2008-2040.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> a, b = [[1.0], [0.0], [0.0]], [[1.0], [1e-9], [0.0]]
    >>> np.isclose(linalg.subspace_angles(a, b), 1e-9, rtol=1e-6, atol=0)
    array([ True])
    """
    (A, space, _), (B, _, _) = _space.given_both("A", A, "B", B, device)
    A, B = _space.matrices("A", A), _space.matrices("B", B)
    if A.shape[-2] != B.shape[-2]:
        raise LinAlgError(
            f"A and B must have the same number of rows, not {A.shape[-2]} and {B.shape[-2]}"
        )
    for name, x in (("A", A), ("B", B)):
        _space.refuse_not_finite(space, name, x)
    options = {"device": device, "threads": threads}
    most, least = (
        _range(space, _space.scaled_columns(space, x), None, options)
        for x in _space.in_one_type(A, B)
    )
    if most.shape[-1] < least.shape[-1]:
        most, least = least, most
    product = _space.adjoint(space, most) @ least
    cosines = space.flip(svdvals(product, **options), (-1,))
    sines = svdvals(least - most @ product, **options)
    return space.where(
        cosines**2 < 0.5,
        space.arccos(space.clip(cosines, 0, 1)),
        space.arcsin(space.clip(sines, 0, 1)),
    )


# ---- bases ----


def _range(space, A, rcond, options):
    A, _ = _space.scaled(space, A)
    if _space.is_small(A):
        U, s, _ = svd(A, full_matrices=False, **options)
        return U[..., : _common_rank(A, s, rcond)]
    form = bidiagonalize(A, **options)
    rank = _common_rank(A, form.svdvals(threads=options["threads"]), rcond)
    x = _inner_vectors(space, form, 0, 0, rank, options)
    return form.apply_q(_extended(space, x, A.shape[-2], 0))


def _common_rank(A, s, rcond):
    """The rank that all matrices of a batch have; of no matrices the full one."""
    part = _space.least_part(A, s) if rcond is None else rcond
    ranks = _space.on_host(_space.counting("rcond", part, s).sum(-1)).reshape(-1)
    if ranks.size == 0:
        return min(A.shape[-2:])
    if (ranks != ranks[0]).any():
        raise LinAlgError(
            f"the matrices have ranks from {ranks.min()} to {ranks.max()}, and bases of them have "
            "different shapes: give the matrices one by one"
        )
    return int(ranks[0])


def _inner_vectors(space, form, side, first, end, options):
    """Columns of L (side 0) or R^H (side 2) of a bidiagonal form, from `first` to before `end`."""
    if first == end:
        shape = (*form.shape[:-2], min(form.shape[-2:]), 0)
        return _arrays.from_host(np.zeros(shape, form.dtype), form.d)
    wanted = {"select": "i", "select_range": (first, end - 1)}
    x = bidiagonal_svd(form.d, form.e, lower=form.lower, **wanted, **options)[side]
    x = _space.adjoint(space, x) if side == 2 else x
    return _space.in_type(form.dtype.name, x)


def _extended(space, x, rows, extra):
    """x with zeros below it up to `rows`, and beside it the last columns of the identity."""
    *batch, p, count = x.shape
    name = str(x.dtype).rpartition(".")[2]

    def beside(x, block, axis):
        block = space.broadcast_to(_arrays.from_host(block, x), (*batch, *block.shape))
        return space.concatenate([x, block], axis)

    if rows > p:
        x = beside(x, np.zeros((rows - p, count), name), -2)
    return beside(x, np.eye(rows, extra, extra - rows, name), -1) if extra > 0 else x
