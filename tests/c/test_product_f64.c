/*
 * The kernels' matrix product in float64.
 */
#define TSVD_SINGLE 0

#include "product_tests.h"

int
main(void)
{
    test_products();
    return report();
}
