"""The singular value decomposition, the reduction to bidiagonal form and the inverse of dense
matrices. tsvd.linalg has them.
"""

from __future__ import annotations

import functools
import math
import warnings

import numpy as np

from . import _arrays, _call, _core, _lazy, _space
from ._devices import (
    cuda_index,
    default_device,
    is_several,
    is_single,
    number_of,
    opens_dense,
    shape_of,
)
from ._options import INT64_MAX, binds, check_progress, check_threads, checked, knobs, refusal
from ._types import SVDResult

# Entries for which no device pays: CUDA_DENSE_WORK is far above. To ask would take a sixth of the
# time of a matrix of order 2.
_FEW = 4096


@binds()
def svd(
    a,
    full_matrices=True,
    compute_uv=True,
    hermitian=False,
    *,
    method="auto",
    eps=None,
    max_sweeps=None,
    select="a",
    select_range=None,
    device=None,
    stream=None,
    out=None,
    overwrite_a=False,
    check_finite=True,
    threads=None,
    progress=None,
    tuning=None,
    full_output=False,
    **unknown,
):
    """Singular value decomposition of dense matrices.

    ``A = U @ diag(S) @ Vh`` with orthonormal columns of U and rows of Vh and S
    descending. The first four arguments and the results are those of
    `numpy.linalg.svd`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        The matrices. float64, float32, complex128 and complex64 are computed in
        their own precision, integers and bool as float64. Arrays with any
        strides, also read-only ones, are read in place and never written.
        Leading dimensions are a batch. m and n may be 0. Arrays of CuPy,
        PyTorch, JAX and of other libraries with DLPack or the CUDA array
        interface are taken where they lie, on the host or on a CUDA device.
    full_matrices : bool
        True: U is m x m and Vh is n x n; their further columns and rows complete
        the bases. False: U is m x p and Vh is p x n, with p the smaller of m and
        n. With `select` other than "a" they have the selected vectors alone,
        whatever this says.
    compute_uv : bool
        False: only S is computed and returned, as by `svdvals`.
    hermitian : bool
        True: the matrices are square and said to be symmetric. They are computed
        as all others: all entries are read.
    method : {"auto", "dc", "qr", "givens", "bisect", "twisted", "jacobi"}
        How the SVD of the bidiagonal matrices is found; see `tsvd.svd`. "jacobi"
        needs none: one-sided Jacobi on the matrices themselves finds also tiny
        values to high relative accuracy, see Notes. It takes longer, and of
        matrices with graded columns several times as long.
    eps : float, optional
        How far the bidiagonal matrices may be perturbed, in the units of A; see
        `tsvd.svd`. None: full accuracy of the dtype. "jacobi" takes none.
    max_sweeps : int, optional
        Bound on the sweeps of "qr", "givens" and "jacobi"; see `tsvd.svd`.
    select : {"a", "v", "i"}
        Which values are computed, with their vectors. "a": all. "v": those in
        the half-open interval ``(min, max]``, of one matrix. "i": those with
        indices ``min`` to ``max``, both included, where 0 is the largest. The
        reduction of A takes its time always; what follows costs what is selected.
        "jacobi" takes the time of all, and refuses "v".
    select_range : (min, max), optional
        Required by "v" and "i", not allowed with "a". For "v" two numbers in the
        units of A, ``min < max``, which may be infinite. They mean the values as
        they are given without `eps`, also subnormal ones: it is counted exactly on
        which side of a bound those of the bidiagonal matrix lie. For "i" two
        integers, ``0 <= min <= max < p``.
    device : str, int or list of them, optional
        "cpu", "cuda", "cuda:1" or 1; for several CUDA devices a list, or "cuda:*" for
        all, see Notes. None: where a lies; for arrays on the host
        the first usable CUDA device for large work, else the CPU. Large means
        ``m n p`` of 256**3 or more, summed over the batch, by "auto" and "dc", for
        an H200; slower devices need more.
    stream : int or object, optional
        The CUDA stream to compute on, as for `tsvd.svd`.
    out : tuple (U, S, Vh) of arrays, or array, optional
        Arrays that take the results and are returned; one, if compute_uv is False.
        They are C-contiguous, writeable, of exactly the shapes and dtype of the
        results, where a lies, and share no memory with each other or a. After an
        error their contents are unspecified.
    overwrite_a : bool
        Accepted for callers of SciPy. a is never written.
    check_finite : bool
        True: NaN and infinity are refused. False: a matrix that holds one gets
        results filled with NaN.
    threads : int, optional
        Number of host threads, as for `tsvd.svd`.
    progress : callable, optional
        ``progress(done)`` is called from the calling thread at most 20 times a
        second with the share of the work done, in [0, 1], and with 1.0 at the
        end. If it raises, the computation stops with that exception.
    tuning : mapping of str to int, optional
        Settings for experiments, as of `tsvd.svd`; and "stages": 1 or 2 forces the
        reduction to bidiagonal form directly, or through a band.
    full_output : bool
        Return a pair, the result and a `tsvd.SVDInfo`.

    Returns
    -------
    SVDResult or ndarray
        ``(U, S, Vh)``, new C-contiguous arrays, or S alone if compute_uv is
        False. With full_output ``(result, info)``. They are arrays of the library
        of a on the same device, if it has ``from_dlpack``. Otherwise they are
        NumPy's, or on a CUDA device arrays of tsvd that other libraries take. U
        and Vh of a subclass of ndarray are of that subclass, as from NumPy.

    Raises
    ------
    numpy.linalg.LinAlgError
        a has less than two dimensions; or hermitian, and the matrices are not
        square; no convergence within max_sweeps.
    TypeError
        The dtype is one that tsvd does not compute: float16, longdouble,
        clongdouble, object, strings. Masked arrays.
    ValueError
        A value out of range, an unknown name, NaN or infinity in a, arrays in
        several places, a tensor that requires grad.
    MemoryError
        The results and the workspace do not fit into memory. The error comes
        before any of it is used.
    RuntimeError
        The device cannot be used.
    NotImplementedError
        The device does not offer the method, or not for matrices of such sizes
        or such a dtype.
    ModuleNotFoundError
        There is no SciPy, whose BLAS the CPU uses.

    See Also
    --------
    svdvals : The singular values only.
    bidiagonalize : The reduction, to be kept for several questions.
    tsvd.svd : The SVD of bidiagonal matrices.

    Notes
    -----
    Method: Householder's reduction to a bidiagonal matrix [1]_, the SVD of that,
    and the reflectors on its vectors. A matrix with many more rows than columns,
    or columns than rows, goes through QR, or LQ, first [2]_. The matrices are
    scaled by powers of two, so that nothing overflows or underflows on the way.
    On the CPU matrices of order 16 or less go side by side through vector lanes;
    a matrix has the same bits alone and in any batch.

    Accuracy: with unit roundoff ``u``, ``A - U @ diag(S) @ Vh`` and the loss of
    orthogonality are small multiples of ``max(m, n) u``, relative to the norm of
    A. Each value is good to a small multiple of ``p u``, relative to the largest.

    "jacobi" (one-sided Jacobi [3]_, after a QR decomposition [4]_ or, for square
    matrices whose columns have nearly the same size, after "auto") finds each
    value of ``A = B @ D``, D diagonal, to ``(8 + p) cond(B) eps`` relative to
    that value, whatever D is.

    Signs: the entry of largest magnitude in each of the first k columns of U is
    real and positive; if several are equal, the first of them. The same input and
    options give the same bits.

    Several devices: what `tsvd.svd` says holds here too. Of a single matrix with
    vectors each device makes the reduction, and the vectors of its own values; cuBLAS
    may add up in another order for fewer columns. So it is in batches of less than a
    hundred matrices of order 1000 or so, each of which gets the more of a device the
    fewer share it. A matrix alone without vectors, or with all vectors of a side that
    is longer, stays on the first device.

    Work for each matrix: ``O(m n p)``. The GIL is released; Ctrl-C stops the
    computation between its steps. What `tsvd.svd` says of streams, threads and
    forks holds here too. On the CPU the BLAS of SciPy is imported at the first
    call.

    References
    ----------
    .. [1] G. Golub and W. Kahan, "Calculating the singular values and
       pseudo-inverse of a matrix", SIAM Journal on Numerical Analysis, Series B, 2
       (1965), 205-224.
    .. [2] T. F. Chan, "An improved algorithm for computing the singular value
       decomposition", ACM Trans. Math. Softw. 8 (1982), 72-83.
    .. [3] J. Demmel and K. Veselic, "Jacobi's method is more accurate than QR",
       SIAM J. Matrix Anal. Appl. 13 (1992), 1204-1245.
    .. [4] Z. Drmac and K. Veselic, "New fast and accurate Jacobi SVD algorithm: I",
       SIAM J. Matrix Anal. Appl. 29 (2008), 1322-1342.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> a = np.array([[3.0, 0.0], [4.0, 5.0], [0.0, 0.0]])
    >>> U, S, Vh = linalg.svd(a, full_matrices=False)
    >>> np.allclose(U * S @ Vh, a)
    True
    >>> np.round(S**2, 12)
    array([45.,  5.])

    The vectors of the largest value alone:

    >>> linalg.svd(a, select="i", select_range=(0, 0)).Vh.shape
    (1, 2)
    """
    if unknown:
        raise refusal("svd", unknown)
    if hasattr(full_matrices, "shape"):
        raise TypeError(
            "full_matrices must be a bool. For the diagonals of a bidiagonal matrix use tsvd.svd"
        )
    if type(a) is not np.ndarray and _lazy.is_lazy(a):
        others = {"stream": stream, "out": out, "progress": progress, "tuning": tuning}
        lazy = _lazy.functions(hermitian=hermitian, full_output=full_output, **others)
        return lazy.linalg_svd(
            a,
            full_matrices,
            compute_uv,
            method=method,
            eps=eps,
            max_sweeps=max_sweeps,
            select=select,
            select_range=select_range,
            device=device,
            check_finite=check_finite,
            threads=threads,
        )
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
        full=full_matrices and select == "a",
        dense=True,
    )
    if method == "jacobi" and select == "v":
        raise ValueError(
            'select="v" counts the values of a bidiagonal matrix, and method="jacobi" has none; '
            'use select="i"'
        )
    kind = _HERMITIAN if hermitian else _KIND
    result = _call.svd(
        kind, _core.dense_svd, (a,), options, select, select_range, device, stream, out
    )
    if not _is_subclass(a) or not compute_uv or out is not None:
        return result
    if full_output:
        return _as_subclass(a, result[0]), result[1]
    return _as_subclass(a, result)


