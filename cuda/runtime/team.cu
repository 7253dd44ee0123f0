/*
 * Devices that make the parts of a call together; see team.h.
 */
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "runtime/failure.h"
#include "runtime/team.h"

enum {
    DEVICES_MOST = 64,
    TELL_MOST = 64,         /* bytes that a member tells the others */
    LOOK = 50 * 1000 * 1000 /* nanoseconds between two questions whether to go on */
};

struct team_state {
    /* The lock of all states protects these. */
    uint64_t number; /* by which the members find the state */
    int users;
    struct team_state *next;

    /* The own lock protects these. */
    pthread_mutex_t lock;
    pthread_cond_t change;
    int arrived;   /* members that wait for the others */
    int64_t round; /* how often all have met */
    int inside;    /* members in a phase */
    int failed;    /* members that have left before all were done; read without the lock, too */

    /* By turns: a member writes to its place again when all have met once more, and so have read
       it. */
    cudaEvent_t event[TEAM_MOST][2]; /* what a member's stream had before a meeting */
    char given[TEAM_MOST][2][TELL_MOST];
};

/* ---- the states ---- */

/* All that are in use. */
static pthread_mutex_t states_lock = PTHREAD_MUTEX_INITIALIZER;
static struct team_state *states;
static uint64_t states_made;

/* A state with one user. */
static tsvd_status
make_state(tsvd_error *error, struct team_state **made)
{
    pthread_condattr_t clock;
    struct team_state *state = NULL;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_host_alloc(&tsvdi_host_allocator, sizeof *state, error, (void **)&state));
    memset(state, 0, sizeof *state);
    (void)pthread_mutex_init(&state->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&state->change, &clock);
    (void)pthread_condattr_destroy(&clock);
    state->users = 1;
    (void)pthread_mutex_lock(&states_lock);
    state->number = ++states_made;
    state->next = states;
    states = state;
    (void)pthread_mutex_unlock(&states_lock);
    *made = state;
out:
    return ret;
}

/* The state with this number, for one more user; NULL: it has none any more. */
static struct team_state *
find_state(uint64_t number)
{
    struct team_state *state;

    (void)pthread_mutex_lock(&states_lock);
    for (state = states; state != NULL && state->number != number;) {
        state = state->next;
    }
    if (state != NULL) {
        state->users++;
    }
    (void)pthread_mutex_unlock(&states_lock);
    return state;
}

/* Takes one user away. */
static void
drop_state(struct team_state *state)
{
    struct team_state **at = &states;
    bool last;

    if (state == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&states_lock);
    last = --state->users == 0;
    if (last) {
        while (*at != state) {
            at = &(*at)->next;
        }
        *at = state->next;
    }
    (void)pthread_mutex_unlock(&states_lock);
    if (last) {
        (void)pthread_cond_destroy(&state->change);
        (void)pthread_mutex_destroy(&state->lock);
        tsvdi_host_free(&tsvdi_host_allocator, state);
    }
}

/* ---- waiting ---- */

static tsvd_status
other_failed(const struct cuda_team *team)
{
    return tsvdi_fail(team->call->error, TSVD_ERR_INTERRUPTED, TSVDI_OTHER_FAILED);
}

/* A child of the process has the locks as they were, and none of the other threads. */
static bool
is_child(const struct cuda_team *team)
{
    return team->forks != tsvdi_host_forks();
}

/* Waits for a change, but not for long; true: it came.  The lock is held. */
static bool
wait_a_little(struct team_state *state)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK;
    if (until.tv_nsec >= 1000 * 1000 * 1000) {
        until.tv_nsec -= 1000 * 1000 * 1000;
        until.tv_sec++;
    }
    return pthread_cond_timedwait(&state->change, &state->lock, &until) == 0;
}

/* Waits for all members. */
static tsvd_status
gather(struct cuda_team *team)
{
    struct team_state *state = team->state;
    tsvd_status ret = TSVD_OK;
    int64_t round;

    (void)pthread_mutex_lock(&state->lock);
    round = state->round;
    if (++state->arrived == team->size) {
        state->arrived = 0;
        state->round++;
        (void)pthread_cond_broadcast(&state->change);
    }
    while (state->round == round && state->failed == 0 && ret == TSVD_OK) {
        if (!wait_a_little(state)) {
            (void)pthread_mutex_unlock(&state->lock); /* check() may run for long */
            ret = team->asks.check(team->asks.ctx);
            if (is_child(team)) {
                return ret;
            }
            (void)pthread_mutex_lock(&state->lock);
        }
    }
    if (ret == TSVD_OK && state->round == round) {
        ret = other_failed(team);
    }
    (void)pthread_mutex_unlock(&state->lock);
    return ret;
}

