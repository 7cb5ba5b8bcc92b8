/* file.h - files that are written whole or not at all.
 * Writes go to "PATH.tmp.PID", are fsynced and renamed over PATH; a failure leaves PATH as it was and removes the
 * temporary file; those of killed processes are removed by the next write to PATH. What is no regular file (a pipe,
 * /dev/stdout) is written to as it is. FAULT_WRITE and FAULT_FSYNC apply. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum status file_write_all(const char *path, const void *bytes, size_t n, struct error *err) MUST_USE;
/* Reads at most max_bytes; larger is ST_LIMIT. *ret_bytes is owned by the caller (mem_free), NUL-terminated. */
enum status file_read_all(const char *path, size_t max_bytes, char **ret_bytes, size_t *ret_n,
                          struct error *err) MUST_USE;
/* The same of a regular file alone: a pipe at its place is ST_IO and not waited for. */
enum status file_read_regular(const char *path, size_t max_bytes, char **ret_bytes, size_t *ret_n,
                              struct error *err) MUST_USE;
bool file_exists(const char *path);
uint32_t file_crc32(uint32_t crc, const void *bytes, size_t n); /* zlib's; start from 0 */

#endif
