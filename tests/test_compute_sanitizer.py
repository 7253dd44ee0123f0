"""Each tool of compute-sanitizer on calls that take every road on the device."""

import shutil
from pathlib import Path

import pytest

import tsvd
from testing.processes import run
from tsvd import _core

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.usefixtures("cuda"),
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="no compute-sanitizer"),
]

HINTS_BATCH = _core.tuning()["HINTS_BATCH"]

COMMON = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import numpy as np
import tsvd
from testing.exporters import Raw, download
from testing.families import make

rng = np.random.default_rng(7)

def random(n, dtype, *batch):
    return rng.random((*batch, n)).astype(dtype), rng.random((*batch, n - 1)).astype(dtype)

def part(d, e, n):
    span = (n // 3, n // 2)
    tsvd.svd(d, e, method="twisted", select="i", select_range=span, device="cuda")
"""

DENSE = """
from tsvd import linalg

def matrices(*shape):
    return rng.standard_normal(shape).astype(dtype)

def by_columns(*shape):
    A = matrices(*shape)
    linalg.svd(A, device="cuda")
    linalg.svd(A.swapaxes(-1, -2), full_matrices=False, device="cuda")
    linalg.svdvals(A, device="cuda")
    form = linalg.bidiagonalize(A, device="cuda")
    form.apply_q(form.apply_q(matrices(*shape[:-1], 3)), transposed=True)
"""

NEARLY_DIAGONAL = """
from tsvd import linalg

def nearly_diagonal(rows, columns, span):
    A = np.eye(rows, columns) + 1e-3 * rng.standard_normal((rows, columns))
    return A * 10.0 ** -np.linspace(0, span, columns)

def sweep(A):
    linalg.svd(A, method="jacobi", device="cuda")
"""

PROGRAMS = {
    "an extra column": """
for dtype in (np.float64, np.float32):
    for shape in ((1,), (5,), (40,), (150,), (3, 33), (90, 20)):
        d, e = rng.random((2, *shape)).astype(dtype)
        for lower in (False, True):
            for full in (False, True):
                tsvd.svd(d, e, lower=lower, full_matrices=full, device="cuda")
            tsvd.svdvals(Raw(d), Raw(e), lower=lower)
""",
    "givens": """
for dtype in (np.float64, np.float32):
    for n, blocks, eps in ((2, 1, 1e-3), (5, 2, 0.1), (40, 1, 0.1), (70, 3, 0.1), (130, 7, 0.2)):
        d, e = random(n, dtype)
        for split in (0, 1):
            options = {"method": "givens", "eps": eps, "device": "cuda"}
            tuning = {"blocks": blocks, "split": split}
            tsvd.svd(d, e, tuning=tuning, **options)
            tsvd.svd(d, e, tuning=tuning | {"block_threads": 6}, compute_uv=False, **options)
""",
    "dc and qr": """
for dtype in (np.float64, np.float32):
    for n in (2, 31, 33, 70, 200):
        for family in ("uniform_1", "chi", "toeplitz"):
            d, e = (x.astype(dtype) for x in make(family, n))
            tsvd.svd(d, e, lower=True, device="cuda")
            tsvd.svd(d, e, eps=1e-3, select="i", select_range=(n // 3, n // 2), device="cuda")
    tsvd.svd(*random(65, dtype), method="qr", device="cuda")
    tsvd.svd(*(x.astype(dtype) for x in make("chi", 1100)), device="cuda")
    for n in (3, 8, 12, 32, 50):
        tsvd.svd(*random(n, dtype, 40), device="cuda")
""",
    "twisted": """
for dtype in (np.float64, np.float32):
    for n in (1, 2, 33, 64, 65, 200):
        for family in ("toeplitz", "chi", "uniform_1", "jordan", "zero_middle", "graded_gently"):
            d, e = (x.astype(dtype) for x in make(family, n))
            tsvd.svd(d, e, method="twisted", lower=n % 2 == 0, device="cuda")
            if family == "graded_gently":
                part(d, e, n)
""",
    "twisted, large": """
for dtype in (np.float64, np.float32):
    for n, family in ((1030, "chi"), (520, "jordan"), (1100, "zero_middle")):
        d, e = (x.astype(dtype) for x in make(family, n))
        tsvd.svd(d, e, method="twisted", lower=True, device="cuda")
        part(d, e, n)
""",
    "values": f"""
for dtype in (np.float64, np.float32):
    for n in (100, 257, 600, 3000):
        d, e = random(n, dtype)
        tsvd.svdvals(d, e, device="cuda")
        d[::7], e[::5] = 0, 0
        tsvd.svdvals(d, e, device="cuda")
    for n in (5, 32, 100):
        tsvd.svdvals(*random(n, dtype, {HINTS_BATCH + 8} if n == 5 else 1100), device="cuda")
""",
    # about two points for a value
    "values, long": """
tsvd.svdvals(*random(13_000, np.float64), eps=1e-3, device="cuda")
tsvd.svdvals(*random(13_000, np.float32), device="cuda")
""",
    # one point for a value, for which threads with 1, 2 and 4 shifts count, and several launches
    "values, many": """
for n in (48_000, 98_000, 125_000, 300_000):
    tsvd.svdvals(*random(n, np.float32), eps=1e-5 if n < 300_000 else 0.1, device="cuda")
""",
    "dense": f"""
{DENSE}
for dtype in (np.float64, np.float32):
    for shape in ((9, 3, 3), (30, 8, 8), (5, 40, 16), (5, 16, 40), (5, 33, 33), (3, 64, 50)):
        linalg.svd(matrices(*shape), device="cuda")
        linalg.svd(matrices(*shape), full_matrices=False, device="cuda")
""",
    "dense, by columns": f"""
{DENSE}
for dtype in (np.float64, np.float32):
    for shape in ((65, 65), (70, 130), (2, 150, 140)):
        by_columns(*shape)
""",
    "dense, large": f"""
{DENSE}
for dtype in (np.float64, np.float32):
    for shape in ((300, 290), (400, 31), (33, 600)):
        by_columns(*shape)
""",
    "dense, out of shared memory": """
from tsvd import linalg

for dtype, n in ((np.float64, 1950), (np.float32, 2750)):
    linalg.svdvals(rng.standard_normal((n, n)).astype(dtype), device="cuda")
    linalg.svdvals(rng.standard_normal((2, n, n)).astype(dtype), device="cuda")
""",
    "dense, two stages": """
from tsvd import linalg

two = {"tuning": {"stages": 2}, "device": "cuda"}
for dtype in (np.float64, np.float32, np.complex128, np.complex64):
    A = rng.standard_normal((200, 190)).astype(dtype)
    linalg.svd(A, **two)
    linalg.svdvals(np.ones_like(A), **two)
    form = linalg.bidiagonalize(A[:70, :150], **two)
    form.apply_q(form.apply_q(A[:70, :3]), transposed=True)
""",
    "dense, two GPUs": """
from tsvd import _several, linalg

_several._VECTORS_LEAST = 1
two = {"tuning": {"stages": 2}, "device": [0, 1]}
for dtype in (np.float64, np.complex64):
    for shape in ((600, 590), (300, 520)):
        A = rng.standard_normal(shape).astype(dtype)
        linalg.svd(A, full_matrices=False, **two)
        linalg.svdvals(A, **two)
""",
    "jacobi": """
from tsvd import linalg

SHAPES = ((9, 4, 3), (9, 5, 8), (5, 16, 9), (5, 16, 32), (3, 40, 33), (2, 20, 70))

for dtype in (np.float64, np.float32):
    options = {"method": "jacobi", "device": "cuda"}
    for shape in SHAPES:
        A = rng.standard_normal(shape).astype(dtype)
        A[0, :, 0] = 0
        linalg.svd(A, **options)
        linalg.svd(A.swapaxes(-1, -2), full_matrices=False, **options)
        linalg.svdvals(A, **options)
""",
    "jacobi, tall": """
from tsvd import linalg

A = rng.standard_normal((1, 900, 34))
linalg.svd(A, full_matrices=False, method="jacobi", device="cuda")
""",
    # the kernels do the same in both precisions, and few sweeps are enough
    "jacobi, large": f"""
{NEARLY_DIAGONAL}
sweep(nearly_diagonal(130, 129, 30).astype(np.float32))
sweep(nearly_diagonal(129, 140, 0))
""",
    "jacobi, from the fast method": f"""
{NEARLY_DIAGONAL}
sweep(nearly_diagonal(130, 130, 0))
""",
    "inverse": """
from tsvd import linalg

for dtype in (np.float64, np.float32):
    for shape in ((33, 3, 3), (9, 8, 8), (9, 13, 13), (5, 32, 32), (3, 50, 50), (2, 140, 140)):
        A = rng.standard_normal(shape).astype(dtype)
        for refine in (False, True):
            linalg.inv(A, refine=refine, device="cuda")
            linalg.inv(A.swapaxes(-1, -2), refine=refine, device="cuda")
    A[1, 7, 7] = np.nan
    linalg.inv(A, check_finite=False, device="cuda")
""",
    "device arrays": """
for dtype in (np.float64, np.float32):
    for n in (1, 5, 40, 130, 300):
        d, e = rng.random((2, n)).astype(dtype)[:, ::-1], rng.random(n - 1).astype(dtype)
        for stream in (None, 1, 2):
            result = tsvd.svd(Raw(d), Raw(e), stream=stream)
            out = tuple(Raw(np.zeros(x.shape, dtype)) for x in result)
            tsvd.svd(Raw(d), Raw(e), stream=stream, out=out)
            for x, y in zip(result, out):
                assert np.array_equal(download(x), download(y))
            s = tsvd.svdvals(Raw(d), Raw(e))
            tsvd.trim()
            del result
            download(s)
""",
}


# What racecheck does not get through, and why.
MESSAGES = "their blocks poll for messages (cuda/bidiagonalize/resident.cu)"
ENDLESS = {
    "dense, by columns": MESSAGES,  # order 65 took more than 25 s, order 130 more than 300 s
    "dense, large": MESSAGES,
    "dense, out of shared memory": MESSAGES,
    "dense, two stages": "cells of a chase poll for messages (bidiagonalize/chase_systolic.cuh)",
    "dense, two GPUs": "the same",
    "jacobi, from the fast method": MESSAGES,
    "values, many": "each round of counts would take minutes",
}

# Kernels of cuBLAS, which take most of racecheck's time.
OTHERS = "kns=gemm,kns=cutlass,kns=cublas"

# How many synccheck tracks.  With its default number a kernel fails that sends between blocks.
BARRIERS = "4096"


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
def test_compute_sanitizer(tool, program):
    if "two GPUs" in program and len(tsvd.devices()) < 3:  # the CPU is one
        pytest.skip("needs two GPUs")
    if "two GPUs" in program and tool == "synccheck":
        pytest.skip("synccheck has too little memory for the launches of two GPUs")
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9"]
    if tool == "racecheck":
        if program in ENDLESS:
            pytest.skip(f"racecheck does not get through: {ENDLESS[program]}")
        command += ["--kernel-name-exclude", OTHERS]
    if tool == "synccheck":
        command += ["--num-cuda-barriers", BARRIERS]
    output = run(COMMON + PROGRAMS[program], seconds=300, under=command)
    assert "SUMMARY: 0 " in output
