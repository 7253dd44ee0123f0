/*
 * The entry points.  Each checks its arguments, and hands them to the code of their precision: by
 * tsvdi_precision_of(), the table of backend/precision.h that dense/precision.c fills in.
 */
#include "tsvd/tsvd.h"

#include <string.h>

#include "api/api_call.h"
#include "api/overlap.h"
#include "api/problem.h"
#include "backend/method.h"
#include "host/dtype.h"
#include "host/environment.h"
#include "host/host.h"

const char *
tsvd_version(void)
{
    return TSVD_VERSION;
}

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
        [TSVD_ERR_SINGULAR] = "a matrix is singular and has no inverse",
    };

    return (unsigned)status < TSVD_STATUS_COUNT ? text[status] : "unknown status";
}

const char *
tsvd_method_name(tsvd_method method)
{
    const struct method *row = tsvdi_precision_f64.method_of(method);

    return row != NULL ? row->name : method == TSVD_METHOD_AUTO ? "auto" : NULL;
}

size_t
tsvd_dtype_size(tsvd_dtype dtype)
{
    return dtype < TSVD_FLOAT64 || dtype > TSVD_COMPLEX64 ? 0 : dtype_size(dtype);
}

tsvd_dtype
tsvd_dtype_of_values(tsvd_dtype dtype)
{
    return dtype_is_complex(dtype) ? dtype_of_reals(dtype) : dtype;
}

tsvd_array
tsvd_array_of(const void *data, tsvd_space space, tsvd_dtype dtype, int ndim, const int64_t *shape)
{
    int64_t stride = (int64_t)dtype_size(dtype);
    tsvd_array array;

    memset(&array, 0, sizeof array);
    memcpy(&array.data, &data, sizeof data); /* input is not written */
    array.space = space;
    array.dtype = dtype;
    array.ndim = ndim < 0 || shape == NULL ? 0 : ndim > TSVD_MAX_DIMS ? TSVD_MAX_DIMS : ndim;
    for (int i = array.ndim - 1; i >= 0; i--) {
        array.shape[i] = shape[i];
        array.strides[i] = stride;
        if (__builtin_mul_overflow(stride, shape[i], &stride)) {
            stride = 0; /* an array this large is refused for its size */
        }
    }
    return array;
}

tsvd_status
tsvdi_call_finish(tsvd_status status, tsvd_error *error)
{
    if (status != TSVD_OK && error->text[0] == '\0') {
        (void)tsvdi_fail(error, status, "%s", tsvd_strstatus(status));
    }
    return status;
}

tsvd_status
tsvd_make_plan(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
               const tsvd_options *options, int vectors, tsvd_plan *plan, tsvd_error *error)
{
    struct svd_problem problem;
    struct svd_plan whole;
    const tsvd_options *taken;
    tsvd_options own;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    tsvdi_error_clear(error);
    if (plan == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "plan must not be NULL");
    }
    memset(&whole, 0, sizeof whole);
    TSVD_TRY(tsvdi_begin_plan(plan, error));
    TSVD_TRY(tsvdi_take_options(options, &own, &taken, error));
    TSVD_TRY(tsvdi_problem_input(handle, d, e, taken, 0, &problem, error));
    tsvdi_problem_wants(&problem, vectors);
    TSVD_CALL(handle, error, tsvdi_precision_of(problem.dtype)->plan(&problem, &whole, error));
    tsvdi_end_plan(plan, &whole.reported);
out:
    return tsvdi_call_finish(ret, error);
}

static tsvd_status
plan_and_run(const struct svd_problem *problem, tsvd_info *info, tsvd_error *error)
{
    const struct precision *precision = tsvdi_precision_of(problem->dtype);
    struct svd_plan plan;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(precision->plan(problem, &plan, error));
    TSVD_TRY(precision->svd(&plan, info, error));
out:
    return ret;
}

/* tsvd_svd(), in the default floating-point environment.  outer: the caller's. */
static __attribute__((noinline)) tsvd_status
svd(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e, const tsvd_options *options,
    const tsvd_array *L, const tsvd_array *s, const tsvd_array *R, struct host_environment *outer,
    tsvd_info *info, tsvd_error *error)
{
    const double clock = tsvdi_host_seconds();
    struct svd_problem problem;
    const tsvd_options *taken;
    tsvd_options own;
    tsvd_status ret = TSVD_OK;

    TSVD_TRY(tsvdi_take_options(options, &own, &taken, error));
    TSVD_TRY(tsvdi_problem_input(handle, d, e, taken, 1, &problem, error));
    TSVD_TRY(tsvdi_problem_output(L, s, R, &problem, error));
    TSVD_TRY(tsvdi_check_apart(&problem, error));
    problem.call.outer = outer;
    TSVD_CALL(handle, error, plan_and_run(&problem, info, error));
    info->seconds_total = tsvdi_host_seconds() - clock;
out:
    return tsvdi_call_finish(ret, error);
}

tsvd_status
tsvd_svd(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e, const tsvd_options *options,
         const tsvd_array *L, const tsvd_array *s, const tsvd_array *R, tsvd_info *info,
         tsvd_error *error)
{
    struct host_environment outer;
    tsvd_info own, *filled;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    TSVD_TRY(tsvdi_begin_info(info, &own, &filled, error));
    tsvdi_environment_enter(&outer);
    ret = svd(handle, d, e, options, L, s, R, &outer, filled, error);
    tsvdi_environment_leave(&outer);
    tsvdi_end_info(info, filled);
out:
    return ret;
}

/* tsvd_select(), in the default floating-point environment. */
static __attribute__((noinline)) tsvd_status
select_range(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
             const tsvd_options *options, double low, double high, int64_t *first, int64_t *count,
             tsvd_error *error)
{
    const tsvd_options *taken, *defaults;
    tsvd_options own, own_defaults;
    struct svd_problem problem;
    tsvd_error own_error;
    tsvd_status ret = TSVD_OK;

    error = error != NULL ? error : &own_error;
    tsvdi_error_clear(error);
    if (first == NULL || count == NULL) {
        return tsvdi_fail(error, TSVD_ERR_ARGUMENT, "first and count must not be NULL");
    }
    *first = *count = 0;
    TSVD_TRY(tsvdi_take_options(options, &own, &taken, error));
    TSVD_TRY(tsvdi_take_options(NULL, &own_defaults, &defaults, error));
    own_defaults.check_finite = taken->check_finite;
    TSVD_TRY(tsvdi_problem_input(handle, d, e, defaults, 1, &problem, error));
    TSVD_TRY(tsvdi_check_interval(&problem.batch, low, high, error));
    TSVD_CALL(handle, error,
              tsvdi_precision_of(problem.dtype)->select(&problem, low, high, first, count, error));
out:
    return tsvdi_call_finish(ret, error);
}

tsvd_status
tsvd_select(tsvd_handle *handle, const tsvd_array *d, const tsvd_array *e,
            const tsvd_options *options, double low, double high, int64_t *first, int64_t *count,
            tsvd_error *error)
{
    struct host_environment outer;
    tsvd_status ret;

    tsvdi_environment_enter(&outer);
    ret = select_range(handle, d, e, options, low, high, first, count, error);
    tsvdi_environment_leave(&outer);
    return ret;
}
