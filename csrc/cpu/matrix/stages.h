/*
 * The reduction of W to bidiagonal form as a list of stages.  Each takes orthogonal factors off
 * what the one before has left:
 *
 *     M_0 = W,   M_s = Q_s M_(s+1) P_s^H,   and the last one leaves B
 *
 * so that W = Q B P^H with Q = Q_0 Q_1 ... and P = P_0 P_1 ...  To add a stage: its row, at the end
 * of the file of its algorithm, and its place in list_stages() of dense.c.
 */
#ifndef TSVDI_CPU_MATRIX_STAGES_H
#define TSVDI_CPU_MATRIX_STAGES_H

#include "cpu/matrix/matrix.h"

struct cpu_dense;
struct stage_run;

struct stage {
    int right;          /* 1: it has a P; 0: P = I */
    int sides;          /* for how many sides it takes tau_q and tau_p */
    int superdiagonals; /* of what it leaves, where P's reflectors begin: with multiply_stage() */
    double work;        /* its share of the reduction's progress, relative to other stages */

    /* Numbers of M of a matrix, and of the workspace of a worker with that many threads.  keep: as
       a job has it. */
    int64_t (*numbers)(int64_t rows, int64_t columns, int keep);
    int64_t (*workspace)(int64_t rows, int64_t columns, int threads);

    /* Factors M of matrix i, to its reflectors.  What it leaves goes to the M of the next stage,
       own[1], or is B, which goes to job->d and job->e. */
    tsvd_status (*factor)(struct cpu_dense *state, int worker, const struct stage_run *own,
                          int64_t i);

    /* vectors := Q_s or P_s (right) times vectors, or the adjoint, of matrix i.  tsvdi_check() is
       told `done` at the beginning, and `share` more at the end. */
    tsvd_status (*multiply)(struct dense_run *run, int worker, const struct stage_run *own,
                            int64_t i, int right, int transposed, struct dense_block block,
                            double done, double share);
};

extern const struct stage tsvdi_cpu_dense_qr_stage;            /* qr.c: M = Q R */
extern const struct stage tsvdi_cpu_dense_bidiagonalize_stage; /* reduce.c: M = Q B P^H */
extern const struct stage tsvdi_cpu_dense_band_stage;          /* band.c: M = Q N P^H, a band */
extern const struct stage tsvdi_cpu_dense_chase_stage;         /* chase.c: N = Q B P^H */

/* A stage of a job. */
struct stage_run {
    const struct stage *stage;
    int64_t rows, columns; /* of M */
    int64_t numbers;       /* of M of a matrix */
    int keep;              /* as the job has it */
    scalar *m;             /* [count][numbers] M, then the reflectors */
    scalar *tau_q, *tau_p; /* [count][columns] their factors, for as many sides as the stage says */
    double done, share;    /* the progress that it begins with, and its part of it */
};

enum { STAGES_MOST = 3 };

/* What a job of dense_ops holds. */
struct cpu_dense {
    struct dense_run run;
    struct dense_job *job;
    struct stage_run stage[STAGES_MOST];
    int stages;
    uint64_t bytes;                      /* that the stages keep, with d and e */
    const struct dense_vectors *vectors; /* what apply() works on */
};

/* Adds the time since `clock`, where the matrices follow one another. */
static inline void
add_seconds(const struct dense_run *run, double clock, double *seconds)
{
    if (run->workers == 1) {
        *seconds += tsvdi_host_seconds() - clock;
    }
}

/* M of matrix i, for the stages where it is one. */
static inline struct dense_matrix
stage_matrix(const struct stage_run *own, int64_t i)
{
    const struct dense_matrix m = {own->m + i * own->numbers, own->rows, own->columns, own->rows};

    return m;
}

/* The numbers of a matrix of rows x columns whose reflectors take its place. */
int64_t tsvdi_cpu_dense_numbers(int64_t rows, int64_t columns, int keep);

/* reflectors.c: stage.multiply where the reflectors of both sides take the place of M. */
tsvd_status tsvdi_cpu_dense_multiply_stage(struct dense_run *run, int worker,
                                           const struct stage_run *own, int64_t i, int right,
                                           int transposed, struct dense_block block, double done,
                                           double share);

/* reflectors.c: vectors := Q or P (right) times vectors, or the transpose; Q and P are those of A
   for matrix i.  tsvdi_check() is told `done` at the beginning, and `share` more at the end. */
tsvd_status tsvdi_cpu_dense_apply(struct cpu_dense *state, int worker, int64_t i, int right,
                                  int transposed, struct dense_block block, double done,
                                  double share);

#endif
