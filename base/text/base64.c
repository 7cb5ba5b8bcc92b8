/* base64.c - bytes as text.
 * Invariant: a text that base64_encode could not have made is refused, so that a cut or mixed-up message is noticed. */
#include "base/text/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *bytes, size_t n, char *text)
{
    const uint8_t *from = bytes;

    for (size_t i = 0; i < n; i += 3) {
        size_t k = n - i < 3 ? n - i : 3;
        uint32_t word = (uint32_t)from[i] << 16 | (k > 1 ? (uint32_t)from[i + 1] << 8 : 0) | (k > 2 ? from[i + 2] : 0);
        for (size_t d = 0; d < 4; d++)
            *text++ = d <= k ? digits[word >> (18 - 6 * d) & 63] : '=';
    }
    *text = '\0';
}

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(const char *text, void *ret_bytes, size_t size, size_t *ret_n)
{
    size_t n = strlen(text), at = 0;
    uint8_t *to = ret_bytes;

    *ret_n = 0;
    if (n % 4 != 0)
        return false;
    for (size_t i = 0; i < n; i += 4) {
        size_t n_pad = i + 4 == n ? (size_t)(text[i + 3] == '=') + (text[i + 2] == '=' && text[i + 3] == '=') : 0;
        uint32_t word = 0;
        for (size_t d = 0; d < 4; d++) {
            int digit = d < 4 - n_pad ? digit_of(text[i + d]) : 0;
            if (digit < 0)
                return false;
            word = word << 6 | (uint32_t)digit;
        }
        if ((word & (n_pad == 2 ? 0xffffu : n_pad == 1 ? 0xffu : 0u)) != 0 || at + 3 - n_pad > size)
            return false;
        for (size_t k = 0; k < 3 - n_pad; k++)
            to[at++] = (uint8_t)(word >> (16 - 8 * k));
    }
    *ret_n = at;
    return true;
}
