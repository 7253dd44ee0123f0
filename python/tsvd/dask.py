"""The SVD and what rests on it for Dask: lazily, chunk by chunk, on threads or on a cluster.

    import dask.array as da
    import tsvd.dask
    U, S, Vh = tsvd.dask.linalg_svd(da.from_array(a, chunks=(100_000, -1)), full_matrices=False)
    L, s, R = tsvd.dask.svd(d, e, chunks=1000)

`svd` and `svdvals` are those of bidiagonal matrices, whose vectors may be larger than memory.
`linalg_svd`, `linalg_svdvals`, `linalg_inv`, `linalg_pinv`, `linalg_lstsq` and `linalg_svds` take
dense ones: batches of any chunks, and matrices that are chunked in rows or in columns. Functions of
`tsvd.linalg` that are given Dask arrays call them.

Importing tsvd does not import this module. Nothing is computed before results are asked for, but by
`linalg_svds`. The same chunks give the same bits, on every scheduler.
"""

from __future__ import annotations

import functools

import dask
import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from numpy.linalg import LinAlgError

from . import _api, _arrays, _dask_tree, _dense, _partial, _solutions, _space
from ._dask_tree import task
from ._selection import index_range
from ._types import SVDResult

__all__ = [
    "linalg_inv",
    "linalg_lstsq",
    "linalg_pinv",
    "linalg_svd",
    "linalg_svds",
    "linalg_svdvals",
    "svd",
    "svdvals",
]

# For arrays without entries, which tell types and whether options are right.
_WHOLE = {"select": "a", "select_range": None}


# ---- bidiagonal matrices ----


def svd(
    d,
    e,
    *,
    chunks="auto",
    lower=False,
    method="auto",
    eps=None,
    select="a",
    select_range=None,
    check_finite=True,
    device=None,
    threads=None,
):
    """Singular value decomposition of a bidiagonal matrix, its vectors slab by slab.

    Parameters
    ----------
    d : array_like, shape (n,)
        The diagonal: an array of NumPy, or of Dask.
    e : array_like, shape (n-1,) or (n,)
        The off-diagonal, as for `tsvd.svd`.
    chunks : int, tuple of int or "auto"
        How many vectors a slab has. "auto": as many as Dask's setting
        ``array.chunk-size`` allows.
    lower, method, eps, check_finite, device, threads
        As for `tsvd.svd`, for each slab. Methods that compute parts are "dc",
        "twisted" and "auto", which is "twisted" if it takes all slabs, and else "dc".
    select : {"a", "i"}
        "a": all values. "i": those with the indices of `select_range`.
    select_range : (min, max), optional
        Two integers, ``0 <= min <= max < n``.

    Returns
    -------
    SVDResult
        Dask arrays ``(L, s, R)`` of shapes (n, k), (k,) and (k, n); of matrices
        with n entries of e (n + 1, k) or (k, n + 1) on the longer side. L is
        chunked in columns, R in rows, s as both.

    Raises
    ------
    ValueError
        Shapes that do not fit, or an option out of range; NaN and infinity when
        the slabs are computed.
    numpy.linalg.LinAlgError
        ``method="twisted"`` refused values; when the slabs are computed.
    NotImplementedError
        ``select="v"``: how many values an interval holds is not known before.

    See Also
    --------
    tsvd.svd : The same into one array.

    Notes
    -----
    Each slab is a task of its own. By "twisted" it takes ``O(n k)`` work and memory for
    its k values, and waits for no other one; "dc" takes the work and the memory of all
    values. Slabs of one method alone are orthogonal to each other. So "auto" first
    tries "twisted" for every slab, and keeps nothing of that but whether it took the
    values: twice the work. Store L and R as they come, for example by ``da.to_zarr``.

    Examples
    --------
    >>> import numpy as np
    >>> import tsvd.dask
    >>> d, e = np.ones(1000), np.ones(999)
    >>> L, s, R = tsvd.dask.svd(d, e, chunks=250)
    >>> L.chunks, s.chunks
    (((1000,), (250, 250, 250, 250)), ((250, 250, 250, 250),))
    >>> bool(abs(s - 2 * np.cos(np.arange(1, 1001) * np.pi / 2001)).max() < 1e-12)
    True
    """
    options = dict(
        lower=lower,
        eps=eps,
        check_finite=check_finite,
        device=device,
        threads=threads,
    )
    d, e = da.asarray(d), da.asarray(e)
    if d.ndim != 1 or e.ndim != 1:
        raise ValueError(
            f"d and e must have one dimension, not the shapes {d.shape} and {e.shape}: "
            "map tsvd.svd over a batch, or use linalg_svd"
        )
    metas = _api.svd(meta_from_array(d), meta_from_array(e), method=method, **options)
    n, extra = d.shape[0], int(0 < d.shape[0] == e.shape[0])
    if e.shape[0] not in (max(n - 1, 0), n):
        raise ValueError(f"e has {e.shape[0]} entries, and d {n}: e has n - 1, or n")
    k, part = _part(select, select_range, n)
    first = part["select_range"][0] if part else 0
    rows, columns = n + (extra and bool(lower)), n + (extra and not lower)
    widest = max(rows, columns, 1)
    slabs = da.core.normalize_chunks((chunks, (widest,)), (k, widest), dtype=metas.s.dtype)[0]
    whole = [x.rechunk(-1).to_delayed().ravel()[0] for x in (d, e)]
    parts = []
    for count in slabs:
        parts.append({"select": "i", "select_range": (first, first + count - 1)} if count else {})
        first += count
    if method == "auto" and len(slabs) > 1:
        method = task(_common_method)([task(_passes)(*whole, part, options) for part in parts])
    found = [task(_slab, nout=3)(*whole, part, method, options) for part in parts]
    sizes = [[(rows, count), (count,), (count, columns)] for count in slabs]
    L, s, R = (
        da.concatenate(
            [
                da.from_delayed(slab[i], size[i], meta=meta_from_array(metas[i], len(size[i])))
                for slab, size in zip(found, sizes, strict=True)
            ],
            axis=-1 if i < 2 else 0,
        )
        for i in range(3)
    )
    return SVDResult(L, s, R)


