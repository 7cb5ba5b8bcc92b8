/* test_card_limits.c - power limit and clock as the driver's library gives them; that library is fake_nvml.c, by
 * LD_LIBRARY_PATH. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/card_limits.h"

static void cards_of_one_name_differ_by_their_limits(void **state)
{
    char text[64] = "x";

    (void)state;
    card_limits("00000000:04:00.0", text, sizeof text);
    assert_string_equal(text, " (700 W, 1980 MHz)");
    card_limits("0000:05:00.0", text, sizeof text);
    assert_string_equal(text, " (450 W, 1980 MHz)");
}

static void what_is_unknown_is_left_out(void **state)
{
    char text[64] = "x";

    (void)state;
    card_limits("0000:06:00.0", text, sizeof text); /* it has no power limit */
    assert_string_equal(text, "");
    card_limits("0000:99:00.0", text, sizeof text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cards_of_one_name_differ_by_their_limits),
                                       cmocka_unit_test(what_is_unknown_is_left_out)};

    return cmocka_run_group_tests_name("kernels/card_limits", tests, NULL, NULL);
}