@binds()
def svdvals(
    a,
    *,
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
    """Singular values of dense matrices.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        The matrices; see `svd` for dtypes, strides and batches.
    method, eps, select, select_range, max_sweeps, device, stream, out, check_finite, \
    threads, progress, tuning
        As in `svd`. out is one array.

    Returns
    -------
    ndarray, shape (..., k)
        The k = p singular values, p the smaller of m and n, or the selected ones,
        in descending order and not negative; an array of the library of a as of
        `svd`.

    Raises
    ------
    LinAlgError, TypeError, ValueError, MemoryError, RuntimeError, ModuleNotFoundError
        As `svd`.

    See Also
    --------
    svd : Values and vectors; and with ``compute_uv=False`` and ``full_output`` values
        and how they were computed.

    Notes
    -----
    Accuracy: each value to a small multiple of ``p u``, relative to the largest.
    Work: ``O(m n p)``. Source: Golub and Kahan (1965), see `svd`.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> np.round(linalg.svdvals([[3.0, 0.0], [4.0, 5.0]]) ** 2, 12)
    array([45.,  5.])
    """
    if unknown:
        raise refusal("svdvals", unknown)
    return svd(
        a,
        compute_uv=False,
        method=method,
        eps=eps,
        select=select,
        select_range=select_range,
        max_sweeps=max_sweeps,
        device=device,
        stream=stream,
        out=out,
        check_finite=check_finite,
        threads=threads,
        progress=progress,
        tuning=tuning,
    )


def bidiagonalize(
    a,
    *,
    device=None,
    stream=None,
    check_finite=True,
    threads=None,
    progress=None,
    tuning=None,
):
    """Reduction of dense matrices to bidiagonal form, ``A = Q @ B @ P.conj().T``.

    B is real, also for complex matrices.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
        The matrices; see `svd` for dtypes, strides and batches.
    device, stream, check_finite, threads, progress, tuning
        As in `svd`.

    Returns
    -------
    Bidiagonalization
        B, and what applies and forms Q and P.

    Raises
    ------
    LinAlgError, TypeError, ValueError, MemoryError, RuntimeError, ModuleNotFoundError
        As `svd`.

    Notes
    -----
    Method: Householder reflectors from both sides [1]_; a matrix with many more
    rows than columns, or columns than rows, goes through QR, or LQ, first [2]_.
    Large matrices go through a band [3]_, and others with ``tuning={"stages": 2}``.

    Accuracy: ``A - Q @ B @ P.conj().T`` and the loss of orthogonality are small multiples
    of ``max(m, n) u``, relative to the norm of A.

    Work: ``O(m n p)``, p the smaller of m and n. Memory: a copy of A.

    References
    ----------
    .. [1] G. Golub and W. Kahan, "Calculating the singular values and
       pseudo-inverse of a matrix", SIAM Journal on Numerical Analysis, Series B, 2
       (1965), 205-224.
    .. [2] T. F. Chan, "An improved algorithm for computing the singular value
       decomposition", ACM Trans. Math. Softw. 8 (1982), 72-83.
    .. [3] B. Grosser and B. Lang, "Efficient parallel reduction to bidiagonal
       form", Parallel Computing 25 (1999), 969-986.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> a = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> form = linalg.bidiagonalize(a)
    >>> B = np.diag(form.d) + np.diag(form.e, 1)
    >>> np.allclose(form.form_q() @ B @ form.form_pt(), a)
    True
    >>> np.allclose(form.svdvals(), linalg.svdvals(a))
    True
    """
    check_progress(progress)
    check_threads(threads)
    options = _core.options(
        check_finite=check_finite,
        progress=progress,
        threads=threads,
        **({} if tuning is None else knobs(tuning)),
    )
    try:
        inputs, options, place = _call.arranged(
            _arrays.DENSE, (a,), options, device, stream, None, lasts=True
        )
        reduction, cuda = _call.computed(
            _core.reduce, inputs, options, place, device, _default_device_of_vectors
        )
    except (TypeError, ValueError) as error:
        _call.explain(error, _arrays.DENSE, (a,))
        raise
    return Bidiagonalization(reduction, place, cuda)


class Bidiagonalization:
    """Dense matrices in bidiagonal form, ``A = Q @ B @ P.conj().T``, from `bidiagonalize`.

    Q is m x m and P n x n; of Q and P the first p columns take part in the
    product, p being the smaller of m and n. It holds a copy of the matrices, and
    may be used by many threads, one after the other. Those that pickle and the
    module copy make of it give the same bits. One of a CUDA device is restored on the
    device of the same number, and needs one of the same kind; work on it is then
    ordered in a stream of tsvd's own.

    Attributes
    ----------
    shape : tuple of int
        (..., m, n), the shape of the matrices.
    dtype : numpy.dtype
        That of the matrices: float64, float32, complex128 or complex64.
    lower : bool
        False: e is above the diagonal of B; True, if m < n: below it.
    """

    def __init__(self, reduction, place, cuda):
        self._reduction, self._place, self._cuda = reduction, place, cuda
        self.shape = reduction.shape
        self.dtype = np.dtype(reduction.dtype)
        self.lower = self.shape[-2] < self.shape[-1]

    def __reduce__(self):
        state = np.empty(self._reduction.state_bytes, np.uint8)
        self._reduction.save(state)
        wrap, on_device = self._place.wrap, self._on_device
        return _restored, (self.shape, self.dtype.name, state, self._cuda, on_device, wrap)

    def __repr__(self):
        return f"<Bidiagonalization of {self.dtype} matrices of shape {self.shape}>"

    @functools.cached_property
    def _entries(self):
        return _arrays.results(self._place, self._reduction.entries(self._on_device))

    @property
    def _on_device(self):
        return self._place.device >= 0

    @property
    def d(self):
        """The diagonal of B, shape (..., p); a real array of the library of A."""
        return self._entries[0]

    @property
    def e(self):
        """The entries of B beside the diagonal, shape (..., p-1)."""
        return self._entries[1]

    def form_q(self, full=False):
        """Form Q.

        Parameters
        ----------
        full : bool
            True: all its m columns; False: the p that take part.

        Returns
        -------
        ndarray, shape (..., m, p) or (..., m, m)
            An array of the library of A; NumPy's, if that is none of CuPy, PyTorch
            and JAX and A was on a CUDA device.
        """
        return self._formed(False, full)

    def form_pt(self, full=False):
        """Form ``P.conj().T``, which is P.T for real matrices.

        Parameters
        ----------
        full : bool
            True: all its n rows; False: the p that take part.

        Returns
        -------
        ndarray, shape (..., p, n) or (..., n, n)
            As of `form_q`; for real matrices a transposed view.
        """
        transposed = self._formed(True, full).swapaxes(-1, -2)
        return transposed.conj() if self.dtype.kind == "c" else transposed

    def apply_q(self, x, transposed=False):
        """Multiply by Q, without forming it.

        Parameters
        ----------
        x : array_like, shape (m,) or (..., m, c)
            The vectors, where A was; leading dimensions broadcast to those of A,
            and on a CUDA device are the same. Computed in the dtype of A.
        transposed : bool
            Multiply by ``Q.conj().T``.

        Returns
        -------
        ndarray
            A new array ``Q @ x``, of the library of x.

        Raises
        ------
        TypeError, ValueError
            The dtype, the place or the shape does not fit.
        """
        return self._applied(x, False, transposed)

    def apply_p(self, x, transposed=False):
        """Multiply by P, without forming it.

        Parameters
        ----------
        x : array_like, shape (n,) or (..., n, c)
            As of `apply_q`.
        transposed : bool
            Multiply by ``P.conj().T``.

        Returns
        -------
        ndarray
            A new array ``P @ x``, of the library of x.

        Raises
        ------
        TypeError, ValueError
            As of `apply_q`.
        """
        return self._applied(x, True, transposed)

    def svd(
        self,
        full_matrices=True,
        compute_uv=True,
        *,
        method="auto",
        eps=None,
        max_sweeps=None,
        select="a",
        select_range=None,
        threads=None,
        progress=None,
        tuning=None,
        full_output=False,
    ):
        """Decompose A, by what is left to do.

        Parameters
        ----------
        full_matrices, compute_uv, method, eps, max_sweeps, select, select_range, \
        threads, progress, tuning, full_output
            As in `svd`.

        Returns
        -------
        SVDResult or ndarray
            As of `svd`, with the same bits. Only matrices of order 16 or less on the
            CPU have others there, where they are not reduced.

        Raises
        ------
        LinAlgError, ValueError, MemoryError, RuntimeError
            As `svd`.
        """
        options = checked(
            SVDResult,
            method,
            compute_uv,
            full_output,
            eps,
            max_sweeps,
            True,
            threads,
            progress,
            tuning,
            full=full_matrices and select == "a",
        )
        options = _call.in_place(options, self._place)
        options, interval = _call.wanted(options, select, select_range)
        if interval is not None:
            _check_one_matrix(self.shape)
            options = _counted(self._reduction, options, interval)
        result = self._reduction.svd(options)
        return _call.finished(result, options, interval, self._place, self._cuda)

    def svdvals(
        self,
        *,
        method="auto",
        eps=None,
        select="a",
        select_range=None,
        max_sweeps=None,
        threads=None,
        progress=None,
        tuning=None,
    ):
        """Singular values of A, by what is left to do; see the function `svdvals`."""
        return self.svd(
            compute_uv=False,
            method=method,
            eps=eps,
            max_sweeps=max_sweeps,
            select=select,
            select_range=select_range,
            threads=threads,
            progress=progress,
            tuning=tuning,
        )

    def _formed(self, right, full):
        order = self.shape[-1 if right else -2]
        count = order if full else min(self.shape[-2:])
        shape = (*self.shape[:-2], order, count)
        if math.prod(shape) * self.dtype.itemsize > INT64_MAX:  # NumPy would call it a ValueError
            raise MemoryError(f"an array of shape {shape} cannot be addressed")
        x = np.zeros(shape, self.dtype)
        diagonal = np.arange(count if x.size else 0)
        x[..., diagonal, diagonal] = 1
        if self._on_device:
            return self._multiplied(_arrays.from_host(x, self.d), right, False)
        self._reduction.apply(x, right, False, False)
        return x if self._place.wrap is None else self._place.wrap(x)

    def _applied(self, x, right, transposed):
        place = _arrays.place_of(_arrays.DENSE, "x", x)
        if place != self._place.device:
            raise ValueError(
                f"x lies on {_arrays.called(place)}, and A was on "
                f"{_arrays.called(self._place.device)}"
            )
        if self._on_device:
            return self._multiplied(x, right, transposed)
        wrap = _arrays.maker_on_host(x)
        x = np.asarray(_arrays.as_numpy("x", x))
        if not np.can_cast(x.dtype, self.dtype, "same_kind"):
            raise TypeError(f"x has dtype {x.dtype}, and A was computed in {self.dtype}")
        vector, shape = x.ndim == 1, x.shape
        x = x[:, None] if vector else x
        batch = self.shape[:-2]
        if x.ndim < 2 or x.shape[-2] != self.shape[-1 if right else -2]:
            raise ValueError(self._misfit(shape, right))
        try:
            x = np.broadcast_to(x, (*batch, *x.shape[-2:]))
        except ValueError:
            raise ValueError(self._misfit(shape, right)) from None
        x = np.array(x, self.dtype, order="C")
        self._reduction.apply(x, right, transposed, False)
        x = x[..., 0] if vector else x
        return x if wrap is None else wrap(x)

    def _misfit(self, shape, right):
        rows = self.shape[-1 if right else -2]
        return f"x has shape {shape}; A of shape {self.shape} needs ({rows},) or (..., {rows}, c)"

    def _multiplied(self, x, right, transposed):
        """The product with an array of the device."""
        if "complex" in str(x.dtype) and self.dtype.kind != "c":
            raise TypeError(f"x has dtype {x.dtype}, and A was computed in {self.dtype}")
        vector = x.ndim == 1
        copy = _arrays.fresh(x, self.dtype.name)
        if copy is None:
            copy = np.array(x, self.dtype, order="C")  # its arrays cannot be written to
        columns = copy[:, None] if vector else copy
        self._reduction.apply(columns, right, transposed, not isinstance(copy, np.ndarray))
        return _arrays.from_host(copy, x) if isinstance(copy, np.ndarray) else copy


def _restored(shape, dtype, state, cuda, on_device, wrap):
    """A Bidiagonalization that was pickled or copied."""
    if cuda >= 0:
        cuda_index(cuda)
    reduction = _core.restore(shape, dtype, state, on_device, cuda)
    place = _arrays.HOST._replace(device=cuda if on_device else -1, wrap=wrap)
    return Bidiagonalization(reduction, place, cuda)


def inv(
    a,
    *,
    refine=False,
    device=None,
    stream=None,
    out=None,
    overwrite_a=False,
    check_finite=True,
    threads=None,
    progress=None,
):
    """Inverse of dense matrices.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        The matrices; see `svd` for dtypes, strides, batches and arrays of other
        libraries. n may be 0.
    refine : bool
        True: one step of Newton's iteration, with a residual in more digits than
        a has. It takes up to five times as long and squares the relative error
        of X: few errors but those of rounding X are left up to condition numbers
        of about 1e8 (float64). X stays as it is where the step does not converge,
        as A is too close to a singular matrix, and where it might do harm, as the
        columns of A are of very different sizes.
    device : str, int or list of them, optional
        "cpu", "cuda", "cuda:1" or 1; for several CUDA devices a list, or "cuda:*" for
        all, as of `svd`. None: where a lies; arrays on the host stay there, as it is
        not measured where a GPU is faster for them.
    stream : int or object, optional
        The CUDA stream to compute on, as for `tsvd.svd`.
    out : array, optional
        An array that takes the result and is returned: C-contiguous, writeable,
        of exactly the shape and dtype of the result, where a lies, and sharing no
        memory with a. After an error its contents are unspecified.
    overwrite_a : bool
        Accepted for callers of SciPy. a is never written.
    check_finite : bool
        True: NaN and infinity are refused. False: a matrix that holds one gets an
        inverse filled with NaN.
    threads : int, optional
        Number of host threads, as for `tsvd.svd`.
    progress : callable, optional
        As in `svd`.

    Returns
    -------
    ndarray, shape (..., n, n)
        The inverses, C-contiguous; an array of the library of a as of `svd`.

    Raises
    ------
    numpy.linalg.LinAlgError
        A pivot of a matrix is exactly zero; in a batch the text names the matrix.
        a has less than two dimensions, or the last two differ.
    TypeError
        The dtype is one that tsvd does not compute: float16, clongdouble,
        longdouble, object, strings. Masked arrays.
    ValueError
        NaN or infinity in a, arrays in several places, a tensor that requires
        grad, an unknown device.
    MemoryError, RuntimeError, NotImplementedError, ModuleNotFoundError
        As `svd`.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        The reciprocal condition of a matrix is below the distance from 1 to the
        next number: no digit of its inverse may be right. The text has the
        smallest of the batch. It is a plain RuntimeWarning, of which SciPy's is
        one, where there is no SciPy.

    See Also
    --------
    svd : Its values tell how close a matrix is to a singular one.

    Notes
    -----
    Method: LU decomposition on the CPU, Gauss-Jordan elimination on CUDA devices
    [1]_, both with partial pivoting. Rows and columns are scaled by powers of two
    first: D1 @ B @ D2 with diagonal D1 and D2 loses nothing if the entries of B
    are of like size and B is well conditioned. Where pivots grow so much that
    digits would be lost, QR by Householder reflectors takes their place, or on
    CUDA devices up to n = 1024 elimination with complete pivoting. Entries
    above the largest number are infinite.

    Accuracy: the smaller of ``a @ X - I`` and ``X @ a - I`` is a small multiple
    of ``n u`` times the norms of a and X. The same input and options give the
    same bits, whatever the number of threads.

    Work for each matrix: ``2 n**3`` multiplications and additions.

    References
    ----------
    .. [1] N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd
       edition, SIAM (2002), section 14.4.

    Examples
    --------
    >>> import numpy as np
    >>> from tsvd import linalg
    >>> linalg.inv([[2.0, 0.0], [4.0, 1.0]])
    array([[ 0.5,  0. ],
           [-2. ,  1. ]])
    """
    if type(a) is not np.ndarray and _lazy.is_lazy(a):
        lazy = _lazy.functions(stream=stream, out=out, progress=progress)
        return lazy.linalg_inv(
            a, refine=refine, device=device, check_finite=check_finite, threads=threads
        )
    result, rcond, matrix = inverse(a, refine, device, stream, out, check_finite, threads, progress)
    if rcond < _space.EPS["float32"]:
        _warn_near_singular(shape_of(a), result, rcond, matrix)
    if out is not None:
        return out
    return a.__array_wrap__(result) if _is_subclass(a) else result


def inverse(
    a,
    refine=False,
    device=None,
    stream=None,
    out=None,
    check_finite=True,
    threads=None,
    progress=None,
):
    """What `inv` returns, or out, the least reciprocal condition, and the matrix that has it."""
    if progress is not None:
        check_progress(progress)
    if threads is not None:
        check_threads(threads)
    options = _core.options(
        refine=refine, check_finite=check_finite, progress=progress, threads=threads
    )
    outs = None if out is None else (out,)
    where = "cpu" if device is None else device
    try:
        if device is not None and is_several(device):
            from . import _several

            result, rcond, matrix = _several.inverse((a,), options, device, stream, outs)
            return result if out is None else out, rcond, matrix
        inputs, options, place = _call.arranged(
            _arrays.INVERSE, (a,), options, device, stream, outs
        )
        if place is _arrays.HOST and device is None:
            result, rcond, matrix = _core.inv(inputs, options, -1)
        else:
            (result, rcond, matrix), _ = _call.computed(
                _core.inv, inputs, options, place, where, _default_device
            )
    except (TypeError, ValueError) as error:
        _call.explain(error, _arrays.INVERSE, (a,))
        raise
    if place is not _arrays.HOST:
        result = _arrays.results(place, result)
    return result if out is None else out, rcond, matrix


# ---- the parts of a call ----


def check_options(device, threads):
    """Refuses what no call takes."""
    if device is not None:
        number_of(device)
    check_threads(threads)


def _default_device(inputs, number, vectors):
    """The CUDA device of a call that asks for none; -1 is the CPU."""
    (a,) = inputs
    if type(a) is np.ndarray and a.size <= _FEW:
        return -1
    shape = shape_of(a)
    if len(shape) < 2:
        return -1
    size = (*shape[-2:], min(math.prod(shape[:-2]), INT64_MAX))
    if not _core.cuda_pays_dense(None, False, number, *size, vectors):
        return -1
    return default_device(
        lambda rates, single: _core.cuda_pays_dense(rates, single, number, *size, vectors),
        lambda: is_single(*inputs),
        opens_dense,
    )


def _default_device_of_vectors(inputs, method, vectors):
    """A reduction goes where the vectors would, as it may be followed by them."""
    return _default_device(inputs, method, True)


def _within(compute, inputs, options, interval, place):
    """The interval is counted in the bidiagonal matrix, or among the values."""
    _check_one_matrix(shape_of(*inputs))
    return functools.partial(_counted_within, interval), options


def _counted_within(interval, inputs, options, cuda):
    first, second = _halves(options.progress)
    if not options.on_device and _core.dense_direct(inputs, options, cuda):
        # of arrays on a device a reduction counts, as it needs no copy of the values on the host;
        # with vectors, if they are wanted: values alone may differ in their last bits
        whole = options.replace(full_output=False, out=None, full=False, progress=first)
        result = _core.dense_svd(inputs, whole, cuda)
        s = (result[1] if options.compute_uv else result).astype(float)  # as the bounds are
        above, within = (int(np.count_nonzero(s > bound)) for bound in reversed(interval))
        part = options.replace(first=above, count=within - above, progress=second)
        return _core.dense_svd(inputs, part, cuda)
    reduction = _core.reduce(inputs, options.replace(progress=first), cuda)
    return reduction.svd(_counted(reduction, options.replace(progress=second), interval))


def _counted(reduction, options, interval):
    """The options with the range of the values in the interval."""
    first, count = reduction.select(*interval)
    return options.replace(first=first, count=count)


def _halves(progress):
    """progress for the two halves of a call."""
    if progress is None:
        return None, None
    return (lambda done: progress(done / 2)), (lambda done: progress(0.5 + done / 2))


def _check_square(inputs):
    shape = shape_of(*inputs)
    if len(shape) >= 2 and shape[-2] != shape[-1]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")


def _check_one_matrix(shape):
    if len(shape) > 2:
        raise ValueError(
            'select="v" takes one matrix, a (m, n): of each matrix of a batch another number of '
            'values may lie in select_range; use select="i"'
        )


_KIND = _call.Kind(_arrays.DENSE, _default_device, _within)
_HERMITIAN = _KIND._replace(check=_check_square)


def _is_subclass(a):
    """Whether a is of a subclass of ndarray, of which results are then, as from NumPy."""
    return type(a) is not np.ndarray and isinstance(a, np.ndarray)


def _as_subclass(a, result):
    U, S, Vh = result
    return SVDResult(a.__array_wrap__(U), S, a.__array_wrap__(Vh))


def _warn_near_singular(shape, result, rcond, matrix):
    """Warns as `scipy.linalg.inv` does. result: an array of the dtype of the call."""
    if not rcond < _space.eps_of(result):
        return
    try:
        from scipy.linalg import LinAlgWarning
    except ModuleNotFoundError:
        LinAlgWarning = RuntimeWarning
    which = f"matrix {matrix} of the batch: " if math.prod(shape[:-2]) > 1 else ""
    warnings.warn(
        f"{which}Ill-conditioned matrix (rcond={rcond:.6g}): result may not be accurate.",
        LinAlgWarning,
        stacklevel=3,
    )