def _slab(d, e, part, method, options):
    """Those of the values that `part` selects; {}: none of them."""
    low, high = part.get("select_range", (0, 0))
    try:
        L, s, R = _api.svd(d, e, **part, method=method, tuning={"fallback": 0}, **options)
    except LinAlgError as error:
        if method != "twisted":
            raise
        raise LinAlgError(
            f"twisted refused values {low} to {high}, and all slabs need the same method: "
            'use method="auto" or "dc"'
        ) from error
    except MemoryError as error:
        raise MemoryError(f"the slab of values {low} to {high}: {error}") from error
    return (L, s, R) if part else (L[:, :0], s[:0], R[:0])


def _passes(d, e, part, options):
    """Whether "twisted" takes the values of a slab."""
    try:
        _slab(d, e, part, "twisted", options)
    except LinAlgError:
        return False
    return True


def _common_method(passed):
    """Of close values the two methods find different vectors, which mix in no result."""
    return "twisted" if all(passed) else "dc"


def _part(select, select_range, n):
    """How many values are wanted, and the arguments that say so."""
    if select == "v":
        raise NotImplementedError(
            'select="v" is not for lazy arrays, since how many values an interval holds is not '
            'known before; use select="i"'
        )
    if select == "a" and select_range is None:
        return n, {}
    if select != "i":
        raise ValueError(f'select must be "a", without a select_range, or "i", not {select!r}')
    low, high = index_range(select_range, n)
    return high - low + 1, {"select": "i", "select_range": (low, high)}


def svdvals(d, e, *, lower=False, **options):
    """Singular values of bidiagonal matrices, in one task.

    Parameters
    ----------
    d, e : array_like, shapes (n,) and (n-1,) or (n,)
        As for `svd`.
    lower : bool
        Whether e is the sub-diagonal.
    **options
        Those of `tsvd.svdvals`, but for `select`, `out`, `stream` and `full_output`.

    Returns
    -------
    dask.array.Array, shape (n,)
        The values, descending.

    See Also
    --------
    svd : Values and vectors.
    """
    d, e = da.asarray(d), da.asarray(e)
    meta = _api.svdvals(meta_from_array(d), meta_from_array(e), lower=lower, **options)
    whole = [x.rechunk(-1).to_delayed().ravel()[0] for x in (d, e)]
    call = functools.partial(_api.svdvals, lower=lower, **options)
    return da.from_delayed(task(call)(*whole), d.shape, meta=meta)


