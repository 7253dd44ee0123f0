import hypothesis
import numpy as np
import pytest

import tsvd
from tsvd import _core

hypothesis.settings.register_profile(
    "tsvd", derandomize=True, deadline=None, database=None, print_blob=True
)
hypothesis.settings.load_profile("tsvd")


def pytest_addoption(parser):
    parser.addoption(
        "--require-cuda", action="store_true", help="fail the CUDA tests if CUDA is unusable"
    )


def pytest_report_header():
    return f"CPU kernels: {_core.config()['cpu_kernels']}"


@pytest.fixture(scope="session")
def cuda(request):
    """Skips the test if no CUDA device is usable. Tests that use it have the mark cuda."""
    try:
        tsvd.svd(np.ones(2), np.ones(1), device="cuda")
    except RuntimeError as error:
        if request.config.getoption("--require-cuda"):
            pytest.fail(f"CUDA is unusable: {error}")
        pytest.skip(f"CUDA is unusable: {error}")


@pytest.fixture(scope="session")
def two_gpus(cuda):
    if len(tsvd.devices()) < 3:  # the CPU is one
        pytest.skip("needs two GPUs")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)], scope="session")
def device(request):
    """Every device: the CPU, and CUDA if it is usable."""
    if request.param == "cuda":
        request.getfixturevalue("cuda")
    return request.param


@pytest.fixture(scope="session")
def jax_gpu(cuda, request):
    """The first GPU of JAX."""
    jax = pytest.importorskip("jax")
    try:
        return jax.devices("cuda")[0]
    except RuntimeError as error:
        if request.config.getoption("--require-cuda"):
            pytest.fail(f"JAX has no GPU: {error}")
        pytest.skip(f"JAX has no GPU: {error}")


@pytest.fixture(scope="session")
def jax_device(device, request):
    """Every device, as one of JAX."""
    if device == "cuda":
        return request.getfixturevalue("jax_gpu")
    return pytest.importorskip("jax").devices("cpu")[0]


@pytest.fixture(params=["cpu"], scope="session")
def values_device(request):
    """Every device that computes values without vectors by all methods."""
    return request.param


@pytest.fixture(params=["torch", "jax", pytest.param("cupy", marks=pytest.mark.cuda)])
def other(request):
    """Another library: what makes an array of it from one of NumPy, and what makes the reverse."""
    module = pytest.importorskip(request.param)
    if request.param == "torch":
        return module.from_numpy, np.asarray
    if request.param == "cupy":
        return module.asarray, module.asnumpy
    module.config.update("jax_enable_x64", True)
    return module.numpy.asarray, np.asarray
