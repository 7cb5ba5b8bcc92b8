/* test_checksum.c - flipped bits of a store, in its values and anywhere in its file: what is read is right, or it is an
 * error. */
#include "tests/store/store_test.h"

#include <inttypes.h>

#include <sqlite3.h>

#define DUMP_MAX (1u << 22)
#define FLIPS_OF_FILE 600

static const char *const metric_names[] = {"score", "train/lr", "unheard of"};

/* Two studies; trials done, stopped, failed with a log, running, queued; curves with NaN and infinity; an outbox. */
static void make(const char *path)
{
    STORE *store;

    OK(store_open_writer(&store, path, err));
    for (int s = 0; s < 2; s++) {
        struct study study = study_make(store, s == 0 ? "a" : "b");
        char key[TRACKER_KEY_MAX];
        OK(store_tracker_register(store, study.id, "wandb", key, err));
        for (int i = 0; i < 6; i++) {
            struct trial trial = trial_make(store, study.id);
            struct metric_point points[8];
            if (i == 5)
                break; /* queued */
            OK(store_trial_start(store, trial.id, "cpu", "cpu/1", err));
            for (int k = 0; k < 4; k++) {
                points[2 * k] = (struct metric_point){100 * (k + 1), 0.5 * k, "score", k == 2 ? NAN : 0.25 * k};
                points[2 * k + 1] =
                    (struct metric_point){100 * (k + 1), 0.5 * k, "train/lr", k == 3 ? (double)INFINITY : -1e-3 * k};
            }
            OK(metrics_add(store, trial.id, points, 8, "{\"type\":\"metrics\"}", err));
            struct trial_result result = result_make(0.125 * i, 3.0 + i);
            if (i == 1)
                result.state = TRIAL_STOPPED;
            if (i == 2) {
                result = (struct trial_result){.state = TRIAL_FAILED,
                                               .score = NAN,
                                               .perf = NAN,
                                               .cost_s = 1.5,
                                               .device_s = NAN,
                                               .reason = "killed by signal 9",
                                               .log_tail = "line one\nline two\n"};
            }
            result.eval_episodes = i == 0 ? 64 : 0;
            result.score_se = 0.01;
            result.program = "trawl 0.1.0";
            if (i < 4)
                OK(store_trials_finish(store, &(struct trial_end){trial.id, &result, "{\"type\":\"result\"}"}, 1, err));
        }
    }
}

static void dump_study(struct strbuf *out, const struct study *s)
{
    strbuf_addf(out, "study %s %s %s %s %s %d %" PRId64 " %" PRId64 " %a %s %d %s\n", s->name, s->config, s->space,
                s->method, s->metric, s->maximize, s->seed, s->limits.trials_max, s->limits.budget_s, s->program,
                s->state, s->end_text != NULL ? s->end_text : "");
}

static void dump_trial(struct strbuf *out, const struct trial *t)
{
    strbuf_addf(out, "trial %" PRId64 " %s %s %s %s %" PRId64 " %" PRId64 " %a %a %a %a %" PRId64 " %s %s %a %" PRId64,
                t->number, trial_state_name(t->state), t->params, t->config, t->origin, t->seed, t->attempt, t->score,
                t->perf, t->cost_s, t->device_s, t->env_steps, t->device != NULL ? t->device : "-",
                t->reason != NULL ? t->reason : "-", t->score_se, t->eval_episodes);
    strbuf_addf(out, " %s %s %s %" PRId64 " %" PRId64 "\n", t->log_tail != NULL ? t->log_tail : "-",
                t->program != NULL ? t->program : "-", t->slot != NULL ? t->slot : "-", t->started_ms, t->finished_ms);
}

static enum status dump_curves(struct store *store, int64_t trial_id, struct strbuf *out)
{
    char **names = NULL;
    size_t n_names = 0;

    TRY(store_metric_names(store, trial_id, &names, &n_names, NULL));
    for (size_t i = 0; i < n_names; i++)
        strbuf_addf(out, "name %s\n", names[i]);
    store_names_free(names, n_names);
    for (size_t i = 0; i < COUNT(metric_names); i++) {
        struct curve_point *points = NULL, last;
        bool found;
        size_t n = 0;
        TRY(store_curve(store, trial_id, metric_names[i], &points, &n, NULL));
        for (size_t k = 0; k < n; k++)
            strbuf_addf(out, "%s %" PRId64 " %a %a\n", metric_names[i], points[k].env_steps, points[k].wall_s,
                        points[k].value);
        mem_free(points);
        TRY(store_metric_last(store, trial_id, metric_names[i], &last, &found, NULL));
        if (found)
            strbuf_addf(out, "last %" PRId64 " %a %a\n", last.env_steps, last.wall_s, last.value);
    }
    return ST_OK;
}

