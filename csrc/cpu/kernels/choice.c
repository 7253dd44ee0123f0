/*
 * The choice of kernels.
 */
#include "cpu/kernels/kernels.h"
#include "host/host.h"

const struct cpu_kernels *
tsvdi_kernels(void)
{
#if TSVD_X86_KERNELS
    switch (tsvdi_host_isa()) {
    case HOST_AVX512:
        return &tsvdi_kernels_avx512;
    case HOST_AVX2:
        return &tsvdi_kernels_avx2;
    case HOST_GENERIC:
        break;
    }
#endif
    return &tsvdi_kernels_generic;
}
