/* base64.h - bytes as text for messages and headers (RFC 4648, padded). Pure. */
#pragma once

#include "base/base.h"

#define BASE64_TEXT_BYTES(n) (((n) + 2) / 3 * 4 + 1) /* of the text of n bytes, NUL included */
void base64_encode(const void *bytes, size_t n, char *ret_text /* (BASE64_TEXT_BYTES(n)) */);
/* False: text is not base64, or longer than size bytes. */
bool base64_decode(const char *text, void *ret_bytes, size_t size, size_t *ret_n);
