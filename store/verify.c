/* verify.c - checks a whole store against its checksums, for `trawl check`. Continues after damage. */
#include "store/store_priv.h"

#include <stdarg.h>

#define FINDINGS_OF_SQLITE 100

struct verify {
    struct store *store;
    struct store_verdict *verdict;
    store_report_fn *report;
    void *ctx;
};

static void PRINTF_LIKE(2, 3) found(struct verify *v, const char *fmt, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    v->verdict->n_damaged++;
    if (v->report != NULL)
        v->report(v->ctx, text);
}

/* The rows of a query, one after the other; a row that cannot be read is a finding like any other. */
static void each(struct verify *v, const char *what, const char *sql,
                 void (*row)(struct verify *v, struct db_stmt *stmt))
{
    struct db_stmt stmt = {0};
    struct error err = {0};
    enum status rc = store_sql_prepare(v->store, sql, &stmt, &err);

    while (store_sql_next(v->store, &stmt, what, &rc, &err))
        row(v, &stmt);
    if (rc != ST_OK)
        found(v, "%s cannot be read to the end: %s", what, err.text);
    store_sql_finalize(&stmt);
}

static const char *text_of(struct db_stmt *stmt, int at)
{
    const char *text = db_text(stmt, at);

    return text != NULL ? text : "?";
}

static void file_row(struct verify *v, struct db_stmt *stmt)
{
    if (strcmp(text_of(stmt, 0), "ok") != 0)
        found(v, "the file: %s", text_of(stmt, 0));
}

static void owner_row(struct verify *v, struct db_stmt *stmt)
{
    found(v, "table %s, row %lld: the row that it belongs to is missing", text_of(stmt, 0), (long long)db_i64(stmt, 1));
}

static void study_row(struct verify *v, struct db_stmt *stmt)
{
    enum store_soundness sound = store_row_sound(stmt);

    v->verdict->studies.n++;
    v->verdict->studies.n_unchecked += sound == STORE_UNCHECKED;
    if (sound == STORE_DAMAGED)
        found(v, "study '%s': its settings do not fit its checksum", text_of(stmt, 0));
}

static void gap_row(struct verify *v, struct db_stmt *stmt)
{
    found(v, "study '%s' has %lld trials, though the last has the number %lld: some are missing", text_of(stmt, 0),
          (long long)db_i64(stmt, 1), (long long)db_i64(stmt, 2));
}

static bool same_sum(const struct curve_sum *a, const struct curve_sum *b)
{
    return a != NULL && b != NULL && a->n == b->n && a->sum == b->sum && a->last_steps == b->last_steps &&
           a->last_crc == b->last_crc;
}

/* The curves of one trial; is: sums of the points in the table, want: sums as they were written. */
static void compare(struct verify *v, struct store_sums *is, struct store_sums *want, bool known, int64_t number,
                    const char *study)
{
    size_t n = 0;

    for (size_t i = 0; i < is->n; i++) {
        v->verdict->points += is->v[i].n;
        n += known && !same_sum(&is->v[i], store_sums_find(want, is->v[i].name_id));
    }
    for (size_t i = 0; known && i < want->n; i++)
        n += want->v[i].n > 0 && store_sums_find(is, want->v[i].name_id) == NULL;
    v->verdict->curves.n += (int64_t)is->n;
    v->verdict->curves.n_unchecked += known ? 0 : (int64_t)is->n;
    if (n > 0)
        found(v, "trial %lld of study '%s': %zu of its learning curves do not fit their checksums", (long long)number,
              study, n);
}

static void trial_row(struct verify *v, struct db_stmt *stmt)
{
    int64_t number = db_i64(stmt, 0), id = db_i64(stmt, 2);
    enum store_soundness sound = store_row_sound(stmt);
    struct store_sums want = {0};
    struct error err = {0};
    bool known = false;

    v->verdict->trials.n++;
    v->verdict->trials.n_unchecked += sound == STORE_UNCHECKED;
    if (sound == STORE_DAMAGED)
        found(v, "trial %lld of study '%s': its row does not fit its checksum", (long long)number, text_of(stmt, 1));
    /* The statement at this row keeps one state of the store. */
    enum status rc = store_sums_read(v->store, id, &want, &known, &err);
    THEN(rc, store_sums_scan(v->store, id, &v->store->sums, &err));
    if (rc == ST_OK)
        compare(v, &v->store->sums, &want, known, number, text_of(stmt, 1));
    else
        found(v, "trial %lld of study '%s': its learning curves cannot be read: %s", (long long)number,
              text_of(stmt, 1), err.text);
    mem_free(want.v);
}

