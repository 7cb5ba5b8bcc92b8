/* test_store_fault.c - wrong files, refused directories, a full disk, two writers, killed writers: each ends in one
 * status with a message that helps, and the store is whole afterwards. */
#include "store_test.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <sqlite3.h>
#include "base/rng.h"

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static char *read_file(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = calloc(1, 1 << 20);
    *ret_n = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

static void sql(const char *path, const char *text)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Neither way of opening takes the file, and its bytes are as before. */
static void refused_and_untouched(const char *path, enum status status, const char *word)
{
    struct store *store;
    struct stat lock;
    size_t n, n_after;
    MEM_LOCAL char *before = read_file(path, &n);
    char lock_path[160];

    FAILS(store_open_writer(&store, path, err), status, word);
    assert_null(store);
    FAILS(store_open_reader(&store, path, err), status, word);
    assert_null(store);
    MEM_LOCAL char *after = read_file(path, &n_after);
    assert_true(n == n_after && memcmp(before, after, n) == 0);
    snprintf(lock_path, sizeof lock_path, "%s.lock", path);
    assert_int_equal(stat(lock_path, &lock), -1);
}

static void fill(const char *path, int n_trials)
{
    STORE *store;
    OK(store_open_writer(&store, path, err));
    struct study study = study_make(store, "s");
    for (int i = 0; i < n_trials; i++) {
        struct trial t = trial_make(store, study.id);
        struct trial_result result = result_make(i, 1 + i);
        const struct metric_point points[] = {{1, 0.1, "loss", 0.5}, {2, 0.2, "loss", 0.25}};
        OK(store_trial_start(store, t.id, "cpu", NULL, err));
        OK(metrics_add(store, t.id, points, 2, NULL, err));
        OK(store_trials_finish(store, &(struct trial_end){t.id, &result, "{}"}, 1, err));
    }
}

PLACE_TEST(foreign_files_are_refused)
{
    static const char text[] = "lr = 0.01\nthis is somebody's config\n", tiny[] = "SQLite";

    write_file(place->path, text, sizeof text - 1);
    refused_and_untouched(place->path, ST_CORRUPT, "not a Trawl store");
    write_file(place->path, tiny, sizeof tiny - 1);
    refused_and_untouched(place->path, ST_CORRUPT, "not a Trawl store");
    unlink(place->path);
    sql(place->path, "CREATE TABLE trial (id INTEGER); CREATE TABLE study (id INTEGER); INSERT INTO trial VALUES (1)");
    refused_and_untouched(place->path, ST_CORRUPT, "another program");
    unlink(place->path);
    sql(place->path, "PRAGMA application_id = 1234; PRAGMA user_version = 1; CREATE TABLE x (y)");
    refused_and_untouched(place->path, ST_CORRUPT, "1234");
}

PLACE_TEST(other_versions_are_refused)
{
    fill(place->path, 1);
    sql(place->path, "PRAGMA journal_mode = DELETE; PRAGMA user_version = 99");
    refused_and_untouched(place->path, ST_VERSION, "newer Trawl");
    sql(place->path, "PRAGMA user_version = 0");
    refused_and_untouched(place->path, ST_CORRUPT, "store version 0");
}

/* Made by SQLite, ours from the first start on: what a kill between creation and first commit leaves. */
PLACE_TEST(unfinished_creation_is_finished)
{
    STORE *store;

    write_file(place->path, "", 0);
    FAILS(store_open_reader(&store, place->path, err), ST_NOTFOUND, "empty");
    sql(place->path, "PRAGMA journal_mode = WAL; CREATE TABLE x (y); DROP TABLE x");
    FAILS(store_open_reader(&store, place->path, err), ST_NOTFOUND, "empty");
    fill(place->path, 1);
    OK(store_open_reader(&store, place->path, err));
    OK(store_check(store, err));
}

PLACE_TEST(damage_is_found)
{
    STORE *store;
    size_t n;

    fill(place->path, 40);
    MEM_LOCAL char *good = read_file(place->path, &n), *bad = malloc(n);
    /* rubbish over the beginning of each table's or index's page; cut short; rubbish from the header on */
    for (size_t at = 4096; at + 2048 < n; at += 4096) {
        memcpy(bad, good, n);
        memset(bad + at, 0xa5, 2048);
        write_file(place->path, bad, n);
        FAILS(store_open_writer(&store, place->path, err), ST_CORRUPT, "restore a copy");
    }
    write_file(place->path, good, n / 2);
    FAILS(store_open_writer(&store, place->path, err), ST_CORRUPT, "restore a copy");
    FAILS(store_open_reader(&store, place->path, err), ST_CORRUPT, "restore a copy");
    memcpy(bad, good, n);
    memset(bad + 100, 0xa5, n - 100);
    write_file(place->path, bad, n);
    FAILS(store_open_reader(&store, place->path, err), ST_CORRUPT, "restore a copy");
    write_file(place->path, good, n);
    OK(store_open_writer(&store, place->path, err));
    OK(store_check(store, err));
}

/* A reader opened a file whose damage lies deeper: reading ends in a status, never in wrong rows. */
PLACE_TEST(reading_damage_is_a_status)
{
    struct store *store;
    struct study study;
    struct trial *trials;
    size_t n, n_trials;

    fill(place->path, 200);
    MEM_LOCAL char *good = read_file(place->path, &n), *bad = malloc(n);
    for (size_t at = 4096 * 2; at + 4096 <= n; at += 4096) {
        struct error err = {ST_OK, ""};
        memcpy(bad, good, n);
        memset(bad + at, 0, 4096);
        write_file(place->path, bad, n);
        enum status rc = store_open_reader(&store, place->path, &err);
        if (rc == ST_OK)
            rc = store_study_find(store, "s", &study, &err);
        if (rc == ST_OK) {
            rc = store_trial_list(store, study.id, &trials, &n_trials, &err);
            study_free(&study);
        }
        if (rc == ST_OK) {
            assert_int_equal(n_trials, 200);
            trial_list_free(trials, n_trials);
        } else {
            assert_true(rc == ST_CORRUPT || rc == ST_NOTFOUND);
            assert_true(err.text[0] != '\0');
        }
        store_close(store);
    }
}

PLACE_TEST(refused_paths)
{
    struct store *store;
    char path[160];

    FAILS(store_open_reader(&store, place->path, err), ST_IO, "there is no store at");
    FAILS(store_open_writer(&store, "/proc/trawl.db", err), ST_IO, "/proc/trawl.db");
    snprintf(path, sizeof path, "%s/no/such/dir.db", place->dir);
    FAILS(store_open_writer(&store, path, err), ST_IO, "directory does not exist");
    FAILS(store_open_writer(&store, place->dir, err), ST_IO, "directory");
    FAILS(store_open_reader(&store, place->dir, err), ST_IO, "directory");
}

/* Runs the test's body on a file system of its own: 1: done, 0: mounting is not allowed here. */
static bool with_mount(const char *dir, const char *options)
{
    if (mount("tmpfs", dir, "tmpfs", 0, options) == 0)
        return true;
    print_message("# no mount here (%s): the file system part is skipped\n", strerror(errno));
    return false;
}

PLACE_TEST(read_only_directory)
{
    struct store *store;
    struct study study;

    if (!with_mount(place->dir, "size=4m"))
        skip();
    fill(place->path, 3);
    OK(store_open_reader(&store, place->path, err)); /* leaves an empty log behind */
    OK(store_study_find(store, "s", &study, err));
    study_free(&study);
    store_close(store);
    assert_int_equal(mount(NULL, place->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    struct error why = {ST_OK, ""};
    enum status writer = store_open_writer(&store, place->path, &why),
                reader = store_open_reader(&store, place->path, NULL);
    bool found = reader == ST_OK && store_study_find(store, "s", &study, NULL) == ST_OK;
    if (found)
        study_free(&study);
    store_close(store);
    umount(place->dir);
    assert_int_equal(writer, ST_IO);
    assert_non_null(strstr(why.text, "Read-only"));
    assert_int_equal(reader, ST_OK); /* reading works where nothing can be written */
    assert_true(found);
}

/* Adds trials until the store refuses; returns the status and how many were taken. */
static enum status add_until_refused(struct store *store, int64_t study_id, int64_t *ret_n, struct error *err)
{
    static char config[20000];
    enum status rc = ST_OK;

    memset(config, 'x', sizeof config - 1);
    for (*ret_n = 0; *ret_n < 2000; ++*ret_n) {
        struct trial t = {.study_id = study_id, .params = "{}", .config = config, .origin = "sobol"};
        rc = store_trial_create(store, &t, err);
        if (rc != ST_OK)
            break;
    }
    return rc;
}

static void fill_disk(const char *dir)
{
    static const char block[4096];
    char path[160];
    size_t size = sizeof block;

    snprintf(path, sizeof path, "%s/fill", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(fd, block, size) == (ssize_t)size)
        ;
    close(fd);
}

/* What was written often is in the file: on a small disk the log must not take the file's room. */
PLACE_TEST(log_stays_small)
{
    static char config[20000];
    struct store *store;
    struct stat log;
    char path[160];

    memset(config, 'x', sizeof config - 1);
    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    for (int i = 0; i < 120; i++) { /* 2.4 MB */
        struct trial t = {.study_id = study.id, .params = "{}", .config = config, .origin = "sobol"};
        OK(store_trial_create(store, &t, err));
    }
    snprintf(path, sizeof path, "%s-wal", place->path);
    assert_int_equal(stat(path, &log), 0);
    store_close(store);
    assert_in_range(log.st_size, 1, 1500000);
}

/* People look at a study when its disk is full, where a reader has no room for its shared memory. */
PLACE_TEST(full_disk_can_be_read)
{
    static const char log[4096];
    char path[160];
    struct store *store;
    struct study study;
    struct error err_log = {ST_OK, ""};

    if (!with_mount(place->dir, "size=2m"))
        skip();
    fill(place->path, 3);
    fill_disk(place->dir);
    enum status read = store_open_reader(&store, place->path, NULL);
    bool found = read == ST_OK && store_study_find(store, "s", &study, NULL) == ST_OK;
    if (found)
        study_free(&study);
    store_close(store);
    /* The log of somebody who was killed: better nothing than what was true before it. */
    snprintf(path, sizeof path, "%s/fill", place->dir);
    unlink(path);
    snprintf(path, sizeof path, "%s-wal", place->path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool has_log = write(fd, log, sizeof log) == (ssize_t)sizeof log;
    close(fd);
    fill_disk(place->dir);
    enum status unread = store_open_reader(&store, place->path, &err_log);
    store_close(store);
    umount(place->dir);
    assert_int_equal(read, ST_OK);
    assert_true(found && has_log);
    assert_int_equal(unread, ST_IO);
    assert_non_null(strstr(err_log.text, "unfinished log"));
}

PLACE_TEST(full_disk)
{
    struct store *store;
    struct study_counts counts;
    struct error err_full = {ST_OK, ""};
    int64_t n = 0;

    if (!with_mount(place->dir, "size=1m"))
        skip();
    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    enum status rc = add_until_refused(store, study.id, &n, &err_full);
    enum status counted = store_study_counts(store, &study, &counts, NULL), checked = store_check(store, NULL);
    store_close(store);
    enum status again = store_open_reader(&store, place->path, NULL);
    struct study_counts later = {0};
    if (again == ST_OK)
        again = store_study_counts(store, &study, &later, NULL);
    store_close(store);
    umount(place->dir);
    assert_int_equal(rc, ST_IO);
    assert_non_null(strstr(err_full.text, "the disk is full"));
    assert_true(counted == ST_OK && checked == ST_OK && counts.n[TRIAL_QUEUED] == n && n > 5);
    assert_true(again == ST_OK && later.n[TRIAL_QUEUED] == n);
}

static bool free_space(void *ctx, const char *store_path, bool has_space)
{
    char path[160];
    int *n_calls = ctx;

    if (has_space) {
        *n_calls += 100;
        return true;
    }

    snprintf(path, sizeof path, "%.*s/fill", (int)(strrchr(store_path, '/') - store_path), store_path);
    return ++*n_calls < 3 || unlink(path) == 0;
}

/* A write that found no room is tried again when its owner has waited for some, and is then there once. */
PLACE_TEST(full_disk_is_waited_for)
{
    struct store *store;
    struct study_counts counts = {0};
    struct error said = {ST_OK, ""};
    struct trial t = {.params = "{}", .config = "", .origin = "sobol"};
    enum status rc, nobody, other;
    int64_t n = 0;
    int n_calls = 0;

    if (!with_mount(place->dir, "size=1m"))
        skip();
    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    t.study_id = study.id;
    fill_disk(place->dir);
    (void)add_until_refused(store, study.id, &n, NULL);
    nobody = store_trial_create(store, &t, &said);
    bool waited = store_wait_for_space(store, nobody, &said); /* nobody does */
    error_clear(&said);
    store_on_full(store, free_space, &n_calls);
    STORE_INSIST(rc, store, &said, store_trial_create(store, &t, &said));
    int n_needed = n_calls;
    other = store_trial_requeue(store, t.id, REQUEUE_STOPPED, NULL); /* a failure that no room mends */
    waited = store_wait_for_space(store, other, NULL) || waited;
    enum status counted = store_study_counts(store, &study, &counts, NULL);
    store_close(store);
    umount(place->dir);
    assert_int_equal(nobody, ST_IO);
    assert_false(waited);
    assert_int_equal(rc, ST_OK);
    assert_int_equal(said.status, ST_OK);
    assert_int_equal(n_needed, 3 + 100); /* and is called once when it was written */
    assert_int_equal(other, ST_EXISTS);
    assert_true(counted == ST_OK && counts.n[TRIAL_QUEUED] == n + 1);
}

/* The same without a mount: files may not grow beyond a limit. */
STORE_TEST(full_store_keeps_what_it_has)
{
    struct study_counts counts;
    struct error err_full = {ST_OK, ""};
    int64_t n = 0;

    struct study study = study_make(store, "s");
    struct sigaction old, ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &ignore, &old);
    struct rlimit open_limit, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &open_limit), 0);
    limit = open_limit;
    limit.rlim_cur = 600000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum status rc = add_until_refused(store, study.id, &n, &err_full);
    setrlimit(RLIMIT_FSIZE, &open_limit);
    sigaction(SIGXFSZ, &old, NULL);
    assert_int_equal(rc, ST_IO);
    assert_non_null(strstr(err_full.text, "raise the limit (ulimit -f)"));
    OK(store_study_counts(store, &study, &counts, err));
    assert_int_equal(counts.n[TRIAL_QUEUED], n);
    OK(store_check(store, err));
    struct trial t = trial_make(store, study.id); /* and goes on when there is room again */
    assert_int_equal(t.number, n);
}

PLACE_TEST(one_writer_many_readers)
{
    struct store *writer, *second, *reader;
    struct study found;
    struct study_counts counts;
    char pid[24];

    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    OK(store_open_writer(&writer, place->path, err));
    struct study study = study_make(writer, "s");
    FAILS(store_open_writer(&second, place->path, err), ST_BUSY, pid);
    OK(store_open_reader(&reader, place->path, err));
    for (int i = 0; i < 5; i++) { /* the reader sees each commit and never blocks the next */
        trial_make(writer, study.id);
        OK(store_study_counts(reader, &study, &counts, err));
        assert_int_equal(counts.n[TRIAL_QUEUED], i + 1);
    }
    FAILS(store_study_create(reader, &study, err), ST_INTERNAL, "reading only");
    store_close(writer);
    OK(store_study_find(reader, "s", &found, err)); /* goes on without a writer */
    study_free(&found);
    OK(store_open_writer(&writer, place->path, err));
    store_close(reader);

    FAILS(store_open_writer(&second, place->path, err), ST_BUSY, pid);
    store_close(writer);
    store_close(NULL);
}

/* A writer that adds, reports and finishes until it is killed; each finished number goes down the pipe first. */
static void write_until_killed(const char *path, int pipe_fd)
{
    struct store *store;
    struct study study;
    int64_t n;

    if (store_open_writer(&store, path, NULL) != ST_OK || store_study_find(store, "s", &study, NULL) != ST_OK)
        _exit(3);
    if (store_trials_recover(store, study.id, true, &n, NULL) != ST_OK)
        _exit(4);
    for (;;) {
        struct trial t = {.study_id = study.id, .params = "{}", .config = "[train]\n", .origin = "sobol"};
        const struct metric_point points[] = {{1, 0.1, "loss", 0.5}, {2, 0.2, "perf", NAN}};
        struct trial_result result = result_make(1.0, 1.0);
        result.points = points;
        result.n_points = 2;
        result.checkpoint_path = "x.ckpt";
        if (store_trial_create(store, &t, NULL) != ST_OK ||
            store_trial_start(store, t.id, "cpu", NULL, NULL) != ST_OK ||
            metrics_add(store, t.id, points, 2, "{}", NULL) != ST_OK ||
            store_trials_finish(store, &(struct trial_end){t.id, &result, "{}"}, 1, NULL) != ST_OK)
            _exit(5);
        if (write(pipe_fd, &t.number, sizeof t.number) != sizeof t.number)
            _exit(6);
    }
}

PLACE_TEST(killed_writers_leave_a_whole_store)
{
    struct store *store;
    struct trial *trials;
    struct curve_point *curve;
    size_t n, n_points;
    struct rng rng = rng_seed(5);
    int64_t number, last = -1;

    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    store_close(store);
    for (int round = 0; round < 30; round++) {
        int fds[2], status;
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            close(fds[0]);
            write_until_killed(place->path, fds[1]);
        }
        close(fds[1]);
        /* Every other one first ends some trials, however slow the machine and its disk. */
        for (int64_t n_first = round % 2 * (1 + (int64_t)rng_below(&rng, 6)); n_first > 0; n_first--)
            assert_int_equal(read(fds[0], &last, sizeof last), sizeof last);
        usleep(500 + rng_below(&rng, 25000));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status)); /* it never gave up by itself */
        while (read(fds[0], &number, sizeof number) == sizeof number)
            last = number;
        close(fds[0]);

        OK(store_open_reader(&store, place->path, err));
        OK(store_check(store, err));
        OK(store_trial_list(store, study.id, &trials, &n, err));
        int64_t open = 0;
        assert_true((int64_t)n > last);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(trials[i].number, i);
            if ((int64_t)i <= last && trials[i].attempt == 1 && trials[i].state != TRIAL_QUEUED &&
                trials[i].state != TRIAL_RUNNING)
                assert_int_equal(trials[i].state, TRIAL_DONE);
            open += trials[i].state == TRIAL_RUNNING;
        }
        if (last >= 0)
            assert_int_equal(trials[last].state, TRIAL_DONE); /* what was reported finished is there */
        assert_true(open <= 1); /* only what was in flight is not */
        if (last >= 0) {
            OK(store_curve(store, trials[last].id, "perf", &curve, &n_points, err));
            assert_true(n_points == 1 && isnan(curve[0].value));
            mem_free(curve);
        }
        trial_list_free(trials, n);
        store_close(store);
    }
    assert_true(last >= 15);
}

TEST_PROGRAM("store faults")
