/*
 * The kernel for diamonds of the chase in float32.
 */
#define TSVD_SINGLE 1

#include "diamond_tests.h"

int
main(void)
{
    test_diamonds();
    return report();
}
