"""cuSOLVER's gesvdp (polar decomposition) by ctypes: PyTorch and CuPy do not offer it."""

import ctypes
import functools
from pathlib import Path

# Values of cuSOLVER's and CUDA's enumerations.
VECTORS = 1
KINDS = {"float32": (0, 0), "float64": (1, 1), "complex64": (4, 0), "complex128": (5, 1)}


def gesvdp(A):
    """U, S, V of a square tensor A on the device, A = U diag(S) V^H; the vectors are transposed.

    A is overwritten. A tensor in rows is its transpose in columns, which is as much work.
    """
    import torch

    solver, handle, parameters = _solver()
    n, (kind, of_values) = len(A), KINDS[str(A.dtype).removeprefix("torch.")]
    U, V, S = torch.empty_like(A), torch.empty_like(A), torch.empty_like(A[0].real)
    info = torch.zeros(1, dtype=torch.int32, device=A.device)
    order, pointer = ctypes.c_int64(n), lambda x: ctypes.c_void_p(x.data_ptr())
    given = (
        *(handle, parameters, VECTORS, 1, order, order, kind, pointer(A), order),
        *(of_values, pointer(S), kind, pointer(U), order, kind, pointer(V), order, kind),
    )
    on_device, on_host = ctypes.c_size_t(), ctypes.c_size_t()
    _check(
        solver.cusolverDnXgesvdp_bufferSize(*given, ctypes.byref(on_device), ctypes.byref(on_host))
    )
    work = torch.empty(max(on_device.value, 1), dtype=torch.uint8, device=A.device)
    host, error = ctypes.create_string_buffer(max(on_host.value, 1)), ctypes.c_double()
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    _check(solver.cusolverDnSetStream(handle, stream))
    status = solver.cusolverDnXgesvdp(
        *(*given, pointer(work), on_device, host, on_host, pointer(info), ctypes.byref(error))
    )
    _check(status)
    if info.item():
        raise RuntimeError(f"gesvdp: info = {info.item()}")
    return U, S, V


def _check(status):
    if status:
        raise RuntimeError(f"cuSOLVER: status {status}")


@functools.cache
def _solver():
    """The library that PyTorch loaded, a handle, and its parameters; they live to the end."""
    import torch

    torch.linalg.svd(torch.eye(4, device="cuda"))
    mapped = Path("/proc/self/maps").read_text().split()
    names = sorted({name for name in mapped if "/libcusolver.so" in name})
    if not names:
        raise RuntimeError("PyTorch has not loaded libcusolver")
    solver = ctypes.CDLL(names[0])
    handle, parameters = ctypes.c_void_p(), ctypes.c_void_p()
    _check(solver.cusolverDnCreate(ctypes.byref(handle)))
    _check(solver.cusolverDnCreateParams(ctypes.byref(parameters)))
    return solver, handle, parameters
