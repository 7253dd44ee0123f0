/*
 * The SVD of a complex matrix from C: what a radio channel between several antennas can carry.
 *
 *     complex [receivers [senders]]      8 and 6
 *
 * Entry (i, j) of the channel H is what antenna i receives of a wave from antenna j: the sum of
 * three paths, each with an amplitude and two directions.  So H has rank 3.  Its singular values
 * are the gains of independent streams, its right vectors say how antennas send a stream, and its
 * left ones how others receive it.
 *
 * On the CPU complex matrices need a BLAS with zgemm: build tsvd with TSVD_BLAS, or call
 * tsvd_set_blas().
 */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tsvd/tsvd.h>

enum { PATHS = 3 };

/* Antennas lie half a wavelength apart; both angles from the line across them. */
static double complex
channel(int64_t i, int64_t j)
{
    static const double amplitude[PATHS] = {1, 0.5, 0.1};
    static const double from[PATHS] = {0.3, -0.8, 1.1}, to[PATHS] = {-0.2, 0.6, 0.9};
    double complex sum = 0;

    for (int path = 0; path < PATHS; path++) {
        const double phase = acos(-1.0) * ((double)i * sin(from[path]) - (double)j * sin(to[path]));

        sum += amplitude[path] * cexp(I * phase);
    }
    return sum;
}

int
main(int argc, char **argv)
{
    const int64_t m = argc > 1 ? atol(argv[1]) : 8, n = argc > 2 ? atol(argv[2]) : 6;
    const int64_t k = m < n ? m : n, shape[] = {m, n}, of_u[] = {m, k}, of_vh[] = {k, n};
    double complex *H = calloc((size_t)(m * n + m * k + k * n), sizeof *H);
    double complex *U = H + m * n, *Vh = U + m * k;
    double *S = calloc((size_t)k, sizeof *S), off = 0, norm = 0;
    tsvd_array u = tsvd_array_of(U, TSVD_HOST, TSVD_COMPLEX128, 2, of_u);
    tsvd_array s = tsvd_array_of(S, TSVD_HOST, TSVD_FLOAT64, 1, &k); /* values are real */
    tsvd_array vh = tsvd_array_of(Vh, TSVD_HOST, TSVD_COMPLEX128, 2, of_vh);
    tsvd_array h = tsvd_array_of(H, TSVD_HOST, TSVD_COMPLEX128, 2, shape);
    tsvd_handle *handle = NULL;
    tsvd_error error;
    int failed = 1;

    if (H == NULL || S == NULL) {
        printf("no memory\n");
        goto out;
    }
    for (int64_t i = 0; i < m * n; i++) {
        H[i] = channel(i / n, i % n);
    }
    if (tsvd_create(NULL, &handle, &error) != TSVD_OK ||
        tsvd_dense_svd(handle, &h, NULL, &u, &s, &vh, NULL, &error) != TSVD_OK) {
        printf("error: %s\n       %s\n", error.text, error.advice);
        goto out;
    }
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double complex rest = H[i * n + j];

            norm = hypot(norm, cabs(rest));
            for (int64_t l = 0; l < k; l++) {
                rest -= U[i * k + l] * S[l] * Vh[l * n + j];
            }
            off = hypot(off, cabs(rest));
        }
    }
    printf("gains:");
    for (int64_t l = 0; l < k; l++) {
        printf(" %.6f", S[l]);
    }
    printf("\nresidual %.1e, at most %.1e\n", off, 10 * (double)(m + n) * DBL_EPSILON * norm);
    failed = !(off <= 10 * (double)(m + n) * DBL_EPSILON * norm);
    for (int64_t l = PATHS; l < k; l++) { /* there are no more streams than paths */
        failed |= !(S[l] <= 10 * (double)(m + n) * DBL_EPSILON * norm);
    }
out:
    tsvd_destroy(handle);
    free(S);
    free(H);
    return failed;
}