static enum status dump_one(struct store *store, const struct study *study, struct strbuf *out)
{
    struct study_counts counts;
    struct trial *trials = NULL;
    size_t n = 0;

    dump_study(out, study);
    TRY(store_study_counts(store, study, &counts, NULL));
    strbuf_addf(out, "counts %" PRId64 " %" PRId64 " %a %a\n", counts.n[TRIAL_DONE], counts.n[TRIAL_FAILED],
                counts.best_score, counts.cost_s);
    enum status rc = store_trial_list(store, study->id, &trials, &n, NULL);
    for (size_t i = 0; rc == ST_OK && i < n; i++) {
        dump_trial(out, &trials[i]);
        rc = dump_curves(store, trials[i].id, out);
    }
    trial_list_free(trials, n);
    return rc;
}

static enum status dump_outbox(const char *path, struct strbuf *out)
{
    struct store *store = NULL;
    enum status rc = store_open_writer(&store, path, NULL);

    for (int64_t study = 1; rc == ST_OK && study <= 2; study++)
        for (int64_t trial = 0; rc == ST_OK && trial <= 12; trial++) {
            struct outbox_list list;
            rc = store_outbox_read(store, study, trial, 0, INT64_MAX, 100, 1 << 20, &list, NULL);
            for (size_t k = 0; rc == ST_OK && k < list.n; k++)
                strbuf_addf(out, "outbox %d %d %s\n", (int)study, (int)trial, list.rows[k].payload);
            outbox_list_free(&list);
        }
    store_close(store);
    return rc;
}

/* All that readers of the store are given, and what `trawl sync` sends, as text. */
static enum status dump(const char *path, struct strbuf *out)
{
    struct store *store = NULL;
    struct study *studies = NULL;
    size_t n = 0;

    strbuf_clear(out);
    enum status rc = store_open_reader(&store, path, NULL);
    if (rc == ST_OK)
        rc = store_study_list(store, &studies, &n, NULL);
    for (size_t i = 0; rc == ST_OK && i < n; i++)
        rc = dump_one(store, &studies[i], out);
    study_list_free(studies, n);
    store_close(store);
    return rc == ST_OK ? dump_outbox(path, out) : rc;
}

struct bytes {
    unsigned char *v;
    size_t n;
};

static struct bytes read_file(const char *path)
{
    struct bytes b = {.v = malloc(1 << 22)};
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    b.n = fread(b.v, 1, 1 << 22, file);
    fclose(file);
    return b;
}

static void put_file(const char *path, const struct bytes *b)
{
    static const char *const beside[] = {"-wal", "-shm"};
    char name[160];

    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s%s", path, beside[i]);
        unlink(name);
    }
    FILE *file = fopen(path, "wb");
    assert_true(file != NULL && fwrite(b->v, 1, b->n, file) == b->n && fclose(file) == 0);
}

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

PLACE_TEST(bits_of_the_file)
{
    uint64_t dice = 17;
    int n_right = 0;
    STRBUF(right, DUMP_MAX);
    STRBUF(now, DUMP_MAX);

    make(place->path);
    struct bytes file = read_file(place->path);
    assert_int_equal(dump(place->path, &right), ST_OK);
    for (int i = 0; i < FLIPS_OF_FILE; i++) {
        size_t at = next(&dice) % file.n, bit = next(&dice) % 8;
        file.v[at] ^= (unsigned char)(1u << bit);
        put_file(place->path, &file);
        file.v[at] ^= (unsigned char)(1u << bit);
        if (dump(place->path, &now) != ST_OK)
            continue;
        n_right++;
        if (strcmp(now.text, right.text) != 0)
            fail_msg("byte %zu bit %zu: read as if it were right:\n%s\n-- is not --\n%s", at, bit, now.text,
                     right.text);
    }
    print_message("# %d of %d flips are of no account, the others were reported\n", n_right, FLIPS_OF_FILE);
    assert_in_range(n_right, 1, FLIPS_OF_FILE - 40);
    free(file.v);
}

