/* test_card_limits.c - power limit and clock as the driver's library gives them; that library is fake_nvml.c, by
 * LD_LIBRARY_PATH. */

#include "tests/unit_test.h"
#include "kernels/card_limits.h"

TEST(cards_of_one_name_differ_by_their_limits)
{
    char text[64] = "x";

    card_limits("00000000:04:00.0", text, sizeof text);
    assert_string_equal(text, " (700 W, 1980 MHz)");
    card_limits("0000:05:00.0", text, sizeof text);
    assert_string_equal(text, " (450 W, 1980 MHz)");
}

TEST(what_is_unknown_is_left_out)
{
    char text[64] = "x";

    card_limits("0000:06:00.0", text, sizeof text); /* it has no power limit */
    assert_string_equal(text, "");
    card_limits("0000:99:00.0", text, sizeof text);
    assert_string_equal(text, "");
}

TEST_PROGRAM("kernels/card_limits")
