/*
 * A program of version 0.1: it is compiled with the headers beside it, and runs with the library of
 * today.  It calls each function, and uses each structure.  The library may have no BLAS: the
 * program brings one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tsvd/tsvd.h>

static int failures;

static void
check(int good, const char *what, int line)
{
    if (!good) {
        printf("line %d: not %s\n", line, what);
        failures++;
    }
}
#define CHECK(truth) check((truth), #truth, __LINE__)

static const double tiny = 1e-13;

/* ---- what the program lends ---- */

static int asked, taken;

static int
ask(void *arg, double done)
{
    asked += arg == &asked && done >= 0 && done <= 1;
    return 0;
}

static void *
take(void *arg, size_t bytes, void *stream)
{
    taken++;
    return arg == &taken && stream == NULL ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
}

static void
give(void *arg, void *p, void *stream)
{
    (void)arg, (void)stream;
    free(p);
}

/* C = alpha A B + beta C, as Fortran has it. */
static void
dgemm(const char *transa, const char *transb, const int32_t *m, const int32_t *n, const int32_t *k,
      const double *alpha, const double *a, const int32_t *lda, const double *b, const int32_t *ldb,
      const double *beta, double *c, const int32_t *ldc)
{
    for (int64_t j = 0; j < *n; j++) {
        for (int64_t i = 0; i < *m; i++) {
            double sum = 0;

            for (int64_t l = 0; l < *k; l++) {
                sum += (*transa == 'N' ? a[i + l * *lda] : a[l + i * *lda]) *
                       (*transb == 'N' ? b[l + j * *ldb] : b[j + l * *ldb]);
            }
            c[i + j * *ldc] = *alpha * sum + (*beta != 0 ? *beta * c[i + j * *ldc] : 0);
        }
    }
}

/* Not called: no array of this program is of float32. */
static void
sgemm(const char *transa, const char *transb, const int32_t *m, const int32_t *n, const int32_t *k,
      const float *alpha, const float *a, const int32_t *lda, const float *b, const int32_t *ldb,
      const float *beta, float *c, const int32_t *ldc)
{
    (void)transa, (void)transb, (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)lda;
    (void)b, (void)ldb, (void)beta, (void)c, (void)ldc;
    abort();
}

/* ---- the machine ---- */

static void
test_machine(void)
{
    int runtime = -1, driver = -1, count = -1, device = -1;
    int64_t one = 1;
    tsvd_cuda_device facts;
    tsvd_cuda_crossover crossover = tsvd_cuda_crossover_of(NULL, TSVD_FLOAT64, 1);
    char file[4096] = "";
    tsvd_error error;

    memset(&facts, 0, sizeof facts);
    CHECK(strlen(tsvd_version()) >= 5 && strlen(tsvd_cpu_kernels()) > 3);
    CHECK(strcmp(tsvd_strstatus(TSVD_OK), "success") == 0);
    CHECK(strcmp(tsvd_method_name(TSVD_METHOD_JACOBI), "jacobi") == 0);
    CHECK(tsvd_dtype_size(TSVD_COMPLEX128) == 16);
    CHECK(tsvd_dtype_of_values(TSVD_COMPLEX64) == TSVD_FLOAT32);
    CHECK(tsvd_host_threads() >= 1);
    (void)tsvd_host_memory_available();
    (void)tsvd_has_blas();
    tsvd_cuda_versions(&runtime, &driver);
    CHECK(runtime >= 0 && driver >= 0 && tsvd_cuda_architectures() != NULL);
    CHECK(tsvd_cuda_load("/nonexistent", &error) != TSVD_OK || tsvd_cuda_compiled());
    CHECK(tsvd_cuda_device_count(&count, &error) == TSVD_OK || error.text[0] != '\0');
    CHECK(tsvd_cuda_device_usable(1000, &error) != TSVD_OK);
    CHECK(tsvd_cuda_device_facts(1000, &facts, &error) != TSVD_OK);
    CHECK(tsvd_cuda_device_of(&one, &device, &error) != TSVD_OK);
    CHECK(tsvd_cuda_blas(NULL, 1, file, sizeof file, &error) != TSVD_OK);
    CHECK(crossover.order > 0 && crossover.batch_values > 0);
    CHECK(!tsvd_cuda_pays(NULL, TSVD_FLOAT64, TSVD_METHOD_AUTO, 2, 1, 1));
    CHECK(!tsvd_cuda_pays_dense(NULL, TSVD_FLOAT64, TSVD_METHOD_AUTO, 2, 2, 1, 1));
}

