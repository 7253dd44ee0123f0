/*
 * What a call does: the method, how a batch is cut into chunks and shared out over workers, and
 * the workspace.  All of it is decided here, once a call.
 */
#include <assert.h>
#include <string.h>

#include "backend/method.h"
#include "backend/tuning.h"
#include "bidiag/bidiag_call.h"
#include "host/blas.h"

static_assert(VALUES_SIDE_BY_SIDE_ORDER <= (int)DC_LEAF_COLUMNS,
              "the leaves' QR approximates the values of matrices that are bisected side by side: "
              "VALUES_SIDE_BY_SIDE_ORDER must be at most DC_LEAF_COLUMNS");

/* Up to this order n x n arrays can be addressed, and sums of their bytes fit in 64 bits. */
#define SQUARE_ORDER_MAX ((int64_t)1 << 28)

/* Whether a method that multiplies uses the handle's BLAS for the vectors of a matrix.  Its order
   alone decides, so that its results do not depend on what was loaded before. */
static int
takes_blas(const struct svd_problem *p, const struct backend *backend)
{
    return backend->blas_order > 0 && p->vectors && p->n > backend->blas_order;
}

/* Whether AUTO tries twisted factorisations.  The matrix then decides. */
static int
tries_twisted(const struct svd_problem *p, const struct backend *backend)
{
    return backend->twisted != NULL && p->batch.all == 1 && p->call.options->eps <= 0 &&
           p->n >=
               (few_wanted(p->n, p->whole_k) ? backend->twisted_few_order : backend->twisted_order);
}

/* The method that runs.  AUTO, and DC without vectors, stand for another.  The answer is BISECT if
   each matrix decides between QR and BISECT (method_for() in svd.c). */
static const struct method *
choose_method(const struct svd_problem *p, const struct backend *backend)
{
    if (p->method != NULL && (p->vectors || p->method->without_vectors)) {
        return p->method;
    }
    if (!p->vectors) {
        return &tsvdi_method_bisect;
    }
    if (takes_blas(p, backend) && !tsvdi_blas_ready(&p->call.handle->blas, 0)) {
        return &tsvdi_method_qr;
    }
    return tries_twisted(p, backend) ? &tsvdi_method_twisted : &tsvdi_method_dc;
}

/* Refuses what a method does not offer. */
static tsvd_status
check_method(const struct svd_problem *p, const struct svd_plan *plan, tsvd_error *error)
{
    const struct method *asked = p->method, *row = plan->method;
    const struct backend *backend = plan->backend;
    const unsigned needs = row->needs | (p->vectors ? row->needs_for_vectors : 0);

    if (p->vectors && !row->with_vectors) {
        tsvdi_advise(error, "use another method, or leave out L and R");
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "method \"%s\" computes values only, no vectors", row->name);
    }
    if (p->vectors && p->k < p->n && asked != NULL && !row->part_vectors) {
        tsvdi_advise(error, "use TSVD_METHOD_DC or TSVD_METHOD_AUTO");
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "method \"%s\" computes the vectors of all values only, not of a part",
                          row->name);
    }
    if (plan->reported.needs_blas && !tsvdi_blas_ready(&p->call.handle->blas, 0) &&
        (asked != NULL || p->k < p->n)) {
        tsvdi_advise(error, "set config.blas, call tsvd_set_blas(), or build tsvd with TSVD_BLAS");
        return tsvdi_fail(error, TSVD_ERR_LIBRARY, "method \"dc\" needs a BLAS on the %s",
                          backend->name);
    }
    if (((needs & NEEDS_VALUES) && plan->values == NULL) ||
        ((needs & NEEDS_VECTORS) && backend->vectors == NULL) ||
        ((needs & NEEDS_DC) && backend->dc == NULL) ||
        ((needs & NEEDS_GIVENS) && backend->givens == NULL)) {
        return tsvdi_fail(error, TSVD_ERR_UNSUPPORTED, "method \"%s\" is not available on the %s",
                          row->name, backend->name);
    }
    return TSVD_OK;
}

