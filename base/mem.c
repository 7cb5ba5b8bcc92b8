/* mem.c - checked, aligned, zeroed allocation with fault injection. */
#include "base/mem.h"

#include "base/fault.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A huge page. Blocks of that size begin on one and ask for more of them: an update that walks tens of megabytes is a
 * fifth faster when it does not wait for page table walks. */
#define MEM_HUGE ((size_t)2 << 20)

void *mem_alloc(size_t size)
{
    void *block;
    size_t rounded = (size + MEM_ALIGN - 1) / MEM_ALIGN * MEM_ALIGN;

    if (rounded < size || fault_hit(FAULT_MALLOC))
        return NULL;
    if (rounded == 0)
        rounded = MEM_ALIGN;
    if (posix_memalign(&block, rounded < MEM_HUGE ? MEM_ALIGN : MEM_HUGE, rounded) != 0)
        return NULL;
    if (rounded >= MEM_HUGE)
        /* a hint: where it is refused, small pages do */
        (void)madvise(block, rounded / MEM_HUGE * MEM_HUGE, MADV_HUGEPAGE);
    memset(block, 0, rounded);
    return block;
}

void *mem_array(size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : mem_alloc(bytes);
}

void *mem_array2(size_t n, size_t m, size_t size)
{
    size_t rows;
    return __builtin_mul_overflow(n, m, &rows) ? NULL : mem_array(rows, size);
}

void *mem_grow(void *old, size_t old_n, size_t new_n, size_t size)
{
    void *block = mem_array(new_n, size);
    if (block != NULL && old != NULL) {
        memcpy(block, old, (old_n < new_n ? old_n : new_n) * size);
        mem_free(old);
    }
    return block;
}

bool mem_room(void *array_at, size_t n, size_t *cap, size_t size)
{
    size_t new_cap = *cap == 0 ? 16 : *cap * 2;
    void *old, *grown;

    if (n < *cap)
        return true;
    memcpy(&old, array_at, sizeof old); /* a pointer of any type */
    grown = mem_grow(old, n, new_cap, size);
    if (grown == NULL)
        return false;
    memcpy(array_at, &grown, sizeof grown);
    *cap = new_cap;
    return true;
}

char *mem_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = mem_alloc(size);
    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

void mem_free(void *block)
{
    free(block);
}
