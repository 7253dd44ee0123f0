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
    int right;   /* 1: it has a P; 0: P = I */
    double work; /* its share of the reduction's progress, relative to other stages */

    /* Numbers of a worker's workspace. */
    int64_t (*workspace)(int64_t rows, int64_t columns);

    /* Factors M of matrix i, to its reflectors.  What it leaves goes to the M of the next stage,
       own[1], or is B, which goes to job->d and job->e. */
    tsvd_status (*factor)(struct cpu_dense *state, int worker, const struct stage_run *own,
                          int64_t i);

    /* The reflectors of matrix i: those of Q, or of P if `right`. */
    struct dense_reflectors (*reflectors)(const struct stage_run *own, int64_t i, int right);
};

extern const struct stage tsvdi_cpu_dense_qr_stage;            /* qr.c: M = Q R */
extern const struct stage tsvdi_cpu_dense_bidiagonalize_stage; /* reduce.c: M = Q B P^H */

/* A stage of a job. */
struct stage_run {
    const struct stage *stage;
    int64_t rows, columns; /* of M */
    scalar *m;             /* [count][columns][rows] M, then the reflectors */
    scalar *tau_q, *tau_p; /* [count][columns] their factors; tau_p: NULL without P */
    double done, share;    /* the progress that it begins with, and its part of it */
};

enum { STAGES_MOST = 2 }; /* more, and what they leave, need a layout in state_bytes() */

/* What a job of dense_ops holds. */
struct cpu_dense {
    struct dense_run run;
    struct dense_job *job;
    struct stage_run stage[STAGES_MOST];
    int stages;
    const struct dense_vectors *vectors; /* what apply() works on */
};

/* M of matrix i. */
static inline struct dense_matrix
stage_matrix(const struct stage_run *own, int64_t i)
{
    const struct dense_matrix m = {own->m + i * own->rows * own->columns, own->rows, own->columns,
                                   own->rows};

    return m;
}

/* reflectors.c: vectors := Q or P (right) times vectors, or the transpose; Q and P are those of A
   for matrix i.  tsvdi_check() is told `done` at the beginning, and `share` more at the end. */
tsvd_status tsvdi_cpu_dense_apply(struct cpu_dense *state, int worker, int64_t i, int right,
                                  int transposed, struct dense_block block, double done,
                                  double share);

#endif
