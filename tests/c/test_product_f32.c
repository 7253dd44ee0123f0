/*
 * The kernels' matrix product in float32.
 */
#define TSVD_SINGLE 1

#include "product_tests.h"

int
main(void)
{
    test_products();
    return report();
}
