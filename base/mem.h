/* mem.h - the only caller of the allocator. Sizes are overflow-checked, every block is
 * 64-byte aligned (a cache line, and a full AVX-512 vector), zeroed, and freed by mem_free.
 * NULL means out of memory (or FAULT_MALLOC fired): the caller turns it into ST_NOMEM with a useful text. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define MEM_ALIGN 64

void *mem_alloc(size_t size) MUST_USE; /* size 0 gives a valid block */
void *mem_array(size_t n, size_t size) MUST_USE; /* n * size bytes */
void *mem_array2(size_t n, size_t m, size_t size) MUST_USE; /* n * m * size bytes */
void *mem_grow(void *old, size_t old_n, size_t new_n, size_t size) MUST_USE; /* keeps old (still owned) on failure */
/* Room for one more element at the end of an array that grows: n of its *cap elements are used; array_at is the address of
 * the pointer, NULL before the first. False: out of memory, and nothing has changed. */
#define MEM_ROOM(array, n, cap) mem_room(&(array), (n), &(cap), sizeof *(array))
bool mem_room(void *array_at, size_t n, size_t *cap, size_t size) MUST_USE;
char *mem_strdup(const char *text) MUST_USE;
void mem_free(void *block); /* NULL is fine */

#endif
