/*
 * The scalar mathematics of csrc/ and cuda/ in float64, against long double.
 */
#define TSVD_SINGLE 0

#include "bracket_tests.h"
#include "dc_tests.h"
#include "givens_tests.h"
#include "qr_tests.h"
#include "reflector_tests.h"
#include "rotation_tests.h"
#include "secular_tests.h"
#include "sturm_tests.h"
#include "turn_tests.h"
#include "twisted_tests.h"

int
main(void)
{
    test_rotation_make();
    test_rotation_unit();
    test_rotation_lift();
    test_turns();
    test_reflector();
    test_reflector_of_a_long_vector();
    test_triangle();
    test_sturm();
    test_sturm_at_values();
    test_brackets();
    test_brackets_at_values();
    test_plain_polynomial();
    test_halves();
    test_open_down();
    test_twofold_floor();
    test_plain_is_exact();
    test_qr();
    test_qr_negligible();
    test_givens();
    test_secular();
    test_secular_middle();
    test_secular_infinite();
    test_secular_ends();
    test_dc_rules();
    test_pairs();
    test_twisted_rules();
    test_twisted_vectors();
    test_probes();
    return report();
}