static void lease_row(struct verify *v, struct db_stmt *stmt)
{
    enum store_soundness sound = store_row_sound(stmt);

    v->verdict->leases.n++;
    v->verdict->leases.n_unchecked += sound == STORE_UNCHECKED;
    if (sound == STORE_DAMAGED)
        found(v, "trial %lld of study '%s': a lease of it does not fit its checksum", (long long)db_i64(stmt, 0),
              text_of(stmt, 1));
}

static void mark_row(struct verify *v, struct db_stmt *stmt)
{
    if (store_row_sound(stmt) == STORE_DAMAGED)
        found(v, "trial %lld of study '%s': the remark on it does not fit its checksum", (long long)db_i64(stmt, 0),
              text_of(stmt, 1));
}

static void outbox_row(struct verify *v, struct db_stmt *stmt)
{
    v->verdict->outbox.n++;
    if (db_type(stmt, 5) == DB_NULL)
        v->verdict->outbox.n_unchecked++;
    else if (db_i64(stmt, 5) !=
             store_outbox_sum(db_i64(stmt, 0), db_i64(stmt, 1), db_i64(stmt, 2), db_i64(stmt, 3), text_of(stmt, 4)))
        found(v, "row %lld of the trackers' outbox does not fit its checksum", (long long)db_i64(stmt, 0));
}

enum status store_verify(const char *path, struct store_verdict *ret_verdict, store_report_fn *report, void *ctx,
                         struct error *err)
{
    struct verify v = {.verdict = ret_verdict, .report = report, .ctx = ctx};
    char integrity[64];
    bool begun = false;

    *ret_verdict = (struct store_verdict){0};
    TRY(store_open_blind(&v.store, path, true, err));
    if (v.store->pg != NULL)
        TRY(store_read_begin(v.store, &begun, err)); /* one state of the store */
    snprintf(integrity, sizeof integrity, "PRAGMA integrity_check(%d)", FINDINGS_OF_SQLITE);
    if (v.store->pg == NULL) { /* PostgreSQL checks owners at each write, and pages by its own checksums */
        each(&v, "the file", integrity, file_row);
        each(&v, "the file", "PRAGMA foreign_key_check", owner_row);
    }
    each(&v, "the table of studies", "SELECT name, study.* FROM study ORDER BY id", study_row);
    each(&v, "the table of trials",
         "SELECT s.name, count(*), max(t.number) FROM trial AS t JOIN study AS s ON s.id = t.study_id GROUP BY s.id "
         "HAVING count(*) <> max(t.number) + 1",
         gap_row);
    each(&v, "the table of trials",
         "SELECT t.number, s.name, t.* FROM trial AS t NOT INDEXED LEFT JOIN study AS s ON s.id = t.study_id ORDER BY "
         "t.id",
         trial_row);
    each(&v, "the table of leases",
         "SELECT t.number, s.name, l.* FROM lease AS l LEFT JOIN trial AS t ON t.id = l.trial_id LEFT JOIN study AS s "
         "ON s.id = t.study_id ORDER BY l.id",
         lease_row);
    each(&v, "the table of remarks",
         "SELECT t.number, s.name, m.* FROM mark AS m LEFT JOIN trial AS t ON t.id = m.id LEFT JOIN study AS s ON "
         "s.id = t.study_id ORDER BY m.id",
         mark_row);
    each(&v, "the trackers' outbox", "SELECT id, study_id, trial_id, created_ms, payload, checksum FROM outbox",
         outbox_row);
    enum status rc = store_read_end(v.store, begun, ST_OK);
    store_close(v.store);
    return rc;
}
