/* protobuf.h - enough of Protocol Buffers to write a message: fields of numbers, bytes and other messages. A message is
 * a struct strbuf; a message inside another is first written into a buffer of its own and then put into it. */
#pragma once

#include <endian.h>

#include "base/base.h"

static inline void pb_varint(struct strbuf *m, uint64_t x)
{
    for (; x >= 128; x >>= 7)
        strbuf_add_n(m, (const char[]){(char)((x & 127) | 128)}, 1);
    strbuf_add_n(m, (const char[]){(char)x}, 1);
}

static inline void pb_int(struct strbuf *m, unsigned field, int64_t x)
{
    pb_varint(m, field << 3);
    pb_varint(m, (uint64_t)x);
}

static inline void pb_f64(struct strbuf *m, unsigned field, double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits = htole64(bits);
    pb_varint(m, field << 3 | 1);
    strbuf_add_n(m, (const char *)&bits, sizeof bits);
}

static inline void pb_f32(struct strbuf *m, unsigned field, float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits = htole32(bits);
    pb_varint(m, field << 3 | 5);
    strbuf_add_n(m, (const char *)&bits, sizeof bits);
}

static inline void pb_bytes(struct strbuf *m, unsigned field, const void *bytes, size_t n)
{
    pb_varint(m, field << 3 | 2);
    pb_varint(m, n);
    strbuf_add_n(m, (const char *)bytes, n);
}

static inline void pb_text(struct strbuf *m, unsigned field, const char *text)
{
    pb_bytes(m, field, text, strlen(text));
}

/* inner is emptied; if it was cut off, m counts as cut off too. */
static inline void pb_message(struct strbuf *m, unsigned field, struct strbuf *inner)
{
    pb_bytes(m, field, inner->text, inner->len);
    if (m->status == ST_OK)
        m->status = inner->status;
    strbuf_free(inner);
}
