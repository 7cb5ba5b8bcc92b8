/* checksum.c - rows and learning curves that were changed in the file by anything but Trawl are found when they are
 * read.
 *
 * Rows: study, trial, mark, lease and outbox have a column `checksum`, the CRC-32 of all their other columns: of the
 * name, type and value of each column that is not NULL. A column that a later version adds therefore changes nothing as
 * long as it is NULL in old rows. A function that changes a row checks it first and afterwards computes the checksum
 * again from the table, in one transaction: damage is never sealed. A row without a checksum (written by an older
 * version, or edited by hand with checksum = NULL) counts as unchecked.
 *
 * Curves: each trial has one row in curve_sum with an entry for each metric: the number of points, the sum of their
 * CRC-32s, and the last point. The sum does not depend on the order and grows point by point without reading earlier
 * points; 28 bytes for a curve. */
#include "store/store_priv.h"

#include <zlib.h>
#include <endian.h>

#define ENTRY_BYTES 28

/* -- rows -- */

static uint32_t crc_add(uint32_t crc, const void *bytes, size_t n)
{
    return (uint32_t)crc32_z(crc, bytes, n);
}

static uint32_t crc_add_u64(uint32_t crc, uint64_t value)
{
    value = htole64(value);
    return crc_add(crc, &value, sizeof value);
}

/* The bits of a number as the file holds it: SQLite has neither NaN nor -0. */
static uint64_t f64_bits(double value)
{
    uint64_t bits;

    if (value == 0)
        value = 0;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? UINT64_MAX : bits;
}

static const char *column_name(struct db_stmt *stmt, int at)
{
    const char *name = db_column_name(stmt, at);

    if (name == NULL)
        mem_refused(0);
    return name;
}

static uint32_t crc_add_column(uint32_t crc, struct db_stmt *stmt, int at)
{
    unsigned char type = (unsigned char)db_type(stmt, at);
    const char *name = column_name(stmt, at);

    if (type == DB_NULL)
        return crc;
    crc = crc_add(crc, name, strlen(name) + 1);
    crc = crc_add(crc, &type, 1);
    if (type == DB_I64)
        return crc_add_u64(crc, (uint64_t)db_i64(stmt, at));
    if (type == DB_F64)
        return crc_add_u64(crc, f64_bits(db_f64(stmt, at)));
    const void *bytes = db_blob(stmt, at);
    size_t n = db_bytes(stmt, at);
    if (bytes == NULL && n > 0)
        mem_refused(n);
    crc = crc_add_u64(crc, n);
    return n > 0 ? crc_add(crc, bytes, n) : crc;
}

/* The CRC of the table's own columns, which are the last of the row and begin with id; *ret_at: the checksum column. */
static uint32_t row_sum(struct db_stmt *stmt, int *ret_at)
{
    int n = db_n_columns(stmt), from = n - 1;
    uint32_t crc = 0;

    *ret_at = -1;
    while (from > 0 && strcmp(column_name(stmt, from), "id") != 0)
        from--;
    for (int i = from; i < n; i++) {
        if (strcmp(column_name(stmt, i), "checksum") == 0)
            *ret_at = i;
        else
            crc = crc_add_column(crc, stmt, i);
    }
    return crc;
}

enum store_soundness store_row_sound(struct db_stmt *stmt)
{
    int at;
    uint32_t crc = row_sum(stmt, &at);

    if (at < 0 || db_type(stmt, at) == DB_NULL)
        return STORE_UNCHECKED;
    return db_i64(stmt, at) == (int64_t)crc ? STORE_SOUND : STORE_DAMAGED;
}

uint32_t store_row_crc(struct db_stmt *stmt)
{
    uint32_t crc = 0;

    for (int i = 0; i < db_n_columns(stmt); i++)
        crc = crc_add_column(crc, stmt, i);
    return crc;
}

enum status store_damaged(struct store *store, const char *what, struct error *err)
{
    return FAIL(err, ST_CORRUPT,
                "%s: %s is damaged, its checksum does not fit what is stored; restore a backup ('trawl check %s' lists "
                "all that is damaged, 'trawl backup' makes backups)",
                store->path, what, store->path);
}

static const char *table_of(enum store_sql row)
{
    return row == SQL_STUDY_ROW ? "study" : row == SQL_LEASE_ROW ? "lease" : row == SQL_MARK_ROW ? "mark" : "trial";
}

/* The row of the table with that id, as one of the SQL_..._ROW reads it. */
enum status store_row_check(struct store *store, enum store_sql row, int64_t id, struct error *err)
{
    char what[64];
    struct db_stmt *stmt;
    enum status rc = ST_OK;
    bool there;

    TRY(store_sql_row(store, row, VALUES(val_i64(id)), "checking a row", &stmt, &there, err));
    if (there && store_row_sound(stmt) == STORE_DAMAGED) {
        snprintf(what, sizeof what, "the %s with id %lld", table_of(row), (long long)id);
        rc = store_damaged(store, what, err);
    }
    db_reset(stmt);
    return rc;
}

enum status store_row_seal(struct store *store, enum store_sql row, int64_t id, struct error *err)
{
    int at;
    struct db_stmt *stmt;
    bool there;

