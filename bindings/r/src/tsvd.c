/*
 * The calls of the R package, from R's vectors to the C library.  R's matrices lie by columns, and
 * so do those of both sides: nothing is copied.
 *
 * An error of R leaves a function by longjmp().  So everything that R allocates is there before the
 * handle is made, and errors of the library go back as a character vector, which R raises: its
 * class and its words.
 */
#include <string.h>

#define R_NO_REMAP
#include <R.h>
#include <R_ext/Rdynload.h>
#include <Rinternals.h>
#include <tsvd/tsvd.h>

static const char *const classes[] = {
    [TSVD_OK] = "tsvd_error",
    [TSVD_ERR_ARGUMENT] = "tsvd_argument",
    [TSVD_ERR_NONFINITE] = "tsvd_nonfinite",
    [TSVD_ERR_MEMORY] = "tsvd_memory",
    [TSVD_ERR_NO_CONVERGENCE] = "tsvd_no_convergence",
    [TSVD_ERR_INTERRUPTED] = "tsvd_interrupted",
    [TSVD_ERR_NO_DEVICE] = "tsvd_no_device",
    [TSVD_ERR_UNSUPPORTED] = "tsvd_unsupported",
    [TSVD_ERR_CUDA] = "tsvd_cuda",
    [TSVD_ERR_LIBRARY] = "tsvd_library",
    [TSVD_ERR_SINGULAR] = "tsvd_singular",
};

/* The settings of a call, as R/tsvd.R lays them out. */
enum { LOWER, FIRST, COUNT, EPS, THREADS, DEVICE };

/* What a call is made of. */
struct call {
    tsvd_handle *handle;
    tsvd_config config;
    tsvd_options options;
    tsvd_error error;
};

static void
ask_for_interrupts(void *unused)
{
    (void)unused;
    R_CheckUserInterrupt();
}

/* An interrupt may not leave the library by longjmp(): R_ToplevelExec() takes it. */
static int
interrupted(void *unused, double done)
{
    (void)unused, (void)done;
    return !R_ToplevelExec(ask_for_interrupts, NULL);
}

static void
read_settings(struct call *call, const double *settings)
{
    tsvd_config_init(&call->config, sizeof call->config);
    call->config.threads = (int)settings[THREADS];
    call->config.device = (int)settings[DEVICE];
    tsvd_options_init(&call->options, sizeof call->options);
    call->options.lower = settings[LOWER] != 0;
    call->options.first = (int64_t)settings[FIRST] - 1;
    call->options.count = (int64_t)settings[COUNT];
    call->options.eps = settings[EPS];
    call->options.check = interrupted;
}

static void
read_method(struct call *call, const char *name)
{
    call->options.method = TSVD_METHOD_COUNT;
    for (int method = 0; method < TSVD_METHOD_COUNT; method++) {
        if (strcmp(name, tsvd_method_name((tsvd_method)method)) == 0) {
            call->options.method = (tsvd_method)method;
        }
    }
}

/* How many values of n are wanted; the library refuses what is outside. */
static int64_t
wanted(const struct call *call, int64_t n)
{
    const int64_t rest = call->options.first < n ? n - call->options.first : 0;

    return call->options.count < 0 || call->options.count > rest ? rest : call->options.count;
}

static tsvd_array
vector(SEXP x)
{
    const int64_t n = XLENGTH(x);

    return tsvd_array_of(REAL(x), TSVD_HOST, TSVD_FLOAT64, 1, &n);
}

static tsvd_array
matrix(SEXP x)
{
    const int64_t shape[] = {Rf_nrows(x), Rf_ncols(x)};
    const int is_complex = TYPEOF(x) == CPLXSXP;
    tsvd_array array = tsvd_array_of(is_complex ? (void *)COMPLEX(x) : (void *)REAL(x), TSVD_HOST,
                                     is_complex ? TSVD_COMPLEX128 : TSVD_FLOAT64, 2, shape);

    array.strides[0] = (int64_t)tsvd_dtype_size(array.dtype);
    array.strides[1] = shape[0] * array.strides[0];
    return array;
}

/* A list of d, and with vectors of u and vt, as La.svd() has them.  To be protected. */
static SEXP
list_of_results(int type, int64_t rows, int64_t k, int64_t columns, int vectors)
{
    const char *names[] = {"d", vectors ? "u" : "", "vt", ""};
    SEXP list = PROTECT(Rf_mkNamed(VECSXP, names));

    SET_VECTOR_ELT(list, 0, Rf_allocVector(REALSXP, (R_xlen_t)k));
    if (vectors) {
        SET_VECTOR_ELT(list, 1, Rf_allocMatrix((SEXPTYPE)type, (int)rows, (int)k));
        SET_VECTOR_ELT(list, 2, Rf_allocMatrix((SEXPTYPE)type, (int)k, (int)columns));
    }
    UNPROTECT(1);
    return list;
}

