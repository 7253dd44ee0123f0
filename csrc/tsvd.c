/*
 * The public entry: checks a problem, and hands it to the code of its precision.
 */
#include "tsvd.h"

#include <math.h>
#include <string.h>

#include "blas.h"
#include "host.h"

tsvd_status tsvdi_svd_f64(const tsvd_problem *problem, const tsvd_options *options, tsvd_info *info,
                          tsvd_error *error);
tsvd_status tsvdi_svd_f32(const tsvd_problem *problem, const tsvd_options *options, tsvd_info *info,
                          tsvd_error *error);

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
    for (int k = 0; k < p->batch_ndim; k++) {
        if (p->batch_shape[k] < 0) {
            return 0;
        }
        if (p->batch_shape[k] == 0) {
            return 1;
        }
        if (total > most / p->batch_shape[k]) {
            return 0;
        }
        total *= p->batch_shape[k];
    }
    return 1;
}

static tsvd_status
check_problem(const tsvd_problem *p, const tsvd_options *o, tsvd_error *error)
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
    for (int k = 0; k < p->batch_ndim; k++) {
        empty |= p->batch_shape[k] == 0;
    }
    if (!empty && (!p->d || !p->s || (p->n > 1 && !p->e))) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "d, e and s must not be NULL");
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
    if (o->method == TSVD_METHOD_DC && p->L && tsvd_uses_blas(o, p->n) && !tsvdi_blas_ready()) {
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
    ret = check_problem(problem, options, error);
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
