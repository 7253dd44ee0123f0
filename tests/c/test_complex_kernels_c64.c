/*
 * The kernels for complex64.
 */
#define TSVD_SINGLE 1
#define TSVD_COMPLEX 1

#include "complex_kernel_tests.h"

int
main(void)
{
    test_kernels();
    return report();
}
