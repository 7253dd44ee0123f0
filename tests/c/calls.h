/*
 * Calls of tsvd_svd(), tsvd_dense_svd() and tsvd_dense_inverse() on random matrices, for tests that
 * make them fail: test_memory.c refuses memory of the host, fault_tests.h stops them, and
 * test_faults.cu makes the calls of CUDA fail.  After a failure the same call gives the same bits.
 */
#ifndef TSVD_TESTS_CALLS_H
#define TSVD_TESTS_CALLS_H

#include "dense.h"
#include "inverse.h"

enum call_of { OF_BIDIAGONAL, OF_DENSE, OF_INVERSE };

struct call_shape {
    enum call_of of;
    tsvd_method method; /* not of inverses */
    int64_t m, n;       /* m: only for dense matrices */
    int64_t matrices;
    int vectors;          /* of inverses: refine */
    int64_t first, count; /* of the values; count -1: all */
    int stages;           /* of dense matrices; 0: chosen */
};

#define BIDIAGONAL(method, n, matrices, vectors)                                                   \
    {                                                                                              \
        OF_BIDIAGONAL, TSVD_METHOD_##method, n, n, matrices, vectors, 0, -1, 0                     \
    }
#define BIDIAGONAL_PART(method, n, matrices, vectors, first, count)                                \
    {                                                                                              \
        OF_BIDIAGONAL, TSVD_METHOD_##method, n, n, matrices, vectors, first, count, 0              \
    }
#define DENSE(method, m, n, matrices, vectors)                                                     \
    {                                                                                              \
        OF_DENSE, TSVD_METHOD_##method, m, n, matrices, vectors, 0, -1, 0                          \
    }
#define DENSE_TWO_STAGES(m, n, matrices, vectors)                                                  \
    {                                                                                              \
        OF_DENSE, TSVD_METHOD_AUTO, m, n, matrices, vectors, 0, -1, 2                              \
    }
#define INVERSE(n, matrices, refine)                                                               \
    {                                                                                              \
        OF_INVERSE, TSVD_METHOD_AUTO, n, n, matrices, refine, 0, -1, 0                             \
    }

struct call {
    struct call_shape shape;
    tsvd_dtype dtype;
    tsvd_options options;
    struct work bidiagonal; /* that of the shape is made */
    struct dense dense;
    struct inverses inverse;
    char name[80];
    void *result[3];   /* the arrays of the results; NULL: none */
    void *expected[3]; /* copies of the results of the first call */
    size_t bytes[3];
};

UNUSED static struct call
make_call(tsvd_dtype dtype, struct call_shape shape)
{
    const int64_t p = shape.m < shape.n ? shape.m : shape.n;
    const int64_t k = shape.count < 0 ? p : shape.count;
    int64_t numbers[3] = {shape.matrices * k, 0, 0};
    struct call c;

    memset(&c, 0, sizeof(c));
    c.shape = shape;
    c.dtype = dtype;
    c.options = default_options();
    c.options.method = shape.method;
    c.options.dense_stages = shape.stages;
    c.options.eps = shape.method == TSVD_METHOD_GIVENS ? 1e-2 : -1;
    if (shape.method == TSVD_METHOD_GIVENS &&
        shape.matrices == 1) { /* enough sweeps for vectors to drift */
        c.options.givens_split = 0;
        c.options.givens_blocks = 2;
    }
    if (shape.of == OF_INVERSE) {
        c.inverse = make_inverses(dtype, shape.n, shape.matrices, shape.vectors);
        c.result[0] = c.inverse.X;
        numbers[0] = shape.matrices * shape.n * shape.n;
    } else if (shape.of == OF_DENSE) {
        c.dense = make_dense(dtype, shape.m, shape.n, shape.matrices, 0);
        c.dense.vectors = shape.vectors;
        c.dense.first = shape.first;
        c.dense.k = k;
        c.result[0] = c.dense.S;
        c.result[1] = c.dense.U;
        c.result[2] = c.dense.Vh;
    } else {
        c.bidiagonal = make_work(dtype, shape.n, shape.matrices);
        c.bidiagonal.vectors = shape.vectors;
        c.bidiagonal.first = shape.first;
        c.bidiagonal.k = k;
        c.result[0] = c.bidiagonal.s;
        c.result[1] = c.bidiagonal.L;
        c.result[2] = c.bidiagonal.R;
    }
    if (shape.of != OF_INVERSE && shape.vectors) {
        numbers[1] = shape.matrices * shape.m * k;
        numbers[2] = shape.matrices * k * shape.n;
    }
    for (int i = 0; i < 3; i++) {
        c.bytes[i] = (size_t)numbers[i] * size_of(dtype);
    }
    (void)snprintf(c.name, sizeof(c.name), "float%d, %s, %lld of %lld x %lld",
                   8 * (int)size_of(dtype),
                   shape.of == OF_INVERSE ? "inverse" : tsvd_method_name(shape.method),
                   (long long)shape.matrices, (long long)shape.m, (long long)shape.n);
    return c;
}

