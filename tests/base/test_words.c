/* test_words.c - how near words are, and which bytes are UTF-8. */

#include "tests/unit_test.h"

TEST(the_index_of_a_word)
{
    static const char *const names[] = {"red", "green", "blue"};

    assert_int_equal(word_index(names, 3, "red"), 0);
    assert_int_equal(word_index(names, 3, "blue"), 2);
    assert_int_equal(word_index(names, 3, "blu"), 3);
    assert_int_equal(word_index(names, 3, NULL), 3);
}

TEST(distances)
{
    assert_int_equal(word_distance("", ""), 0);
    assert_int_equal(word_distance("gamma", "gamma"), 0);
    assert_int_equal(word_distance("", "abc"), 3);
    assert_int_equal(word_distance("abc", ""), 3);
    assert_int_equal(word_distance("gama", "gamma"), 1); /* insert */
    assert_int_equal(word_distance("gammma", "gamma"), 1); /* delete */
    assert_int_equal(word_distance("gemma", "gamma"), 1); /* replace */
    assert_int_equal(word_distance("gmama", "gamma"), 1); /* swap */
    assert_int_equal(word_distance("kitten", "sitting"), 3);
}

TEST(nearest_names)
{
    static const char *const names[] = {"train", "eval", "sweep", "show"};
    char longest[4 * WORD_MAX];

    assert_string_equal(word_nearest("trian", names, 4), "train");
    assert_string_equal(word_nearest("shw", names, 4), "show");
    assert_string_equal(word_nearest("sweeps", names, 4), "sweep");
    assert_null(word_nearest("xyzzy", names, 4));
    assert_null(word_nearest("", names, 4));
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(word_nearest(longest, names, 4)); /* a third of all of its bytes would be more than are compared */
}

TEST(utf8)
{
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {
        {"a", 1},
        {"\xc3\xa4", 2},
        {"\xe2\x82\xac", 3},
        {"\xf0\x9f\x98\x80", 4},
        {"\x80", 0}, /* a continuation alone */
        {"\xc0\x80", 0}, /* overlong */
        {"\xe0\x9f\xbf", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xed\xa0\x80", 0}, /* surrogate */
        {"\xf4\x90\x80\x80", 0}, /* beyond U+10FFFF */
        {"\xe2\x82", 0}, /* cut off */
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(utf8_length(cases[i].text, strlen(cases[i].text)), cases[i].length);
    assert_int_equal(utf8_length("\xe2\x82\xac", 2), 0);
}

TEST(names_of_parameters)
{
    assert_true(words_same_name("Learning-Rate", "learning_rate}", 13));
    assert_true(words_same_name("", "", 0));
    assert_false(words_same_name("lr", "lr2", 3));
    assert_false(words_same_name("lr2", "lr2", 2));
    assert_false(words_same_name("lr", "l.r", 2));
}

TEST(escapes)
{
    char text[] = "\033[1;31mred\033[0m, \033[2Kline\033]0;x\033[3", *cut = text + 5;

    assert_int_equal(words_drop_escapes(text, strlen(text)), 14);
    assert_memory_equal(text, "red, line\033]0;x", 14);
    assert_int_equal(words_drop_escapes(cut, 0), 0);
}

TEST_PROGRAM("words")