tsvd_status
tsvdi_cuda_team_meet(struct cuda_team *team)
{
    struct team_state *state = team->state;
    struct cuda_call *call = team->call;
    const int turn = team->turn;
    tsvd_status ret = TSVD_OK;

    CUDA_TRY(call, cudaEventRecord(team->event[turn], call->stream));
    TSVD_TRY(gather(team));
    for (int i = 0; i < team->size; i++) {
        if (i != team->self) {
            CUDA_TRY(call, cudaStreamWaitEvent(call->stream, state->event[i][turn], 0));
        }
    }
    team->turn = 1 - turn;
out:
    return ret;
}

tsvd_status
tsvdi_cuda_team_tell(struct cuda_team *team, const void *mine, size_t bytes, void *all)
{
    struct team_state *state = team->state;
    const int turn = team->turn;
    tsvd_status ret = TSVD_OK;

    memcpy(state->given[team->self][turn], mine, bytes < TELL_MOST ? bytes : (size_t)TELL_MOST);
    TSVD_TRY(tsvdi_cuda_team_meet(team));
    for (int i = 0; i < team->size; i++) {
        memcpy((char *)all + (size_t)i * bytes, state->given[i][turn], bytes);
    }
out:
    return ret;
}

/* ---- phases ---- */

tsvd_status
tsvdi_cuda_team_begin(struct cuda_team *team)
{
    struct team_state *state;
    tsvd_status ret = TSVD_OK;

    if (team == NULL) {
        return TSVD_OK;
    }
    state = team->state;
    (void)pthread_mutex_lock(&state->lock);
    if (state->failed > 0) {
        ret = other_failed(team);
    } else {
        state->inside++;
        team->inside = true;
    }
    (void)pthread_mutex_unlock(&state->lock);
    return ret;
}

/* The lock is held. */
static void
go_outside(struct cuda_team *team)
{
    team->state->inside -= team->inside;
    team->inside = false;
    (void)pthread_cond_broadcast(&team->state->change);
}

tsvd_status
tsvdi_cuda_team_end(struct cuda_team *team)
{
    tsvd_status ret = TSVD_OK;

    if (team == NULL) {
        return TSVD_OK;
    }
    CUDA_TRY(team->call, cudaStreamSynchronize(team->call->stream));
    (void)pthread_mutex_lock(&team->state->lock);
    go_outside(team);
    (void)pthread_mutex_unlock(&team->state->lock);
out:
    return ret;
}

tsvd_status
tsvdi_cuda_team_finish(struct cuda_team *team)
{
    tsvd_status ret = TSVD_OK;

    if (team != NULL) {
        TSVD_TRY(gather(team));
        team->done = true;
    }
out:
    return ret;
}

const int *
tsvdi_cuda_team_failed(const struct cuda_team *team)
{
    return &team->state->failed;
}

void
tsvdi_cuda_team_leave(struct cuda_team *team)
{
    struct team_state *state;

    if (team == NULL || is_child(team)) {
        return;
    }
    state = team->state;
    (void)cudaStreamSynchronize(team->call->stream);
    (void)pthread_mutex_lock(&state->lock);
    if (!team->done) {
        (void)__atomic_add_fetch(&state->failed, 1, __ATOMIC_RELAXED);
    }
    go_outside(team);
    while (state->inside > 0) {
        (void)wait_a_little(state);
    }
    (void)pthread_mutex_unlock(&state->lock);
    drop_state(state);
    for (cudaEvent_t event : team->event) {
        if (event != NULL) {
            (void)cudaEventDestroy(event);
        }
    }
    tsvdi_host_free(&tsvdi_host_allocator, team);
}

/* ---- joining ---- */

/* A number that this process alone has; not 0, and small enough to be exact. */
static double
process_number(void)
{
    static const int bits = 50;
    static uint64_t number;
    uint64_t made = 0, old = 0;

    if (__atomic_load_n(&number, __ATOMIC_RELAXED) == 0) {
        if (getrandom(&made, sizeof made, GRND_NONBLOCK) != (ssize_t)sizeof made) {
            made = (uint64_t)time(NULL) << 20;
        }
        made = (made >> (64 - bits)) | 1;
        (void)__atomic_compare_exchange_n(&number, &old, made, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED);
    }
    /* a child of the process has its memory no more */
    return (double)(__atomic_load_n(&number, __ATOMIC_RELAXED) + (uint64_t)getpid());
}

/* What the parts tell each other: of each device the sums over the parts on it. */
struct entry {
    double parts, process, place;
    double state; /* its number */
    double form[TEAM_FORM];
};

struct roll {
    double unwilling;
    struct entry entry[DEVICES_MOST];
};

