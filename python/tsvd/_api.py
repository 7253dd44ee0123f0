"""svd and svdvals of bidiagonal matrices."""

from __future__ import annotations

import functools
import itertools
import math

from . import _arrays, _call, _core
from ._devices import default_device, is_single, opens, shape_of
from ._options import INT64_MAX, binds, checked, refusal
from ._types import SVDResult

# A call without e is answered in our own words.
_MISSING = object()


@binds("e")
def svd(
    d,
    e=_MISSING,
    *,
    lower=False,
    full_matrices=False,
    compute_uv=True,
    method="auto",
    eps=None,
    max_sweeps=None,
    select="a",
    select_range=None,
    device=None,
    stream=None,
    out=None,
    check_finite=True,
    threads=None,
    progress=None,
    tuning=None,
    full_output=False,
    **unknown,
):
    """Singular value decomposition of bidiagonal matrices.

    ``B = diag(d) + diag(e, 1) = L @ diag(s) @ R`` with L and R orthogonal and
    s descending. B is never formed. It is square, or has one column more than
    rows, or one row more than columns, as Golub-Kahan-Lanczos and LSQR make it.

    Parameters
    ----------
    d : array_like, shape (..., n)
        The diagonal. float64 and float32 are computed in their own precision,
        integers and bool as float64, and two different types in the wider of
        them. Arrays with any strides, also read-only ones, are read in place and
        never written. ``n = 0`` is allowed. Arrays of CuPy, PyTorch, JAX and of
        other libraries with DLPack or the CUDA array interface are taken where
        they lie, on the host or on a CUDA device.
    e : array_like, shape (..., n-1) or (..., n)
        The off-diagonal; shape (..., 0) for ``n = 0``. With n entries B is
        n x (n+1), or with lower (n+1) x n. The leading dimensions of d and e are
        a batch of matrices and broadcast.
    lower : bool
        True: e is the sub-diagonal, ``B = diag(d) + diag(e, -1)``.
    full_matrices : bool
        True: with all values of an n x (n+1) matrix R is (n+1) x (n+1), and of an
        (n+1) x n matrix L is; the last row of R, or column of L, is the null
        vector. For square matrices it makes no difference.
    compute_uv : bool
        False: only s is computed and returned, as by `svdvals`.
    method : {"auto", "dc", "qr", "givens", "bisect", "twisted"}
        "auto": the fastest method that reaches the accuracy below. It is "dc" or
        "twisted" with vectors, and "qr" or "bisect" without.
        "dc": divide and conquer [3]_. Almost all of its work is matrix products;
        values that deflate save work. Without vectors it finds the values as
        "auto" does. "qr": implicit-shift QR [1]_, which needs the least memory.
        "givens": zero-shift sweeps of Givens rotations in a pipeline [2]_. It
        converges linearly, and is there to be studied. Implicit QR takes what
        is left before rounding reaches the accuracy below. "bisect": Sturm
        counts, values only. "twisted": each vector by itself from twisted
        factorisations in twice the digits [4]_, O(n) work for each. A matrix
        with values that are too close together for it goes to "dc"; the results
        are probed always. Without vectors as "auto".
    eps : float, optional
        How far B may be perturbed, in the units of B. Entries of this size or
        less count as zero, and values that are as close may count as equal.
        The error of B is at most 4 eps plus that of full accuracy. A looser eps
        leaves less work. None: full accuracy of the dtype.
    max_sweeps : int, optional
        Bound on the sweeps for each matrix of "qr" and "givens". For "givens" a
        sweep of QR counts as two. None: the method's own bound.
    select : {"a", "v", "i"}
        Which values are computed, with their vectors. "a": all. "v": those in
        the half-open interval ``(min, max]``. "i": those with indices ``min`` to
        ``max``, both included, where 0 is the largest. The time for values alone
        is proportional to their number, and so is that of "twisted" with vectors;
        the last level of "dc" forms only the vectors that are wanted. "v" takes
        one matrix only, as the matrices of a batch may have different numbers of
        values in the interval.
    select_range : (min, max), optional
        Required by "v" and "i", not allowed with "a". For "v" two numbers in the
        units of B, ``min < max``, which may be infinite. A value within an ulp
        of a bound may be counted on either side, unless it is a number of the
        dtype. What is returned lies in the interval, but for arrays on a CUDA
        device, where it may be off by an ulp or so. For "i" two integers, ``0 <= min <= max < n``.
    device : str, int or list of them, optional
        "cpu", "cuda", "cuda:1" or 1. A list, or "cuda:*" for all, names CUDA devices
        that share the call, see Notes. None: the first usable CUDA device for large
        matrices, from n = 768 on for vectors by "auto" or "dc", from n = 1024 on
        for values alone by "auto", "dc" or "bisect", and by the same methods for
        batches that have 131072 values or more. These hold for an H200; slower
        devices need more, and those that compute float64 at a small part of the
        rate of float32 are taken for vectors in float32 alone. Otherwise, and if
        there is no such device, no cuBLAS or not enough device memory, the CPU.
        On CUDA devices "auto" is "dc" or "twisted" with vectors and "bisect"
        without. For arrays on a CUDA device: that device; no other may be named.
    stream : int or object, optional
        The CUDA stream to compute on: the address of a ``cudaStream_t``, 0 or 1
        for the legacy default stream, 2 for that of the calling thread, or an
        object with ``__cuda_stream__()``. None: the current stream of PyTorch or
        CuPy if d is theirs, else the one that its CUDA array interface names, else
        one of tsvd's own. Arrays on the host need a `device` with it.
    out : tuple (L, s, R) of arrays, or array, optional
        Arrays that take the results and are returned; one, if compute_uv is False.
        They are C-contiguous, writeable, of exactly the shapes and dtype of the
        results, where d and e lie, and share no memory with each other or the
        input. After an error their contents are unspecified.
    check_finite : bool
        True: NaN and infinity are refused. False: a matrix that holds one gets
        results filled with NaN.
    threads : int, optional
        Number of host threads. None: as many as OpenMP would use, which the variable
        OMP_NUM_THREADS sets. No more are taken than the matrix has work for, or 4 for
        each processor. The results do not depend on it.
    progress : callable, optional
        ``progress(done)`` is called from the calling thread at most 20 times a
        second with the share of the work done, in [0, 1], and with 1.0 at the
        end. If it raises, the computation stops with that exception. If it
        forks the process, the call ends with RuntimeError in the child.
    tuning : mapping of str to int, optional
        Settings for experiments. "fallback": 0 raises LinAlgError where "twisted"
        would go to "dc". The others are for "givens". "blocks": the number of blocks
        that the matrix is cut into. "block_threads": the number of sweeps that run at
        once. "split": 0 keeps the matrix whole to the end as published in [2]_, with
        the same rotations and many empty steps.
    full_output : bool
        Return a pair, the result and an `SVDInfo`.

    Returns
    -------
    SVDResult or ndarray
        ``(L, s, R)`` with shapes (..., rows, k), (..., k), (..., k, columns): new
        C-contiguous arrays for the k selected values of n. rows and columns are
        those of B. k = n for all values, and
        k = 0 if the interval of "v" holds none. s alone if compute_uv is False.
        With full_output ``(result, info)``. They are arrays of the library of d,
        or of e, that has ``from_dlpack``, on the same device. Otherwise they are
        NumPy's, or on a CUDA device arrays of tsvd that other libraries take by
        DLPack or the CUDA array interface.

    Raises
    ------
    TypeError
        The dtype is one that tsvd does not compute: complex, float16,
        longdouble, object, strings. Masked arrays.
    ValueError
        Shapes that do not fit, a value out of range, an unknown name, NaN or
        infinity in d or e, arrays in several places, a tensor that requires grad;
        a stream for several devices, or out for their arrays.
    numpy.linalg.LinAlgError
        No convergence within max_sweeps; "twisted" with ``fallback`` 0 refused
        values.
    MemoryError
        The results and the workspace do not fit into memory. The error comes
        before any of it is used.
    RuntimeError
        The device cannot be used, or the stream is being captured into a graph.
    ModuleNotFoundError
        There is no SciPy, and the vectors of a matrix with n > 512 are wanted on
        the CPU by "dc", or by "auto" those of a part.
    NotImplementedError
        An argument asks for a feature that is not available yet.

    See Also
    --------
    svdvals : The singular values only.

    Notes
    -----
    Accuracy: with unit roundoff ``u`` and ``eps=None``, ``B - L @ diag(s) @ R``
    and the loss of orthogonality are small multiples of ``n u``, relative to
    the norm of B. Every singular value, also a tiny one, is good to a few ulps. A
    matrix that is not square becomes so by n rotations first [5]_. They change
    each value by a small multiple of ``n u`` of itself, and in most cases less.

    Signs: the entry of largest magnitude in each of the first k columns of L is
    positive; if several are equal, the first of them. The same input and options give the
    same bits.

    Work for each matrix: O(n k) for k values, and by "twisted" for their vectors
    too; O(n^3) with vectors by the other methods. "dc" makes at most 8/3 n^3
    multiplications and additions in matrix products.

    Memory beside L and R: "dc" needs four more n x n arrays, and six if not all
    vectors are wanted. "twisted" needs O(n) unless it leaves a matrix to "dc".
    The other methods need O(n) and a bounded log of
    rotations; "givens" needs another n^2 for a slow matrix.

    On the CPU the products of large matrices, n > 512, use SciPy's BLAS in
    threads of tsvd. It is imported when it is first needed, which takes some
    tenths of a second; the results of a matrix do not depend on what was
    imported before. Without SciPy "auto" takes "qr" for these vectors.

    Arrays on a CUDA device: the call never synchronizes the device. It waits for
    its stream where it must know something on the host, and returns before L, s
    and R are there; what reads them in the order of that stream, or takes them by
    DLPack, comes after. d and e go to the host for select="v", for "qr" and
    "givens", and for the values of a matrix of order 88 or less. Each result is
    given back in the order of the stream when its last user is gone; until then
    the stream must live. The results keep streams of CuPy and objects with
    ``__cuda_stream__()`` alive, addresses are the caller's duty. Work of other
    streams must be over by then, but for JAX, whose work is waited for.

    Several devices: a batch is shared out by its matrices, and a large matrix by
    its values, by "auto", "dc" and "twisted". Smaller work, and other methods, stay on
    the first of them. The devices choose the method together. The bits are those of
    one device, but for vectors by "dc", where cuBLAS may add up in another order for
    fewer columns. Results on the host are as of one device. For d and e on a device,
    which must be arrays of PyTorch, CuPy or JAX, each of L, s and R is a list with an
    array on each device; all have all values of a single matrix, and of the vectors
    its own: columns of L and rows of R. Where JAX can, it is one sharded array
    instead. These results are there on return.

    The GIL is released. Ctrl-C stops the computation. A forked child may call
    tsvd, and starts threads of its own; fork waits for an import of SciPy by
    tsvd in another thread. The calling thread needs a stack of 32 KiB, and more
    to import SciPy. Other threads must not write to d, e and out during a call.
    They may give them another shape in place, but not in a build of Python
    without the GIL.

    References
    ----------
    .. [1] J. Demmel and W. Kahan, "Accurate singular values of bidiagonal
       matrices", SIAM J. Sci. Stat. Comput. 11 (1990), 873-912.
    .. [2] M. Semylitko and G. Malaschonok, pipelined Givens rotations for the
       SVD of bidiagonal matrices on a GPU (2021).
    .. [3] M. Gu and S. C. Eisenstat, "A divide-and-conquer algorithm for the
       bidiagonal SVD", SIAM J. Matrix Anal. Appl. 16 (1995), 79-92.
    .. [4] P. R. Willems and B. Lang, "The MR3-GK algorithm for the bidiagonal
       SVD", ETNA 39 (2012), 1-21; B. N. Parlett and I. S. Dhillon, "Fernando's
       solution to Wilkinson's problem", Linear Algebra Appl. 267 (1997), 247-279.
    .. [5] M. Gu and S. C. Eisenstat as above; E. Anderson et al., "LAPACK Users'
       Guide", 3rd edition, SIAM (1999): dlasdq.

    Examples
    --------
    >>> import numpy as np
    >>> import tsvd
    >>> L, s, R = tsvd.svd([1.0, 1.0], [1.0])
    >>> s
    array([1.61803399, 0.61803399])
    >>> np.allclose(L * s @ R, [[1.0, 1.0], [0.0, 1.0]])
    True

    A batch of three matrices of order 4:

    >>> tsvd.svd(np.ones((3, 4)), np.ones(3)).L.shape
    (3, 4, 4)

    The two largest values and their vectors:

    >>> tsvd.svd(np.ones(5), np.ones(4), select="i", select_range=(0, 1)).R.shape
    (2, 5)

    A matrix of 3 rows and 4 columns, and its null vector:

    >>> R = tsvd.svd(np.ones(3), np.ones(3), full_matrices=True).R
    >>> np.round(R[3] / R[3, 0], 12)
    array([ 1., -1.,  1., -1.])
    """
    if e is _MISSING or unknown:
        raise refusal("svd", unknown)
    options = checked(
        SVDResult,
        method,
        compute_uv,
        full_output,
        eps,
        max_sweeps,
        check_finite,
        threads,
        progress,
        tuning,
        lower=lower,
        full=full_matrices and select == "a",
    )
    return _call.svd(_KIND, _core.svd, (d, e), options, select, select_range, device, stream, out)


