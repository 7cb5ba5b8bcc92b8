/* hash.h - FNV-1a, 64 bits: for short names and for noticing a change; not against deliberate collisions. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START 0xcbf29ce484222325u

/* The hash of what `hash` has seen, and of these bytes after it. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

static inline uint64_t hash_text(const char *text)
{
    return hash_bytes(HASH_START, text, strlen(text));
}