    TRY(store_sql_row(store, row, VALUES(val_i64(id)), "sealing a row", &stmt, &there, err));
    uint32_t crc = there ? row_sum(stmt, &at) : 0;
    db_reset(stmt);
    if (!there)
        return ST_OK;
    enum store_sql seal = row == SQL_STUDY_ROW   ? SQL_STUDY_SEAL
                          : row == SQL_LEASE_ROW ? SQL_LEASE_SEAL
                          : row == SQL_MARK_ROW  ? SQL_MARK_SEAL
                                                 : SQL_TRIAL_SEAL;
    return store_sql_queue(store, seal, VALUES(val_i64(id), val_i64(crc)), "sealing a row", err);
}

int64_t store_outbox_sum(int64_t id, int64_t study_id, int64_t trial_id, int64_t created_ms, const char *payload)
{
    uint32_t crc = crc_add_u64(crc_add_u64(0, (uint64_t)id), (uint64_t)study_id);

    crc = crc_add_u64(crc, (uint64_t)trial_id);
    crc = crc_add_u64(crc, (uint64_t)created_ms);
    return (int64_t)crc_add(crc, payload, strlen(payload));
}

/* -- curves -- */

uint32_t store_point_sum(int64_t env_steps, double wall_s, double value)
{
    return crc_add_u64(crc_add_u64(crc_add_u64(0, (uint64_t)env_steps), f64_bits(wall_s)), f64_bits(value));
}

struct curve_sum *store_sums_find(struct store_sums *sums, int64_t name_id)
{
    for (size_t k = 0; k < sums->n; k++) { /* reports hold the same names in the same order */
        size_t i = (sums->next + k) % sums->n;
        if (sums->v[i].name_id != name_id)
            continue;
        sums->next = i + 1;
        return &sums->v[i];
    }
    return NULL;
}

struct curve_sum *store_sums_get(struct store_sums *sums, int64_t name_id)
{
    struct curve_sum *sum = store_sums_find(sums, name_id);

    if (sum != NULL)
        return sum;
    MEM_ROOM(sums->v, sums->n, sums->cap);
    sum = &sums->v[sums->n++];
    *sum = (struct curve_sum){.name_id = name_id, .last_steps = INT64_MIN};
    sums->next = 0;
    return sum;
}

void store_sum_add(struct curve_sum *sum, int64_t env_steps, uint32_t crc)
{
    sum->n++;
    sum->sum += crc;
    if (env_steps >= sum->last_steps) {
        sum->last_steps = env_steps;
        sum->last_crc = crc;
    }
}

static const unsigned char *take(const unsigned char *at, void *value, size_t n)
{
    memcpy(value, at, n);
    return at + n;
}

static void unpack(struct store_sums *sums, const unsigned char *bytes, size_t n)
{
    sums->n = 0;
    for (const unsigned char *at = bytes; n >= ENTRY_BYTES; n -= ENTRY_BYTES) {
        uint32_t name, count, crc;
        uint64_t sum, steps;
        at = take(at, &name, 4);
        at = take(at, &count, 4);
        at = take(at, &sum, 8);
        at = take(at, &steps, 8);
        at = take(at, &crc, 4);
        *store_sums_get(sums, (int64_t)le32toh(name)) = (struct curve_sum){.name_id = (int64_t)le32toh(name),
                                                                           .n = (int64_t)le32toh(count),
                                                                           .sum = le64toh(sum),
                                                                           .last_steps = (int64_t)le64toh(steps),
                                                                           .last_crc = le32toh(crc)};
    }
}

enum status store_sums_scan(struct store *store, int64_t trial_id, struct store_sums *sums, struct error *err)
{
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    sums->n = sums->next = 0;
    TRY(store_sql(store, SQL_METRIC_ALL, VALUES(val_i64(trial_id)), &stmt, err));
    while (store_sql_next(store, stmt, "reading learning curves", &rc, err)) {
        int64_t steps = db_i64(stmt, 1);
        store_sum_add(store_sums_get(sums, db_i64(stmt, 0)), steps,
                      store_point_sum(steps, db_f64_or_nan(stmt, 2), db_f64_or_nan(stmt, 3)));
    }
    return rc;
}

enum status store_sums_read(struct store *store, int64_t trial_id, struct store_sums *sums, bool *ret_there,
                            struct error *err)
{
    struct db_stmt *stmt;

    sums->n = sums->next = 0;
    TRY(store_sql_row(store, SQL_SUMS_FIND, VALUES(val_i64(trial_id)), "reading the checksums of learning curves",
                      &stmt, ret_there, err));
    if (*ret_there)
        unpack(sums, db_blob(stmt, 0), db_bytes(stmt, 0));
    db_reset(stmt);
    return ST_OK;
}

static unsigned char *put(unsigned char *at, const void *value, size_t n)
{
    memcpy(at, value, n);
    return at + n;
}

enum status store_sums_write(struct store *store, int64_t trial_id, const struct store_sums *sums, struct error *err)
{
    unsigned char *bytes = mem_alloc(sums->n * ENTRY_BYTES + 1), *at = bytes;

    for (size_t i = 0; i < sums->n; i++) {
        const struct curve_sum *s = &sums->v[i];
        uint32_t name = htole32((uint32_t)s->name_id), count = htole32((uint32_t)s->n), crc = htole32(s->last_crc);
        uint64_t sum = htole64(s->sum), steps = htole64((uint64_t)s->last_steps);
        at = put(put(put(put(put(at, &name, 4), &count, 4), &sum, 8), &steps, 8), &crc, 4);
    }
    enum status rc =
        store_sql_queue(store, SQL_SUMS_SET, VALUES(val_i64(trial_id), val_blob(bytes, (size_t)(at - bytes))),
                        "recording the checksums of learning curves", err);
    mem_free(bytes);
    return rc;
}
