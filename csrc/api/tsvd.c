/*
 * The public entry: checks a problem, and hands it to the code of its precision.
 */
#include "tsvd/tsvd.h"

#include <math.h>
#include <string.h>

#include "bidiag/crossover.h"
#include "host/blas.h"
#include "host/host.h"

int tsvdi_prefers_dc(const tsvd_options *options, int64_t n);
tsvd_status tsvdi_svd_f64(const tsvd_problem *problem, const tsvd_options *options, tsvd_info *info,
                          tsvd_error *error);
tsvd_status tsvdi_svd_f32(const tsvd_problem *problem, const tsvd_options *options, tsvd_info *info,
                          tsvd_error *error);
tsvd_status tsvdi_select_f64(const tsvd_problem *problem, const tsvd_options *options, double low,
                             double high, int64_t *first, int64_t *k, tsvd_error *error);
tsvd_status tsvdi_select_f32(const tsvd_problem *problem, const tsvd_options *options, double low,
                             double high, int64_t *first, int64_t *k, tsvd_error *error);
size_t tsvdi_cpu_dc_bytes_f64(int64_t n, int64_t k);
size_t tsvdi_cpu_dc_bytes_f32(int64_t n, int64_t k);

/* Some arrays of this order squared can be addressed, and their bytes fit in 64 bits. */
#define SQUARE_ORDER_MAX ((int64_t)1 << 28)

const char *
tsvd_strstatus(tsvd_status status)
{
    static const char *const text[TSVD_STATUS_COUNT] = {
        [TSVD_OK] = "success",
        [TSVD_ERR_ARGUMENT] = "an argument is outside its documented range",
        [TSVD_ERR_NONFINITE] = "d and e must not hold NaN or infinity",
        [TSVD_ERR_MEMORY] = "out of memory",
        [TSVD_ERR_NO_CONVERGENCE] = "the bound on sweeps was reached before convergence",
        [TSVD_ERR_INTERRUPTED] = "stopped by the caller",
        [TSVD_ERR_NO_DEVICE] = "the requested device cannot be used",
        [TSVD_ERR_UNSUPPORTED] = "the method is not available on this device",
        [TSVD_ERR_CUDA] = "a CUDA call failed",
        [TSVD_ERR_LIBRARY] = "a library that the work needs was not found",
    };

    return (unsigned)status < TSVD_STATUS_COUNT ? text[status] : "unknown status";
}

const char *
tsvd_method_name(tsvd_method method)
{
    static const char *const name[TSVD_METHOD_COUNT] = {
        [TSVD_METHOD_AUTO] = "auto",     [TSVD_METHOD_DC] = "dc",         [TSVD_METHOD_QR] = "qr",
        [TSVD_METHOD_GIVENS] = "givens", [TSVD_METHOD_BISECT] = "bisect",
    };

    return (unsigned)method < TSVD_METHOD_COUNT ? name[method] : NULL;
}

tsvd_options
tsvd_options_default(void)
{
    return (tsvd_options){
        .method = TSVD_METHOD_AUTO, .device = -1, .eps = -1, .check_finite = 1, .split = 1};
}

int
tsvdi_prefers_dc(const tsvd_options *options, int64_t n)
{
    return options->device >= 0 || n <= DC_LEAF_COLUMNS || tsvdi_blas_ready();
}

int
tsvd_uses_blas(const tsvd_options *options, int64_t n)
{
    return options->device < 0 && n > DC_LEAF_COLUMNS &&
           (options->method == TSVD_METHOD_DC || options->method == TSVD_METHOD_AUTO);
}

/* Sizes whose products do not overflow: the batch and its results must be addressable. */
static int
sizes_fit(const tsvd_problem *p)
{
    int64_t total, most = INT64_MAX / (int64_t)sizeof(double);

    if (p->n < 0 || p->batch_ndim < 0 || p->batch_ndim > TSVD_MAX_BATCH_DIMS) {
        return 0;
    }
    total = p->n == 0 ? 1 : p->n;
    if (p->L && total > most / total) {
        return 0;
    }
    total *= p->L ? total : 1;
    for (int i = 0; i < p->batch_ndim; i++) {
        if (p->batch_shape[i] < 0) {
            return 0;
        }
        if (p->batch_shape[i] == 0) {
            return 1;
        }
        if (total > most / p->batch_shape[i]) {
            return 0;
        }
        total *= p->batch_shape[i];
    }
    return 1;
}

/* The matrices themselves: their dtype, sizes and input. */
static tsvd_status
check_input(const tsvd_problem *p, tsvd_error *error)
{
    int empty = p->n == 0;

    if (p->dtype != TSVD_FLOAT64 && p->dtype != TSVD_FLOAT32) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "unknown dtype %d", (int)p->dtype);
    }
    if (!sizes_fit(p)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "the sizes are negative or too large to address (n = %lld)",
                          (long long)p->n);
    }
    for (int i = 0; i < p->batch_ndim; i++) {
        empty |= p->batch_shape[i] == 0;
    }
    if (!empty && (!p->d || (p->n > 1 && !p->e))) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "d and e must not be NULL");
    }
    return TSVD_OK;
}

