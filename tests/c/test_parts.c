/*
 * Calls that are parts of a larger one: the values of a matrix are shared out over threads, which
 * write to the same arrays.
 */
#include <pthread.h>
#include <string.h>

#include "problem.h"

enum { PARTS_MOST = 4, MAX_ORDER = 300 };

/* Where the parts meet to add numbers up. */
struct meeting {
    pthread_barrier_t all;
    int parts;
    const double *given[PARTS_MOST];
};

/* A part in its thread. */
struct part_call {
    struct meeting *meeting;
    int index;
    struct work w; /* its results are those of the whole call */
    tsvd_options options;
    tsvd_part part;
    tsvd_info info;
    tsvd_status status;
    tsvd_error error;
};

static int
add_up(void *arg, double *x, int64_t count)
{
    const struct part_call *own = arg;
    struct meeting *meeting = own->meeting;
    double sum[3 * 8 * MAX_ORDER];

    CHECK(count <= (int64_t)(sizeof sum / sizeof *sum), "%lld numbers", (long long)count);
    meeting->given[own->index] = x;
    pthread_barrier_wait(&meeting->all);
    for (int64_t i = 0; i < count; i++) {
        sum[i] = 0;
        for (int j = 0; j < meeting->parts; j++) {
            sum[i] += meeting->given[j][i];
        }
    }
    pthread_barrier_wait(&meeting->all);
    memcpy(x, sum, (size_t)count * sizeof *sum);
    return 0;
}

/* Makes the values first .. first + count - 1 of the options, where the whole call has them. */
static void *
make_part(void *arg)
{
    struct part_call *own = arg;
    const struct work *w = &own->w;
    const ptrdiff_t size = (ptrdiff_t)size_of(w->dtype), begin = own->options.first - w->first;
    const int64_t n = w->n, k = own->options.count;
    struct arrays a = arrays_of(w);
    tsvd_handle *handle = NULL;

    a.L.shape[1] = a.s.shape[0] = a.R.shape[0] = k; /* the rows of L stay where they are */
    a.L.data = (char *)a.L.data + begin * size;
    a.s.data = (char *)a.s.data + begin * size;
    a.R.data = (char *)a.R.data + begin * n * size;
    own->status = tsvd_create(NULL, &handle, &own->error);
    if (own->status == TSVD_OK) {
        own->status =
            tsvd_svd(handle, &a.d, &a.e, &own->options, &a.L, &a.s, &a.R, &own->info, &own->error);
    }
    tsvd_destroy(handle);
    return NULL;
}

/* Makes the whole of w in parts; the method that ran.  meets: they decide together. */
static tsvd_method
solve_in_parts(const struct work *w, tsvd_method method, int parts, int meets)
{
    struct meeting meeting;
    struct part_call call[PARTS_MOST];
    pthread_t thread[PARTS_MOST];

    pthread_barrier_init(&meeting.all, NULL, (unsigned)parts);
    meeting.parts = parts;
    for (int i = 0; i < parts; i++) {
        const int64_t begin = w->k * i / parts, end = w->k * (i + 1) / parts;

        call[i] = (struct part_call){.meeting = &meeting,
                                     .index = i,
                                     .w = *w,
                                     .options = default_options(),
                                     .part = {1, w->first, w->k, meets ? add_up : NULL, &call[i]},
                                     .info = TSVD_INFO_INIT};
        call[i].options.method = method;
        call[i].options.first = w->first + begin;
        call[i].options.count = end - begin;
        call[i].options.part = &call[i].part;
    }
    for (int i = 0; i < parts; i++) {
        if (meets) {
            pthread_create(&thread[i], NULL, make_part, &call[i]);
        } else {
            make_part(&call[i]);
        }
    }
    for (int i = 0; i < parts; i++) {
        if (meets) {
            pthread_join(thread[i], NULL);
        }
        CHECK(call[i].status == TSVD_OK, "part %d of %d: %s", i, parts, call[i].error.text);
        CHECK(!meets || call[i].info.method == call[0].info.method, "part %d goes another way", i);
    }
    pthread_barrier_destroy(&meeting.all);
    return call[0].info.method;
}

/* Whether the results of w have the same bits as those of `whole`. */
static int
same_results(const struct work *w, const struct work *whole)
{
    const size_t size = size_of(w->dtype), side = (size_t)(w->n * w->k) * size;

    return memcmp(w->s, whole->s, (size_t)w->k * size) == 0 && memcmp(w->L, whole->L, side) == 0 &&
           memcmp(w->R, whole->R, side) == 0;
}

/* Another work with the same matrix. */
static struct work
copy_of(const struct work *w)
{
    struct work copy = make_work(w->dtype, w->n, 1);

    memcpy(copy.d, w->d, (size_t)w->n * size_of(w->dtype));
    memcpy(copy.e, w->e, (size_t)(w->n - 1) * size_of(w->dtype));
    copy.batch = w->batch;
    copy.first = w->first;
    copy.k = w->k;
    return copy;
}

