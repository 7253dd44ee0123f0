"""Results do not depend on the caller's floating-point environment, which comes back unchanged."""

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tsvd
from testing.cases import same_bits
from testing.families import make
from tsvd import linalg

FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO = {
    "x86_64": (0x400, 0x800, 0xC00),
    "aarch64": (0x800000, 0x400000, 0xC00000),
}.get(platform.machine(), (None,) * 3)

pytestmark = pytest.mark.skipif(
    FE_UPWARD is None, reason="no numbers of rounding directions for this machine"
)

# exceptions that have occurred, in x86's word: Python's own arithmetic has some
FLAGS = 0x3F if platform.machine() == "x86_64" else 0

libm = ctypes.CDLL("libm.so.6")


class Environment:
    """The words of fenv_t that hold what a thread's arithmetic does."""

    def __init__(self):
        self.words = (ctypes.c_uint32 * 8)()
        # x86: the control and status of SSE; aarch64: FPCR
        self.index = 7 if platform.machine() == "x86_64" else 0

    def get(self):
        libm.fegetenv(self.words)
        return self.words[self.index]

    def set(self, word):
        libm.fegetenv(self.words)
        self.words[self.index] = word
        libm.fesetenv(self.words)


def flush_to_zero(word):
    return word | (0x8040 if platform.machine() == "x86_64" else 1 << 24)


def round_to(direction):
    def change(word):
        return word | (direction << 3 if platform.machine() == "x86_64" else direction)

    return change


CHANGES = {
    "flush to zero": flush_to_zero,
    "down": round_to(FE_DOWNWARD or 0),
    "up": round_to(FE_UPWARD or 0),
    "towards zero": round_to(FE_TOWARDZERO or 0),
}


def calls(d, e, device):
    """What is compared: every method, with and without vectors, on one thread and on two."""
    for threads in (1, 2):
        for method in ("auto", "dc", "qr", "givens", "bisect"):
            for vectors in (False, True):
                if not (vectors and method == "bisect"):
                    yield {
                        "method": method,
                        "compute_uv": vectors,
                        "device": device,
                        "threads": threads,
                    }


def matrices():
    unit = np.finfo(np.float32).smallest_subnormal
    yield make("chi", 90, np.float64)
    yield make("chi", 90, np.float32)
    yield make("graded_down", 40, np.float32)
    yield np.full(33, 5 * unit), np.full(32, 3 * unit)


@pytest.mark.parametrize("change", CHANGES)
def test_the_callers_environment_changes_nothing(change, device):
    environment = Environment()
    default = environment.get()
    for d, e in matrices():
        for options in calls(d, e, device):
            expected = tsvd.svd(d, e, **options)
            try:
                environment.set(CHANGES[change](default))
                before = environment.get()
                found = tsvd.svd(d, e, **options)
                after = environment.get()
            finally:
                environment.set(default)
            if options["compute_uv"]:
                expected, found = tuple(expected), tuple(found)
            assert same_bits(found, expected), options
            assert (before ^ after) & ~FLAGS == 0, options


@pytest.mark.parametrize("change", CHANGES)
def test_jacobi_in_another_environment(change):
    """Its tasks flush small numbers to zero.  Subnormal entries and values are kept."""
    environment = Environment()
    default = environment.get()
    A = np.random.default_rng(3).standard_normal((140, 140)).astype(np.float32)
    A /= abs(A).max()
    unit = np.finfo(np.float32).smallest_subnormal
    sizes = np.where(np.arange(140) % 2, np.float32(1e30), 100 * unit)
    for given in (A, A * sizes, A * np.float32(1e-38), np.diag(sizes[::-1]), A[:, :90]):
        for threads in (1, 2):
            options = {"method": "jacobi", "device": "cpu", "threads": threads}
            expected = tuple(linalg.svd(given, **options))
            assert expected[1][-1] > 0
            try:
                environment.set(CHANGES[change](default))
                before = environment.get()
                found = linalg.svd(given, **options)
                after = environment.get()
            finally:
                environment.set(default)
            assert same_bits(tuple(found), expected)
            assert (before ^ after) & ~FLAGS == 0


def test_a_rank_of_one_with_small_numbers_flushed():
    """With small numbers flushed to zero a leaf's QR iteration did not converge."""
    environment = Environment()
    default = environment.get()
    n = 64
    d, e = np.zeros(n, np.float32), np.zeros(n - 1, np.float32)
    d[-1], e[-1] = 3, 4
    for scale in np.float32(2.0) ** np.arange(-140, 120, 20, dtype=np.float32):
        a, b = d * scale, e * scale
        expected = tuple(tsvd.svd(a, b))
        try:
            environment.set(flush_to_zero(default))
            found = tuple(tsvd.svd(a, b))
        finally:
            environment.set(default)
        assert same_bits(found, expected)


