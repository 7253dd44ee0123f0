/*
 * The table of methods.
 */
#include "bidiag/methods.h"

static const struct svd_method methods[TSVD_METHOD_JACOBI] = {
    [TSVD_METHOD_DC] = {.name = "dc",
                        .with_vectors = 1,
                        .part_vectors = 1,
                        .batches = 1,
                        .needs = NEEDS_DC | NEEDS_VECTORS,
                        .run = tsvdi_dc,
                        .bytes = tsvdi_dc_bytes},
    [TSVD_METHOD_QR] = {.name = "qr",
                        .with_vectors = 1,
                        .without_vectors = 1,
                        .host_entries = 1,
                        .needs = NEEDS_VALUES,
                        .needs_for_vectors = NEEDS_VECTORS,
                        .run = tsvdi_qr,
                        .bytes = tsvdi_qr_bytes},
    [TSVD_METHOD_GIVENS] = {.name = "givens",
                            .with_vectors = 1,
                            .without_vectors = 1,
                            .host_entries = 1,
                            .needs = NEEDS_GIVENS | NEEDS_VALUES,
                            .needs_for_vectors = NEEDS_VECTORS,
                            .run = tsvdi_givens,
                            .bytes = tsvdi_givens_bytes},
    [TSVD_METHOD_BISECT] = {.name = "bisect",
                            .without_vectors = 1,
                            .batches = 1,
                            .needs = NEEDS_VALUES,
                            .run = tsvdi_bisect,
                            .bytes = tsvdi_bisect_bytes},
    [TSVD_METHOD_TWISTED] = {.name = "twisted",
                             .with_vectors = 1,
                             .part_vectors = 1,
                             .needs = NEEDS_DC | NEEDS_VECTORS,
                             .run = tsvdi_twisted,
                             .bytes = tsvdi_twisted_bytes},
};

const struct svd_method *
tsvdi_method_of(tsvd_method method)
{
    return method > TSVD_METHOD_AUTO && method < TSVD_METHOD_JACOBI ? &methods[method] : NULL;
}
