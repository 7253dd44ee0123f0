/*
 * Devices of one process that make the parts of a call (tsvd_part) together: each may read the
 * memory of the others.
 *
 * A part is a member, with a thread and a device of its own.  Members read what others have made
 * within phases only, which all of them go through, and after they have met.  To meet costs no wait
 * of the host for a device: what a member's stream does after a meeting comes after what all
 * streams have been given before it.
 *
 * A member that fails tells the others, and keeps its memory until none of them is in a phase.
 *
 * begin(), end(), finish() and leave() do nothing with NULL.
 */
#ifndef TSVDI_CUDA_RUNTIME_TEAM_H
#define TSVDI_CUDA_RUNTIME_TEAM_H

#include "runtime/device.h"

enum {
    TEAM_MOST = 16, /* members */
    TEAM_FORM = 3   /* numbers that all members must have alike */
};

/* What a member asks of its call; the functions are those of backend/context.h. */
struct team_asks {
    void *ctx;
    tsvd_status (*check)(void *ctx);                               /* whether to go on */
    tsvd_status (*sum)(void *ctx, int64_t count, double *numbers); /* over all parts */
};

struct team_state;

struct cuda_team {
    struct team_state *state; /* which all members share */
    struct cuda_call *call;
    struct team_asks asks;
    unsigned forks; /* tsvdi_host_forks() when it was made */
    int size, self; /* members, and the number of this one: in the order of `place` */
    cudaEvent_t event[2];
    int turn;    /* of the events */
    bool inside; /* it is in a phase */
    bool done;   /* all parts are made */
};

/* *team: this part as a member; NULL: the parts are not all on devices of this process that can
   read each other's memory, or one of them is not willing, or has another form.  All parts come
   here.  place: the first value of a part, which orders them. */
tsvd_status tsvdi_cuda_team_join(struct cuda_call *call, struct team_asks asks, bool willing,
                                 int64_t place, const double form[TEAM_FORM],
                                 struct cuda_team **team);

/* begin() and end() of a phase; end() waits for the stream.  After a failure leave() ends it. */
tsvd_status tsvdi_cuda_team_begin(struct cuda_team *team);
tsvd_status tsvdi_cuda_team_end(struct cuda_team *team);

/* All members come here, in a phase. */
tsvd_status tsvdi_cuda_team_meet(struct cuda_team *team);

/* The same, to tell each other something: all [size] becomes `mine` of each member.  bytes: of it,
   64 at most. */
tsvd_status tsvdi_cuda_team_tell(struct cuda_team *team, const void *mine, size_t bytes, void *all);

/* Waits until the parts of all members are made. */
tsvd_status tsvdi_cuda_team_finish(struct cuda_team *team);

/* How many members have failed; may be read at any time. */
const int *tsvdi_cuda_team_failed(const struct cuda_team *team);

/* Ends a membership: waits until no member may read this one's memory. */
void tsvdi_cuda_team_leave(struct cuda_team *team);

#endif