/* What a handle of the CPU has not, and what is NULL. */
static void
test_without_a_device(tsvd_handle *handle)
{
    tsvd_memory *memory = NULL;
    tsvd_error error;

    CHECK(tsvd_handle_device(handle) == TSVD_DEVICE_CPU && tsvd_handle_stream(handle) == NULL);
    CHECK(tsvd_set_stream(handle, NULL, &error) == TSVD_ERR_ARGUMENT);
    CHECK(tsvd_wait_for(handle, NULL, &error) == TSVD_ERR_ARGUMENT);
    CHECK(tsvd_synchronize(handle, &error) == TSVD_ERR_ARGUMENT && error.matrix == -1);
    CHECK(tsvd_memory_take(handle, 8, &memory, &error) == TSVD_ERR_ARGUMENT && memory == NULL);
    CHECK(tsvd_memory_data(NULL) == NULL && tsvd_memory_stream(NULL) == NULL);
    CHECK(tsvd_memory_wait(NULL, NULL, &error) != TSVD_OK);
    tsvd_memory_release(NULL);
}

/* ---- matrices ---- */

/* B = L diag(s) R, for an upper bidiagonal one of order 3. */
static void
check_bidiagonal(const double *d, const double *e, const double *L, const double *s,
                 const double *R)
{
    for (int i = 0; i < 9; i++) {
        double b = i % 4 == 0 ? d[i / 4] : i % 4 == 1 && i < 6 ? e[i / 4] : 0;

        for (int k = 0; k < 3; k++) {
            b -= L[i / 3 * 3 + k] * s[k] * R[3 * k + i % 3];
        }
        CHECK(fabs(b) < tiny);
    }
}

static void
test_bidiagonal(tsvd_handle *handle)
{
    const int64_t n = 3, off = 2, square[] = {3, 3};
    double d[] = {1, 2, 3}, e[] = {1, 1}, s[3], L[9], R[9];
    const tsvd_array D = tsvd_array_of(d, TSVD_HOST, TSVD_FLOAT64, 1, &n);
    const tsvd_array E = tsvd_array_of(e, TSVD_HOST, TSVD_FLOAT64, 1, &off);
    const tsvd_array S = tsvd_array_of(s, TSVD_HOST, TSVD_FLOAT64, 1, &n);
    const tsvd_array l = tsvd_array_of(L, TSVD_HOST, TSVD_FLOAT64, 2, square);
    const tsvd_array r = tsvd_array_of(R, TSVD_HOST, TSVD_FLOAT64, 2, square);
    tsvd_prepared *prepared = NULL;
    tsvd_plan plan = TSVD_PLAN_INIT, again = TSVD_PLAN_INIT;
    tsvd_info info = TSVD_INFO_INIT;
    tsvd_options options;
    tsvd_error error;
    int64_t first = -1, count = -1;

    tsvd_options_init(&options, sizeof options);
    CHECK(options.size == sizeof options && options.count == -1 && options.eps == -1);
    CHECK(options.check_finite == 1 && options.givens_split == 1 && options.fallback == 1);
    options.check = ask;
    options.check_arg = &asked;
    options.method = TSVD_METHOD_QR;
    CHECK(tsvd_make_plan(handle, &D, &E, &options, 1, &plan, &error) == TSVD_OK);
    CHECK(plan.size == sizeof plan && plan.method == TSVD_METHOD_QR && plan.n == 3);
    CHECK(plan.count == 3 && plan.matrices == 1 && plan.result_bytes == 21 * sizeof(double));
    CHECK(tsvd_svd(handle, &D, &E, &options, &l, &S, &r, &info, &error) == TSVD_OK);
    CHECK(info.size == sizeof info && info.method == TSVD_METHOD_QR && info.sweeps > 0);
    CHECK(info.seconds_total > 0 && asked > 0);
    check_bidiagonal(d, e, L, s, R);
    CHECK(tsvd_select(handle, &D, &E, NULL, s[1], INFINITY, &first, &count, &error) == TSVD_OK);
    CHECK(first == 0 && count == 1);

    d[0] = 5;
    CHECK(tsvd_prepare(handle, &D, &E, &options, 1, TSVD_HOST, &again, &prepared, &error) ==
          TSVD_OK);
    CHECK(again.host_bytes == plan.host_bytes);
    asked = 0;
    tsvd_prepared_set_check(prepared, NULL, NULL);
    CHECK(tsvd_execute(prepared, d, e, L, s, R, &info, &error) == TSVD_OK && asked == 0);
    check_bidiagonal(d, e, L, s, R);
    tsvd_prepared_destroy(prepared);

    d[1] = NAN;
    memset(&error, 0xff, sizeof error);
    CHECK(tsvd_svd(handle, &D, &E, NULL, NULL, &S, NULL, NULL, &error) == TSVD_ERR_NONFINITE);
    CHECK(error.status == TSVD_ERR_NONFINITE && error.matrix == 0 && error.sweeps == 0);
    CHECK(error.device == TSVD_DEVICE_CPU && error.wanted == 0 && error.available == 0);
    CHECK(error.text[0] != '\0' && error.advice[0] == '\0' && error.reserved[7] == 0);
}

