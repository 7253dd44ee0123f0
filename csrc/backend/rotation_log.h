/*
 * Rotations in the order in which they were made, and how they are applied to singular
 * vectors: consecutive sweeps in groups, each of which passes over the vectors once
 * (Van Zee, van de Geijn & Quintana-Orti, ACM TOMS 40 (2014)).
 */
#ifndef TSVDI_ROTATION_LOG_H
#define TSVDI_ROTATION_LOG_H

#include "backend/precision.h"
#include "math/qr_sweep.h"

/* The sweeps of one side, left or right. */
struct rotation_log {
    struct qr_sweep *sweep;           /* [max_sweeps] */
    struct rotation *rotation;        /* [rotations_max] of all sweeps, one after another */
    int64_t sweeps, max_sweeps;       /* sweeps in the log, and its capacity */
    int64_t rotations, rotations_max; /* rotations in the log, and its capacity */
};

/* The sweeps [begin, end) of a log. */
struct sweep_group {
    int64_t begin, end;
    int64_t low, high; /* rows that they span */
};

/* The group that begins with sweep `begin`: at most `most` sweeps of one direction.  A sweep joins
   only if the rows that this adds to the pass cost less than a pass of its own. */
static inline struct sweep_group
log_next_group(const struct rotation_log *log, int64_t begin, int64_t most)
{
    const struct qr_sweep *s = &log->sweep[begin];
    struct sweep_group g = {begin, begin + 1, s->first, s->first + s->count};

    for (; g.end < log->sweeps && g.end - g.begin < most; g.end++) {
        const struct qr_sweep *t = &log->sweep[g.end];
        int64_t low = t->first < g.low ? t->first : g.low;
        int64_t high = t->first + t->count > g.high ? t->first + t->count : g.high;

        if (t->up != s->up || (high - low) - (g.high - g.low) > t->count + most) {
            break;
        }
        g.low = low;
        g.high = high;
    }
    return g;
}

struct tsvd_context;

/* Room for `sweeps` sweeps with up to `rotations` rotations in all. */
tsvd_status tsvdi_log_alloc(struct tsvd_context *ctx, int64_t sweeps, int64_t rotations,
                            struct rotation_log *log);
void tsvdi_log_free(struct tsvd_context *ctx, struct rotation_log *log);

#endif
