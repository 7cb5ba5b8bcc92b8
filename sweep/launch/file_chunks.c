/* file_chunks.c - a file in messages.
 * Invariants: (1) under its own name a file is there whole or not at all; (2) a chunk that is not the next one is an
 * error, so that no two files mix. Whether the bytes are right is the reader's to check: a checkpoint has checksums. */
#include "sweep/launch/file_chunks.h"

#include "base/text/base64.h"
#include "sweep/launch/proto.h"

#include <fcntl.h>
#include <sys/stat.h>

enum status file_chunk_add(cJSON *message, const char *path, int64_t at, int64_t *ret_next, int64_t *ret_size,
                           struct error *err)
{
    MEM_LOCAL uint8_t *bytes = mem_alloc(PROTO_CHUNK_BYTES);
    MEM_LOCAL char *text = mem_alloc(BASE64_TEXT_BYTES(PROTO_CHUNK_BYTES));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info = {0};
    enum status rc = ST_OK;
    ssize_t n = -1;

    if (fd >= 0 && fstat(fd, &info) == 0)
        n = pread(fd, bytes, PROTO_CHUNK_BYTES, at);
    if (n < 0)
        rc = FAIL(err, ST_IO, "%s cannot be read: %s", path, strerror(errno));
    else if (n == 0 && at < info.st_size)
        rc = FAIL(err, ST_IO, "%s became shorter while it was read", path);
    if (rc == ST_OK) {
        base64_encode(bytes, (size_t)n, text);
        json_add_i64(message, "at", at);
        json_add_i64(message, "size", info.st_size);
        json_add_str(message, "data", text);
        *ret_next = at + n;
        *ret_size = info.st_size;
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

void file_chunks_drop(struct file_chunks *f)
{
    file_writer_drop(&f->file);
}

static enum status append(struct file_chunks *f, const char *text, int64_t size, struct error *err)
{
    MEM_LOCAL uint8_t *bytes = mem_alloc(PROTO_CHUNK_BYTES);
    enum status rc;
    size_t n = 0;

    if (!base64_decode(text, bytes, PROTO_CHUNK_BYTES, &n) || (int64_t)n > size - f->at)
        rc = FAIL(err, ST_CORRUPT, "a chunk of %s is not base64, or too long", f->path);
    else
        rc = file_writer_add(&f->file, bytes, n, err);
    f->at += (int64_t)n;
    return rc;
}

enum status file_chunk_take(struct file_chunks *f, const char *path, const cJSON *message, bool *ret_done,
                            struct error *err)
{
    const char *text = json_get_str(message, "data");
    int64_t at = -1, size = -1;
    enum status rc = ST_OK;

    *ret_done = false;
    if (text == NULL || !json_get_i64(message, "at", &at) || !json_get_i64(message, "size", &size)) {
        const char *reason = json_get_str(message, "reason");
        rc = FAIL(err, ST_IO, "%s", reason != NULL ? reason : "a chunk without bytes came");
    } else if (at == 0) {
        file_chunks_drop(f);
        snprintf(f->path, sizeof f->path, "%s", path);
        f->at = 0;
        rc = file_writer_begin(&f->file, f->path, err);
    } else if (!f->file.open || at != f->at) {
        rc = FAIL(err, ST_CORRUPT, "%s: bytes from %lld on came, and not those from %lld", path, (long long)at,
                  (long long)(f->file.open ? f->at : 0));
    }
    THEN(rc, append(f, text, size, err));
    if (rc != ST_OK) {
        file_chunks_drop(f);
        return rc;
    }
    *ret_done = f->at == size;
    return *ret_done ? file_writer_end(&f->file, err) : ST_OK;
}
