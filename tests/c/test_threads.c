/*
 * Parallel loops: every index once, failures, many loops at once, and forks, beside products too.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "host/blas.h"
#include "host/host.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

enum { WORKERS = 3, COUNT = 5000 };

struct visits {
    atomic_int index[COUNT];    /* how often each index was worked on */
    atomic_int inside[WORKERS]; /* tasks of each worker that run */
    pthread_t caller;
    int64_t fails_from; /* indices from here on fail */
    int64_t stops_at;   /* the index that is interrupted */
    int64_t forks_at;   /* the calling thread forks at its first index from here on */
    int64_t waits_from; /* other threads wait at indices from here on until it has forked */
    atomic_int forked;
    pid_t child;
};

static struct visits
fresh(void)
{
    struct visits v;

    memset(&v, 0, sizeof v);
    v.caller = pthread_self();
    v.fails_from = v.stops_at = v.forks_at = v.waits_from = COUNT;
    return v;
}

static tsvd_status
visit(void *arg, int worker, int64_t i)
{
    struct visits *v = arg;

    CHECK(worker >= 0 && worker < WORKERS, "worker %d", worker);
    CHECK((worker == 0) == (pthread_equal(pthread_self(), v->caller) != 0), "worker %d", worker);
    CHECK(atomic_fetch_add(&v->inside[worker], 1) == 0, "worker %d twice at once", worker);
    atomic_fetch_add(&v->index[i], 1);
    if (worker == 0 && i >= v->forks_at && v->child == 0) {
        v->forks_at = COUNT;
        v->child = fork();
        atomic_store(&v->forked, 1);
    }
    while (worker != 0 && i >= v->waits_from && !atomic_load(&v->forked)) {
        (void)sched_yield();
    }
    atomic_fetch_sub(&v->inside[worker], 1);
    return i == v->stops_at ? TSVD_ERR_INTERRUPTED : i >= v->fails_from ? TSVD_ERR_MEMORY : TSVD_OK;
}

static void
check_once(const struct visits *v, int64_t count)
{
    for (int64_t i = 0; i < COUNT; i++) {
        CHECK(v->index[i] == (i < count), "index %lld: %d times", (long long)i, v->index[i]);
    }
}

static void
test_every_index_once(void)
{
    const int64_t counts[] = {0, 1, 2, WORKERS, 100, COUNT};

    for (int workers = 1; workers <= WORKERS; workers++) {
        for (int c = 0; c < 6; c++) {
            for (int run = 0; run < 50; run++) {
                struct visits v = fresh();

                CHECK(tsvdi_host_for_each(workers, counts[c], visit, &v) == TSVD_OK, "loop");
                check_once(&v, counts[c]);
            }
        }
    }
}

static void
test_failures(void)
{
    for (int run = 0; run < 50; run++) {
        struct visits v = fresh();

        v.fails_from = 700;
        CHECK(tsvdi_host_for_each(WORKERS, COUNT, visit, &v) == TSVD_ERR_MEMORY, "it fails");
        for (int i = 0; i <= 700; i++) {
            CHECK(v.index[i] == 1, "index %d before the first failure was left out", i);
        }
        v = fresh();
        v.fails_from = 10;
        v.stops_at = 5;
        CHECK(tsvdi_host_for_each(WORKERS, COUNT, visit, &v) == TSVD_ERR_INTERRUPTED, "it stops");
    }
}

static tsvd_status
inner(void *arg, int worker, int64_t i)
{
    struct visits v = fresh();

    (void)arg, (void)worker, (void)i;
    CHECK(tsvdi_host_for_each(WORKERS, 100, visit, &v) == TSVD_OK, "a loop in a loop");
    check_once(&v, 100);
    return TSVD_OK;
}

static void *
many_loops(void *unused)
{
    for (int run = 0; run < 100; run++) {
        struct visits v = fresh();

        CHECK(tsvdi_host_for_each(WORKERS, 200, visit, &v) == TSVD_OK, "loop");
        check_once(&v, 200);
    }
    CHECK(tsvdi_host_for_each(WORKERS, 10, inner, NULL) == TSVD_OK, "loops in a loop");
    return unused;
}

static void
test_many_loops_at_once(void)
{
    pthread_t thread[8];

    for (int i = 0; i < 8; i++) {
        CHECK(pthread_create(&thread[i], NULL, many_loops, NULL) == 0, "a thread");
    }
    for (int i = 0; i < 8; i++) {
        CHECK(pthread_join(thread[i], NULL) == 0, "its end");
    }
}

/* Ends a child with the failures of its checks. */
static void
leave_child(void)
{
    (void)fflush(stdout);
    _exit(failures > 0);
}

static void
check_child(pid_t child)
{
    int status = -1;

    CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %d", status);
}

/* Tells which thread works on the second of two indices, which wait for each other. */
static tsvd_status
meet(void *arg, int worker, int64_t i)
{
    atomic_int *here = arg;

    (void)worker, (void)i;
    atomic_fetch_add(here, 1);
    while (atomic_load(here) < 2) {
        (void)sched_yield();
    }
    return TSVD_OK;
}