# ---- dense matrices ----


def linalg_svd(
    a,
    full_matrices=True,
    compute_uv=True,
    *,
    select="a",
    select_range=None,
    again=False,
    **options,
):
    """Singular value decomposition of dense matrices, chunk by chunk.

    Parameters
    ----------
    a : dask.array.Array, shape (..., m, n)
        The matrices, of chunks of NumPy or CuPy. Batches may be chunked as they like
        along their leading dimensions. One matrix may be chunked in rows, or in
        columns.
    full_matrices, compute_uv
        As for `tsvd.linalg.svd`. A matrix that is chunked needs
        ``full_matrices=False``.
    select, select_range
        "a", or "i" and two integers, as for `tsvd.linalg.svd`.
    again : bool
        Of a matrix that is chunked. False: an orthogonal factor of each block, as
        large as the block, is kept until its part of U or Vh is done. True: blocks
        and factors are made twice, and none is kept meanwhile: for matrices that
        are larger than memory, and cheap to read.
    **options
        `method`, `eps`, `check_finite`, `max_sweeps`, `device`, `threads`, as for
        `tsvd.linalg.svd`.

    Returns
    -------
    SVDResult or dask.array.Array
        ``(U, S, Vh)``, or S alone. U of a matrix in rows has its chunks, and Vh of one
        in columns.

    Raises
    ------
    ValueError
        A matrix that is chunked in rows and in columns, a batch of matrices that are
        chunked, unknown sizes; the text has the line that mends it. NaN or infinity,
        when the results are computed.
    NotImplementedError
        ``select="v"``.

    Notes
    -----
    A matrix in rows goes through a QR tree [1]_, and `tsvd.linalg.svd` takes the
    triangle that is left. Work and accuracy are those of `tsvd.linalg.svd` with a QR
    decomposition first, and a second one with `again`. A task has the memory of
    a few blocks, or of nine n x n matrices.

    Signs: the entry of largest magnitude of each row of Vh, of a matrix in columns of
    each column of U, is real and positive. Of batches they are those of
    `tsvd.linalg.svd`.

    References
    ----------
    .. [1] J. Demmel, L. Grigori, M. Hoemmen and J. Langou, "Communication-optimal
       parallel and sequential QR and LU factorizations", SIAM J. Sci. Comput. 34
       (2012), A206-A239.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import tsvd.dask
    >>> a = da.from_array(np.random.default_rng(0).standard_normal((900, 20)), chunks=(300, -1))
    >>> U, S, Vh = tsvd.dask.linalg_svd(a, full_matrices=False)
    >>> U.chunks
    ((300, 300, 300), (20,))
    >>> bool(abs(a - U * S @ Vh).max() < 1e-13)
    True
    """
    a = _array(a)
    rows = _in_rows(a)
    k, part = _part(select, select_range, min(a.shape[-2:]))
    if rows is None:
        return _by_matrix(a, full_matrices and not part, compute_uv, k, part, options)
    if compute_uv and full_matrices and not part:
        raise ValueError(
            "a is chunked, and full_matrices=True asks for square U and Vh: use full_matrices=False"
        )
    options = {**part, **options}
    if not rows:
        found = linalg_svd(a.T, False, compute_uv, again=again, **options)
        return SVDResult(found.Vh.T, found.S, found.U.T) if compute_uv else found
    meta = meta_from_array(a, 2)
    metas = _dense.svd(meta, full_matrices=False, **{**options, **_WHOLE})
    a, checked = _computed(a, metas.U.dtype), options.get("check_finite", True)
    tree = _dask_tree.Tree(a, keep=compute_uv and not again, check_finite=checked)
    root = task(_root, nout=3)(tree.triangle, compute_uv, options)
    S = da.from_delayed(root[1], (k,), meta=meta_from_array(metas.S, 1))
    if not compute_uv:
        return S
    U = tree.left_vectors(root[0], k, metas.U)
    return SVDResult(U, S, da.from_delayed(root[2], (k, a.shape[1]), meta=metas.Vh))


