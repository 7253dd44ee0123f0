"""torch.linalg.svd on tsvd, in programs that do not name tsvd: `tsvd.torch.enable`.

PyTorch's singular value decompositions are one operator, aten::_linalg_svd. Here it gets another
kernel for the keys CPU and CUDA. The kernel that PyTorch had is kept, for what tsvd does not
compute or computes no faster. All that is above a kernel stays: derivatives, vmap, autocast,
compilation, named tuples, checks of arguments.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings

import torch

from . import linalg
from ._devices import opens_dense
from ._torch_layout import laid_out

_TYPES = frozenset((torch.float32, torch.float64, torch.complex64, torch.complex128))

# torch.linalg.svd has these names of algorithms of cuSOLVER, and takes them on CUDA alone.
_DRIVERS = frozenset((None, "gesvd", "gesvdj", "gesvda"))

# What tsvd refuses and PyTorch's own kernel then takes, or refuses in its own words: numbers that
# are not finite, a device or a host without what tsvd needs, too little memory.
_REFUSALS = (ValueError, MemoryError, NotImplementedError, ModuleNotFoundError)


def enable():
    """Lets `torch.linalg.svd` and all that rests on it run on tsvd, for CPU and CUDA tensors.

    Returns
    -------
    None
        It holds for all threads of the process, until `disable`. A second call does
        nothing.

    Raises
    ------
    RuntimeError
        PyTorch is older than 2.9, and offers no access to its own kernel.

    See Also
    --------
    enabled : The same for a ``with`` statement.
    tsvd.torch.linalg : Functions with the names of `torch.linalg`, if a program may name them.

    Notes
    -----
    What runs on tsvd: `torch.linalg.svd`, `svdvals`, `pinv`, `matrix_rank`, `cond`,
    `matrix_norm` and `norm` with the orders 2, -2 and "nuc"; `torch.svd`,
    `torch.svd_lowrank`, `torch.pca_lowrank`. Functions that PyTorch computes without an
    SVD stay as they are: with ``hermitian=True``, and `torch.linalg.lstsq`.

    Derivatives are PyTorch's own, and so are `torch.func`, `torch.compile`, autocast
    and all checks and errors. Results have the shapes, dtypes and strides of
    PyTorch's. As between two releases of PyTorch, last bits and the signs, or phases,
    of vectors differ.

    PyTorch's own kernel computes, as if nothing were enabled: what tsvd does not
    offer, such as empty matrices; numbers that are not finite, so that the error is
    PyTorch's; sizes for which it is faster; what a CUDA graph captures. `driver` names
    an algorithm of cuSOLVER. Its names are accepted, and have no meaning for tsvd.

    On the CPU `torch.get_num_threads` threads compute. On CUDA it is the current
    stream of PyTorch.

    Examples
    --------
    >>> import torch
    >>> import tsvd.torch
    >>> tsvd.torch.enable()
    >>> A = torch.diag(torch.tensor([3.0, 2.0]))
    >>> torch.linalg.svdvals(A)  # tsvd computes
    tensor([3., 2.])
    >>> tsvd.torch.disable()
    """
    with _lock:
        _state.wanted = True
        _apply()


def disable():
    """Gives `torch.linalg.svd` back to PyTorch, after `enable`.

    A block of `enabled` keeps tsvd in place to its end. If nothing is enabled this
    does nothing.

    Examples
    --------
    >>> import tsvd.torch
    >>> tsvd.torch.disable()
    """
    with _lock:
        _state.wanted = False
        _apply()


@contextlib.contextmanager
def enabled():
    """What `enable` does, to the end of a ``with`` statement; also a decorator.

    Blocks may be nested, and those of several threads may overlap: tsvd stays in place
    to the end of the last one. It is in place for all threads.

    Examples
    --------
    >>> import torch
    >>> import tsvd.torch
    >>> with tsvd.torch.enabled():
    ...     rank = torch.linalg.matrix_rank(torch.ones(3, 3))
    >>> rank
    tensor(1)
    """
    with _lock:
        _state.blocks += 1
        try:
            _apply()
        except BaseException:
            _state.blocks -= 1
            raise
    try:
        yield
    finally:
        with _lock:
            _state.blocks -= 1
            _apply()


def is_enabled():
    """Whether `torch.linalg.svd` runs on tsvd.

    Examples
    --------
    >>> import tsvd.torch
    >>> with tsvd.torch.enabled():
    ...     tsvd.torch.is_enabled()
    True
    """
    return _state.placed is not None


# ---- putting kernels in place ----


class _State:
    """What is asked for, and what is in place."""

    wanted = False  # by enable()
    blocks = 0  # of enabled(), that are open
    placed = None  # the library whose destruction gives PyTorch its own kernels back


_state, _lock = _State(), threading.Lock()


def _apply():
    """Brings in place what is asked for."""
    wanted = _state.wanted or _state.blocks > 0
    if wanted and _state.placed is None:
        try:
            _state.placed = _place()
        except BaseException:
            _state.wanted = False
            raise
    elif not wanted and _state.placed is not None:
        _state.placed._destroy()
        _state.placed = None


def _place():
    if not hasattr(torch.library, "get_kernel"):
        raise RuntimeError(
            f"tsvd.torch.enable() needs PyTorch 2.9 or newer, and this is {torch.__version__}; "
            "tsvd.torch.linalg has the functions themselves"
        )
    library = torch.library.Library("aten", "IMPL")
    for key in ("CPU", "CUDA"):
        for name, make in (("_linalg_svd", _kernel), ("_linalg_svd.U", _kernel_into)):
            try:
                own = torch.library.get_kernel(f"aten::{name}", key)
            except RuntimeError:  # a build without CUDA
                continue
            with warnings.catch_warnings():
                # Some releases of PyTorch warn of what was asked for.
                warnings.filterwarnings("ignore", r"(?s).*previously registered kernel")
                library.impl(name, make(own), key, with_keyset=True)
    return library


def _kernel(own):
    """The kernel of aten::_linalg_svd that calls PyTorch's `own` where it is the better one."""

    def svd(keys, a, full_matrices=False, compute_uv=True, *, driver=None):
        if _is_ours(a, driver):
            with contextlib.suppress(*_REFUSALS):
                return _svd(a, full_matrices, compute_uv)
        return own.call_boxed(keys, a, full_matrices, compute_uv, driver=driver)

    return svd


