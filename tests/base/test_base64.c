/* test_base64.c - bytes as text and back, by the vectors of RFC 4648 and every length up to some hundred. */

#include "tests/unit_test.h"
#include "base/text/base64.h"

TEST(the_vectors_of_the_standard)
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

    for (size_t i = 0; i < COUNT(vectors); i++) {
        base64_encode(vectors[i][0], strlen(vectors[i][0]), text);
        assert_string_equal(text, vectors[i][1]);
        assert_true(base64_decode(text, bytes, sizeof bytes, &n));
        assert_int_equal(n, strlen(vectors[i][0]));
        assert_memory_equal(bytes, vectors[i][0], n);
    }
}

TEST(every_byte_at_every_place)
{
    uint8_t bytes[300], back[300];
    char text[BASE64_TEXT_BYTES(300)];
    size_t got;

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

TEST(what_no_encoder_makes_is_refused)
{
    static const char *const wrong[] = {"Z",        "Zg",   "Zg=",  "Zh==",   "Zm9=", "=AAA",
                                        "Zg==Zg==", "Z===", "Zm 9", "Zm9v\n", "Zm-v", "===="};
    char bytes[16];
    size_t n;

    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(base64_decode(wrong[i], bytes, sizeof bytes, &n));
}

TEST_PROGRAM("base/base64")