/* Flips one bit of a value, as far as the table's own rules let it; false: they refuse. */
static bool flip_value(sqlite3 *db, const char *table, const char *column, int64_t row, unsigned bit)
{
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf("SELECT %s FROM %s LIMIT 1 OFFSET %lld", column, table, (long long)row);
    bool there = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW;
    int type = there ? sqlite3_column_type(stmt, 0) : SQLITE_NULL;
    sqlite3_value *value = there ? sqlite3_value_dup(sqlite3_column_value(stmt, 0)) : NULL;

    sqlite3_finalize(stmt);
    sqlite3_free(sql);
    if (type == SQLITE_NULL) {
        sqlite3_value_free(value);
        return false;
    }
    const char *key = strcmp(table, "metric") == 0 ? "(trial_id, name_id, env_steps)" : "rowid";
    sql =
        sqlite3_mprintf("UPDATE %s SET %s = ?1 WHERE %s = (SELECT %s FROM %s LIMIT 1 OFFSET %lld)", table, column, key,
                        strcmp(table, "metric") == 0 ? "trial_id, name_id, env_steps" : "rowid", table, (long long)row);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    sqlite3_free(sql);
    int n = sqlite3_value_bytes(value);
    if (type == SQLITE_INTEGER) {
        sqlite3_bind_int64(stmt, 1, (int64_t)((uint64_t)sqlite3_value_int64(value) ^ (1ull << bit % 63)));
    } else if (type == SQLITE_FLOAT) {
        double number = sqlite3_value_double(value);
        uint64_t bits;
        memcpy(&bits, &number, 8);
        bits ^= 1ull << bit % (number == 0 ? 63 : 64); /* -0 is 0 */
        memcpy(&number, &bits, 8);
        sqlite3_bind_double(stmt, 1, number);
    } else {
        unsigned char *bytes = malloc((size_t)n + 1);
        memcpy(bytes, sqlite3_value_blob(value), (size_t)n);
        if (n > 0)
            bytes[bit / 8 % (unsigned)n] ^= (unsigned char)(1u << bit % 8);
        if (type == SQLITE_BLOB)
            sqlite3_bind_blob(stmt, 1, bytes, n, free);
        else
            sqlite3_bind_text(stmt, 1, (char *)bytes, n, free);
    }
    bool done = sqlite3_step(stmt) == SQLITE_DONE && sqlite3_changes(db) == 1;
    sqlite3_finalize(stmt);
    sqlite3_value_free(value);
    return done;
}

