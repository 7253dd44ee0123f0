/*
 * Threads; see host.h.  One pool serves all calls of the process.
 *
 * A parallel loop is a struct loop on the stack of its caller.  The caller is its worker 0, and
 * works on it until no index is left.  Threads of the pool join if they wake in time.  The caller
 * waits for the threads that joined, and for no others: if other processes keep the processors
 * busy, a thread that does not get one costs nothing.
 *
 * A waiting thread yields its processor for a short while before it sleeps, so that a loop that
 * follows soon finds it awake.
 *
 * A forked child has none of the threads.  The pool is locked during the fork, so that the child
 * finds it whole, and starts threads of its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "host/environment.h"
#include "host/host.h"

/* Upper bound on threads: more threads than processors only take turns. */
enum { THREADS_PER_PROCESSOR = 4 };

/* Seconds that a waiting thread yields before it sleeps.  To wake a thread takes some 50 us. */
#define PATIENCE 1e-4

/* Polls between two yields. */
enum { LOOKS_PER_YIELD = 32 };

struct loop {
    tsvd_task task;
    void *arg;
    int64_t count;         /* indices */
    int64_t chunk;         /* indices that a worker takes at once */
    _Atomic int64_t next;  /* the first index that no worker has taken */
    _Atomic int64_t limit; /* the least index that failed, above which none runs; -1: interrupted */
    atomic_int active;     /* helpers at work */

