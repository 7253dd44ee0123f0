/*
 * The extra column of matrices whose entries are on the host: the same for every back end.
 */
#include "backend/ops.h"

void
tsvdi_host_drop_extra(int64_t n, double eps, struct chunk *chunk, struct extra_column *extra)
{
    for (int64_t i = 0; i < chunk->count; i++) {
        real *d = chunk->d + i * n, *e = chunk->e + i * n;
        struct rotation *turn = extra->turn + i * n;

        extra->power[i] = 0;
        if (chunk->kind[i] == ORDINARY) {
            extra->power[i] = extra_column_make_square(n, eps, d, e, &chunk->exponent[i], turn);
        } else {
            for (int64_t k = 0; k < n; k++) {
                turn[k] = extra_column_none(chunk->kind[i] == NONFINITE);
            }
        }
    }
}
