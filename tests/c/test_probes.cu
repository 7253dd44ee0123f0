/*
 * Probes on a CUDA device, in one precision: twisted factorisations make the vectors of a matrix,
 * one is spoilt by ten times what is allowed, in the device's memory, and the probes find it each
 * time.  Divide and conquer takes the matrix, also if copies of results to the host are in flight.
 * On the CPU fault_tests.h does the same.
 *
 * The linker replaces the table tsvdi_cuda_twisted by one of our own (--wrap in CMakeLists.txt).
 * Leaves with SKIPPED where there is no GPU, after a check that it is replaced.
 */
#include "problem.h"
#include "twisted/twisted_run.h"

enum { SKIPPED = 77, TIMES = 1000, THREADS = 256 };

static const tsvd_dtype dtype = TSVD_SINGLE ? TSVD_FLOAT32 : TSVD_FLOAT64;

/* ---- the defect ---- */

extern "C" {
#define real_table TSVD_T(__real_tsvdi_cuda_twisted)
#define wrap_table TSVD_T(__wrap_tsvdi_cuda_twisted)
extern const struct twisted_ops real_table; /* the library's own */
extern struct twisted_ops wrap_table;       /* ours */
struct twisted_ops wrap_table;
}

enum kind { OVERLAP_RIGHT, OVERLAP_LEFT, SIGN, KINDS, NONE };

/* What happens to vector `at` before the probes look at it. */
static struct defect {
    enum kind kind;
    int64_t at, other;
    real overlap; /* the multiple of vector `other` that is added */
} defect = {NONE, 0, 0, 0};

static __global__ void
__launch_bounds__(THREADS) spoil_kernel(struct twisted_device run, struct defect made)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < run.n && made.kind == OVERLAP_LEFT) {
        real *row = run.columns + i * run.k;

        row[made.at] += made.overlap * row[made.other];
    } else if (i < run.n) {
        real *entry = run.rows + made.at * run.n + i;
        const real other = run.rows[made.other * run.n + i];

        *entry = made.kind == SIGN ? -*entry : *entry + made.overlap * other;
    }
}

static tsvd_status
spoilt_probe(struct tsvd_context *ctx, struct twisted_job *job)
{
    /* the first member of what job->state points to, see twisted/twisted.cu */
    const struct twisted_device *run = (const struct twisted_device *)job->state;
    struct cuda_call *call = cuda_of(ctx);
    tsvd_status ret = TSVD_OK;

    if (defect.kind != NONE) {
        spoil_kernel<<<blocks_for(run->n, THREADS), THREADS, 0, call->stream>>>(*run, defect);
        CUDA_LAUNCHED(call);
    }
    TSVD_TRY(real_table.probe(ctx, job));
out:
    return ret;
}

/* A defect of some vector; of its sign only if its value is not tiny. */
static void
plant(const struct work *w, int time)
{
    int64_t at = random_int(0, (int)w->n - 1);

    defect.kind = (enum kind)(time % KINDS);
    while (defect.kind == SIGN && get(dtype, w->s, at) < get(dtype, w->s, 0) / 16) {
        at /= 2;
    }
    defect.at = at;
    defect.other = (at + 1) % w->n;
    defect.overlap = REAL(10 * 3 * eps_of(dtype) * (double)(w->n + 8));
}

/* ---- calls ---- */

/* Entries as in the bidiagonal form of a Gaussian matrix: values that stand apart. */
static struct work
separated(int64_t n)
{
    struct work w = make_work(dtype, n, 1);

    for (int64_t i = 0; i < n; i++) {
        set(dtype, w.d, i, sqrt((double)(n - i)) * (1 + random_unit() / 8));
        if (i + 1 < n) {
            set(dtype, w.e, i, sqrt((double)(n - 1 - i)) * (1 + random_unit() / 8));
        }
    }
    return w;
}

/* Each defect is found.  lower: L and R change places. */
static void
check_order(tsvd_handle *handle, int64_t n, int lower)
{
    struct work w = separated(n);
    tsvd_options options = default_options();
    const double tolerance = 2 * (double)(n + 8) * eps_of(dtype) * (double)n;
    int64_t found = 0;
    tsvd_info info = TSVD_INFO_INIT;
    tsvd_error error;

    options.method = TSVD_METHOD_TWISTED;
    options.lower = lower;
    defect.kind = NONE;
    CHECK(solve_on(handle, &w, &options, &info, &error) == TSVD_OK && info.refused == 0 &&
              info.method == TSVD_METHOD_TWISTED,
          "n = %lld: %lld refused without a defect", (long long)n, (long long)info.refused);
    for (int time = 0; time < TIMES; time++) {
        plant(&w, time);
        CHECK(solve_on(handle, &w, &options, &info, &error) == TSVD_OK, "%s", error.text);
        found += info.refused > 0 && info.method == TSVD_METHOD_DC;
    }
    CHECK(found == TIMES, "n = %lld, lower = %d: %lld of %d are found", (long long)n, lower,
          (long long)found, (int)TIMES);
    if (n <= 300) { /* more would take too long */
        check_result(&w, 0, lower, tolerance);
    }
    options.fallback = 0;
    CHECK(solve_on(handle, &w, &options, &info, &error) == TSVD_ERR_NO_CONVERGENCE,
          "n = %lld: refused, and no error", (long long)n);
    defect.kind = NONE;
    CHECK(solve_on(handle, &w, &options, &info, &error) == TSVD_OK && info.refused == 0,
          "n = %lld: after defects", (long long)n);
    free_work(&w);
}

int
main(void)
{
    /* around the limits of the kernel for small matrices, and one whose chains are in pieces */
    const int64_t orders[] = {20, PROBE_SMALL_ORDER, PROBE_SMALL_ORDER + 1, 300,
                              VALUES_SMALL_ORDER + 76};
    tsvd_config config = default_config();
    tsvd_handle *handle = NULL;
    tsvd_error error;
    int count;

    wrap_table = real_table;
    wrap_table.probe = spoilt_probe;
    CHECK(tsvdi_cuda()->twisted == &wrap_table, "the table is not ours");
    if (tsvd_cuda_device_count(&count, &error) != TSVD_OK) {
        printf("skipped: %s\n", error.text);
        return failures > 0 ? report() : (int)SKIPPED;
    }
    config.device = 0;
    CHECK(tsvd_create(&config, &handle, &error) == TSVD_OK, "%s", error.text);
    for (size_t i = 0; handle != NULL && i < sizeof orders / sizeof *orders; i++) {
        check_order(handle, orders[i], (int)i % 2);
    }
    tsvd_destroy(handle);
    return report();
}
