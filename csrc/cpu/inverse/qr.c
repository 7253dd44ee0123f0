/*
 * The inverse on the CPU from S = Q R, Y = R^-1 Q^H, where the pivots of elimination grew.
 *
 * Householder's reflectors let no column grow: each of S + E = Q R is off by a small multiple of u
 * times its norm (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, theorem 19.4).
 * As all columns of S have norms of 1 or more, and no entry above 2, E is small in norm, without
 * an exchange of columns.  With R^-1 from block columns (see lu.c) Y S - I is, too.
 *
 * R^-1 is made in R's place, beside the reflectors.  Then the blocks of reflectors are taken out,
 * the last block first.  Each is applied to the columns from its own first one on, which hold no
 * reflectors any more.
 */
#include <string.h>

#include "cpu/inverse/inverse_run.h"

static int64_t
columns_of(int64_t n)
{
    return n < CPU_REFLECTORS_BLOCK ? n : CPU_REFLECTORS_BLOCK;
}

uint64_t
tsvdi_cpu_inverse_qr_bytes(int64_t n)
{
    return bytes_of(tsvdi_cpu_dense_multiply_workspace(n, 0) + columns_of(n) * n, sizeof(scalar));
}

/* Y := Y Q^H.  v [block][n]: workspace. */
static tsvd_status
apply(struct dense_run *run, int64_t n, scalar *y, const scalar *tau, scalar *v,
      struct inverse_share share)
{
    const struct dense_block rows = {y, n, n, n, 0, 1};
    tsvd_status ret = TSVD_OK;

    for (int64_t first = (n - 1) / CPU_REFLECTORS_BLOCK * CPU_REFLECTORS_BLOCK; first >= 0;
         first -= CPU_REFLECTORS_BLOCK) {
        const int64_t length = n - first, count = columns_of(length);
        const struct dense_reflectors block = {.a = v,
                                               .tau = tau + first,
                                               .stride = length,
                                               .count = count,
                                               .length = length,
                                               .from = first};

        for (int64_t j = 0; j < count; j++) {
            scalar *below = y + (first + j) * (n + 1) + 1;

            memcpy(v + j * (length + 1) + 1, below, (size_t)(length - j - 1) * sizeof *below);
            memset(below, 0, (size_t)(length - j - 1) * sizeof *below);
        }
        TSVD_TRY(tsvdi_cpu_dense_multiply(run, 0, &block, 0, rows,
                                          share.from + share.part * (double)length / (double)n, 0));
    }
out:
    return ret;
}

tsvd_status
tsvdi_cpu_inverse_qr(struct dense_run *run, int64_t n, scalar *s,
                     const struct inverse_workspace *workspace, struct inverse_share share,
                     int *outcome)
{
    const struct inverse_share second = {share.from + share.part / 2, share.part / 8},
                               last = {share.from + share.part / 1.6, share.part * 0.375};
    const struct dense_matrix m = {s, n, n, n};
    scalar *tau = (scalar *)(void *)workspace->sums;
    tsvd_status ret = TSVD_OK;

    *outcome = INVERSE_FOUND;
    TSVD_TRY(tsvdi_cpu_dense_qr(run, 0, m, tau, 0, DENSE_REDUCED / 2));
    for (int64_t j = 0; j < n; j++) {
        if (s[j * (n + 1)] == 0) {
            *outcome = INVERSE_SINGULAR;
            goto out;
        }
    }
    TSVD_TRY(tsvdi_cpu_inverse_upper(run, n, s, workspace, second));
    TSVD_TRY(apply(run, n, s, tau, run->work + tsvdi_cpu_dense_multiply_workspace(n, 0), last));
out:
    return ret;
}
