/* mem.h - the only caller of the allocator. Sizes are overflow-checked, every block is
 * 64-byte aligned (a cache line, and a full AVX-512 vector), zeroed, and freed by mem_free.
 * Without memory the process ends with a message and exit code 1 (docs/decisions/0012-out-of-memory.md): no result is
 * NULL, and no caller checks. Only mem_try_alloc and mem_try_array return NULL; they are for buffers whose size a
 * user's config sets, and their caller's message names the options to lower. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define MEM_ALIGN 64

#define MEM_NEVER_NULL MUST_USE __attribute__((returns_nonnull))
void *mem_alloc(size_t size) MEM_NEVER_NULL; /* size 0 gives a valid block */
void *mem_array(size_t n, size_t size) MEM_NEVER_NULL; /* n * size bytes */
void *mem_array2(size_t n, size_t m, size_t size) MEM_NEVER_NULL; /* n * m * size bytes */
void *mem_try_alloc(size_t size) MUST_USE; /* NULL without memory */
void *mem_try_array(size_t n, size_t size) MUST_USE; /* NULL without memory */
void *mem_grow(void *old, size_t old_n, size_t new_n, size_t size) MEM_NEVER_NULL; /* frees old */
/* Makes space for one more element at the end of an array that grows: n of its *cap elements are used; array_at is the
 * address of the pointer, NULL before the first. */
#define MEM_ROOM(array, n, cap) mem_room(&(array), (n), &(cap), sizeof *(array))
void mem_room(void *array_at, size_t n, size_t *cap, size_t size);
char *mem_strdup(const char *text) MEM_NEVER_NULL;
void mem_set_text(char **text, const char *value); /* a copy of value instead of what *text owned; NULL: none */
void mem_free(void *block); /* NULL is fine */
#define COUNT(array) (sizeof(array) / sizeof(array)[0]) /* its elements; not of a pointer */

/* Of a local variable: the function gets its address when its block ends, however it is left. Such a variable has a
 * value from its declaration on. */
#define AT_END(function) __attribute__((cleanup(function)))
#define MEM_LOCAL AT_END(mem_free_at)
void mem_free_at(void *pointer_at); /* mem_free of the pointer at that address */
/* From now on up to this many bytes of freed memory stay with the process for later blocks, which then need no new
 * pages: for work that takes and frees the same megabytes again and again. */
void mem_keep_freed(size_t bytes);
/* Ends the process as mem_alloc does, for a library whose own allocator refused size bytes; 0: unknown. */
void mem_refused(size_t size) __attribute__((noreturn));
