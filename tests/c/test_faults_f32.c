/*
 * Calls that fail on purpose, in float32.
 */
#define TSVD_SINGLE 1

#include "fault_tests.h"

int
main(void)
{
    return test_faults();
}