/* A child has no threads of its parent, and starts its own. */
static void
test_a_child_starts_threads(void)
{
    atomic_int here = 0;
    pid_t child;

    CHECK(tsvdi_host_for_each(2, 2, meet, &here) == TSVD_OK, "two threads");
    child = fork();
    if (child == 0) {
        (void)alarm(60);
        atomic_store(&here, 0);
        CHECK(tsvdi_host_for_each(2, 2, meet, &here) == TSVD_OK, "two threads of the child");
        leave_child();
    }
    check_child(child);
}

/* A task that forks: the parent goes on, the loop of the child ends, and its next one works. */
static void
test_a_task_forks(void)
{
    for (int run = 0; run < 20; run++) {
        const pid_t parent = getpid();
        struct visits v = fresh();
        tsvd_status status;

        v.forks_at = 0;
        status = tsvdi_host_for_each(1, 100, visit, &v);
        CHECK(status == TSVD_OK, "a loop of one thread needs no other");
        if (getpid() != parent) {
            leave_child();
        }
        check_child(v.child);

        v = fresh();
        v.forks_at = v.waits_from = 100 * run;
        status = tsvdi_host_for_each(WORKERS, COUNT, visit, &v);
        if (getpid() != parent) {
            (void)alarm(60);
            CHECK(status == TSVD_ERR_INTERRUPTED, "status %d in the child", (int)status);
            v = fresh();
            CHECK(tsvdi_host_for_each(WORKERS, COUNT, visit, &v) == TSVD_OK, "the next loop");
            check_once(&v, COUNT);
            leave_child();
        }
        CHECK(status == TSVD_OK, "status %d in the parent", (int)status);
        check_once(&v, COUNT);
        check_child(v.child);
    }
}

/* A BLAS with a lock that knows nothing of forks. */
static pthread_mutex_t blas_lock = PTHREAD_MUTEX_INITIALIZER;

static void
locked_product(const char *transa, const char *transb, const int32_t *m, const int32_t *n,
               const int32_t *k, const double *alpha, const double *a, const int32_t *lda,
               const double *b, const int32_t *ldb, const double *beta, double *c,
               const int32_t *ldc)
{
    (void)transa, (void)transb, (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)lda;
    (void)b, (void)ldb, (void)beta, (void)ldc;
    (void)pthread_mutex_lock(&blas_lock);
    for (int i = 0; i < 1000; i++) {
        *(volatile double *)c += 1;
    }
    (void)pthread_mutex_unlock(&blas_lock);
}

static void
multiply_once(void)
{
    const tsvd_blas blas = {.size = sizeof(tsvd_blas), .dgemm32 = locked_product};
    const double a = 1, b = 1;
    double c = 0;

    tsvdi_blas_multiply(&blas, TSVD_FLOAT64, 1, 1, 1, &a, 1, &b, 1, &c, 1);
    CHECK(c == 1000, "the product was made");
}

static atomic_int multiplying; /* 1: threads go on making products */

static void *
multiply_on(void *unused)
{
    while (atomic_load(&multiplying)) {
        multiply_once();
    }
    return unused;
}

/* A child is forked between products of other threads, and can make its own. */
static void
test_forks_beside_products(void)
{
    pthread_t thread[WORKERS];

    atomic_store(&multiplying, 1);
    for (int i = 0; i < WORKERS; i++) {
        CHECK(pthread_create(&thread[i], NULL, multiply_on, NULL) == 0, "thread %d", i);
    }
    for (int run = 0; run < 200; run++) {
        const pid_t child = fork();

        if (child == 0) {
            (void)alarm(60);
            multiply_once();
            leave_child();
        }
        check_child(child);
    }
    atomic_store(&multiplying, 0);
    for (int i = 0; i < WORKERS; i++) {
        CHECK(pthread_join(thread[i], NULL) == 0, "thread %d", i);
    }
}

/* The number of threads is bounded by the work and by the processors. */
static void
test_bounds(void)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);

    CHECK(tsvdi_host_threads_for(3, 2) == 2, "work for two");
    CHECK(tsvdi_host_threads_for(3, 0) == 1, "no work");
    CHECK(tsvdi_host_threads_for(1, INT64_MAX) == 1, "one asked for");
    CHECK(tsvdi_host_threads_for(0, INT64_MAX) == tsvd_host_threads(), "the default");
    CHECK(tsvdi_host_threads_for(1000000, INT64_MAX) <= 4 * processors, "a million");
}

int
main(void)
{
    (void)alarm(600); /* rather than wait for a thread that the system refuses */
    test_every_index_once();
    test_failures();
    test_many_loops_at_once();
    if (!UNDER_TSAN) { /* ThreadSanitizer allows a forked child no threads */
        test_a_child_starts_threads();
        test_a_task_forks();
        test_forks_beside_products();
    }
    test_bounds();
    return report();
}
