/*
 * The reduction of W to bidiagonal form on the device as a list of stages.  Each takes orthogonal
 * factors off what the one before has left:
 *
 *     M_0 = W,   M_s = Q_s M_(s+1) P_s^H,   and the last one leaves B
 *
 * so that W = Q B P^H with Q = Q_0 Q_1 ... and P = P_0 P_1 ...  To add a stage: its row, at the end
 * of the file of its algorithm, and its place in shape_run() of dense.cu.  Mirrors
 * csrc/cpu/matrix/stages.h.
 */
#ifndef TSVDI_CUDA_MATRIX_STAGES_H
#define TSVDI_CUDA_MATRIX_STAGES_H

#include "matrix/matrix.h"

struct cuda_dense;
struct stage_run;

enum stage_outcome {
    STAGE_MADE,
    STAGE_REFUSED, /* M is as it was */
    STAGE_SPOILED  /* not made either, but M has changed */
};

struct stage {
    unsigned number;    /* in the layout of a saved state: below 8 (LAYOUT_BAND); 0: never saved, or
                        told by the stage before */
    bool right;         /* it has a P; else P = I */
    int superdiagonals; /* of what it leaves, where P's reflectors begin, if those are in M */
    const struct stage *otherwise; /* factors what this one does not; NULL: this one does not
                                      refuse.  A stage that refuses is the first: W is loaded again
                                      */

    /* Numbers of M of a matrix; keep: as a job has it. */
    int64_t (*numbers)(int64_t r, int64_t c, int keep);

    /* Workspace of factor(); and of apply() or expand() for `vectors` vectors of each matrix. */
    uint64_t (*factor_bytes)(const struct cuda_device *device, const struct stage_run *own);
    uint64_t (*apply_bytes)(const struct cuda_device *device, const struct stage_run *own,
                            int64_t vectors);

    /* Factors M.  What it leaves goes to the M of the next stage, own[1], or is B, which goes to
       run->d and run->e. */
    tsvd_status (*factor)(struct tsvd_context *ctx, const struct cuda_dense *run,
                          const struct stage_run *own, char *d_work, enum stage_outcome *outcome);

    /* Replaces vectors x by Q x, or P x if `right`, or by the adjoint times x. */
    tsvd_status (*apply)(struct tsvd_context *ctx, const struct stage_run *own, int right,
                         int transposed, struct dense_block x, char *d_work);

    /* Instead of apply(), if Q has fewer columns than rows: Q X of each matrix.  The k vectors are
       the columns of X, [c][k], and of the result, [r][k]; or the rows, [k][c] and [k][r].  None
       are conjugates. */
    tsvd_status (*expand)(struct cuda_call *call, const struct stage_run *own, int64_t k, int rows,
                          const scalar *d_x, scalar *d_to, char *d_work);
};

extern const struct stage tsvdi_cuda_dense_qr_stage; /* qr.cu: M = Q R */
extern const struct stage
    tsvdi_cuda_dense_cholesky_stage; /* cholesky.cu: M = Q R, of Q c columns */
extern const struct stage tsvdi_cuda_dense_bidiagonalize_stage; /* reduce.cu: M = Q B P^T */
extern const struct stage tsvdi_cuda_dense_small_stage; /* small.cu: the same of small matrices */
extern const struct stage tsvdi_cuda_dense_band_stage;  /* band.cu: M = Q N P^H, a band */
extern const struct stage tsvdi_cuda_dense_chase_stage; /* chase.cu: N = Q B P^H */

/* A stage of a job.  All arrays are device memory. */
struct stage_run {
    const struct stage *listed; /* what a chunk begins with */
    const struct stage *stage;  /* what has factored M: `listed`, or what does it otherwise */
    int64_t r, c, count;        /* of an M; how many there are */
    int64_t numbers;            /* of M of a matrix, or of a member's share */
    scalar *m;                  /* [count][numbers] M, [c][r] or as the stage before leaves it; then
                                   the reflectors, or what Q is made of */
    scalar *correction;         /* [count][c][c] for expand() */
    scalar *tau_q, *tau_p;      /* [count][c] the factors of the reflectors */

    /* The parts of a call on several devices may share the matrix out. */
    struct cuda_team *team;  /* NULL: they do not */
    scalar *m_of[TEAM_MOST]; /* M of each member, once all have told it */
};

/* Who has which columns of M, if it is W. */
static inline struct column_shares
shares_of(const struct stage_run *own)
{
    const struct column_shares whole = {own->c, 1, 0};

    return own->team == NULL ? whole : column_shares{own->c, own->team->size, own->team->self};
}

enum { STAGES_MOST = 3 };

/* What a job of dense_ops holds.  All arrays are device memory. */
struct cuda_dense {
    const struct cuda_device *device;
    struct cuda_matrices in; /* its w is the M of the first stage */
    struct cuda_results out;
    struct stage_run stage[STAGES_MOST];
    int stages;
    struct cuda_team *team; /* NULL: W is whole */
    int keep;               /* as the job has it */
    real *d, *e;            /* [count][c] B; e has a zero after the c - 1 of each matrix */
    char *d_arrays;    /* the allocation that holds the arrays of `in` and of the stages, d and e */
    char *d_reducing;  /* workspace of reduce(), which other members may read; NULL: none */
    char *d_workspace; /* what reserve() took; NULL: nothing */
};

/* reflectors.cu: numbers() of an M of r x c; apply() and apply_bytes() of stages whose factors are
   reflectors in M. */
int64_t tsvdi_cuda_dense_stage_numbers(int64_t r, int64_t c, int keep);
uint64_t tsvdi_cuda_dense_stage_bytes(const struct cuda_device *device, const struct stage_run *own,
                                      int64_t vectors);
tsvd_status tsvdi_cuda_dense_stage_apply(struct tsvd_context *ctx, const struct stage_run *own,
                                         int right, int transposed, struct dense_block x,
                                         char *d_work);

#endif
