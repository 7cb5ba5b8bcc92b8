/* file.h - files that are written whole or not at all.
 * A write goes to "PATH.tmp.PID", which is fsynced and renamed over PATH. A failure leaves PATH as it was and removes
 * the temporary file; the next write to PATH removes temporary files of killed processes. A pipe or a device
 * (/dev/stdout) cannot be replaced and is written to directly. FAULT_WRITE and FAULT_FSYNC apply. */
#pragma once

#include "base/base.h"

enum status file_write_all(const char *path, const void *bytes, size_t n, struct error *err) MUST_USE;
/* The same for a regular file, written piece by piece. path is borrowed until the end; a failure ends it too. Zeroed:
 * none is open. */
struct file_writer {
    bool open;
    int fd;
    const char *path;
    char temp[PATH_MAX];
};
enum status file_writer_begin(struct file_writer *w, const char *path, struct error *err) MUST_USE;
enum status file_writer_add(struct file_writer *w, const void *bytes, size_t n, struct error *err) MUST_USE;
enum status file_writer_end(struct file_writer *w, struct error *err) MUST_USE;
void file_writer_drop(struct file_writer *w); /* a writer that is not open is fine */
/* Reads at most max_bytes; larger is ST_LIMIT. *ret_bytes is owned by the caller (mem_free), NUL-terminated. A pipe that
 * nobody writes to within FILE_WRITER_S seconds is ST_IO. */
#define FILE_WRITER_S 3
enum status file_read_all(const char *path, size_t max_bytes, char **ret_bytes, size_t *ret_n,
                          struct error *err) MUST_USE;
/* The same for a regular file only: a pipe is ST_IO, and the call does not wait for it. */
enum status file_read_regular(const char *path, size_t max_bytes, char **ret_bytes, size_t *ret_n,
                              struct error *err) MUST_USE;
bool file_exists(const char *path);
/* The folder that a path lies in, "/runs" of "/runs/a.db", "." of "a.db"; and the name there. */
void file_folder(const char *path, char *buf, size_t size);
const char *file_name(const char *path);
/* Makes the folder and its missing parents, each with this mode. */
enum status file_make_folders(const char *path, unsigned mode, struct error *err) MUST_USE;
enum status file_make_folder_of(const char *file, unsigned mode, struct error *err) MUST_USE; /* the one it lies in */
uint32_t file_crc32(uint32_t crc, const void *bytes, size_t n); /* zlib's; start from 0 */
