/*
 * Microseconds of a call of tsvd_svd() from C: what Overhead.java is to be compared with.
 *
 *     overhead      lines of: n, whether vectors are wanted, the mean of the best round
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <tsvd/tsvd.h>

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double *
numbers(int64_t count)
{
    double *x = malloc((size_t)count * sizeof *x);

    if (x == NULL) {
        exit(1);
    }
    return x;
}

int
main(void)
{
    const int64_t orders[] = {8, 500};
    tsvd_handle *handle = NULL;
    tsvd_config config;
    tsvd_error error;

    tsvd_config_init(&config, sizeof config);
    config.threads = 1;
    if (tsvd_create(&config, &handle, &error) != TSVD_OK) {
        puts(error.text);
        return 1;
    }
    for (int i = 0; i < 4; i++) {
        const int64_t n = orders[i / 2], off = n - 1, square[] = {n, n};
        const int vectors = i % 2, calls = n == 8 ? 1000 : 1, rounds = n == 8 ? 200 : 50;
        double *x[] = {numbers(n), numbers(n), numbers(n * n), numbers(n), numbers(n * n)};
        tsvd_array d = tsvd_array_of(x[0], TSVD_HOST, TSVD_FLOAT64, 1, &n);
        tsvd_array e = tsvd_array_of(x[1], TSVD_HOST, TSVD_FLOAT64, 1, &off);
        tsvd_array L = tsvd_array_of(x[2], TSVD_HOST, TSVD_FLOAT64, 2, square);
        tsvd_array s = tsvd_array_of(x[3], TSVD_HOST, TSVD_FLOAT64, 1, &n);
        tsvd_array R = tsvd_array_of(x[4], TSVD_HOST, TSVD_FLOAT64, 2, square);
        double best = 1e30;

        for (int64_t j = 0; j < n; j++) {
            x[0][j] = (double)(j * 37 % 101 + 1) / 101;
            x[1][j] = (double)(j * 53 % 97 + 1) / 97;
        }
        for (int round = 0; round < rounds; round++) {
            const double begin = now();

            for (int call = 0; call < calls; call++) {
                if (tsvd_svd(handle, &d, &e, NULL, vectors ? &L : NULL, &s, vectors ? &R : NULL,
                             NULL, &error) != TSVD_OK) {
                    puts(error.text);
                    return 1;
                }
            }
            best = (now() - begin) / calls < best ? (now() - begin) / calls : best;
        }
        printf("%-4s n = %-4d %-8s %10.2f us\n", "C", (int)n, vectors ? "vectors" : "values",
               1e6 * best);
        for (int j = 0; j < 5; j++) {
            free(x[j]);
        }
    }
    tsvd_destroy(handle);
    return 0;
}