static void
test_bits(void)
{
    static const int64_t orders[] = {1, 5, 40, 200, MAX_ORDER};

    for (int t = 0; t < DTYPES; t++) {
        for (int o = 0; o < (int)(sizeof orders / sizeof *orders); o++) {
            const int64_t n = orders[o];

            for (int part = 0; part < 2; part++) {
                struct work whole = make_work(dtypes[t], n, 1), w;
                tsvd_options options = default_options();
                tsvd_info info = TSVD_INFO_INIT;
                tsvd_error error;

                whole.batch = 0;
                whole.first = part ? n / 3 : 0;
                whole.k = n - whole.first;
                options.method = TSVD_METHOD_TWISTED;
                w = copy_of(&whole);
                CHECK(solve(&whole, &options, &info, &error) == TSVD_OK, "%s", error.text);
                for (int parts = 1; parts <= PARTS_MOST && parts <= whole.k; parts++) {
                    CHECK(solve_in_parts(&w, TSVD_METHOD_TWISTED, parts, 1) == info.method,
                          "n = %lld, %d parts", (long long)n, parts);
                    CHECK(same_results(&w, &whole), "n = %lld, %d parts", (long long)n, parts);
                    if (info.method == TSVD_METHOD_TWISTED) {
                        (void)solve_in_parts(&w, TSVD_METHOD_TWISTED, parts, 0);
                        CHECK(same_results(&w, &whole), "n = %lld, %d alone", (long long)n, parts);
                    }
                    (void)solve_in_parts(&w, TSVD_METHOD_AUTO, parts, 1);
                    check_result(&w, 0, 0, 4 * (double)(n + 8) * eps_of(dtypes[t]));
                }
                free_work(&whole);
                free_work(&w);
            }
        }
    }
}

/* Values of the second half alone are too close together: all parts leave them to dc. */
static void
test_refused_by_one(void)
{
    const int64_t n = 64;

    for (int t = 0; t < DTYPES; t++) {
        struct work w = make_work(dtypes[t], n, 1);

        w.batch = 0;
        for (int64_t i = n / 2; i < n; i++) {
            set(dtypes[t], w.d, i, 0x1p-20);
            set(dtypes[t], w.e, i - 1, 0x1p-60);
        }
        CHECK(solve_in_parts(&w, TSVD_METHOD_TWISTED, 2, 1) == TSVD_METHOD_DC, "not by dc");
        check_result(&w, 0, 0, 4 * (double)(n + 8) * eps_of(dtypes[t]));
        free_work(&w);
    }
}

static int
stop(void *arg, double *x, int64_t count)
{
    (void)arg;
    (void)x;
    (void)count;
    return 1;
}

static int
leave(void *arg, double *x, int64_t count)
{
    (void)arg;
    (void)x;
    (void)count;
    return 0;
}

static void
check_refused(const struct work *w, tsvd_part part, tsvd_status expected, const char *text)
{
    tsvd_options options = default_options();
    tsvd_info info = TSVD_INFO_INIT;
    tsvd_error error;

    options.method = TSVD_METHOD_TWISTED;
    options.part = &part;
    CHECK(solve(w, &options, &info, &error) == expected, "%s: %s", text, error.text);
    CHECK(expected != TSVD_ERR_ARGUMENT || strstr(error.text, text) != NULL, "%s", error.text);
}

static void
test_refusals(void)
{
    struct work w = make_work(TSVD_FLOAT64, 20, 3);

    w.first = 5;
    w.k = 10;
    check_refused(&w, (tsvd_part){2, 0, 20, NULL, NULL}, TSVD_ERR_ARGUMENT, "more matrices");
    check_refused(&w, (tsvd_part){3, 0, 20, leave, NULL}, TSVD_ERR_ARGUMENT, "part->sum");
    check_refused(&w, (tsvd_part){5, 0, 20, NULL, NULL}, TSVD_OK, "a share of a batch");
    w.batch = 0;
    w.matrices = 1;
    check_refused(&w, (tsvd_part){1, 6, 14, NULL, NULL}, TSVD_ERR_ARGUMENT, "no part of");
    check_refused(&w, (tsvd_part){1, 0, 14, NULL, NULL}, TSVD_ERR_ARGUMENT, "no part of");
    check_refused(&w, (tsvd_part){1, -1, 20, NULL, NULL}, TSVD_ERR_ARGUMENT, "no part of");
    check_refused(&w, (tsvd_part){1, 0, 21, NULL, NULL}, TSVD_ERR_ARGUMENT, "no part of");
    check_refused(&w, (tsvd_part){1, INT64_MAX, 1, NULL, NULL}, TSVD_ERR_ARGUMENT, "no part of");
    check_refused(&w, (tsvd_part){1, 0, 20, leave, NULL}, TSVD_OK, "only one part");
    w.k = 0;
    check_refused(&w, (tsvd_part){1, 0, 20, leave, NULL}, TSVD_ERR_ARGUMENT, "must have a value");
    check_refused(&w, (tsvd_part){1, 0, 20, NULL, NULL}, TSVD_OK, "no value");
    w.k = 10;
    check_refused(&w, (tsvd_part){1, 0, 20, stop, NULL}, TSVD_ERR_INTERRUPTED, "stopped");
    free_work(&w);
}

int
main(void)
{
    test_bits();
    test_refused_by_one();
    test_refusals();
    return report();
}
