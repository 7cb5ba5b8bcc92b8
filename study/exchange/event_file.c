/* event_file.c - writes TensorBoard's event files.
 *
 * A file is a row of records: the length of the data (64 bits), the checksum of these 8 bytes, the data, its checksum;
 * all little-endian. A checksum is the CRC-32C, turned right by 15 bits, plus a constant. The data is a protocol
 * buffer, the message Event: 1 wall time (double), 2 step (varint), and either 3 the version (text, in the first
 * record) or 5 a Summary, which repeats 1 Value: 1 tag (text), 2 number (float). */
#include "study/exchange/event_file.h"
#include "base/text/protobuf.h"

#include <endian.h>
#include <fcntl.h>
#include <float.h>

#define EVENT_VERSION "brain.Event:2"
#define EVENT_MAX_BYTES (1u << 20)
#define CRC32C_POLYNOMIAL 0x82f63b78u /* Castagnoli's, bits reversed */
#define CRC_MASK 0xa282ead8u
#define FILES_A_SECOND 1000 /* of one process in one folder */

struct event_file {
    FILE *file;
    char *path; /* owned */
    struct strbuf event, summary, value; /* messages that are being written, from the outer one in */
    uint32_t crc[256]; /* of each byte */
};

/* ---- records ---- */

static void crc_table(uint32_t *ret_crc)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? CRC32C_POLYNOMIAL : 0);
        ret_crc[byte] = crc;
    }
}

static uint32_t masked_crc(const struct event_file *f, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < n; i++)
        crc = (crc >> 8) ^ f->crc[(crc ^ at[i]) & 0xff];
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + CRC_MASK;
}

static void write_record(struct event_file *f, const struct strbuf *data)
{
    uint64_t length = htole64(data->len);
    uint32_t of_length = htole32(masked_crc(f, &length, sizeof length));
    uint32_t of_data = htole32(masked_crc(f, data->text, data->len));

    (void)fwrite(&length, sizeof length, 1, f->file); /* event_file_flush looks at ferror */
    (void)fwrite(&of_length, sizeof of_length, 1, f->file);
    (void)fwrite(data->text, 1, data->len, f->file);
    (void)fwrite(&of_data, sizeof of_data, 1, f->file);
}

/* ---- messages ---- */

static float narrowed(double x)
{
    return fabs(x) > (double)FLT_MAX ? copysignf(INFINITY, x > 0 ? 1 : -1) : (float)x;
}

void event_file_add(struct event_file *f, double utc_s, int64_t step, const struct event_value *values, size_t n)
{
    strbuf_clear(&f->event);
    strbuf_clear(&f->summary);
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i].value))
            continue;
        strbuf_clear(&f->value);
        pb_text(&f->value, 1, values[i].tag);
        pb_f32(&f->value, 2, narrowed(values[i].value));
        pb_bytes(&f->summary, 1, f->value.text, f->value.len);
    }
    if (f->summary.len == 0)
        return;
    pb_f64(&f->event, 1, utc_s);
    pb_int(&f->event, 2, step);
    pb_bytes(&f->event, 5, f->summary.text, f->summary.len);
    write_record(f, &f->event);
}

/* ---- a file ---- */

static void add_version(struct event_file *f, double utc_s)
{
    strbuf_clear(&f->event);
    pb_f64(&f->event, 1, utc_s);
    pb_text(&f->event, 3, EVENT_VERSION);
    write_record(f, &f->event);
}

static enum status make_file(const char *dir, time_t now, FILE **ret_file, char **ret_path, struct error *err)
{
    char host[65] = "", path[PATH_MAX];
    int fd = -1;

    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        snprintf(host, sizeof host, "localhost");
    for (int k = 0; fd < 0 && k < FILES_A_SECOND; k++) {
        if (snprintf(path, sizeof path, "%s/events.out.tfevents.%010lld.%s.%d.%d", dir, (long long)now, host,
                     (int)getpid(), k) >= (int)sizeof path)
            return FAIL(err, ST_IO, "%s: the path of an event file is too long", dir);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    *ret_file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (*ret_file == NULL) {
        enum status rc = FAIL(err, ST_IO, "%s cannot be written: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return rc;
    }
    *ret_path = mem_strdup(path);
    return ST_OK;
}

enum status event_file_open(struct event_file **ret_file, const char *dir, struct error *err)
{
    time_t now = time(NULL);
    char *path = NULL;
    FILE *file;

    TRY(make_file(dir, now, &file, &path, err));
    struct event_file *f = mem_alloc(sizeof *f);
    f->file = file;
    f->path = path;
    strbuf_init(&f->event, EVENT_MAX_BYTES);
    strbuf_init(&f->summary, EVENT_MAX_BYTES);
    strbuf_init(&f->value, EVENT_MAX_BYTES);
    crc_table(f->crc);
    add_version(f, (double)now);
    enum status rc = event_file_flush(f, err);
    if (rc != ST_OK) {
        event_file_close(f);
        return rc;
    }
    *ret_file = f;
    return ST_OK;
}

enum status event_file_flush(struct event_file *f, struct error *err)
{
    if (fflush(f->file) == 0 && ferror(f->file) == 0)
        return ST_OK;
    return FAIL(err, ST_IO, "%s: %s", f->path, strerror(errno));
}

void event_file_close(struct event_file *f)
{
    if (f == NULL)
        return;
    fclose(f->file);
    strbuf_free(&f->event);
    strbuf_free(&f->summary);
    strbuf_free(&f->value);
    mem_free(f->path);
    mem_free(f);
}
