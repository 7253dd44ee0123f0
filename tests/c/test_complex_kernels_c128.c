/*
 * The kernels for complex128.
 */
#define TSVD_SINGLE 0
#define TSVD_COMPLEX 1

#include "complex_kernel_tests.h"

int
main(void)
{
    test_kernels();
    return report();
}
