/*
 * What every C test uses: a check that counts and goes on, random numbers that are
 * the same on every machine, and Sturm counts in long double.
 */
#ifndef TSVD_TESTS_CHECK_H
#define TSVD_TESTS_CHECK_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if LDBL_MANT_DIG < 64 || LDBL_MAX_EXP < 16384
#error "the tests need a long double of 64 bits and a range of 2^16384"
#endif

#define UNUSED __attribute__((unused))

static int64_t failures;

/* CHECK(truth, format, ...) reports a failure and goes on; only the first 20 are printed. */
#define CHECK(truth, ...)                                                                          \
    do {                                                                                           \
        if (!(truth)) {                                                                            \
            if (failures++ < 20) {                                                                 \
                printf("%s:%d: not %s: ", __FILE__, __LINE__, #truth);                             \
                printf(__VA_ARGS__);                                                               \
                printf("\n");                                                                      \
            }                                                                                      \
        }                                                                                          \
    } while (0)

UNUSED static int
report(void)
{
    if (failures > 0) {
        printf("%lld checks failed\n", (long long)failures);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

/* Memory that a test cannot do without. */
UNUSED static void *
allocate(size_t bytes)
{
    void *p = calloc(bytes > 0 ? bytes : 1, 1);

    if (p == NULL) {
        printf("no memory for the test\n");
        exit(EXIT_FAILURE);
    }
    return p;
}

#ifdef __cplusplus
static thread_local uint64_t random_state = 1;
#else
static _Thread_local uint64_t random_state = 1;
#endif

/* splitmix64 */
static uint64_t
random_bits(void)
{
    uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Uniform in [0, 1). */
static double
random_unit(void)
{
    return (double)(random_bits() >> 11) * 0x1p-53;
}

UNUSED static int
random_int(int low, int high)
{
    return low + (int)(random_bits() % (uint64_t)(high - low + 1));
}

/* Any sign, any mantissa, an exponent from low to high. */
UNUSED static double
random_scaled(int low, int high)
{
    double magnitude = ldexp(1 + random_unit(), random_int(low, high));

    return random_bits() & 1 ? magnitude : -magnitude;
}

/* The number of singular values >= sigma > 0 of diag(d) + diag(e, 1), by the pivots of
   sigma I - T, T the Golub-Kahan form with zero diagonal. */
UNUSED static int64_t
count_above(int64_t n, const long double *d, const long double *e, long double sigma)
{
    long double pivot = sigma;
    int64_t above = 0;

    for (int64_t k = 0; k < 2 * n - 1; k++) {
        long double b = k % 2 == 0 ? d[k / 2] : e[k / 2];

        above += pivot < 0 || (pivot == 0 && b == 0);
        if (b == 0) {
            pivot = sigma;
        } else {
            pivot = sigma - b * b / (pivot == 0 ? LDBL_MIN : pivot);
        }
    }
    return above + (pivot <= 0);
}

#endif