    /* The fields below are under the lock of the pool. */
    tsvd_status status; /* that of index `limit` */
    int joined;         /* helpers that have joined */
    int places;         /* helpers that may still join */
    struct loop *after; /* next loop in the list of the pool */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; /* there is a loop with places */
    pthread_cond_t done; /* a loop has no active helpers left */
    struct loop *first;  /* loops with places, the oldest first */
    int threads;         /* threads started */
    int asleep;          /* threads that sleep until `work` */
    atomic_bool pinned;  /* this code stays in memory */
    atomic_uint posted;  /* loops posted so far */
    atomic_uint forks;   /* see tsvdi_host_forks() */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

/* ---- fork ---- */

static void
before_fork(void)
{
    (void)pthread_mutex_lock(&pool.lock);
}

static void
after_fork_in_parent(void)
{
    (void)pthread_mutex_unlock(&pool.lock);
}

static void
after_fork_in_child(void)
{
    pool.work = pool.done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.first = NULL;
    pool.threads = pool.asleep = 0;
    atomic_fetch_add(&pool.forks, 1);
    (void)pthread_mutex_unlock(&pool.lock);
}

__attribute__((constructor)) static void
watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

unsigned
tsvdi_host_forks(void)
{
    return atomic_load(&pool.forks);
}

/* ---- how many ---- */

/* The processors of the process; false: unknown.  The calling thread may be bound to fewer, by
   OpenMP or by the program.  So OpenMP's places count, or else those of the main thread. */
static bool
find_processors(cpu_set_t *all)
{
    CPU_ZERO(all);
#ifdef _OPENMP
    for (int place = 0; place < omp_get_num_places(); place++) {
        const int count = omp_get_place_num_procs(place);
        int id[CPU_SETSIZE];

        if (count > CPU_SETSIZE) {
            return false;
        }
        omp_get_place_proc_ids(place, id);
        for (int i = 0; i < count; i++) {
            CPU_SET((size_t)id[i], all);
        }
    }
#endif
    return CPU_COUNT(all) > 0 || sched_getaffinity(getpid(), sizeof *all, all) == 0;
}

/* The number of processors; costs a system call. */
static int64_t
processors(void)
{
    cpu_set_t all;

    return find_processors(&all) ? CPU_COUNT(&all) : sysconf(_SC_NPROCESSORS_ONLN);
}

int
tsvdi_host_threads_for(int asked, int64_t useful)
{
    int64_t threads = asked, most;

#ifdef _OPENMP
    if (asked <= 0) {
        threads = omp_in_parallel() ? 1 : omp_get_max_threads();
    }
#else
    threads = asked <= 0 ? processors() : asked;
#endif
    threads = threads < useful ? threads : useful;
    if (threads > THREADS_PER_PROCESSOR) { /* fewer are allowed anyway: no system call */
        most = THREADS_PER_PROCESSOR * processors();
        threads = threads < most ? threads : most;
    }
    return threads > 1 ? (int)threads : 1;
}

int
tsvd_host_threads(void)
{
    return tsvdi_host_threads_for(0, INT64_MAX);
}

/* ---- a loop ---- */

/* Waits a little after poll number `look`. */
static void
relax(int look)
{
    if (look % LOOKS_PER_YIELD == 0) {
        (void)sched_yield();
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void
note_failure(struct loop *loop, int64_t index, tsvd_status status)
{
    (void)pthread_mutex_lock(&pool.lock);
    if (status == TSVD_ERR_INTERRUPTED || index < atomic_load(&loop->limit)) {
        /* an interruption stops all indices that are left, and is the status that is returned */
        atomic_store(&loop->limit, status == TSVD_ERR_INTERRUPTED ? -1 : index);
        loop->status = status;
    }
    (void)pthread_mutex_unlock(&pool.lock);
}

/* Works on the loop until no index is left. */
static void
work_on(struct loop *loop, int worker)
{
    int64_t begin;

    while ((begin = atomic_fetch_add(&loop->next, loop->chunk)) < loop->count) {
        const int64_t left = loop->count - begin;
        const int64_t end = begin + (left < loop->chunk ? left : loop->chunk);

        for (int64_t i = begin; i < end && i <= atomic_load(&loop->limit); i++) {
            const tsvd_status status = loop->task(loop->arg, worker, i);

            if (status != TSVD_OK) {
                note_failure(loop, i, status);
            }
        }
    }
}

/* Removes a loop from the list of the pool, if it is there.  The pool is locked. */
static void
unlist(const struct loop *loop)
{
    struct loop **link = &pool.first;

    while (*link != NULL && *link != loop) {
        link = &(*link)->after;
    }
    if (*link != NULL) {
        *link = loop->after;
    }
}

/* Yields until a loop is posted, for PATIENCE at most. */
static void
await_work(void)
{
    const unsigned posted = atomic_load(&pool.posted);
    const double end = tsvdi_host_seconds() + PATIENCE;

    (void)pthread_mutex_unlock(&pool.lock);
    for (int look = 1; atomic_load(&pool.posted) == posted; look++) {
        relax(look);
        if (look % LOOKS_PER_YIELD == 0 && tsvdi_host_seconds() > end) {
            break;
        }
    }
    (void)pthread_mutex_lock(&pool.lock);
}

/* A thread of the pool. */
static void *
help(void *unused)
{
    struct host_environment before; /* of the thread that started it */
    struct loop *loop;
    int worker;

    (void)unused;
    tsvdi_environment_enter(&before);
    (void)pthread_mutex_lock(&pool.lock);
    for (;;) {
        if (pool.first == NULL) {
            await_work();
        }
        while (pool.first == NULL) {
            pool.asleep++;
            (void)pthread_cond_wait(&pool.work, &pool.lock);
            pool.asleep--;
        }
        loop = pool.first;
        worker = ++loop->joined;
        atomic_fetch_add(&loop->active, 1);
        if (--loop->places == 0) {
            unlist(loop);
        }
        (void)pthread_mutex_unlock(&pool.lock);
        work_on(loop, worker);
        (void)pthread_mutex_lock(&pool.lock);
        if (atomic_fetch_sub(&loop->active, 1) == 1) { /* *loop may not exist from here on */
            (void)pthread_cond_broadcast(&pool.done);
        }
    }
    return NULL;
}

/* The threads never end, so their code must stay even if the library that holds it is closed. */
static void
pin_code(void)
{
    Dl_info here;

    if (!atomic_load(&pool.pinned) && dladdr((void *)&pool, &here) != 0) {
        (void)dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    }
    atomic_store(&pool.pinned, true);
}

/* Blocks signals in the calling thread, and so in threads that it starts from here on: signals are
   for the threads of the program.  Those that a fault of a thread raises stay open.  *before: the
   mask that the thread had. */
static void
block_signals(sigset_t *before)
{
    static const int fault[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    sigset_t all;

    (void)sigfillset(&all);
    for (size_t i = 0; i < sizeof fault / sizeof *fault; i++) {
        (void)sigdelset(&all, fault[i]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &all, before);
}

int
tsvdi_host_start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t before;
    int code;

    block_signals(&before);
    code = pthread_create(thread, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* Starts threads until there are `wanted`; stops early if the system gives no more.  The pool is
   locked. */
static void
start_threads(int wanted)
{
    pthread_attr_t detached;
    sigset_t before;
    cpu_set_t anywhere;
    bool known;

    if (pool.threads >= wanted || pthread_attr_init(&detached) != 0) {
        return;
    }
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    known = find_processors(&anywhere);
    block_signals(&before);
    while (pool.threads < wanted) {
        pthread_t thread; /* it never ends */

        if (pthread_create(&thread, &detached, help, NULL) != 0) {
            break;
        }
        /* not by its attributes, which musl's do not hold */
        if (known) {
            (void)pthread_setaffinity_np(thread, sizeof anywhere, &anywhere);
        }
        pool.threads++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&detached);
}

/* Puts a loop at the end of the list, and wakes threads for its places. */
static void
post(struct loop *loop)
{
    struct loop **end = &pool.first;

    pin_code(); /* not under the lock: the loader has locks of its own */
    (void)pthread_mutex_lock(&pool.lock);
    start_threads(loop->places);
    while (*end != NULL) {
        end = &(*end)->after;
    }
    *end = loop;
    atomic_fetch_add(&pool.posted, 1);
    for (int i = 0; i < loop->places && i < pool.asleep; i++) {
        (void)pthread_cond_signal(&pool.work);
    }
    (void)pthread_mutex_unlock(&pool.lock);
}

/* Lets no more threads join, and waits for the threads that did. */
static void
await_helpers(struct loop *loop)
{
    const double end = tsvdi_host_seconds() + PATIENCE;

    (void)pthread_mutex_lock(&pool.lock);
    unlist(loop);
    (void)pthread_mutex_unlock(&pool.lock);
    for (int look = 1; atomic_load(&loop->active) > 0; look++) {
        relax(look);
        if (look % LOOKS_PER_YIELD == 0 && tsvdi_host_seconds() > end) {
            break;
        }
    }
    (void)pthread_mutex_lock(&pool.lock);
    while (atomic_load(&loop->active) > 0) {
        (void)pthread_cond_wait(&pool.done, &pool.lock);
    }
    (void)pthread_mutex_unlock(&pool.lock);
}

tsvd_status
tsvdi_host_for_each(int workers, int64_t count, tsvd_task task, void *arg)
{
    const int64_t most = workers < count ? workers : count;
    const unsigned forks = tsvdi_host_forks();
    struct loop loop = {.task = task,
                        .arg = arg,
                        .count = count,
                        .chunk = 1,
                        .limit = count,
                        .status = TSVD_OK,
                        .places = (int)most - 1};
    tsvd_status status = TSVD_OK;

    if (most <= 1) {
        for (int64_t i = 0; i < count && status == TSVD_OK; i++) {
            status = task(arg, 0, i);
        }
        return status;
    }
    /* a few large tasks go one by one, many small ones in runs: fewer updates of loop.next */
    loop.chunk += count / (64 * most);
    post(&loop);
    work_on(&loop, 0);
    if (tsvdi_host_forks() != forks) {
        return TSVD_ERR_INTERRUPTED; /* a child has no helpers, nor their later results */
    }
    await_helpers(&loop);
    return loop.status;
}

void
tsvdi_host_note_least(int64_t *least, int64_t x)
{
    int64_t before = __atomic_load_n(least, __ATOMIC_RELAXED);

    while (x < before &&
           !__atomic_compare_exchange_n(least, &before, x, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}
