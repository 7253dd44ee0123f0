/*
 * A call for dense matrices: its plan and its parts.
 *
 *     plan.c        what is done, and with how many bytes
 *     svd.c         the SVD of a batch, chunk by chunk
 *     reduction.c   a reduction that is kept, and the calls on it
 *     jacobi.c      all of a call whose method is one-sided Jacobi
 *     small.c       all of a call for small matrices, where a back end has a way of its own
 *     inverse.c     the inverses of a batch, chunk by chunk
 */
#ifndef TSVDI_DENSE_CALL_H
#define TSVDI_DENSE_CALL_H

#include "backend/ops.h"

/* A call that works on a chunk of matrices, from tsvdi_dense_begin() to tsvdi_dense_end(). */
struct dense_call {
    struct dense_problem problem;
    tsvd_options options;   /* problem.call.options points here */
    struct dense_plan plan; /* plan.problem points here too */
    struct tsvd_context ctx;
    struct dense_job job;
};

/* svd.c: options.check of an SVD within another call.  It maps the progress of the inner SVD to
   `from` .. `to` of the chunk under work, and hands it to the caller's check. */
struct inner_check {
    struct tsvd_context *ctx;
    const tsvd_options *options; /* the caller's */
    double from, to;
};
int tsvdi_dense_check_inner(void *arg, double done);

/* plan.c: refuses what the handle cannot do.  *needs_blas is filled also on TSVD_ERR_LIBRARY. */
tsvd_status tsvdi_dense_allowed(const tsvd_handle *handle, const struct dense_matrices *a,
                                int *needs_blas, tsvd_error *error);

/* plan.c: keep: KEEP_ALL, and all matrices are reduced at once; else KEEP_VECTORS. */
tsvd_status tsvdi_dense_plan_call(const struct dense_problem *problem, int keep,
                                  struct dense_plan *plan, tsvd_error *error);

/* plan.c: bytes of U, S and Vh. */
uint64_t tsvdi_dense_result_bytes(const struct dense_problem *problem);

/* svd.c: the context of a call for `matrices` dense matrices. */
struct tsvd_context tsvdi_dense_context(const struct call_args *call, int64_t matrices,
                                        tsvd_error *error);

/* svd.c: refuses a matrix of the call, as it holds NaN or infinity. */
tsvd_status tsvdi_dense_nonfinite(const struct tsvd_context *ctx, int64_t matrix);

/* svd.c: the SVD of B of `count` matrices of a call, without its arrays.  `options` are those of
   that SVD. */
struct svd_problem tsvdi_dense_bidiagonal(const struct dense_problem *problem,
                                          const tsvd_options *options, int64_t count);

/* svd.c: takes the workspace of a chunk; end() is due also after a failure. */
tsvd_status tsvdi_dense_begin(const struct dense_plan *plan, struct dense_call *call,
                              tsvd_error *error);
void tsvdi_dense_end(struct dense_call *call);

/* svd.c: reduces the chunk job.begin, job.count.  Refuses NaN and infinity if options.check_finite
   says so. */
tsvd_status tsvdi_dense_reduce(struct dense_call *call, tsvd_info *info);

/* svd.c: the SVD of the chunk, to the results of call->problem.  Copies to the host may be in
   flight until tsvdi_dense_finish_downloads() has returned. */
tsvd_status tsvdi_dense_solve(struct dense_call *call, tsvd_info *info);
tsvd_status tsvdi_dense_finish_downloads(struct dense_call *call);

/* small.c: whether the back end of a call decomposes its matrices at once, where AUTO is asked. */
int tsvdi_small_serves(const struct dense_problem *problem);

/* svd.c, see struct precision. */
tsvd_status tsvdi_dense_svd(const struct dense_plan *plan, tsvd_info *info, tsvd_error *error);

/* reduction.c, see struct precision. */
tsvd_status tsvdi_reduction_begin(const struct dense_problem *problem, struct dense_call **call,
                                  tsvd_error *error);
tsvd_status tsvdi_reduction_restore(const struct dense_problem *problem, const void *state,
                                    uint64_t bytes, struct dense_call **call, tsvd_error *error);
void tsvdi_reduction_end(struct dense_call *call);
tsvd_status tsvdi_reduction_entries(struct dense_call *call, tsvd_space space, void *d, void *e,
                                    tsvd_error *error);
tsvd_status tsvdi_reduction_select(struct dense_call *call, double low, double high, int64_t *first,
                                   int64_t *count, tsvd_error *error);
tsvd_status tsvdi_reduction_apply(struct dense_call *call, const struct dense_problem *problem,
                                  const struct dense_vectors *vectors, tsvd_error *error);
tsvd_status tsvdi_reduction_svd(struct dense_call *call, const struct dense_problem *problem,
                                tsvd_info *info, tsvd_error *error);
uint64_t tsvdi_reduction_state_bytes(const struct dense_call *call);
tsvd_status tsvdi_reduction_save(struct dense_call *call, void *state, tsvd_error *error);

/* inverse.c, see struct precision. */
tsvd_status tsvdi_inverse_plan_call(const struct inverse_problem *problem, tsvd_plan *plan,
                                    tsvd_error *error);
tsvd_status tsvdi_inverse(const struct inverse_problem *problem, const tsvd_plan *plan,
                          tsvd_inverse_info *info, tsvd_error *error);

/* by_column.c: gives results that lie by columns, and are those of the transposes, the signs that
   tsvd.h fixes. */
tsvd_status tsvdi_dense_orient_by_column(const struct column_results *results);

#endif
