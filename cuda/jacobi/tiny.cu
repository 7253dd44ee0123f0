/*
 * The smallest dense matrices on the device: the operations of small_dense_ops, by one kernel
 * (tiny.cuh).
 */
#include <algorithm>

#include "jacobi/tiny.cuh"

/* The matrices of a chunk.  All arrays are device memory. */
struct tiny_run {
    scalar *copy; /* of host matrices, as they lie there */
    real *s;      /* the results, if they go to the host */
    scalar *u, *vh;
};

static bool
is_wide(const struct dense_problem *p)
{
    return p->a.rows < p->a.columns;
}

static int64_t
order_of(const struct dense_problem *p)
{
    return std::max(p->a.rows, p->a.columns);
}

static int
serves(const struct dense_problem *p)
{
    return order_of(p) <= TINY_ORDER;
}

static size_t
lay_out(const struct dense_problem *p, int64_t chunk, char *base, struct tiny_run *run)
{
    const struct dense_shape shape = dense_shape_of(p);
    const int64_t made = p->call.to == TSVD_HOST ? chunk : 0, sides = p->vectors ? made : 0;
    size_t at = 0;

    run->copy =
        carve<scalar>(base, &at, p->a.space == TSVD_HOST ? chunk * p->a.rows * p->a.columns : 0);
    run->s = carve<real>(base, &at, made * p->k);
    run->u = carve<scalar>(base, &at, sides * shape.u_rows * shape.u_columns);
    run->vh = carve<scalar>(base, &at, sides * shape.v_rows * shape.v_columns);
    return at;
}

/* Matrices that are worked on at once. */
static int64_t
chunk_of(const struct dense_problem *p)
{
    const int64_t matrices = p->a.batch.matrices;
    struct tiny_run run;
    const size_t all = lay_out(p, matrices, NULL, &run), one = lay_out(p, 1, NULL, &run);

    return all <= CUDA_CHUNK_BYTES ? matrices : (int64_t)(CUDA_CHUNK_BYTES / one);
}

static struct bytes
tiny_bytes(const struct dense_problem *p)
{
    struct tiny_run run;

    return {0, lay_out(p, chunk_of(p), NULL, &run)};
}

/* ---- the kernel ---- */

template <int N, bool VECTORS, bool WHOLE>
static tsvd_status
launch(struct cuda_call *call, const struct tiny_svds &q, unsigned blocks)
{
    tsvd_status ret = TSVD_OK;

    tiny_kernel<N, VECTORS, WHOLE><<<blocks, TINY_THREADS, 0, call->stream>>>(q);
    CUDA_LAUNCHED(call);
out:
    return ret;
}

template <int N>
static tsvd_status
launch_order(struct cuda_call *call, const struct tiny_svds &q, bool whole, unsigned blocks)
{
    if (q.u == NULL) {
        return launch<N, false, false>(call, q, blocks);
    }
    return whole ? launch<N, true, true>(call, q, blocks) : launch<N, true, false>(call, q, blocks);
}

/* Decomposes the matrices of q, and waits for what is found: see struct small_dense_job.  begin:
   the first of them. */
static tsvd_status
decompose(struct cuda_call *call, struct tiny_svds q, int64_t begin, int64_t order,
          struct small_dense_job *job)
{
    static tsvd_status (*const launch_of[])(struct cuda_call *, const struct tiny_svds &, bool,
                                            unsigned) = {
        launch_order<1>,
        launch_order<2>,
        launch_order<3>,
        launch_order<4>,
#if !TSVD_COMPLEX || TSVD_SINGLE
        launch_order<5>,
        launch_order<6>,
        launch_order<7>,
#endif
#if !TSVD_COMPLEX
        launch_order<8>,
#endif
    };
    const bool whole = q.columns == order && q.k == order;
    const unsigned blocks =
        std::min(blocks_for(q.count, TINY_THREADS), (unsigned)JACOBI_TINY_BLOCKS);
    tsvd_status ret = TSVD_OK;

