/* plan_file.c - see plan_file.h.
 * The file is a header and its rows, a row a key and its plan. Invariants: (1) a file is written whole or not at all
 * (base/os/file.h); (2) of a file that is not exactly what a process of the same `about` wrote, nothing is taken. */
#include "kernels/plan_file.h"

#include "base/os/file.h"

#define MAGIC "trawl plans 1\n"

struct header {
    char magic[16], about[PLAN_ABOUT_MAX];
    uint64_t key_size, plan_size, n;
    uint32_t crc, pad; /* of the header with crc 0, and of all rows */
};

struct plan_file {
    char *path;
    struct header header; /* n: rows in use */
    unsigned char *rows; /* (room, key_size + plan_size) */
    size_t room;
    bool changed;
};

static size_t row_size(const struct plan_file *file)
{
    return file->header.key_size + file->header.plan_size;
}

static uint32_t sum_up(const struct header *header, const unsigned char *rows, size_t bytes)
{
    struct header h = *header;

    h.crc = 0;
    return file_crc32(file_crc32(0, &h, sizeof h), rows, bytes);
}

/* Is this a whole file of the same kind? */
static bool is_ours(const struct plan_file *file, const char *bytes, size_t n)
{
    struct header h;

    if (n < sizeof h)
        return false;
    memcpy(&h, bytes, sizeof h);
    return memcmp(h.magic, file->header.magic, sizeof h.magic) == 0 &&
           memcmp(h.about, file->header.about, sizeof h.about) == 0 && h.key_size == file->header.key_size &&
           h.plan_size == file->header.plan_size && h.n <= PLANS_MAX && n == sizeof h + h.n * row_size(file) &&
           h.crc == sum_up(&h, (const unsigned char *)bytes + sizeof h, n - sizeof h);
}

static unsigned char *find(const struct plan_file *file, const void *key)
{
    for (size_t i = 0; i < file->header.n; i++)
        if (memcmp(file->rows + i * row_size(file), key, file->header.key_size) == 0)
            return file->rows + i * row_size(file);
    return NULL;
}

/* Makes room for one more row at the end. */
static unsigned char *append(struct plan_file *file)
{
    if (file->header.n == PLANS_MAX)
        memmove(file->rows, file->rows + row_size(file), --file->header.n * row_size(file));
    if (file->header.n == file->room) {
        size_t room = file->room > 0 ? 2 * file->room : 32;
        file->rows = mem_grow(file->rows, file->room * row_size(file), room * row_size(file), 1);
        file->room = room;
    }
    return file->rows + file->header.n++ * row_size(file);
}

/* Takes the rows of the file that are not known here, before those that are: these are newer. */
static void merge(struct plan_file *file)
{
    struct plan_file read = {.header = file->header};
    MEM_LOCAL char *bytes = NULL;
    size_t n = 0;

    read.header.n = 0;
    if (file_read_regular(file->path, sizeof(struct header) + PLANS_MAX * row_size(file), &bytes, &n, NULL) != ST_OK)
        return;
    if (is_ours(file, bytes, n)) {
        const unsigned char *rows = (const unsigned char *)bytes + sizeof(struct header);
        for (size_t at = 0; at < n - sizeof(struct header); at += row_size(file))
            if (find(file, rows + at) == NULL)
                memcpy(append(&read), rows + at, row_size(file));
        for (size_t i = 0; i < file->header.n; i++)
            memcpy(append(&read), file->rows + i * row_size(file), row_size(file));
        mem_free(file->rows);
        file->rows = read.rows;
        file->room = read.room;
        file->header.n = read.header.n;
    } else {
        log_debug("%s: damaged, or of another version; its plans are searched again", file->path);
    }
}

struct plan_file *plan_file_open(const char *path, const char *about, size_t key_size, size_t plan_size)
{
    struct plan_file *file = mem_alloc(sizeof *file);

    file->path = mem_strdup(path);
    memcpy(file->header.magic, MAGIC, sizeof MAGIC);
    snprintf(file->header.about, sizeof file->header.about, "%s", about);
    file->header.key_size = key_size;
    file->header.plan_size = plan_size;
    merge(file);
    return file;
}

const void *plan_file_find(const struct plan_file *file, const void *key)
{
    const unsigned char *row = find(file, key);

    return row != NULL ? row + file->header.key_size : NULL;
}

void plan_file_add(struct plan_file *file, const void *key, const void *plan)
{
    unsigned char *row = find(file, key);

    if (row == NULL)
        row = append(file);
    memcpy(row, key, file->header.key_size);
    memcpy(row + file->header.key_size, plan, file->header.plan_size);
    file->changed = true;
}

void plan_file_save(struct plan_file *file)
{
    const char *slash = strrchr(file->path, '/');
    struct error why = {0};
    char folder[PATH_MAX];

    if (!file->changed)
        return;
    merge(file);
    size_t bytes = file->header.n * row_size(file);
    file->header.crc = sum_up(&file->header, file->rows, bytes);
    MEM_LOCAL unsigned char *all = mem_alloc(sizeof file->header + bytes);
    memcpy(all, &file->header, sizeof file->header);
    memcpy(all + sizeof file->header, file->rows, bytes);
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - file->path) : 0, file->path);
    if (file_make_folders(folder, 0700, &why) == ST_OK &&
        file_write_all(file->path, all, sizeof file->header + bytes, &why) == ST_OK)
        file->changed = false;
    else
        log_debug("%s; the next process searches again", why.text);
}

void plan_file_close(struct plan_file *file)
{
    if (file == NULL)
        return;
    mem_free(file->rows);
    mem_free(file->path);
    mem_free(file);
}

bool plan_file_path(const char *name, const char *about, char *buf, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    uint32_t number = file_crc32(0, about, strlen(about));
    int n;

    if (cache != NULL && cache[0] == '/')
        n = snprintf(buf, size, "%s/trawl/%s-%08x.plans", cache, name, (unsigned)number);
    else if (home != NULL && home[0] == '/')
        n = snprintf(buf, size, "%s/.cache/trawl/%s-%08x.plans", home, name, (unsigned)number);
    else
        return false;
    return n > 0 && (size_t)n < size;
}