def linalg_svdvals(a, *, select="a", select_range=None, **options):
    """Singular values of dense matrices, chunk by chunk.

    Parameters
    ----------
    a : dask.array.Array, shape (..., m, n)
        As for `linalg_svd`. Each block of a matrix is read once, and none is kept.
    select, select_range, **options
        As for `linalg_svd`.

    Returns
    -------
    dask.array.Array, shape (..., k)
        The values, descending.

    See Also
    --------
    linalg_svd : Values and vectors.
    """
    return linalg_svd(a, compute_uv=False, select=select, select_range=select_range, **options)


def linalg_inv(a, **options):
    """The inverses of square matrices, of a batch of any chunks.

    Parameters
    ----------
    a : dask.array.Array, shape (..., n, n)
        The matrices, none of them chunked.
    **options
        `refine`, `check_finite`, `device`, `threads`, as for `tsvd.linalg.inv`.

    Returns
    -------
    dask.array.Array, shape (..., n, n)
        The inverses, chunked as a.

    Raises
    ------
    ValueError
        Matrices that are chunked.
    numpy.linalg.LinAlgError
        a has less than two dimensions or is not square; when the results are
        computed, a matrix that is singular.
    """
    a = _array(a)
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    if _in_rows(a) is not None:
        raise ValueError("a is chunked, and an inverse takes a whole matrix: use a.rechunk(-1)")
    meta = _dense.inv(meta_from_array(a, 2), **options)
    call = functools.partial(_dense.inv, **options)
    return da.apply_gufunc(call, "(m,n)->(m,n)", a, meta=meta_from_array(meta, a.ndim))


def linalg_pinv(a, rcond=None, *, again=False, **options):
    """The pseudo-inverse of a matrix that is chunked in rows or in columns.

    Parameters
    ----------
    a : dask.array.Array, shape (m, n)
        The matrix.
    rcond : float, optional
        Singular values up to this part of the largest one count as zero. None:
        ``max(m, n) eps``, eps being that of the dtype.
    again, **options
        As for `linalg_svd`.

    Returns
    -------
    dask.array.Array, shape (n, m)
        The pseudo-inverse, chunked as the transpose of a.
    """
    a = _array(a)
    if a.ndim != 2:
        raise ValueError(f"a must have two dimensions, not the shape {a.shape}")
    rows = _in_rows(a)
    if rows is False:
        return linalg_pinv(a.T, rcond, again=again, **options).T
    if rows is None:
        meta = _solutions.pinv(meta_from_array(a, 2), **options)
        call = functools.partial(_solutions.pinv, rcond=rcond, **options)
        return da.apply_gufunc(call, "(m,n)->(n,m)", a, meta=meta)
    meta = _dense.svd(meta_from_array(a, 2), full_matrices=False, **options).U
    a = _computed(a, meta.dtype)
    checked = options.get("check_finite", True)
    tree = _dask_tree.Tree(a, keep=not again, check_finite=checked)
    inner = task(_inverse_of_root)(tree.triangle, _rcond(a, rcond), options)
    return tree.left_vectors(inner, a.shape[1], meta).conj().T


def linalg_lstsq(a, b, rcond=None, **options):
    """Least-squares solution of equations whose matrix is chunked in rows.

    Parameters
    ----------
    a : dask.array.Array, shape (m, n)
        The matrix.
    b : dask.array.Array, shape (m,) or (m, k)
        The right-hand sides, in columns. It is chunked in rows as a is.
    rcond : float, optional
        As for `linalg_pinv`.
    **options
        `device`, `threads`, as for `tsvd.linalg.lstsq`.

    Returns
    -------
    x : dask.array.Array, shape (n,) or (n, k)
        The solutions, of all the shortest ones.
    residuals : dask.array.Array, shape () or (k,)
        The squares of ``|b - a @ x|``, whatever the rank is.
    rank : dask.array.Array, shape ()
        How many values did not count as zero.
    s : dask.array.Array, shape (min(m, n),)
        The singular values.

    Notes
    -----
    The QR tree of ``[a b]`` has R, Q^H b and the residual: each block is read once.
    """
    a, b = _array(a), da.asarray(b)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise LinAlgError(f"a and b do not fit: they have the shapes {a.shape} and {b.shape}")
    if a.numblocks[1] > 1:
        raise ValueError("a is chunked in columns: use a.rechunk({0: 'auto', 1: -1})")
    _check_sizes(a)
    flat = b.ndim == 1
    b = b[:, None] if flat else b
    b = b.rechunk((a.chunks[0], -1))
    dtype = _dense.svdvals(meta_from_array(a, 2)).dtype
    dtype = np.result_type(dtype, a.dtype, b.dtype)
    meta = meta_from_array(a, 2, dtype)
    dtype = _dense.svd(meta).U.dtype
    meta = meta_from_array(a, 2, dtype)
    tree = _dask_tree.Tree(_computed(a, dtype), _computed(b, dtype))
    m, n = a.shape
    found = task(_least_squares, nout=4)(tree.triangle, n, _rcond(a, rcond), flat, options)
    right = () if flat else (b.shape[1],)
    values = meta.real
    return (
        da.from_delayed(found[0], (n, *right), meta=meta_from_array(meta, 1 + len(right))),
        da.from_delayed(found[1], right, meta=meta_from_array(values, len(right))),
        da.from_delayed(found[2], (), meta=meta_from_array(values, 0, np.dtype(np.int32))),
        da.from_delayed(found[3], (min(m, n),), meta=meta_from_array(values, 1)),
    )