/* Decides how many workers there are, and how many matrices each works on at once. */
static void
cut_batch(const struct svd_problem *p, struct svd_plan *plan)
{
    const int by_matrix =
        plan->backend->workers && p->n <= BATCH_ORDER_MAX && p->batch.matrices > 1;
    const int threads = tsvdi_host_threads_for(
        p->call.handle->threads, by_matrix ? p->batch.matrices : p->n / ROWS_PER_THREAD);
    int64_t workers = 1, share, most, chunks;

    if (by_matrix) {
        workers = p->batch.matrices < threads ? p->batch.matrices : threads;
    }
    plan->reported.threads = workers > 1 ? 1 : threads;
    share = (p->batch.matrices + workers - 1) / workers;
    most = plan->method->batches && share > 1 ? plan->backend->chunk_most(p) : 1;
    plan->reported.chunk = most < share ? most : share;
    chunks = (p->batch.matrices + plan->reported.chunk - 1) / plan->reported.chunk;
    plan->reported.workers = (int)(workers < chunks ? workers : chunks);
}

/* Bytes of L, s and R. */
static uint64_t
result_bytes(const struct svd_problem *p)
{
    const int64_t left = left_vectors(p), right = right_vectors(p);
    uint64_t bytes = bytes_of(p->k, sizeof(real));

    if (p->vectors) {
        bytes = bytes_add(bytes, bytes_of(p->rows, bytes_of(left, sizeof(real))));
        bytes = bytes_add(bytes, bytes_of(p->columns, bytes_of(right, sizeof(real))));
    }
    return bytes_of(p->batch.matrices, bytes);
}

/* Workspace of the whole call. */
static void
sum_bytes(const struct svd_problem *p, struct svd_plan *plan)
{
    const uint64_t chunk = bytes_of(plan->reported.chunk, (uint64_t)p->n);
    struct bytes own = plan->method->bytes(plan);

    if (plan->by_matrix) {
        own = bytes_most(own, tsvdi_method_qr.bytes(plan));
    }
    own = bytes_sum(own, plan->backend->load_bytes(plan));
    if (p->extra) {
        own = bytes_sum(own, plan->backend->extra->bytes(plan));
        own.host = bytes_add(own.host, extra_bytes(plan->reported.chunk, p->n));
    }
    /* the chunk's d, e, exponent and kind; the worker itself */
    own.host = bytes_add(own.host, bytes_of(2, bytes_of((int64_t)chunk, sizeof(real))));
    own.host = bytes_add(own.host, bytes_of(plan->reported.chunk, sizeof(real) + 1));
    own.host = bytes_add(own.host, sizeof(tsvd_info) + sizeof(tsvd_error) + 1024);
    plan->reported.host_bytes = bytes_of(plan->reported.workers, own.host);
    plan->reported.device_bytes = bytes_of(plan->reported.workers, own.device);
}

tsvd_status
tsvdi_plan_call(const struct svd_problem *p, struct svd_plan *plan, tsvd_error *error)
{
    const struct backend *backend = tsvdi_backend_of(p->call.handle);
    tsvd_status ret = TSVD_OK;

    memset(plan, 0, sizeof *plan);
    if (p->method != NULL && p->method->run == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "method \"%s\" decomposes dense matrices, not bidiagonal ones",
                          p->method->name);
    }
    plan->problem = p;
    plan->backend = backend;
    plan->values = p->batch.all == 1 && p->n <= backend->host_values_order ? tsvdi_host_values()
                                                                           : backend->values;
    plan->method = choose_method(p, backend);
    plan->reported.method = plan->method->number;
    plan->reported.n = p->n;
    plan->reported.count = p->k;
    plan->reported.matrices = p->batch.matrices;
    plan->reported.needs_blas =
        takes_blas(p, backend) && (p->method == NULL || (p->method->needs & NEEDS_DC) != 0);
    plan->host_entries = plan->method->host_entries ||
                         (plan->method == &tsvdi_method_bisect && plan->values != backend->values);
    TSVD_TRY(check_method(p, plan, error));
    if (p->batch.too_large) {
        plan_too_large(backend, &plan->reported);
        goto out;
    }
    if (p->n == 0 || p->batch.matrices == 0) {
        goto out;
    }
    plan->side_by_side = p->batch.all > 1 && p->n <= VALUES_SIDE_BY_SIDE_ORDER;
    plan->by_matrix = backend->values_by_qr && !p->vectors && p->whole_k == p->n &&
                      !plan->side_by_side && plan->method == &tsvdi_method_bisect &&
                      p->method != &tsvdi_method_bisect;
    cut_batch(p, plan);
    if (p->vectors && p->n > SQUARE_ORDER_MAX) {
        plan_too_large(backend, &plan->reported);
    } else {
        sum_bytes(p, plan);
    }
    plan->reported.result_bytes = result_bytes(p);
out:
    return ret;
}