@binds("e")
def svdvals(
    d,
    e=_MISSING,
    *,
    lower=False,
    method="auto",
    eps=None,
    select="a",
    select_range=None,
    max_sweeps=None,
    device=None,
    stream=None,
    out=None,
    check_finite=True,
    threads=None,
    progress=None,
    tuning=None,
    **unknown,
):
    """Singular values of bidiagonal matrices.

    Parameters
    ----------
    d : array_like, shape (..., n)
        The diagonal; see `svd` for dtypes, strides and batches.
    e : array_like, shape (..., n-1) or (..., n)
        The off-diagonal.
    lower, method, eps, select, select_range, max_sweeps, device, stream, out, \
    check_finite, threads, progress, tuning
        As in `svd`. out is one array.

    Returns
    -------
    ndarray, shape (..., k)
        The k = n singular values, or the selected ones, in descending order and
        not negative; an array of the library of d and e as of `svd`.

    Raises
    ------
    TypeError, ValueError, LinAlgError, MemoryError, RuntimeError, NotImplementedError
        As `svd`.

    See Also
    --------
    svd : Values and vectors; and with ``compute_uv=False`` and ``full_output`` values
        and how they were computed.

    Notes
    -----
    Accuracy: a few ulps for every value, however small; of matrices that are not
    square as of `svd`. Work: O(n k) for k values of each matrix. Memory: O(n).

    References
    ----------
    J. Demmel and W. Kahan, "Accurate singular values of bidiagonal matrices",
    SIAM J. Sci. Stat. Comput. 11 (1990), 873-912.

    Examples
    --------
    >>> import tsvd
    >>> tsvd.svdvals([1.0, 1.0], [1.0])
    array([1.61803399, 0.61803399])
    >>> tsvd.svdvals([1.0, 1.0], [1.0], select="v", select_range=(0, 1))
    array([0.61803399])
    """
    if e is _MISSING or unknown:
        raise refusal("svdvals", unknown)
    options = checked(
        SVDResult,
        method,
        False,
        False,
        eps,
        max_sweeps,
        check_finite,
        threads,
        progress,
        tuning,
        lower=lower,
    )
    return _call.svd(_KIND, _core.svd, (d, e), options, select, select_range, device, stream, out)


