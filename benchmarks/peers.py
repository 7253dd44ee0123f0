"""The SVD of dense matrices on the CPU by other libraries, each where it is installed: PyTorch,
JAX, and Eigen's JacobiSVD, which is compiled here.
"""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("eigen_svd.cpp")
EIGEN_ORDER = 32  # the largest: larger matrices take longer than a benchmark should
SCALARS = {"float32": "float", "float64": "double", "complex64": None, "complex128": "complex"}


def calls(A, vectors):
    """Pairs of a library with its version, and a call for the SVD of A (..., m, n): U, S and Vh
    without what they have beyond min(m, n), or S.
    """
    for peer in (_pytorch, _jax, _eigen):
        found = peer(A, vectors)
        if found is not None:
            yield found


def _pytorch(A, vectors):
    try:
        import torch
    except ImportError:
        return None
    x = torch.from_numpy(A)
    if vectors:
        call = functools.partial(torch.linalg.svd, x, full_matrices=False)
    else:
        call = functools.partial(torch.linalg.svdvals, x)
    return f"PyTorch {torch.__version__}", call


def _jax(A, vectors):
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    x = jax.device_put(A, jax.devices("cpu")[0])
    svd = jax.jit(functools.partial(jax.numpy.linalg.svd, full_matrices=False, compute_uv=vectors))
    return f"JAX {jax.__version__}", lambda: jax.block_until_ready(svd(x))


@functools.cache
def _eigen_library():
    """The compiled source, or None."""
    if not shutil.which("g++") or not shutil.which("pkg-config"):
        return None
    flags = subprocess.run(["pkg-config", "--cflags", "eigen3"], capture_output=True, text=True)
    if flags.returncode != 0:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "eigen_svd.so")
        command = ["g++", "-O3", "-march=native", "-DNDEBUG", "-shared", "-fPIC"]
        subprocess.run([*command, *flags.stdout.split(), SOURCE, "-o", path], check=True)
        return ctypes.CDLL(str(path))


def _eigen(A, vectors):
    m, n = A.shape[-2:]
    scalar = SCALARS[A.dtype.name]
    if scalar is None or max(m, n) > EIGEN_ORDER or _eigen_library() is None:
        return None
    library = _eigen_library()
    library.version.restype = ctypes.c_char_p
    k, batch = min(m, n), A.shape[:-2]
    S = np.empty((*batch, k), A.real.dtype)
    U, V = (np.empty((*batch, rows, k), A.dtype) for rows in (m, n)) if vectors else (None, None)
    address = [ctypes.c_void_p(x.ctypes.data if x is not None else None) for x in (A, U, S, V)]
    sizes = map(ctypes.c_int64, (S.size // k, m, n))
    call = functools.partial(getattr(library, f"svd_{scalar}"), *sizes, *address)
    return f"Eigen {library.version().decode()}", lambda: (call(), U, S, V)[1:]
