#!/usr/bin/env python3
"""Runs the tests that other projects have for their SVD and inverse, with tsvd.linalg in its place.

    tests/peers/run.py numpy                  of the installed NumPy
    tests/peers/run.py array_api FOLDER       of array-api-tests, in a checkout with its submodule;
                                              needs ndindex and pytest-json-report
    tests/peers/run.py cupy FOLDER            of CuPy, in its unpacked sdist; needs CuPy and a GPU

Further arguments go to pytest. On a GPU cases that ask for complex numbers are not offered by tsvd:
they are skipped, and listed at the end. The exit status is pytest's.
"""

import functools
import os
import sys
import types
import unittest
from pathlib import Path

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
    """TestSVD, TestSVDHermitian and TestInv of numpy.linalg, and the regression tests that call
    svd.
    """

    TESTS = "TestSVD or test_svd or TestInv"

    @pytest.hookimpl(trylast=True)  # when the others are deselected
    def pytest_collection_modifyitems(self, items):
        for item in items:
            item.module.linalg = with_ours(
                np.linalg, svd=linalg.svd, svdvals=linalg.svdvals, inv=linalg.inv
            )


def run_numpy(*arguments):
    modules = "numpy.linalg.tests.test_linalg", "numpy.linalg.tests.test_regression"
    return NumPy().run("--pyargs", *modules, "-k", NumPy.TESTS, *arguments)


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
    return peer.run("--rootdir", folder, *chosen, *arguments)


# ---- CuPy ----


class CuPy(Peer):
    """TestSVD and TestInv of CuPy. Loops over types leave out those that raise SkipTest."""

    def __init__(self):
        self.not_offered = set()

    def skipping(self, function):
        @functools.wraps(function)
        def call(a, *arguments, **options):
            if np.dtype(a.dtype).kind == "c":
                self.not_offered.add(f"{function.__name__} of {a.dtype}")
                raise unittest.SkipTest(f"{a.dtype} is not offered")
            return function(a, *arguments, **options)

        return call

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section("not offered by tsvd")
        for what in sorted(self.not_offered):
            terminalreporter.write_line(what)


def run_cupy(folder, *arguments):
    import cupy

    peer = CuPy()
    cupy.linalg.svd = peer.skipping(linalg.svd)
    cupy.linalg.inv = peer.skipping(linalg.inv)
    # NumPy's results are what CuPy's are compared with.
    np.linalg.svd = peer.skipping(np.linalg.svd)
    np.linalg.inv = peer.skipping(np.linalg.inv)
    folder = Path(folder).resolve() / "tests/cupy_tests/linalg_tests"
    tests = folder / "test_decomposition.py", folder / "test_solve.py"
    return peer.run("--import-mode=importlib", *tests, "-k", "TestSVD or TestInv", *arguments)


PEERS = {"numpy": run_numpy, "array_api": run_array_api, "cupy": run_cupy}


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in PEERS:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
