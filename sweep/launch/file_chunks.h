/* file_chunks.h - a file that travels in messages, a chunk each, in order. */
#pragma once

#include "base/os/file.h"
#include "base/text/json.h"

/* A file that arrives. Zeroed: none. file_chunks_drop ends it. */
struct file_chunks {
    struct file_writer file; /* not open: none has begun */
    int64_t at; /* bytes that have come */
    char path[PATH_MAX];
};
/* Adds at, size and data to message: of the file at path from byte `at` on. *ret_next: where the next chunk begins;
 * the size of the file: this was the last one. */
enum status file_chunk_add(cJSON *message, const char *path, int64_t at, int64_t *ret_next, int64_t *ret_size,
                           struct error *err) MUST_USE;
/* Takes the next chunk of the file that will be at path; with the last one it is there, whole (*ret_done). Chunk 0
 * begins it again. After an error nothing of it is left. */
enum status file_chunk_take(struct file_chunks *file, const char *path, const cJSON *message, bool *ret_done,
                            struct error *err) MUST_USE;
void file_chunks_drop(struct file_chunks *file);
