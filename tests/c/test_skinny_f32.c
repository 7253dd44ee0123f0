/*
 * The kernel for products with CPU_BAND vectors in float32.
 */
#define TSVD_SINGLE 1

#include "skinny_tests.h"

int
main(void)
{
    test_skinny();
    return report();
}
