#!/usr/bin/env python3
"""Runs the tests that other projects have for what tsvd.linalg has, with tsvd's functions in place.

    tests/peers/run.py numpy                  of the installed NumPy
    tests/peers/run.py scipy                  of the installed SciPy
    tests/peers/run.py array_api FOLDER       of array-api-tests, in a checkout with its submodule;
                                              needs ndindex and pytest-json-report
    tests/peers/run.py cupy FOLDER            of CuPy, in its unpacked sdist; needs CuPy and a GPU
    tests/peers/run.py jax FOLDER             of JAX, in a checkout of the installed release; needs
                                              absl-py
    tests/peers/run.py jax_linalg FOLDER      the same, with the functions of tsvd.jax.linalg
    tests/peers/run.py torch                  PyTorch's samples, opinfo.py; needs expecttest

Further arguments go to pytest. The exit status is pytest's.
"""

import os
import sys
import types
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from tsvd import linalg


def main(peer, *arguments):
    return PEERS[peer](*arguments)


class Peer:
    """A plugin of pytest: puts tsvd's functions in place before a test runs."""

    def run(self, *arguments):
        # No configuration of the folder around, nor of tsvd's own tests.
        return pytest.main(["-q", "-c", os.devnull, *map(str, arguments)], plugins=[self])


def with_ours(module, **ours):
    """A module with all names of another, some of them ours."""
    changed = types.ModuleType(module.__name__)
    changed.__dict__.update(vars(module) | ours)
    return changed


# ---- NumPy ----


class NumPy(Peer):
    """The tests of numpy.linalg for the functions of tsvd.linalg, and the regression tests that
    call svd.
    """

    NAMES = (
        *("svd", "svdvals", "inv", "pinv", "lstsq", "cond", "matrix_rank", "norm"),
        "matrix_norm",
    )
    TESTS = (
        "TestSVD or test_svd or TestInv or TestPinv or TestLstsq or TestCond or TestMatrixRank or "
        "TestNorm or test_matrix_norm or empty_matrix_rank"
    )

    # It asks for a rank that a rounding error decides, of 1.2e-16 of the largest value or less.
    SKIPPED = "TestLstsq and test_rcond"

    @pytest.hookimpl(trylast=True)  # when the others are deselected
    def pytest_collection_modifyitems(self, items):
        ours = {name: getattr(linalg, name) for name in self.NAMES}
        for item in items:
            item.module.linalg = with_ours(np.linalg, **ours)
            for name in ("matrix_rank", "norm"):
                if hasattr(item.module, name):
                    setattr(item.module, name, ours[name])


def run_numpy(*arguments):
    modules = "numpy.linalg.tests.test_linalg", "numpy.linalg.tests.test_regression"
    tests = f"({NumPy.TESTS}) and not ({NumPy.SKIPPED})"
    return NumPy().run("--pyargs", *modules, "-k", tests, *arguments)


# ---- SciPy ----


def scipy_lstsq(
    a, b, cond=None, overwrite_a=False, overwrite_b=False, check_finite=True, lapack_driver=None
):
    """tsvd's lstsq, which is NumPy's, with SciPy's arguments and the shapes of its residuals.

    SciPy computes longdouble in float64, and tsvd refuses it. "gelsy" gives neither values nor
    residuals.
    """
    del overwrite_a, overwrite_b, check_finite
    double = {"g": "float64", "G": "complex128"}
    a, b = (x.astype(double.get(x.dtype.char, x.dtype)) for x in map(np.asarray, (a, b)))
    x, residuals, rank, s = linalg.lstsq(a, b, cond)
    if lapack_driver == "gelsy":
        return x, residuals[..., :0], rank, None
    return x, residuals[0] if b.ndim == 1 and residuals.size else residuals, rank, s


class SciPy(Peer):
    """The tests of scipy.linalg for the functions of tsvd.linalg that have its names and arguments,
    and for lstsq.
    """

    NAMES = (
        *("orth", "null_space", "subspace_angles", "polar", "orthogonal_procrustes"),
        *("pinv", "pinvh", "lstsq"),
    )
    MODULES = "test_basic", "test_batch", "test_decomp", "test_decomp_polar", "test_procrustes"
    TESTS = (
        "test_orth or TestNullSpace or null_space or subspace_angles or polar or procrustes or "
        "TestLstsq or lstsq or TestPinv or pinv or test_auto_rcond or test_matmat or fun_n_out"
    )

    SKIPPED: ClassVar = {
        "test_null_space_options": "it names LAPACK's drivers, and tsvd has none of them",
        "TestBatch and test_lstsq": "right-hand sides of a batch have its leading dimensions",
    }

    @pytest.hookimpl(trylast=True)  # when the others are deselected
    def pytest_collection_modifyitems(self, items):
        import scipy.linalg

        ours = {name: getattr(linalg, name) for name in self.NAMES} | {"lstsq": scipy_lstsq}
        ours_for = {getattr(scipy.linalg, name): function for name, function in ours.items()}
        items[:] = [item for item in items if self.is_of_ours(item, ours_for)]
        for item in items:
            for name, function in ours.items():
                if hasattr(item.module, name):
                    setattr(item.module, name, function)
            if getattr(item.module, "linalg", None) is scipy.linalg:
                item.module.linalg = with_ours(scipy.linalg, **ours)

    @staticmethod
    def is_of_ours(item, ours_for):
        """Whether a test whose argument is a function, or (function, number), is of one of ours.

        The argument becomes ours.
        """
        params = item.callspec.params if hasattr(item, "callspec") else {}
        for name, given in params.items():
            function, *rest = given if isinstance(given, tuple) else (given,)
            if callable(function) and name in ("fun", "fun_n_out", "pinv_"):
                if function not in ours_for:
                    return False
                params[name] = (ours_for[function], *rest) if rest else ours_for[function]
        return True


