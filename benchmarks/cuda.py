"""Products, copies and dense SVDs on the GPU, by PyTorch, or by CuPy if PyTorch is not installed.

Neither is imported before it is needed.
"""

import functools
import math
import time
from statistics import median

import numpy as np

EPS = float(np.finfo(np.float64).eps)
GEMM_FLOPS = 2e12  # one timing of products makes at least these


def errors(d, e, L, s, R):
    """The measures of testing/measures.py, for float64 results of ordinary magnitude."""
    gpu, n = library(), len(d)
    d_gpu, e_gpu, L, s, R = (gpu.array(x) for x in (d, e, L, s, R))
    difference = ((L * s) @ R).reshape(-1)
    difference[:: n + 1] -= d_gpu
    difference[1 :: n + 1] -= e_gpu
    max_error = float(abs(difference).max())
    norm = math.sqrt(float(difference @ difference))
    del difference
    lost = 0.0
    for A, B in ((L.T, L), (R, R.T)):
        gram = (A @ B).reshape(-1)
        gram[:: n + 1] -= 1
        lost = max(lost, float(abs(gram).max()))
        del gram
    return {
        "max_error": max_error,
        "residual": norm / ((n + 8) * EPS * float(np.hypot(*map(np.linalg.norm, (d, e))))),
        "orthogonality": lost / ((n + 8) * EPS),
    }


def dense(d, e):
    """The n x n matrix B on the device."""
    gpu, n = library(), len(d)
    B = gpu.zeros(n * n)
    B[:: n + 1] = gpu.array(d)
    B[1 :: n + 1] = gpu.array(e)
    return B.reshape(n, n)


def dense_batch(d, e):
    """The matrices (B, n, n) of d (B, n) and e (B, n-1) on the device, in their dtype."""
    gpu, (count, n) = library(), d.shape
    B = gpu.zeros(count * n * n, d.dtype).reshape(count, n * n)
    B[:, :: n + 1] = gpu.array(d)
    B[:, 1 :: n + 1] = gpu.array(e)
    return B.reshape(count, n, n)


def gemm_rate(n, repeats):
    """Flops per second of a product of two n x n matrices, the best of `repeats` timings."""
    gpu = library()
    A, B, C = (gpu.zeros(n * n).reshape(n, n) for _ in range(3))
    # Products of zeros take less power, so that the clock may be higher.
    rng = np.random.default_rng(n)
    for X in (A, B):
        X += gpu.array(rng.standard_normal(n))
        X += gpu.array(rng.standard_normal(n))[:, None]
    calls = math.ceil(GEMM_FLOPS / (2 * n**3))

    def products():
        for _ in range(calls):
            gpu.multiply(A, B, C)

    gpu.multiply(A, B, C)
    best = min(gpu.seconds(products) for _ in range(repeats))
    return calls * 2 * n**3 / best


def pinned_seconds(size, repeats):
    """Median seconds of copying `size` bytes from the device to pinned memory."""
    copy, wait = library().pinned_copy(size)
    seconds = []
    for _ in range(repeats):
        wait()
        start = time.perf_counter()
        copy()
        wait()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


@functools.cache
def library():
    """The installed library."""
    for kind in (_Torch, _CuPy):
        try:
            return kind()
        except ImportError:
            pass
    raise SystemExit("this benchmark measures with PyTorch or CuPy; install one of them")


class _Torch:
    def __init__(self):
        import torch

        self._torch = torch
        self.name = f"PyTorch {torch.__version__}"

    def array(self, x):
        return self._torch.from_numpy(x).to("cuda")

    def zeros(self, size, dtype=np.float64):
        return self._torch.zeros(
            size, dtype=getattr(self._torch, np.dtype(dtype).name), device="cuda"
        )

    def multiply(self, A, B, C):
        self._torch.matmul(A, B, out=C)

    def svd(self, B, driver):
        """The SVD by cuSOLVER's "gesvd" or "gesvdj"."""
        return self._torch.linalg.svd(B, driver=driver)

    def svd_batch(self, B):
        """The SVD by the driver that the library chooses for many matrices."""
        return self._torch.linalg.svd(B)

    def seconds(self, function):
        """The seconds of the work of `function` on the device, by events."""
        start, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3

    def pinned_copy(self, size):
        source = self._torch.zeros(size, dtype=self._torch.uint8, device="cuda")
        target = self._torch.zeros(size, dtype=self._torch.uint8, pin_memory=True)
        return lambda: target.copy_(source), self._torch.cuda.synchronize

    def free(self):
        """Returns the memory that the library keeps to the device."""
        self._torch.cuda.empty_cache()


class _CuPy:
    def __init__(self):
        import cupy
        import cupyx

        self._cupy, self._cupyx = cupy, cupyx
        self.name = f"CuPy {cupy.__version__}"

    def array(self, x):
        return self._cupy.asarray(x)

    def zeros(self, size, dtype=np.float64):
        return self._cupy.zeros(size, dtype)

    def multiply(self, A, B, C):
        self._cupy.matmul(A, B, out=C)

    def svd(self, B, driver):
        """The SVD by cuSOLVER's "gesvd" or "gesvdj". gesvdj gives V, not its transpose."""
        from cupyx.cusolver import gesvdj

        return {"gesvd": self._cupy.linalg.svd, "gesvdj": gesvdj}[driver](B)

    def svd_batch(self, B):
        """The SVD by the driver that the library chooses for many matrices."""
        return self._cupy.linalg.svd(B)

    def seconds(self, function):
        """The seconds of the work of `function` on the device, by events."""
        start, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        start.record()
        function()
        end.record()
        end.synchronize()
        return self._cupy.cuda.get_elapsed_time(start, end) / 1e3

    def pinned_copy(self, size):
        source = self._cupy.zeros(size, self._cupy.uint8)
        target = self._cupyx.zeros_pinned(size, np.uint8)
        return lambda: source.get(out=target), self._cupy.cuda.runtime.deviceSynchronize

    def free(self):
        """Returns the memory that the library keeps to the device."""
        self._cupy.get_default_memory_pool().free_all_blocks()
        self._cupy.get_default_pinned_memory_pool().free_all_blocks()
