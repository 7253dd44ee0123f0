/*
 * Tests of leaves that fail on several threads at once; included once for each precision.
 */
#ifndef TSVD_TESTS_LEAF_H
#define TSVD_TESTS_LEAF_H

#include "bidiag/methods.h"
#include "check.h"

enum { LEAF_ORDER = 200, LEAF_BATCH = 64, LEAF_THREADS = 4 };

/* The matrix that divide and conquer names as the one that failed. */
static int64_t
failed_matrix(tsvd_handle *handle, const struct chunk *chunk)
{
    static real s[LEAF_BATCH * LEAF_ORDER], L[LEAF_BATCH * LEAF_ORDER * LEAF_ORDER];
    static real R[LEAF_BATCH * LEAF_ORDER * LEAF_ORDER];
    const tsvd_options options = tsvd_options_default();
    const struct results to = {s, L, R};
    struct svd_problem problem = {.handle = handle,
                                  .options = &options,
                                  .n = LEAF_ORDER,
                                  .k = LEAF_ORDER,
                                  .vectors = 1,
                                  .matrices = LEAF_BATCH};
    struct svd_plan plan = {.problem = &problem, .backend = &tsvdi_cpu};
    tsvd_error error = {.matrix = -1};
    tsvd_info info = {.sweeps = 0};
    struct tsvd_context ctx = {.problem = &problem,
                               .plan = &plan,
                               .options = &options,
                               .error = &error,
                               .threads = LEAF_THREADS,
                               .count = LEAF_BATCH,
                               .total = LEAF_BATCH};
    const tsvd_status status = tsvdi_dc(&ctx, chunk, to, &info);

    tsvdi_free(&ctx, ctx.leaves);
    CHECK(status == TSVD_ERR_NO_CONVERGENCE, "status %d", (int)status);
    return error.matrix;
}

/* Of many leaves that fail the first is named, whichever thread found it when.  A NaN keeps a leaf
   from converging. */
static void
test_failing_leaves(void)
{
    static real d[LEAF_BATCH * LEAF_ORDER], e[LEAF_BATCH * LEAF_ORDER];
    static real_int exponent[LEAF_BATCH];
    static char kind[LEAF_BATCH];
    const struct chunk chunk = {
        .count = LEAF_BATCH, .d = d, .e = e, .exponent = exponent, .kind = kind};
    tsvd_handle *handle = NULL;

    CHECK(tsvd_create(NULL, &handle, NULL) == TSVD_OK, "a handle");
    for (int i = 0; i < LEAF_BATCH * LEAF_ORDER; i++) {
        d[i] = REAL(1 + i % 7);
        e[i] = (i + 1) % LEAF_ORDER == 0 ? REAL(0) : REAL(1);
    }
    for (int round = 0; round < 100; round++) {
        const int first = 20 + round % 30; /* by then all threads are at work */
        int64_t failed;

        for (int i = 0; i < LEAF_BATCH; i++) {
            d[i * LEAF_ORDER + 100] = i >= first ? REAL(NAN) : REAL(1);
        }
        failed = failed_matrix(handle, &chunk);
        CHECK(failed == first, "matrix %lld, not %d", (long long)failed, first);
    }
    tsvd_destroy(handle);
}

#endif