/* A = U diag(S) Vh of order 2. */
static void
check_dense(const double *a, const double *U, const double *S, const double *Vh)
{
    for (int i = 0; i < 4; i++) {
        const int r = i / 2 * 2, c = i % 2;

        CHECK(fabs(a[i] - U[r] * S[0] * Vh[c] - U[r + 1] * S[1] * Vh[2 + c]) < tiny);
    }
}

static void
test_dense(tsvd_handle *handle)
{
    const int64_t n = 2, off = 1, square[] = {2, 2};
    const double a[] = {1, 2, 3, 4};
    double u[4], s[2], v[4], d[2], e[1], x[] = {1, 0, 0, 1};
    const tsvd_array A = tsvd_array_of(a, TSVD_HOST, TSVD_FLOAT64, 2, square);
    const tsvd_array U = tsvd_array_of(u, TSVD_HOST, TSVD_FLOAT64, 2, square);
    const tsvd_array S = tsvd_array_of(s, TSVD_HOST, TSVD_FLOAT64, 1, &n);
    const tsvd_array Vh = tsvd_array_of(v, TSVD_HOST, TSVD_FLOAT64, 2, square);
    const tsvd_array D = tsvd_array_of(d, TSVD_HOST, TSVD_FLOAT64, 1, &n);
    const tsvd_array E = tsvd_array_of(e, TSVD_HOST, TSVD_FLOAT64, 1, &off);
    const tsvd_array X = tsvd_array_of(x, TSVD_HOST, TSVD_FLOAT64, 2, square);
    tsvd_reduction *reduction = NULL, *restored = NULL;
    tsvd_prepared *prepared = NULL;
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_info info = TSVD_INFO_INIT;
    tsvd_error error;
    int64_t first = -1, count = -1;
    void *state;

    CHECK(tsvd_arrays_overlap(&A, &A) && !tsvd_arrays_overlap(&A, &X));
    CHECK(tsvd_dense_plan(handle, &A, NULL, 1, &plan, &error) == TSVD_OK && plan.n == 2);
    CHECK(tsvd_dense_svd(handle, &A, NULL, &U, &S, &Vh, &info, &error) == TSVD_OK);
    CHECK(info.seconds_total > 0);
    check_dense(a, u, s, v);
    CHECK(tsvd_dense_prepare(handle, &A, NULL, 1, TSVD_HOST, NULL, &prepared, &error) == TSVD_OK);
    CHECK(tsvd_dense_execute(prepared, a, u, s, v, NULL, &error) == TSVD_OK);
    check_dense(a, u, s, v);
    tsvd_prepared_destroy(prepared);

    CHECK(tsvd_dense_reduce(handle, &A, NULL, &reduction, &error) == TSVD_OK);
    CHECK(tsvd_reduction_entries(reduction, &D, &E, &error) == TSVD_OK);
    CHECK(fabs(fabs(d[0] * d[1]) - 2) < tiny); /* the determinant */
    CHECK(tsvd_reduction_select(reduction, 0, 1, &first, &count, &error) == TSVD_OK);
    CHECK(first == 1 && count == 1);
    CHECK(tsvd_reduction_apply(reduction, TSVD_LEFT, 0, &X, NULL, &error) == TSVD_OK);
    CHECK(fabs(hypot(x[0], x[2]) - 1) < tiny);
    CHECK(tsvd_reduction_apply(reduction, TSVD_RIGHT, 1, &X, NULL, &error) == TSVD_OK);
    state = malloc(tsvd_reduction_state_bytes(reduction));
    CHECK(tsvd_reduction_save(reduction, state, &error) == TSVD_OK);
    CHECK(tsvd_reduction_restore(handle, &A, state, tsvd_reduction_state_bytes(reduction),
                                 &restored, &error) == TSVD_OK);
    CHECK(tsvd_reduction_svd(restored, NULL, &U, &S, &Vh, &info, &error) == TSVD_OK);
    check_dense(a, u, s, v);
    free(state);
    tsvd_reduction_destroy(restored);
    tsvd_reduction_destroy(reduction);
}

