/*
 * The kernel for products with CPU_BAND vectors in float64.
 */
#define TSVD_SINGLE 0

#include "skinny_tests.h"

int
main(void)
{
    test_skinny();
    return report();
}
