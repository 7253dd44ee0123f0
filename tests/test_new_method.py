"""A method is written in one file and one row: a toy, after the list in csrc/backend/method.h."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testing.processes import run

ROOT = Path(__file__).parents[1]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (ROOT / "csrc").exists() or shutil.which("cmake") is None,
        reason="needs the sources, and CMake",
    ),
]

# d and e backwards are those of J B^T J, with J the exchange matrix: L = J R'^T and R = L'^T J.
TOY = """
/*
 * Divide and conquer of the matrix whose d and e are those of B backwards: of one matrix, with
 * results on the host.
 */
#include <string.h>

#include "backend/method.h"
#include "bidiag/parts.h"

static void
turn(int64_t n, const real *from, real *to)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] = from[n - 1 - i];
    }
}

/* The entry of largest magnitude in each column of L becomes positive, as tsvd.h promises. */
static void
fix_signs(int64_t n, real *left, real *right)
{
    for (int64_t j = 0; j < n; j++) {
        real largest = 0;

        for (int64_t i = 0; i < n; i++) {
            const real x = left[i * n + j];

            largest = r_abs(x) > r_abs(largest) ? x : largest;
        }
        for (int64_t i = 0; i < n && largest < 0; i++) {
            left[i * n + j] = -left[i * n + j];
            right[j * n + i] = -right[j * n + i];
        }
    }
}

static tsvd_status
run(struct tsvd_context *ctx, const struct chunk *chunk, struct results to, tsvd_info *info)
{
    const int64_t n = ctx->problem->n;
    struct chunk turned = *chunk;
    struct results own = to;
    real *memory = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_alloc(ctx, bytes_of(2 * n * (n + 1), sizeof(real)), (void **)&memory));
    turned.d = memory;
    turned.e = memory + n;
    own.L = memory + 2 * n;
    own.R = own.L + n * n;
    turn(n, chunk->d, turned.d);
    turn(n - 1, chunk->e, turned.e);
    TSVD_TRY(tsvdi_method_dc.run(ctx, &turned, own, info));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            ((real *)to.L)[i * n + j] = ((real *)own.R)[j * n + n - 1 - i];
            ((real *)to.R)[i * n + j] = ((real *)own.L)[(n - 1 - j) * n + i];
        }
    }
    fix_signs(n, to.L, to.R);
out:
    tsvdi_free(ctx, memory);
    return ret;
}

static struct bytes
bytes(const struct svd_plan *plan)
{
    const int64_t n = plan->reported.n;
    const struct bytes own = {bytes_of(2 * n, bytes_of(n + 1, sizeof(real))), 0};

    return bytes_sum(tsvdi_method_dc.bytes(plan), own);
}

const struct method tsvdi_method_toy = {
    .number = TSVD_METHOD_TOY,
    .name = "toy",
    .with_vectors = 1,
    .host_entries = 1,
    .needs = NEEDS_DC | NEEDS_VECTORS,
    .run = run,
    .bytes = bytes,
};
"""

# file -> what is there, and what takes its place
CHANGES = {
    "csrc/include/tsvd/tsvd.h": ("    TSVD_METHOD_COUNT\n", "TSVD_METHOD_TOY, {}"),
    "csrc/backend/method.h": (
        "extern const struct method tsvdi_method_jacobi;\n",
        "extern const struct method tsvdi_method_toy;\n{}",
    ),
    "csrc/dense/methods.c": ("&tsvdi_method_jacobi}", "&tsvdi_method_toy, {}"),
    "csrc/backend/precision.h": (
        "#define tsvdi_method_qr TSVD_T(tsvdi_method_qr)\n",
        "#define tsvdi_method_toy TSVD_T(tsvdi_method_toy)\n{}",
    ),
    "CMakeLists.txt": ("csrc/bidiag/svd.c ", "csrc/bidiag/toy.c {}"),
}

PROGRAM = """
import numpy as np

import tsvd
from testing.families import make
from testing.measures import BOUNDS, orthogonality, residual

for n in (2, 3, 40, 150):
    for family in ("uniform_1", "toeplitz", "chi", "graded_gently"):
        for lower in (False, True):
            d, e = make(family, n)
            L, s, R = tsvd.svd(d, e, lower=lower, method="toy", device="cpu")
            assert residual(d, e, L, s, R, lower) <= BOUNDS["residual"](n)
            assert orthogonality(L, R) <= BOUNDS["orthogonality"](n)
            assert np.all(L[np.argmax(abs(L), axis=0), range(n)] > 0)
            assert np.array_equal(s, tsvd.svd(d[::-1], e[::-1], method="dc", device="cpu").s)
"""


def test_a_method_in_one_file_and_one_row(tmp_path):
    sources, place = tmp_path / "sources", tmp_path / "installed"
    ignored = shutil.ignore_patterns("build", ".*", "__pycache__", "results")
    shutil.copytree(ROOT, sources, ignore=ignored)
    (sources / "csrc/bidiag/toy.c").write_text(TOY.lstrip())
    for name, (old, new) in CHANGES.items():
        text = (sources / name).read_text()
        assert text.count(old) == 1, name
        (sources / name).write_text(text.replace(old, new.format(old)))
    pip = ["-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--target", place]
    subprocess.run([sys.executable, *pip, "-C", "cmake.define.TSVD_CUDA=OFF", sources], check=True)
    run(PROGRAM, under=("env", f"PYTHONPATH={place}:{ROOT}"))
