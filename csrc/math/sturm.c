/*
 * The matrix prepared for Sturm counts; see sturm.h.
 */
#include "math/sturm.h"

#include <limits.h>

int
tsvdi_sturm_is_plain(int64_t n, const real *d, const real *e)
{
    real_int largest = INT_MIN, smallest = INT_MAX, exponent;

    for (int64_t k = 0; k < 2 * n - 1; k++) {
        real b = sturm_entry(n, d, e, k);

        if (b != 0) {
            (void)r_split(b, &exponent);
            largest = exponent > largest ? exponent : largest;
            smallest = exponent < smallest ? exponent : smallest;
        }
    }
    return 2 * (largest - smallest) + 3 <= STURM_BUDGET;
}

size_t
tsvdi_sturm_bytes(int64_t n)
{
    const size_t entry = sizeof(struct sturm_chunk) + sizeof(real_int) + 5 * sizeof(real);

    return (size_t)n > SIZE_MAX / 2 / entry ? SIZE_MAX : 2 * (size_t)n * entry;
}

void
tsvdi_sturm_prepare(int64_t n, const real *d, const real *e, void *work, struct sturm *matrix)
{
    struct sturm_chunk *chunk = work;
    real_int *twos = (real_int *)(chunk + 2 * n);
    real *extended_square = (real *)(twos + 2 * n), *extended_rest = extended_square + 2 * n;
    real *extended_inverse = extended_rest + 2 * n, *square = extended_inverse + 2 * n;
    real *square_rest = square + 2 * n;
    real largest = 0, bound = 0, before = 0;
    real_int scale, loss = 0, gain = 0;
    int64_t entries = 0, chunks = 0;
    int plain = 1;

    for (int64_t k = 0; k < 2 * n - 1; k++) {
        real b = sturm_entry(n, d, e, k);

        largest = r_max(largest, b);
        bound = r_max(bound, b + before); /* Gershgorin's */
        before = b;
    }
    (void)r_split(largest, &scale);
    for (int64_t k = 0; k < 2 * n - 1; k++) {
        real b = sturm_entry(n, d, e, k);
        real_int below;

        if (b == 0) {
            if (entries > (chunks > 0 ? chunk[chunks - 1].end : 0)) {
                chunk[chunks++] = (struct sturm_chunk){entries, 1};
                loss = gain = 0;
            }
            continue;
        }
        extended_square[entries] =
            sturm_extended_square(b, &extended_rest[entries], &twos[entries]);
        extended_inverse[entries] = 1 / extended_square[entries];
        /* |r| shrinks by b^2/8 at most and grows eightfold at most, sigma and b below 4. */
        below = 2 * scale - twos[entries];
        if (below + 3 > STURM_BUDGET) {
            plain = 0;
        } else {
            square[entries] = extended_square[entries] * r_pow2((int)-below);
            square_rest[entries] = extended_rest[entries] * r_pow2((int)-below);
            loss += below + 3;
            gain += 3;
            if (loss > STURM_BUDGET || gain > STURM_BUDGET) {
                chunk[chunks++] = (struct sturm_chunk){entries, 0};
                loss = below + 3;
                gain = 3;
            }
        }
        entries++;
    }
    if (entries > (chunks > 0 ? chunk[chunks - 1].end : 0)) {
        chunk[chunks++] = (struct sturm_chunk){entries, 1};
    }
    matrix->n = n;
    matrix->entries = entries;
    matrix->chunks = chunks;
    matrix->chunk = chunk;
    matrix->square = square;
    matrix->square_rest = square_rest;
    matrix->extended_square = extended_square;
    matrix->extended_rest = extended_rest;
    matrix->extended_inverse = extended_inverse;
    matrix->extended_twos = twos;
    matrix->scale_down[0] = r_pow2((int)(-scale / 2));
    matrix->scale_down[1] = r_pow2((int)(-(scale - scale / 2)));
    matrix->plain_from =
        plain ? REAL(ldexp(1, (int)scale - STURM_BUDGET)) : r_from_bits(R_INFINITY_BITS);
    matrix->top = sturm_top(bound);
}