    static_assert(JACOBI_TINY_BLOCKS * sizeof(*q.marks) <= PINNED_RESULT_BYTES, "all of them land");
    static_assert(sizeof(launch_of) / sizeof(*launch_of) == TINY_ORDER, "one for each order");
    q.marks = (struct tiny_marks *)call->device->pinned_results;
    TSVD_TRY(launch_of[order - 1](call, q, whole, blocks));
    CUDA_TRY(call, cudaStreamSynchronize(call->stream));
    for (unsigned i = 0; i < blocks; i++) {
        const struct tiny_marks *marks = &q.marks[i];

        if (marks->nonfinite != ULLONG_MAX) {
            job->nonfinite = std::min(job->nonfinite, begin + (int64_t)marks->nonfinite);
        }
        if (marks->unfinished != ULLONG_MAX) {
            job->unfinished = std::min(job->unfinished, begin + (int64_t)marks->unfinished);
        }
        job->sweeps += (int64_t)marks->sweeps;
    }
out:
    return ret;
}

/* Matrices begin .. begin + count - 1 of the batch. */
static tsvd_status
solve_chunk(struct tsvd_context *ctx, struct small_dense_job *job, const struct tiny_run *run,
            int64_t begin, int64_t count)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_problem *p = job->problem;
    const struct dense_shape shape = dense_shape_of(p);
    const bool on_host = p->call.to == TSVD_HOST, wide = is_wide(p);
    const int64_t vectors = wide ? shape.v_rows : shape.u_columns; /* of the longer side */
    const struct cuda_results out = {run->s, run->u, run->vh};
    struct tiny_svds q = {};
    tsvd_status ret = TSVD_OK;

    q.from = source_of(&p->a, begin, wide);
    if (p->a.space == TSVD_HOST) {
        TSVD_TRY(tsvdi_cuda_dense_upload(call, order_of(p), p->n, count, run->copy, &q.from));
    }
    q.count = count;
    q.columns = (int)p->n;
    q.by_row = lies_by_row(&q.from);
    q.transposed = wide;
    q.needed = (1u << std::max(vectors, p->n)) - 1;
    q.first = (int)p->first;
    q.k = (int)p->k;
    q.shape = shape;
    q.s = on_host ? run->s : (real *)p->S + begin * shape.k;
    if (p->vectors) {
        q.u = on_host ? run->u : (scalar *)p->U + begin * shape.u_rows * shape.u_columns;
        q.vh = on_host ? run->vh : (scalar *)p->Vh + begin * shape.v_rows * shape.v_columns;
    }
    TSVD_TRY(decompose(call, q, begin, order_of(p), job));
    if (on_host) {
        TSVD_TRY(cuda_dense_deliver(ctx, p, &out, begin, count));
        TSVD_TRY(tsvdi_cuda_finish_downloads(call)); /* the next chunk overwrites the results */
    }
out:
    return ret;
}

static tsvd_status
solve(struct tsvd_context *ctx, struct small_dense_job *job)
{
    struct cuda_call *call = cuda_of(ctx);
    const struct dense_problem *p = job->problem;
    const int64_t matrices = p->a.batch.matrices, chunk = chunk_of(p);
    struct tiny_run run;
    char *d_work = NULL;
    tsvd_status ret = TSVD_OK;

    job->nonfinite = job->unfinished = matrices;
    TSVD_TRY(cuda_take(call, lay_out(p, chunk, NULL, &run), &d_work));
    (void)lay_out(p, chunk, d_work, &run);
    for (int64_t begin = 0; begin < matrices; begin += chunk) {
        TSVD_TRY(tsvdi_check(ctx, (double)begin / (double)matrices));
        TSVD_TRY(solve_chunk(ctx, job, &run, begin, std::min(chunk, matrices - begin)));
    }
out:
    (void)tsvdi_cuda_finish_downloads(call);
    tsvdi_cuda_free(call, d_work);
    return ret;
}

const struct small_dense_ops tsvdi_cuda_jacobi_tiny = {
    .method = TSVD_METHOD_JACOBI,
    .serves = serves,
    .solve = solve,
    .bytes = tiny_bytes,
};