def _kernel_into(own):
    """The kernel of aten::_linalg_svd.U, whose results go into given tensors."""

    def svd(keys, a, full_matrices=False, compute_uv=True, *, driver=None, U, S, Vh):
        outs = U, S, Vh
        if _is_ours(a, driver) and all(out.device == a.device for out in outs):
            with contextlib.suppress(*_REFUSALS):
                results = _svd(a, full_matrices, compute_uv)
                if all(map(_fits, outs, results)):
                    return tuple(map(_put, outs, results))
        return own.call_boxed(keys, a, full_matrices, compute_uv, driver=driver, U=U, S=S, Vh=Vh)

    return svd


def _fits(out, result):
    """Whether out takes the result without a warning or an error of PyTorch's."""
    return out.dtype == result.dtype and (out.shape == result.shape or out.numel() == 0)


def _put(out, result):
    if out.shape != result.shape:
        out.resize_(result.shape).as_strided_(result.shape, result.stride())
    return out.copy_(result)


# ---- computing ----


def _is_ours(a, driver):
    """Whether tsvd computes the SVD of a.

    No size is left to PyTorch as too small. [measured, 2 threads of an x86-64 machine, PyTorch
    2.15] To enter Python takes 8 us. So a single matrix of order 2 to 20 with vectors, or to 40 for
    values alone, takes that much longer than without `enable`. Once in Python, to hand it back
    takes about as long as to compute it, or longer. On an H200 tsvd is ahead in all that
    benchmarks/results has.
    """
    if a.dtype not in _TYPES or a.ndim < 2 or a.numel() == 0 or driver not in _DRIVERS:
        return False
    if a.is_cuda:
        return _is_offered(a.get_device()) and not torch.cuda.is_current_stream_capturing()
    return driver is None


@functools.cache
def _is_offered(index):
    """Whether tsvd can use a CUDA device that PyTorch uses."""
    offered = opens_dense(index)
    if not offered:
        warnings.warn(
            f"tsvd cannot use cuda:{index}: torch.linalg.svd stays PyTorch's own there. "
            "`tsvd info` says why",
            RuntimeWarning,
            stacklevel=2,
        )
    return offered


def _svd(a, full_matrices, compute_uv):
    """What aten::_linalg_svd returns."""
    # Subclasses of tensors and modes have seen the call, and are not to see what it consists of.
    with torch._C.DisableTorchFunction():
        return _decomposed(a, full_matrices, compute_uv)


def _decomposed(a, full_matrices, compute_uv):
    a = a.detach()  # a kernel gets tensors that require grad, and computes below autograd
    compute = _on_cuda if a.is_cuda else _on_host
    if compute_uv:
        return laid_out(functools.partial(compute, full_matrices), a)
    return a.new_empty(0), compute(None, a), a.new_empty(0)


def _on_host(full_matrices, a):
    """The SVD of a, or its values alone if full_matrices is None."""
    # As arrays of NumPy: tsvd.linalg finds out more about tensors, in ten microseconds or more.
    threads = torch.get_num_threads()
    if full_matrices is None:
        s = linalg.svd(a.numpy(), compute_uv=False, device="cpu", threads=threads)
        return torch.from_numpy(s)
    result = linalg.svd(a.numpy(), full_matrices, device="cpu", threads=threads)
    return map(torch.from_numpy, result)


def _on_cuda(full_matrices, a):
    """As _on_host, on the device of a, whichever is the current one."""
    with torch.cuda.device(a.get_device()):
        if full_matrices is None:
            return linalg.svd(a, compute_uv=False)
        return linalg.svd(a, full_matrices)