/* The results, or what failed, as class and words. */
static SEXP
finish(struct call *call, tsvd_status status, SEXP results)
{
    SEXP failure;
    char text[sizeof call->error.text + sizeof call->error.advice + 2];

    tsvd_destroy(call->handle);
    if (status == TSVD_OK) {
        return results;
    }
    strcpy(text, call->error.text);
    if (call->error.advice[0] != '\0') {
        strcat(strcat(text, "; "), call->error.advice);
    }
    failure = PROTECT(Rf_allocVector(STRSXP, 2));
    SET_STRING_ELT(failure, 0, Rf_mkChar(classes[status]));
    SET_STRING_ELT(failure, 1, Rf_mkChar(text));
    UNPROTECT(1);
    return failure;
}

static SEXP
bidiagonal(SEXP d, SEXP e, SEXP vectors, SEXP method, SEXP settings)
{
    struct call call = {.handle = NULL};
    const int with_vectors = Rf_asLogical(vectors) == TRUE;
    const int64_t n = XLENGTH(d), more = n > 0 && XLENGTH(e) == n;
    const tsvd_array of_d = vector(d), of_e = vector(e);
    tsvd_array of_s, of_u, of_vt;
    tsvd_status status;
    SEXP results;

    read_settings(&call, REAL(settings));
    read_method(&call, CHAR(Rf_asChar(method)));
    results = PROTECT(list_of_results(REALSXP, call.options.lower ? n + more : n, wanted(&call, n),
                                      call.options.lower ? n : n + more, with_vectors));
    of_s = vector(VECTOR_ELT(results, 0));
    if (with_vectors) {
        of_u = matrix(VECTOR_ELT(results, 1));
        of_vt = matrix(VECTOR_ELT(results, 2));
    }
    status = tsvd_create(&call.config, &call.handle, &call.error);
    if (status == TSVD_OK) {
        status = tsvd_svd(call.handle, &of_d, &of_e, &call.options, with_vectors ? &of_u : NULL,
                          &of_s, with_vectors ? &of_vt : NULL, NULL, &call.error);
    }
    results = finish(&call, status, results);
    UNPROTECT(1);
    return results;
}

static SEXP
dense(SEXP x, SEXP vectors, SEXP method, SEXP settings)
{
    struct call call = {.handle = NULL};
    const int with_vectors = Rf_asLogical(vectors) == TRUE;
    const int64_t m = Rf_nrows(x), n = Rf_ncols(x);
    const tsvd_array of_x = matrix(x);
    tsvd_array of_s, of_u, of_vt;
    tsvd_status status;
    SEXP results;

    read_settings(&call, REAL(settings));
    read_method(&call, CHAR(Rf_asChar(method)));
    results = PROTECT(list_of_results(TYPEOF(x), m, wanted(&call, m < n ? m : n), n, with_vectors));
    of_s = vector(VECTOR_ELT(results, 0));
    if (with_vectors) {
        of_u = matrix(VECTOR_ELT(results, 1));
        of_vt = matrix(VECTOR_ELT(results, 2));
    }
    status = tsvd_create(&call.config, &call.handle, &call.error);
    if (status == TSVD_OK) {
        status = tsvd_dense_svd(call.handle, &of_x, &call.options, with_vectors ? &of_u : NULL,
                                &of_s, with_vectors ? &of_vt : NULL, NULL, &call.error);
    }
    results = finish(&call, status, results);
    UNPROTECT(1);
    return results;
}

static SEXP
inverse(SEXP x, SEXP refine, SEXP settings)
{
    struct call call = {.handle = NULL};
    SEXP result = PROTECT(Rf_allocMatrix(TYPEOF(x), Rf_nrows(x), Rf_ncols(x)));
    const tsvd_array of_x = matrix(x), of_result = matrix(result);
    tsvd_status status;

    read_settings(&call, REAL(settings));
    status = tsvd_create(&call.config, &call.handle, &call.error);
    if (status == TSVD_OK) {
        status = tsvd_dense_inverse(call.handle, &of_x, &call.options, Rf_asLogical(refine) == TRUE,
                                    &of_result, NULL, &call.error);
    }
    result = finish(&call, status, result);
    UNPROTECT(1);
    return result;
}

void R_init_tsvd(DllInfo *library);

void
R_init_tsvd(DllInfo *library)
{
    static const R_CallMethodDef calls[] = {
        {"bidiagonal", (DL_FUNC)bidiagonal, 5},
        {"dense", (DL_FUNC)dense, 4},
        {"inverse", (DL_FUNC)inverse, 3},
        {NULL, NULL, 0},
    };

    R_registerRoutines(library, NULL, calls, NULL, NULL);
    R_useDynamicSymbols(library, FALSE);
}