static void
test_inverse(tsvd_handle *handle)
{
    const int64_t square[] = {2, 2};
    const double a[] = {2, 0, 0, 4};
    double x[4];
    const tsvd_array A = tsvd_array_of(a, TSVD_HOST, TSVD_FLOAT64, 2, square);
    const tsvd_array X = tsvd_array_of(x, TSVD_HOST, TSVD_FLOAT64, 2, square);
    tsvd_prepared *prepared = NULL;
    tsvd_plan plan = TSVD_PLAN_INIT;
    tsvd_inverse_info info = TSVD_INVERSE_INFO_INIT;
    tsvd_error error;

    CHECK(tsvd_inverse_plan(handle, &A, NULL, 0, &plan, &error) == TSVD_OK && plan.matrices == 1);
    CHECK(tsvd_dense_inverse(handle, &A, NULL, 1, &X, &info, &error) == TSVD_OK);
    CHECK(x[0] == .5 && x[1] == 0 && x[2] == 0 && x[3] == .25);
    CHECK(info.size == sizeof info && fabs(info.rcond - .5) < 1e-5 && info.matrix == 0);
    CHECK(info.seconds_total > 0);
    memset(x, 0, sizeof x);
    CHECK(tsvd_inverse_prepare(handle, &A, NULL, 0, TSVD_HOST, NULL, &prepared, &error) == TSVD_OK);
    CHECK(tsvd_inverse_execute(prepared, a, x, &info, &error) == TSVD_OK && x[3] == .25);
    tsvd_prepared_destroy(prepared);
}

int
main(void)
{
    const tsvd_allocator allocator = {take, give, &taken};
    tsvd_blas blas = TSVD_BLAS_INIT;
    tsvd_handle *handle = NULL;
    tsvd_config config;
    tsvd_error error;

    blas.dgemm32 = dgemm;
    blas.sgemm32 = sgemm;
    tsvd_config_init(&config, sizeof config);
    CHECK(config.size == sizeof config && config.device == TSVD_DEVICE_CPU);
    config.threads = 1;
    config.blas = &blas;
    config.host_allocator = &allocator;
    if (tsvd_create(&config, &handle, &error) != TSVD_OK) {
        printf("no handle: %s\n", error.text);
        return 1;
    }
    CHECK(taken > 0);
    CHECK(tsvd_set_threads(handle, 2, &error) == TSVD_OK);
    CHECK(tsvd_set_blas(handle, &blas, &error) == TSVD_OK);
    test_machine();
    test_without_a_device(handle);
    test_bidiagonal(handle);
    test_dense(handle);
    test_inverse(handle);
    CHECK(tsvd_trim(handle, &error) == TSVD_OK);
    tsvd_destroy(handle);
    return failures > 0;
}