enum { ROLL_NUMBERS = sizeof(struct roll) / sizeof(double) };

/* The numbers of the devices in the order of the places, and whose is `own`; false: they make no
   team. */
static bool
read_roll(const struct roll *roll, int own, struct cuda_team *team, int device[TEAM_MOST])
{
    const struct entry *mine = &roll->entry[own];

    team->size = team->self = 0;
    for (int i = 0; i < DEVICES_MOST; i++) {
        const struct entry *entry = &roll->entry[i];
        int at = team->size;

        if (entry->parts == 0) {
            continue;
        }
        if (entry->parts > 1 || entry->process != mine->process || team->size == TEAM_MOST ||
            memcmp(entry->form, mine->form, sizeof mine->form) != 0) {
            return false;
        }
        for (; at > 0 && roll->entry[device[at - 1]].place > entry->place; at--) {
            device[at] = device[at - 1];
        }
        device[at] = i;
        team->size++;
    }
    while (team->self < team->size && device[team->self] != own) {
        team->self++;
    }
    return roll->unwilling == 0 && team->size > 1 && team->self < team->size;
}

/* Lets the other devices read what this one's pool holds, from now on; false: they cannot. */
static bool
let_read(const struct cuda_call *call, const struct cuda_team *team, const int device[TEAM_MOST])
{
    struct cudaMemAccessDesc access[TEAM_MOST];
    size_t others = 0;
    int can = 1;

    memset(access, 0, sizeof access);
    for (int i = 0; i < team->size && can; i++) {
        if (i != team->self) {
            access[others].location.type = cudaMemLocationTypeDevice;
            access[others].location.id = device[i];
            access[others++].flags = cudaMemAccessFlagsProtReadWrite;
            if (cudaDeviceCanAccessPeer(&can, device[i], call->device->number) != cudaSuccess) {
                can = 0;
            }
        }
    }
    if (!can || cudaMemPoolSetAccess(call->device->pool, access, others) != cudaSuccess) {
        tsvdi_cuda_forget();
        return false;
    }
    return true;
}

/* The own events, of which the state tells the others. */
static tsvd_status
make_events(struct cuda_team *team)
{
    struct cuda_call *call = team->call;
    tsvd_status ret = TSVD_OK;

    for (int turn = 0; turn < 2; turn++) {
        CUDA_TRY(call, cudaEventCreateWithFlags(&team->event[turn], cudaEventDisableTiming));
        team->state->event[team->self][turn] = team->event[turn];
    }
out:
    return ret;
}

tsvd_status
tsvdi_cuda_team_join(struct cuda_call *call, struct team_asks asks, bool willing, int64_t place,
                     const double form[TEAM_FORM], struct cuda_team **team)
{
    const int number = call->device->number;
    struct team_state *state = NULL;
    struct cuda_team *made = NULL, *member = NULL;
    struct roll roll;
    int device[TEAM_MOST];
    double unable;
    tsvd_status ret = TSVD_OK;

    *team = NULL;
    TSVD_TRY(tsvdi_host_alloc(&tsvdi_host_allocator, sizeof *made, call->error, (void **)&made));
    memset(made, 0, sizeof *made);
    made->call = call;
    made->asks = asks;
    made->forks = tsvdi_host_forks();
    TSVD_TRY(make_state(call->error, &state));
    memset(&roll, 0, sizeof roll);
    roll.unwilling = !willing || number >= DEVICES_MOST || call->device->pool == NULL;
    if (number < DEVICES_MOST) {
        struct entry *own = &roll.entry[number];

        *own = {1, process_number(), (double)place, (double)state->number, {}};
        memcpy(own->form, form, sizeof own->form);
    }
    TSVD_TRY(asks.sum(asks.ctx, ROLL_NUMBERS, (double *)&roll));
    if (number >= DEVICES_MOST || !read_roll(&roll, number, made, device)) {
        goto out;
    }
    made->state = made->self == 0 ? state : find_state((uint64_t)roll.entry[device[0]].state);
    if (made->state == NULL) {
        ret = other_failed(made);
        goto out;
    }
    if (made->self == 0) {
        state = NULL; /* the member's */
    }
    member = made; /* from here on leave() ends it */
    made = NULL;
    unable = !let_read(call, member, device);
    TSVD_TRY(asks.sum(asks.ctx, 1, &unable));
    if (unable > 0) {
        member->done = true;
        goto out;
    }
    TSVD_TRY(make_events(member));
    *team = member;
    member = NULL;
out:
    tsvdi_cuda_team_leave(member);
    drop_state(state);
    tsvdi_host_free(&tsvdi_host_allocator, made);
    return ret;
}