def linalg_svds(a, k=6, **options):
    """The k largest singular values and their vectors of a matrix that is chunked in rows.

    Parameters
    ----------
    a : dask.array.Array, shape (m, n), m >= n
        The matrix, of dense or of sparse chunks. Each step of the method reads it once, so
        it may be worth the memory to persist it.
    k, **options
        As for `tsvd.linalg.svds`.

    Returns
    -------
    (U, s, Vh) or s
        As from `tsvd.linalg.svds`: arrays of NumPy. It computes at once.

    Notes
    -----
    A step is one computation of Dask: each block multiplies, and the products are added in a
    fixed order. u stays where the blocks are. The caller's memory is that of
    `tsvd.linalg.svds` for n rows, and U.
    """
    return _partial.svds(rows_of(a), k, **options)


def rows_of(a):
    """The operator of a matrix that is chunked in rows, as `linalg_svds` has it."""
    return _Rows(_array(a))


# ---- how a matrix is chunked ----


def _array(a):
    a = da.asarray(a)
    if a.ndim < 2:
        raise LinAlgError(
            f"{a.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    return a


def _check_sizes(a):
    if any(np.isnan(size) for size in a.shape):
        raise ValueError("a has chunks of unknown sizes: call a.compute_chunk_sizes() first")


def _in_rows(a):
    """True: a matrix that is chunked in rows; False: in columns; None: a batch of whole ones."""
    _check_sizes(a)
    rows, columns = (count > 1 for count in a.numblocks[-2:])
    if a.ndim > 2:
        if rows or columns:
            raise ValueError(
                "the matrices of a are chunked, and only a single one may be: "
                "use a.rechunk({-2: -1, -1: -1})"
            )
        return None
    if rows and columns:
        better = "{0: 'auto', 1: -1}" if a.shape[0] >= a.shape[1] else "{0: -1, 1: 'auto'}"
        raise ValueError(f"a is chunked in rows and in columns: use a.rechunk({better})")
    return rows if rows or columns else None


def _computed(a, dtype):
    """Blocks of a dtype that is computed."""
    return a if a.dtype == dtype else a.astype(dtype)


def _rcond(a, rcond):
    return max(a.shape) * float(np.finfo(a.dtype).eps) if rcond is None else rcond


# ---- tasks ----


def _by_matrix(a, full, vectors, k, part, options):
    """The same for each matrix of a batch."""
    metas = _dense.svd(meta_from_array(a, 2), full_matrices=full, compute_uv=vectors, **options)
    call = functools.partial(_dense.svd, full_matrices=full, compute_uv=vectors, **part, **options)
    m, n = a.shape[-2:]
    if not vectors:
        return da.apply_gufunc(
            call,
            "(m,n)->(k)",
            a,
            meta=meta_from_array(metas, a.ndim - 1),
            output_sizes={"k": k},
        )
    U, S, Vh = da.apply_gufunc(
        call,
        "(m,n)->(m,p),(k),(q,n)",
        a,
        meta=tuple(meta_from_array(x, a.ndim - (i == 1)) for i, x in enumerate(metas)),
        output_sizes={"k": k, "p": m if full else k, "q": n if full else k},
    )
    return SVDResult(U, S, Vh)


def _turned(W, Vh):
    """Makes the largest entry of each row of Vh real and positive."""
    if Vh.size == 0:
        return W, Vh
    most = np.take_along_axis(Vh, abs(Vh).argmax(1)[:, None], 1)
    size = abs(most)
    turn = np.where(size > 0, most / np.where(size > 0, size, 1), 1)
    return W * turn[:, 0], turn.conj() * Vh


def _root(triangle, vectors, options):
    """The decomposition of the triangle, S with its power."""
    R, power = triangle
    power = power[0] if len(power) else 0
    if not vectors:
        return None, _space.by_power(_dense.svdvals(R, **options), power), None
    W, S, Vh = _dense.svd(R, full_matrices=False, **options)
    W, Vh = _turned(W, Vh)
    return W, _space.by_power(S, power), Vh


def _inverse_of_root(triangle, rcond, options):
    """The adjoint of the pseudo-inverse of the triangle."""
    R, power = triangle
    inverse = _solutions.pinv(R, rcond=rcond, **options)
    return _space.by_power(inverse.conj().T, -power[0] if len(power) else 0)


def _least_squares(triangle, n, rcond, flat, options):
    R, power = triangle
    p = min(len(R), n)
    own = power[0] if n else 0
    x, _, rank, s = _solutions.lstsq(R[:p, :n], R[:p, n:], rcond, **options)
    # of deficient rank a part of b also stays where x cannot reach
    rest = np.concatenate([R[p:, n:], R[:p, n:] - R[:p, :n] @ x])
    rest = _space.by_power(rest, power[None, n:])
    x = _space.by_power(x, power[None, n:] - own)
    residuals = (rest * rest.conj()).real.sum(0)
    if flat:
        x, residuals = x[:, 0], residuals[0]
    return x, residuals, rank.reshape(()), _space.by_power(s, own)


# ---- the products for svds ----


class _Rows:
    """The operator that `tsvd.linalg.svds` takes: see its Notes on step()."""

    def __init__(self, a):
        if a.ndim != 2 or a.numblocks[1] > 1:
            raise ValueError("a must be a matrix that is chunked in rows: use a.rechunk({1: -1})")
        _check_sizes(a)
        self.shape, self.dtype = a.shape, a.dtype
        self._blocks = a.to_delayed().ravel()
        self._ends = np.cumsum((0, *a.chunks[0]))
        self._u = [None] * len(self._blocks)

    def step(self, v, gamma):
        v = dask.delayed(v)
        parts = [
            task(_step, nout=3)(block, v, gamma, u)
            for block, u in zip(self._blocks, self._u, strict=True)
        ]
        kept = dask.persist(*(x for part in parts for x in part))
        self._u = kept[::3]
        square, y = dask.compute(_sum(kept[1::3]), _sum(kept[2::3]))
        return float(square), y

    def matmat(self, X):
        X = dask.delayed(X)
        return np.concatenate(dask.compute(*(task(_times)(block, X) for block in self._blocks)))

    def rmatmat(self, X):
        slabs = (X[i:j] for i, j in zip(self._ends, self._ends[1:], strict=False))
        products = [
            task(_adjoint_times)(block, dask.delayed(slab))
            for block, slab in zip(self._blocks, slabs, strict=True)
        ]
        return _sum(products).compute()

    matvec, rmatvec = matmat, rmatmat


# X and v are arrays of the host, and so are products; u stays where its block is.


def _times(block, X):
    return _arrays.to_host(block @ _arrays.from_host(X, block))


def _adjoint_times(block, X):
    return _arrays.to_host(block.conj().T @ _arrays.from_host(X, block))


def _step(block, v, gamma, u):
    product = block @ _arrays.from_host(v, block)
    u = product if u is None else product - gamma * u
    return u, float(np.vdot(u, u).real), _arrays.to_host(block.conj().T @ u)


def _add(parts):
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _sum(parts):
    """The sum in an order that the number of parts fixes."""
    parts = list(parts)
    while len(parts) > 1:
        parts = [task(_add)(parts[i : i + 8]) for i in range(0, len(parts), 8)]
    return parts[0]
