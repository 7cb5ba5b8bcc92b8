/* test_base64.c - bytes as text and back, by the vectors of RFC 4648 and every length up to some hundred. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text/base64.h"

static void the_vectors_of_the_standard(void **state)
{
    static const char *const vectors[][2] = {{"", ""},
                                             {"f", "Zg=="},
                                             {"fo", "Zm8="},
                                             {"foo", "Zm9v"},
                                             {"foob", "Zm9vYg=="},
                                             {"fooba", "Zm9vYmE="},
                                             {"foobar", "Zm9vYmFy"},
                                             {"\xfb\xff", "+/8="}};
    char text[16], bytes[16];
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        base64_encode(vectors[i][0], strlen(vectors[i][0]), text);
        assert_string_equal(text, vectors[i][1]);
        assert_true(base64_decode(text, bytes, sizeof bytes, &n));
        assert_int_equal(n, strlen(vectors[i][0]));
        assert_memory_equal(bytes, vectors[i][0], n);
    }
}

static void every_byte_at_every_place(void **state)
{
    uint8_t bytes[300], back[300];
    char text[BASE64_TEXT_BYTES(300)];
    size_t got;

    (void)state;
    for (size_t n = 0; n <= sizeof bytes; n++) {
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(i * 37 + n);
        base64_encode(bytes, n, text);
        assert_int_equal(strlen(text) + 1, BASE64_TEXT_BYTES(n));
        assert_true(base64_decode(text, back, sizeof back, &got));
        assert_int_equal(got, n);
        assert_memory_equal(back, bytes, n);
        if (n > 0)
            assert_false(base64_decode(text, back, n - 1, &got)); /* one byte more than there is room for */
    }
}

static void what_no_encoder_makes_is_refused(void **state)
{
    static const char *const wrong[] = {"Z",        "Zg",   "Zg=",  "Zh==",   "Zm9=", "=AAA",
                                        "Zg==Zg==", "Z===", "Zm 9", "Zm9v\n", "Zm-v", "===="};
    char bytes[16];
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(base64_decode(wrong[i], bytes, sizeof bytes, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_vectors_of_the_standard),
                                       cmocka_unit_test(every_byte_at_every_place),
                                       cmocka_unit_test(what_no_encoder_makes_is_refused)};

    return cmocka_run_group_tests_name("base/base64", tests, NULL, NULL);
}
