import hypothesis
import numpy as np
import pytest

import tsvd

hypothesis.settings.register_profile(
    "tsvd", derandomize=True, deadline=None, database=None, print_blob=True
)
hypothesis.settings.load_profile("tsvd")


def pytest_addoption(parser):
    parser.addoption(
        "--require-cuda", action="store_true", help="fail the tests of CUDA where it is unusable"
    )


@pytest.fixture(scope="session")
def cuda(request):
    """A usable CUDA device; a test that asks for it has the mark cuda."""
    try:
        tsvd.svd(np.ones(2), np.ones(1), device="cuda")
    except RuntimeError as error:
        if request.config.getoption("--require-cuda"):
            pytest.fail(f"CUDA is unusable: {error}")
        pytest.skip(f"CUDA is unusable: {error}")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)], scope="session")
def device(request):
    """Every device that the decomposition runs on."""
    if request.param == "cuda":
        request.getfixturevalue("cuda")
    return request.param


@pytest.fixture(params=["cpu"], scope="session")
def values_device(request):
    """Every device that has values without vectors by all methods."""
    return request.param