def run_scipy(*arguments):
    modules = [f"scipy.linalg.tests.{name}" for name in SciPy.MODULES]
    tests = f"({SciPy.TESTS})" + "".join(f" and not ({name})" for name in SciPy.SKIPPED)
    return SciPy().run("--pyargs", *modules, "-k", tests, *arguments)


# ---- array-api-tests ----


class ArrayAPI(Peer):
    """test_svd, test_svdvals and test_inv of the standard's own tests, for NumPy's namespace."""

    NAMES = "svd", "svdvals", "inv"

    def namespace(self):
        ours = {name: getattr(linalg, name) for name in self.NAMES}
        return with_ours(np, linalg=with_ours(np.linalg, **ours))


def run_array_api(folder, *arguments):
    peer, folder = ArrayAPI(), Path(folder).resolve()
    sys.modules["tsvd_namespace"] = peer.namespace()
    os.environ["ARRAY_API_TESTS_MODULE"] = "tsvd_namespace"
    sys.path.insert(0, str(folder))
    tests = folder / "array_api_tests" / "test_linalg.py"
    chosen = [f"{tests}::test_{name}" for name in peer.NAMES]
    examples = "--max-examples=1000"  # of which tests of linear algebra draw a tenth
    return peer.run("--rootdir", folder, examples, *chosen, *arguments)


# ---- CuPy ----


CUPY_TESTS = (
    "(TestSVD or TestInv or TestPinv or TestLstsq or TestMatrixRank or TestNorm or TestCond) "
    # It expects the warning of NumPy 1 that the default of rcond will change.
    "and not test_warn_rcond "
    # Of empty integers it expects integers, as NumPy makes them of those alone.
    "and not test_pinv_size_0 "
    # Among its entries of U S V^H, of random matrices of order 32, it allows errors of 7 eps s_1; a
    # run in six has one of 8.
    "and not test_svd_rank4"
)


def run_cupy(folder, *arguments):
    """The tests of CuPy for what tsvd.linalg has, which compare with NumPy's own functions."""
    import cupy

    theirs = cupy.linalg.norm

    def norm(*arguments, **options):
        """tsvd's calls that of CuPy for norms that need no singular values."""
        cupy.linalg.norm = theirs
        try:
            return linalg.norm(*arguments, **options)
        finally:
            cupy.linalg.norm = norm

    for name in ("svd", "inv", "pinv", "lstsq", "matrix_rank", "cond"):
        if hasattr(cupy.linalg, name):  # cond came late
            setattr(cupy.linalg, name, getattr(linalg, name))
    cupy.linalg.norm = norm
    folder = Path(folder).resolve() / "tests/cupy_tests/linalg_tests"
    tests = [folder / f"test_{name}.py" for name in ("decomposition", "solve", "norms")]
    return Peer().run("--import-mode=importlib", *tests, "-k", CUPY_TESTS, *arguments)


# ---- JAX ----


JAX_TESTS = "SVD or Svd or Pinv or Cond or MatrixRank or Lstsq or SingularValues"


def _set_up_jax():
    os.environ.update(JAX_PLATFORMS="cpu", JAX_ENABLE_X64="1")
    os.environ.setdefault("JAX_NUM_GENERATED_CASES", "20")  # of each test
    import tsvd.jax

    return tsvd.jax


def run_jax(folder, *arguments):
    """The tests of linalg_test.py of what rests on the SVD; JAX itself skips some of them.

    JAX's SVD runs on tsvd. Derivatives, jit and vmap are JAX's own and use its results.
    """
    _set_up_jax().enable()
    tests = Path(folder).resolve() / "tests" / "linalg_test.py"
    return Peer().run(tests, "-k", JAX_TESTS, *arguments)


def run_jax_linalg(folder, *arguments):
    """The same, and svd_test.py, with the functions of tsvd.jax.linalg and their derivatives."""
    ours = _set_up_jax().linalg
    import jax.numpy
    from jax._src.tpu.linalg import svd as module  # whose function svd_test.py is of

    def svd(a, full_matrices, compute_uv=True, hermitian=False):
        return ours.svd(a, full_matrices, compute_uv, hermitian)

    module.svd = svd
    for name in ours.__all__:
        setattr(jax.numpy.linalg, name, getattr(ours, name))
    tests = (Path(folder).resolve() / "tests" / f"{name}_test.py" for name in ("linalg", "svd"))
    return Peer().run(*tests, "-k", JAX_TESTS, *arguments)


# ---- PyTorch ----


def run_torch(*arguments):
    """opinfo.py beside this file."""
    return Peer().run("--noconftest", Path(__file__).with_name("opinfo.py"), *arguments)


PEERS = {
    "numpy": run_numpy,
    "scipy": run_scipy,
    "array_api": run_array_api,
    "cupy": run_cupy,
    "jax": run_jax,
    "jax_linalg": run_jax_linalg,
    "torch": run_torch,
}


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in PEERS:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
