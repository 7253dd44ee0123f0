/*
 * The kernels of the CPU back end for complex numbers; see cpu/kernels/kernels.h.
 */
#define TSVD_VECTOR
#include "cpu/kernels/simd.h"

#include "cpu/kernels/entries.h"
#include "cpu/kernels/inverse_lanes.h"
#include "cpu/kernels/svd_lanes.h"
#ifdef SIMD_NATIVE
#include "cpu/kernels/complex_product.h"
#endif

const struct cpu_kernels KERNELS(TSVD_ISA) = {
    .name = NAME(TSVD_ISA),
    .lanes = SIMD_LANES,
    .accumulate = accumulate,
    .outer = outer,
    .dot = dot,
    .dots = dots,
    .orient = orient,
    .mix = mix,
    .svd_lanes = svd_lanes,
    .inverse_lanes = inverse_lanes,
#ifdef SIMD_NATIVE
    .product = product,
#endif
};
