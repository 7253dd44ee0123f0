/*
 * Calls that fail on purpose, in float64.
 */
#define TSVD_SINGLE 0

#include "fault_tests.h"

int
main(void)
{
    return test_faults();
}
