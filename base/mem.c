/* mem.c - checked, aligned, zeroed allocation with fault injection. */
#include "base/mem.h"

#include "base/fault.h"

#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The size of a huge page. Blocks of at least this size are aligned to it and ask for huge pages: an update over tens
 * of megabytes is a fifth faster without the page table walks. */
#define MEM_HUGE ((size_t)2 << 20)

void mem_refused(size_t size)
{
    char block[64] = "a block", text[192];
    if (size > 0)
        snprintf(block, sizeof block, "a block of %zu bytes", size);
    int n =
        snprintf(text, sizeof text,
                 "trawl: out of memory: %s was refused; give the process more memory, or run less at a time\n", block);
    ssize_t unused = write(STDERR_FILENO, text, (size_t)n);

    (void)unused;
    _exit(1); /* no exit handlers: they would need memory too */
}

static void *block_of(size_t size)
{
    void *block;
    size_t rounded = (size + MEM_ALIGN - 1) / MEM_ALIGN * MEM_ALIGN;

    if (rounded < size)
        return NULL;
    if (rounded == 0)
        rounded = MEM_ALIGN;
    if (posix_memalign(&block, rounded < MEM_HUGE ? MEM_ALIGN : MEM_HUGE, rounded) != 0)
        return NULL;
    if (rounded >= MEM_HUGE)
        /* a hint: where it is refused, small pages serve */
        (void)madvise(block, rounded / MEM_HUGE * MEM_HUGE, MADV_HUGEPAGE);
    memset(block, 0, rounded);
    return block;
}

void mem_keep_freed(size_t bytes)
{
    int limit = bytes < INT_MAX ? (int)bytes : INT_MAX;

    (void)mallopt(M_MMAP_THRESHOLD, limit / 2); /* larger blocks would be mapped and unmapped each time */
    (void)mallopt(M_TRIM_THRESHOLD, limit);
}

/* n * size, or SIZE_MAX, which no allocator gives. */
static size_t product(size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? SIZE_MAX : bytes;
}

void *mem_alloc(size_t size)
{
    void *block = fault_hit(FAULT_MALLOC) ? NULL : block_of(size);
    if (block == NULL)
        mem_refused(size);
    return block;
}

void *mem_array(size_t n, size_t size)
{
    return mem_alloc(product(n, size));
}

void *mem_array2(size_t n, size_t m, size_t size)
{
    return mem_alloc(product(product(n, m), size));
}

void *mem_try_alloc(size_t size)
{
    return fault_hit(FAULT_TRY_MALLOC) ? NULL : block_of(size);
}

void *mem_try_array(size_t n, size_t size)
{
    return mem_try_alloc(product(n, size));
}

void *mem_grow(void *old, size_t old_n, size_t new_n, size_t size)
{
    void *block = mem_array(new_n, size);
    if (old != NULL)
        memcpy(block, old, (old_n < new_n ? old_n : new_n) * size);
    mem_free(old);
    return block;
}

void mem_room(void *array_at, size_t n, size_t *cap, size_t size)
{
    size_t new_cap = *cap == 0 ? 16 : *cap * 2;
    void *old, *grown;

    if (n < *cap)
        return;
    memcpy(&old, array_at, sizeof old); /* a pointer of any type */
    grown = mem_grow(old, n, new_cap, size);
    memcpy(array_at, &grown, sizeof grown);
    *cap = new_cap;
}

char *mem_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = mem_alloc(size);
    memcpy(copy, text, size);
    return copy;
}

void mem_set_text(char **text, const char *value)
{
    mem_free(*text);
    *text = value != NULL ? mem_strdup(value) : NULL;
}

void mem_free(void *block)
{
    free(block);
}

void mem_free_at(void *pointer_at)
{
    void *block;

    memcpy(&block, pointer_at, sizeof block);
    mem_free(block);
}