def _default_device(inputs, method, vectors):
    """The CUDA device of a call that asks for none; -1 is the CPU."""
    if not _core.cuda_may_pay(inputs, method, vectors):
        return -1
    shape, other = map(shape_of, inputs)
    n, matrices = shape[-1], 1
    if len(shape) > 1 or len(other) > 1:
        matrices = min(_matrices(shape[:-1], other[:-1]), INT64_MAX)
    if not _core.cuda_pays(None, False, method, n, matrices, vectors):
        return -1
    return default_device(
        functools.partial(_pays, method, n, matrices, vectors),
        functools.partial(is_single, *inputs),
        functools.partial(opens, multiplies=vectors),
    )


def _within(compute, inputs, options, interval, place):
    """The interval is counted before the device is chosen, where the arrays lie."""
    first, count = _core.select(inputs, options, *interval, place.device)
    return compute, options.replace(first=first, count=count)


_KIND = _call.Kind(_arrays.BIDIAGONAL, _default_device, _within)


def _pays(method, n, matrices, vectors, rates, single):
    return _core.cuda_pays(rates, single, method, n, matrices, vectors)


def _matrices(shape, other):
    """How many matrices there are if the leading dimensions of d and e are these.

    If they do not broadcast _core will refuse them.
    """
    pairs = itertools.zip_longest(reversed(shape), reversed(other), fillvalue=1)
    return math.prod(j if i == 1 else i for i, j in pairs)