/* What is wanted of them, and how. */
static tsvd_status
check_wanted(const tsvd_problem *p, const tsvd_options *o, tsvd_error *error)
{
    int empty = p->k == 0;

    if (p->first < 0 || p->k < 0 || p->first > p->n || p->k > p->n - p->first) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "%lld values from index %lld on are not among the %lld that there are",
                          (long long)p->k, (long long)p->first, (long long)p->n);
    }
    for (int i = 0; i < p->batch_ndim; i++) {
        empty |= p->batch_shape[i] == 0;
    }
    if (!empty && !p->s) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "s must not be NULL");
    }
    if (!empty && (p->L == NULL) != (p->R == NULL)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "L and R are wanted both or neither");
    }
    if (o->method < 0 || o->method >= TSVD_METHOD_COUNT) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "unknown method %d", (int)o->method);
    }
    if (o->method == TSVD_METHOD_BISECT && p->L) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "method \"bisect\" computes values only, no vectors");
    }
    if (p->L && p->k < p->n && (o->method == TSVD_METHOD_QR || o->method == TSVD_METHOD_GIVENS)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "method \"%s\" computes the vectors of all values only; use \"dc\" or "
                          "\"auto\" for those of a part",
                          tsvd_method_name(o->method));
    }
    if (p->L && (o->method == TSVD_METHOD_DC || p->k < p->n) && tsvd_uses_blas(o, p->n) &&
        !tsvdi_blas_ready()) {
        return tsvdi_fail(error, TSVD_ERR_LIBRARY,
                          "method \"dc\" needs a BLAS on the CPU: call tsvd_set_blas()");
    }
    if (o->device >= 0 && !p->L && o->method == TSVD_METHOD_QR) {
        return tsvdi_fail(error, TSVD_ERR_UNSUPPORTED,
                          "method \"qr\" computes no values without vectors on CUDA devices; use "
                          "method=\"bisect\" or device=\"cpu\"");
    }
    if (isnan(o->eps) || isinf(o->eps)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "eps must be finite");
    }
    if (o->max_sweeps < 0 || o->threads < 0 || o->blocks < 0 || o->block_threads < 0) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "max_sweeps, threads, blocks and block_threads must not be negative");
    }
    return TSVD_OK;
}

tsvd_status
tsvd_svd(const tsvd_problem *problem, const tsvd_options *options, tsvd_info *info,
         tsvd_error *error)
{
    const tsvd_options defaults = tsvd_options_default();
    const double clock = tsvdi_host_seconds();
    tsvd_error own_error;
    tsvd_info own_info;
    tsvd_status ret;

    options = options ? options : &defaults;
    info = info ? info : &own_info;
    error = error ? error : &own_error;
    memset(info, 0, sizeof *info);
    memset(error, 0, sizeof *error);
    error->matrix = -1;
    ret = check_input(problem, error);
    if (ret == TSVD_OK) {
        ret = check_wanted(problem, options, error);
    }
    if (ret == TSVD_OK) {
        ret = problem->dtype == TSVD_FLOAT64 ? tsvdi_svd_f64(problem, options, info, error)
                                             : tsvdi_svd_f32(problem, options, info, error);
    }
    if (ret != TSVD_OK && error->text[0] == '\0') {
        (void)tsvdi_fail(error, ret, "%s", tsvd_strstatus(ret));
    }
    info->seconds_total = tsvdi_host_seconds() - clock;
    return ret;
}

tsvd_status
tsvd_select(const tsvd_problem *problem, const tsvd_options *options, double low, double high,
            int64_t *first, int64_t *k, tsvd_error *error)
{
    const tsvd_options defaults = tsvd_options_default();
    tsvd_error own_error;
    tsvd_status ret;

    options = options ? options : &defaults;
    error = error ? error : &own_error;
    memset(error, 0, sizeof *error);
    error->matrix = -1;
    *first = *k = 0;
    ret = check_input(problem, error);
    if (ret != TSVD_OK) {
        return ret;
    }
    if (problem->batch_ndim > 0) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "a batch has no range of indices for an interval: of each matrix other "
                          "values lie in it");
    }
    if (!(low < high)) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT,
                          "the interval (%g, %g] is empty: its lower end must be below the upper",
                          low, high);
    }
    return problem->dtype == TSVD_FLOAT64
               ? tsvdi_select_f64(problem, options, low, high, first, k, error)
               : tsvdi_select_f32(problem, options, low, high, first, k, error);
}

/* a b, or UINT64_MAX where that is too large. */
static uint64_t
multiply(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

void
tsvd_memory(const tsvd_problem *problem, const tsvd_options *options, int vectors,
            uint64_t *results, uint64_t *work)
{
    const int single = problem->dtype == TSVD_FLOAT32;
    const int64_t n = problem->n, k = problem->k;

    *results = multiply(single ? sizeof(float) : sizeof(double), (uint64_t)k);
    *results = multiply(*results, vectors ? 2 * (uint64_t)n + 1 : 1);
    for (int i = 0; i < problem->batch_ndim; i++) {
        *results = multiply(*results, (uint64_t)problem->batch_shape[i]);
    }
    *work = 0;
    if (*results > 0 && vectors && tsvd_uses_blas(options, n)) {
        *work = n > SQUARE_ORDER_MAX ? UINT64_MAX
                : single             ? tsvdi_cpu_dc_bytes_f32(n, k)
                                     : tsvdi_cpu_dc_bytes_f64(n, k);
    }
}