UNUSED static void
free_call(struct call *c)
{
    for (int i = 0; i < 3; i++) {
        free(c->expected[i]);
    }
    free_work(&c->bidiagonal);
    free_dense(&c->dense);
    free_inverses(&c->inverse);
}

/* Makes the call.  The results hold NaN before, so that an entry that is not written shows. */
UNUSED static tsvd_status
run_call(tsvd_handle *handle, struct call *c, tsvd_error *error)
{
    for (int i = 0; i < 3; i++) {
        if (c->bytes[i] > 0) {
            memset(c->result[i], 0xff, c->bytes[i]);
        }
    }
    if (c->shape.of == OF_INVERSE) {
        return invert_on(handle, &c->inverse, &c->options, NULL, error);
    }
    return c->shape.of == OF_DENSE ? solve_dense(handle, &c->dense, &c->options, NULL, error)
                                   : solve_on(handle, &c->bidiagonal, &c->options, NULL, error);
}

/* The results of a matrix are right; values without vectors are not checked.  rounding: bound on
   the entries of B - L S R, in eps. */
UNUSED static void
check_matrix(const struct call *c, int64_t matrix, double rounding)
{
    const double eps = c->options.eps > 0 ? c->options.eps : 0;

    if (c->shape.of == OF_INVERSE) {
        check_inverse(&c->inverse, matrix);
    } else if (c->shape.of == OF_DENSE && c->shape.vectors) {
        check_dense(&c->dense, matrix);
    } else if (c->shape.vectors) {
        check_result(&c->bidiagonal, matrix, 0, rounding * eps_of(c->dtype) + 4 * eps);
    }
}

/* Keeps the results. */
UNUSED static void
keep_results(struct call *c)
{
    for (int i = 0; i < 3; i++) {
        if (c->bytes[i] > 0) {
            c->expected[i] = allocate(c->bytes[i]);
            memcpy(c->expected[i], c->result[i], c->bytes[i]);
        }
    }
}

/* The results are those that keep_results() kept, bit by bit. */
UNUSED static void
check_same(const struct call *c, const char *when)
{
    for (int i = 0; i < 3; i++) {
        CHECK(c->bytes[i] == 0 || memcmp(c->result[i], c->expected[i], c->bytes[i]) == 0,
              "%s, %s: result %d", c->name, when, i);
    }
}

/* The first call, whose results are right and kept. */
UNUSED static void
begin_call(tsvd_handle *handle, struct call *c, double rounding)
{
    tsvd_error error;

    CHECK(run_call(handle, c, &error) == TSVD_OK, "%s: %s", c->name, error.text);
    for (int64_t i = 0; i < c->shape.matrices; i++) {
        check_matrix(c, i, rounding);
    }
    keep_results(c);
}

/* A call without a failure gives the results that were kept. */
UNUSED static void
check_again(tsvd_handle *handle, struct call *c, const char *after)
{
    tsvd_error error;

    CHECK(run_call(handle, c, &error) == TSVD_OK, "%s, after %s: %s", c->name, after, error.text);
    check_same(c, after);
}

/* ---- interruptions ---- */

/* The calls of options.check so far. */
struct call_asked {
    int calls, stop_at;
    double done; /* the progress of the last one */
};

static int
ask_call(void *arg, double done)
{
    struct call_asked *asked = (struct call_asked *)arg;

    CHECK(done >= asked->done && done <= 1, "%g after %g", done, asked->done);
    asked->done = done;
    return ++asked->calls == asked->stop_at;
}

/* Stops the call at call number `stop_at` of options.check.  Returns 0 if it ends before that. */
UNUSED static int
stop_call(tsvd_handle *handle, struct call *c, int stop_at)
{
    struct call_asked asked = {0, stop_at, 0};
    tsvd_status status;
    tsvd_error error;

    c->options.check = ask_call;
    c->options.check_arg = &asked;
    status = run_call(handle, c, &error);
    c->options.check = NULL;
    if (status == TSVD_ERR_INTERRUPTED) {
        CHECK(asked.calls == stop_at, "%s: %d questions, not %d", c->name, asked.calls, stop_at);
        CHECK(error.status == status && error.matrix == -1 && strlen(error.text) > 10,
              "%s: matrix %lld, \"%s\"", c->name, (long long)error.matrix, error.text);
        return 1;
    }
    CHECK(status == TSVD_OK && asked.calls < stop_at, "%s: status %d, question %d of %d", c->name,
          (int)status, stop_at, asked.calls);
    CHECK(c->shape.of == OF_BIDIAGONAL || asked.done == 1, "%s: at the end %g is done", c->name,
          asked.done);
    check_same(c, "questions");
    return 0;
}

#endif