/* One value of a copy is changed; true: the store took the change. */
static bool with_flip(const struct place *place, const struct bytes *file, const char *table, const char *column,
                      int64_t row, unsigned bit)
{
    sqlite3 *db;

    put_file(place->path, file);
    assert_int_equal(sqlite3_open(place->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DROP TRIGGER trial_finished_is_final", NULL, NULL, NULL), SQLITE_OK);
    bool done = flip_value(db, table, column, row, bit);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return done;
}

/* "a b c": the columns of a table of the store. */
static void column_names(const char *path, const char *table, char *ret, size_t size)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    size_t used = 0;
    char *sql = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q)", table);

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        used += (size_t)snprintf(ret + used, size - used, "%s ", (const char *)sqlite3_column_text(stmt, 0));
    assert_in_range(used, 1, size - 1);
    sqlite3_free(sql);
    sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

PLACE_TEST(bits_of_values)
{
    static const char *const tables[] = {"study", "trial", "metric", "curve_sum", "outbox"};
    uint64_t dice = 5;
    int n_made = 0, n_reported = 0;
    STRBUF(right, DUMP_MAX);
    STRBUF(now, DUMP_MAX);

    make(place->path);
    struct bytes file = read_file(place->path);
    assert_int_equal(dump(place->path, &right), ST_OK);
    for (size_t t = 0; t < COUNT(tables); t++) {
        char columns[1024], *rest = columns, *column;
        put_file(place->path, &file);
        column_names(place->path, tables[t], columns, sizeof columns);
        bool is_row = strcmp(tables[t], "trial") == 0 || strcmp(tables[t], "study") == 0;
        while ((column = strtok_r(rest, " ", &rest)) != NULL) {
            /* Which run a row is of stands in an index too, like the names of metrics: a bit in one of the two is found
             * by SQLite. */
            bool is_key = strcmp(tables[t], "outbox") == 0 && strstr(column, "_id") != NULL;
            for (int k = 0; k < 4 && !is_key; k++) {
                int64_t row = (int64_t)(next(&dice) % (strcmp(tables[t], "metric") == 0 ? 40 : 6));
                if (!with_flip(place, &file, tables[t], column, row, (unsigned)next(&dice)))
                    continue;
                struct store_verdict verdict;
                OK(store_verify(place->path, &verdict, NULL, NULL, err));
                enum status rc = dump(place->path, &now);
                n_made++;
                n_reported += rc != ST_OK;
                if ((rc == ST_OK && strcmp(now.text, right.text) != 0) || (rc != ST_CORRUPT && is_row))
                    fail_msg("%s.%s of row %lld: read as if it were right (%s)", tables[t], column, (long long)row,
                             status_name(rc));
                if (rc == ST_CORRUPT && verdict.n_damaged == 0)
                    fail_msg("%s.%s of row %lld: the check finds nothing", tables[t], column, (long long)row);
            }
        }
    }
    print_message("# %d values changed, %d reported, the others are of no account\n", n_made, n_reported);
    assert_true(n_reported > 100);
    free(file.v);
}

static int n_lines;
static char last_line[512];

static void hear(void *ctx, const char *text)
{
    (void)ctx;
    n_lines++;
    snprintf(last_line, sizeof last_line, "%s", text);
}

/* What is damaged is named, and never sealed again by a change of its row. */
PLACE_TEST(named_and_not_sealed)
{
    struct store *store;
    struct trial trial;
    struct store_verdict verdict;

    make(place->path);
    OK(store_verify(place->path, &verdict, hear, NULL, err));
    assert_int_equal(verdict.n_damaged + n_lines, 0);
    assert_int_equal(verdict.studies.n, 2);
    assert_int_equal(verdict.trials.n, 12);
    assert_int_equal(verdict.curves.n, 20);
    assert_int_equal(verdict.points, 80);
    assert_int_equal(verdict.trials.n_unchecked + verdict.curves.n_unchecked + verdict.studies.n_unchecked, 0);

    struct bytes file = read_file(place->path);
    assert_true(with_flip(place, &file, "trial", "seed", 4, 3)); /* the running one of the first study */
    FAILS(store_open_reader(&store, place->path, err) == ST_OK ? store_trial_find(store, 1, 4, &trial, err)
                                                               : ST_INTERNAL,
          ST_CORRUPT, "trial 4 of study 'a' is damaged");
    store_close(store);
    OK(store_verify(place->path, &verdict, hear, NULL, err));
    assert_int_equal(n_lines, 1);
    assert_non_null(strstr(last_line, "trial 4 of study 'a'"));
    OK(store_open_writer(&store, place->path, err));
    struct trial_result result = result_make(0.5, 1.0);
    int64_t n;
    FAILS(store_trials_finish(store, &(struct trial_end){5, &result, NULL}, 1, err), ST_CORRUPT, "is damaged");
    FAILS(store_trial_requeue(store, 5, REQUEUE_STOPPED, err), ST_CORRUPT, "is damaged");
    FAILS(store_trials_recover(store, 1, true, &n, err), ST_CORRUPT, "is damaged");
    OK(store_trials_recover(store, 2, true, &n, err));
    assert_int_equal(n, 1);
    store_close(store);
    free(file.v);
}

/* Points that come again, in any order, and a trial that continues: the sums stay those of what is there. */
PLACE_TEST(sums_of_curves)
{
    STORE *store;
    struct store_verdict verdict;
    struct curve_point *points;
    size_t n;

    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    struct trial trial = trial_make(store, study.id);
    OK(store_trial_start(store, trial.id, "cpu", NULL, err));
    const struct metric_point first[] = {{300, 1, "a", 1.0}, {100, 1, "a", 2.0}, {200, 1, "b", -0.0}};
    const struct metric_point again[] = {
        {100, 2, "a", 5.0}, {300, 2, "a", 6.0}, {300, 3, "a", NAN}, {250, 1, "a", 7.0}};
    OK(metrics_add(store, trial.id, first, 3, NULL, err));
    OK(store_trial_requeue(store, trial.id, REQUEUE_STOPPED, err));
    OK(store_trial_resume(store, trial.id, "cpu", NULL, err));
    OK(metrics_add(store, trial.id, again, 4, NULL, err));
    OK(store_curve(store, trial.id, "a", &points, &n, err));
    assert_int_equal(n, 3);
    assert_true(points[0].value == 5.0 && points[1].value == 7.0 && isnan(points[2].value));
    mem_free(points);
    OK(store_curve(store, trial.id, "b", &points, &n, err));
    assert_int_equal(n, 1);
    mem_free(points);
    store_close(store);
    OK(store_verify(place->path, &verdict, NULL, NULL, err));
    assert_int_equal(verdict.n_damaged, 0);

    OK(store_open_writer(&store, place->path, err));
    OK(store_trial_requeue(store, trial.id, REQUEUE_STOPPED, err));
    OK(store_trial_start(store, trial.id, "cpu", NULL, err)); /* again: nothing is left of the curve */
    OK(store_curve(store, trial.id, "a", &points, &n, err));
    assert_int_equal(n, 0);
    OK(metrics_add(store, trial.id, first, 3, NULL, err));
    OK(store_curve(store, trial.id, "a", &points, &n, err));
    assert_int_equal(n, 2);
    mem_free(points);
}

TEST_PROGRAM("store checksums")
