/*
 * The kernel for diamonds of the chase in float64.
 */
#define TSVD_SINGLE 0

#include "diamond_tests.h"

int
main(void)
{
    test_diamonds();
    return report();
}