def test_progress_runs_in_the_callers_environment():
    """It sees what the caller has set, and what it sets itself is there afterwards."""
    seen = []

    def progress(done):
        seen.append(libm.fegetround())
        libm.fesetround(FE_DOWNWARD)

    d, e = make("chi", 200)
    batch = np.tile(d, (400, 1)), e  # takes longer than the time between two calls of progress
    expected = tsvd.svd(*batch, device="cpu")
    try:
        libm.fesetround(FE_UPWARD)
        found = tsvd.svd(*batch, device="cpu", progress=progress)
        after = libm.fegetround()
    finally:
        libm.fesetround(0)
    assert len(seen) > 1
    assert seen[0] == FE_UPWARD and set(seen[1:]) == {FE_DOWNWARD}
    assert after == FE_DOWNWARD
    assert same_bits(tuple(found), tuple(expected))


def test_threads_made_in_another_environment(tmp_path):
    """Threads begin with the environment of the thread that makes them."""
    code = """
import ctypes, sys
import numpy as np
import tsvd
libm = ctypes.CDLL("libm.so.6")
rng = np.random.default_rng(1)
d, e = rng.random((400, 30)), rng.random((400, 29))
libm.fesetround(int(sys.argv[1]))
first = tsvd.svd(d, e, threads=2)
libm.fesetround(0)
sys.stdout.buffer.write(b"".join(x.tobytes() for x in first))
"""
    one, other = (
        subprocess.run([sys.executable, "-c", code, str(way)], capture_output=True, check=True)
        for way in (0, FE_UPWARD)
    )
    assert one.stdout and one.stdout == other.stdout


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("flag", ["-Ofast", "-ffast-math", "-ffinite-math-only"])
def test_fast_math_is_refused(flag, tmp_path):
    """Such flags in CFLAGS would make the results wrong, and so they end the build."""
    csrc = Path(__file__).parents[1] / "csrc"
    if not csrc.exists():
        pytest.skip("not in a source tree")
    command = ["gcc", "-c", "-std=c11", "-DTSVD_SINGLE=0", f"-I{csrc}", f"-I{csrc}/include"]
    command += [str(csrc / "math/sturm.c"), "-o", str(tmp_path / "sturm.o")]
    assert subprocess.run([*command, "-O3"], capture_output=True).returncode == 0
    refused = subprocess.run([*command, flag], capture_output=True, text=True)
    assert refused.returncode != 0 and "tsvd cannot be compiled" in refused.stderr


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
@pytest.mark.parametrize(
    "flag", ["-ffast-math", "-funsafe-math-optimizations", "-fno-signed-zeros"]
)
def test_parts_of_fast_math_are_refused(flag, tmp_path):
    """gcc 11 has no macros that tell the sources of them."""
    root = Path(__file__).parents[1]
    if not (root / "CMakeLists.txt").exists():
        pytest.skip("not in a source tree")
    command = ["cmake", "-S", str(root), "-B", str(tmp_path), "-DTSVD_CUDA=OFF"]
    refused = subprocess.run(
        command, env=os.environ | {"CFLAGS": flag}, capture_output=True, text=True
    )
    assert refused.returncode != 0 and "tsvd cannot be compiled" in refused.stderr


@pytest.mark.skipif(
    shutil.which("gcc") is None or platform.machine() != "x86_64", reason="gcc for x86-64 is needed"
)
@pytest.mark.parametrize("single", [0, 1])
def test_a_processor_with_fma_but_without_avx2(single, tmp_path):
    """The kernels compile for it, and use its FMA where the source asks for it."""
    csrc = Path(__file__).parents[1] / "csrc"
    if not csrc.exists():
        pytest.skip("not in a source tree")
    command = ["gcc", "-S", "-O2", "-std=gnu11", "-march=bdver2", "-ffp-contract=off", f"-I{csrc}"]
    command += [f"-DTSVD_SINGLE={single}", "-DTSVD_ISA=generic", f"-I{csrc}/include"]
    version = (csrc / "include/tsvd/version.h.in").read_text()  # CMake fills it in
    (tmp_path / "tsvd").mkdir()
    (tmp_path / "tsvd/version.h").write_text(re.sub(r"@\w+@", "0", version))
    command.append(f"-I{tmp_path}")
    output = tmp_path / "kernels.s"
    subprocess.run([*command, str(csrc / "cpu/kernels/kernels.c"), "-o", str(output)], check=True)
    assert "vfmadd" in output.read_text()
