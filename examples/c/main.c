/*
 * The SVD of a bidiagonal matrix from C, and a check of it.
 *
 *     main [n [method]]      n: the order, 300; method: auto, dc, qr, givens
 *
 * The matrix has ones on both diagonals.  B^T B is tridiagonal with known eigenvalues, so the
 * singular values are known too: s_k = 2 cos(k pi / (2 n + 1)), k = 1 .. n.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tsvd/tsvd.h>

/* Prints what went wrong, and what helps. */
static void
complain(const tsvd_error *error)
{
    printf("error: %s\n       %s\n", error->text, error->advice);
}

/* Called by the library with the share of work done; a non-zero answer would stop it. */
static int
show_progress(void *unused, double done)
{
    (void)unused;
    fprintf(stderr, "\r%3.0f %%", 100 * done);
    return 0;
}

/* Frobenius norms of B - L diag(s) R, L^T L - I, R R^T - I, and of the error of s. */
static void
measure(int64_t n, const double *L, const double *s, const double *R, double norm[4])
{
    for (int64_t i = 0; i < n; i++) {
        norm[3] =
            hypot(norm[3], s[i] - 2 * cos((double)(i + 1) * acos(-1.0) / (double)(2 * n + 1)));
        for (int64_t j = 0; j < n; j++) {
            double b = i == j || i + 1 == j, left = i == j, right = i == j;

            for (int64_t k = 0; k < n; k++) {
                b -= L[i * n + k] * s[k] * R[k * n + j];
                left -= L[k * n + i] * L[k * n + j];
                right -= R[i * n + k] * R[j * n + k];
            }
            norm[0] = hypot(norm[0], b);
            norm[1] = hypot(norm[1], left);
            norm[2] = hypot(norm[2], right);
        }
    }
}

int
main(int argc, char **argv)
{
    const int64_t n = argc > 1 ? atol(argv[1]) : 300, off = n - 1;
    tsvd_array d = tsvd_array_of(NULL, TSVD_HOST, TSVD_FLOAT64, 1, &n);
    tsvd_array e = tsvd_array_of(NULL, TSVD_HOST, TSVD_FLOAT64, 1, &off);
    tsvd_options options;
    double *numbers = NULL, *L, *s, *R, norm[4] = {0, 0, 0, 0};
    tsvd_handle *handle = NULL;
    tsvd_prepared *prepared = NULL;
    int failed = 1;
    tsvd_error error;
    tsvd_plan plan = TSVD_PLAN_INIT;

    tsvd_options_init(&options, sizeof options);
    options.check = show_progress;
    options.method = argc > 2 ? TSVD_METHOD_COUNT : TSVD_METHOD_AUTO; /* COUNT is no method */
    for (int m = 0; argc > 2 && m < TSVD_METHOD_COUNT; m++) {
        if (strcmp(argv[2], tsvd_method_name((tsvd_method)m)) == 0) {
            options.method = (tsvd_method)m;
        }
    }

    /* A handle stands for a device, here the CPU.  A prepared call has checked its arguments, which
       need no data for that, and its plan says what it will do and how much memory it takes. */
    if (tsvd_create(NULL, &handle, &error) != TSVD_OK ||
        tsvd_prepare(handle, &d, &e, &options, 1, TSVD_HOST, &plan, &prepared, &error) != TSVD_OK) {
        complain(&error);
        goto out;
    }
    printf("tsvd %s, order %lld, method %s: %.1f MB of results, at most %.1f MB of workspace\n",
           tsvd_version(), (long long)n, tsvd_method_name(plan.method),
           (double)plan.result_bytes / 1e6, (double)plan.host_bytes / 1e6);

    numbers = calloc((size_t)plan.result_bytes + 2 * (size_t)n * sizeof *numbers, 1);
    if (numbers == NULL) {
        printf("no memory\n");
        goto out;
    }
    for (int64_t i = 0; i < 2 * n; i++) {
        numbers[i] = 1;
    }
    s = numbers + 2 * n, L = numbers + 3 * n, R = L + n * n;
    /* It runs again and again, with other numbers; tsvd_svd() does it all at once. */
    if (tsvd_execute(prepared, numbers, numbers + n, L, s, R, NULL, &error) != TSVD_OK) {
        complain(&error);
        goto out;
    }
    measure(n, L, s, R, norm);
    printf("\rlargest values: %.15f %.15f ...\n", s[0], s[n > 1]);
    printf(
        "residual %.1e, orthogonality %.1e and %.1e, error of s %.1e, all at most 10 n u = %.1e\n",
        norm[0], norm[1], norm[2], norm[3], 10 * (double)n * DBL_EPSILON);

    /* A plan also refuses what cannot be done, and says what helps: QR has no vectors of a part. */
    options.method = TSVD_METHOD_QR;
    options.count = 1;
    failed = tsvd_make_plan(handle, &d, &e, &options, 1, &plan, &error) != TSVD_ERR_ARGUMENT;
    complain(&error);
    for (int i = 0; i < 4; i++) {
        failed |= !(norm[i] <= 10 * (double)n * DBL_EPSILON);
    }
out:
    tsvd_prepared_destroy(prepared);
    tsvd_destroy(handle);
    free(numbers);
    return failed;
}
