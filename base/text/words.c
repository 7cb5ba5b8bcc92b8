/* words.c - edit distance with swaps (optimal string alignment), and the well-formed sequences of UTF-8. */
#include "base/text/words.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

size_t word_distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1]; /* edits from the first i bytes of a to the first j of b, for i - 2, i - 1, i */
    size_t *before = rows[0], *above = rows[1], *row = rows[2], *spare;
    size_t n = strnlen(a, WORD_MAX), m = strnlen(b, WORD_MAX);

    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        spare = before;
        before = above;
        above = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

bool word_is_near(const char *misspelt, size_t distance)
{
    return distance <= (strnlen(misspelt, WORD_MAX) + 2) / 3;
}

size_t word_index(const char *const *names, size_t n, const char *word)
{
    size_t i = 0;

    while (i < n && (word == NULL || strcmp(names[i], word) != 0))
        i++;
    return i;
}

const char *word_nearest(const char *misspelt, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;

    for (size_t i = 0; i < n; i++) {
        size_t distance = word_distance(misspelt, names[i]);
        if (distance < best_distance && word_is_near(misspelt, distance)) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best;
}

bool word_ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), length = strlen(end);
    return n > length && strcmp(text + n - length, end) == 0;
}

size_t utf8_length(const char *text, size_t n)
{
    const unsigned char *at = (const unsigned char *)text;
    unsigned char c = at[0];
    size_t len = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : (c & 0xF0) == 0xE0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;

    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    if ((c == 0xE0 && at[1] < 0xA0) || (c == 0xED && at[1] > 0x9F)) /* overlong; surrogates */
        return 0;
    if ((c == 0xF0 && at[1] < 0x90) || (c == 0xF4 && at[1] > 0x8F)) /* overlong; beyond U+10FFFF */
        return 0;
    return len;
}

static int plain_letter(char c)
{
    return c == '-' ? '_' : tolower((unsigned char)c);
}

bool words_same_name(const char *a, const char *b, size_t n)
{
    size_t i = 0;

    while (i < n && a[i] != '\0' && plain_letter(a[i]) == plain_letter(b[i]))
        i++;
    return i == n && a[i] == '\0';
}

size_t words_drop_escapes(char *text, size_t n)
{
    size_t to = 0;

    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\033' || i + 1 == n || text[i + 1] != '[') {
            text[to++] = text[i];
            continue;
        }
        for (i += 2; i < n && (text[i] < 0x40 || text[i] > 0x7e);) /* parameters, then one final byte */
            i++;
    }
    return to;
}
