/* cmd_check.c - `trawl check` and `trawl backup`: is all of a store as it was written, and a copy of it while it is in
 * use. */
#include "base/os/file.h"
#include "base/text/json.h"
#include "store/store.h"
#include "sweep/cmd/commands.h"

static void print_finding(void *ctx, const char *text)
{
    fprintf(ctx, "damaged: %s\n", text);
}

#define BEFORE_CHECKSUMS "written before there were checksums"

/* unchecked: why rows may have no checksum */
static void print_tally(const char *name, const struct store_tally *t, const char *unchecked)
{
    printf("  %-16s %lld", name, (long long)t->n);
    if (t->n_unchecked > 0)
        printf("  (%lld of them unchecked: %s)", (long long)t->n_unchecked, unchecked);
    printf("\n");
}

static cJSON *verdict_json(const struct store_verdict *v)
{
    const struct {
        const char *name;
        const struct store_tally *tally;
    } rows[] = {{"studies", &v->studies},
                {"trials", &v->trials},
                {"curves", &v->curves},
                {"leases", &v->leases},
                {"outbox", &v->outbox}};
    cJSON *json = cJSON_CreateObject();

    json_add_i64(json, "damaged", v->n_damaged);
    json_add_i64(json, "points", v->points);
    for (size_t i = 0; i < COUNT(rows); i++) {
        cJSON *row = cJSON_CreateObject();
        json_add_i64(row, "n", rows[i].tally->n);
        json_add_i64(row, "unchecked", rows[i].tally->n_unchecked);
        json_add(json, rows[i].name, row);
    }
    return json;
}

static enum status damaged(const char *path, const struct store_verdict *v, struct error *err)
{
    return FAIL(err, ST_CORRUPT, "%s is damaged in %lld place(s); restore a backup", path, (long long)v->n_damaged);
}

enum status cmd_check(int argc, char **argv, struct error *err)
{
    bool json = false;
    struct store_verdict v;
    const struct cli_opt opts[] = {{"json", 0, CLI_FLAG, &json, NULL, "print one JSON object"}};
    const struct cli cli = {
        .name = "check",
        .synopsis = "trawl check STORE [--json]",
        .about =
            "Reads all of a store and compares it with its checksums: the structure of the file, every study, "
            "trial\nand learning curve, and the rows that wait for trackers. It only reads, also while a sweep runs. "
            "Every\ncommand checks the results that it uses; this one checks all and names each that is damaged.\n"
            "Rows of an older Trawl, which wrote no checksums, are counted as unchecked. Exit code 1: something is "
            "damaged.",
        .examples = "  trawl check runs.db\n"
                    "  trawl check runs.db --json",
        CLI_OPTS(opts),
        CLI_WORDS(1, 1, "a store"),
    };

    CLI_PARSE(cli, words);
    TRY(store_verify(words.v[0], &v, print_finding, json ? stderr : stdout, err));
    if (json)
        cli_print_json(verdict_json(&v));
    if (v.n_damaged > 0)
        return damaged(words.v[0], &v, err);
    if (json)
        return ST_OK;
    printf("%s is whole\n", words.v[0]);
    print_tally("studies", &v.studies, BEFORE_CHECKSUMS);
    print_tally("trials", &v.trials, BEFORE_CHECKSUMS);
    print_tally("learning curves", &v.curves, BEFORE_CHECKSUMS);
    printf("  %-16s %lld\n", "points", (long long)v.points);
    print_tally("leases", &v.leases, "rewritten when the store came to version 12");
    print_tally("outbox rows", &v.outbox, BEFORE_CHECKSUMS);
    return ST_OK;
}

static enum status backup(const char *from, const char *to, struct error *err)
{
    struct store *store = NULL;
    struct store_verdict v;

    if (file_exists(to))
        return FAIL(err, ST_EXISTS, "%s exists already; name another file", to);
    TRY(check_writable(to, err));
    enum status rc = store_open_reader(&store, from, err);
    THEN(rc, store_copy(store, to, err));
    store_close(store);
    TRY(rc);
    rc = store_verify(to, &v, print_finding, stderr, err);
    if (rc == ST_OK && v.n_damaged > 0)
        rc = FAIL(err, ST_CORRUPT,
                  "%s is damaged in %lld place(s), and a copy of that is not a backup; none was written", from,
                  (long long)v.n_damaged);
    if (rc != ST_OK) {
        (void)unlink(to);
        return rc;
    }
    log_info("wrote %s: %lld stud%s, %lld trial%s, %lld point%s, checked", to, (long long)v.studies.n,
             v.studies.n == 1 ? "y" : "ies", (long long)v.trials.n, PLURAL(v.trials.n), (long long)v.points,
             PLURAL(v.points));
    return ST_OK;
}

enum status cmd_backup(int argc, char **argv, struct error *err)
{
    const struct cli cli = {
        .name = "backup",
        .synopsis = "trawl backup STORE FILE",
        .about =
            "Copies a store as it is at one instant, also while a sweep or daemon writes it, and checks the copy.\n"
            "An existing file is never overwritten. To restore a backup, end the controller and put the file\n"
            "in the store's place, without the -wal and -shm files of the old one. Checkpoints are separate\nfiles, "
            "in STORE.checkpoints.",
        .examples = "  trawl backup runs.db /backup/runs-$(date +%F).db\n"
                    "  trawl backup runs.db copy.db && trawl check copy.db",
        .opts = NULL,
        CLI_WORDS(2, 2, "a store and the file to write"),
    };

    CLI_PARSE(cli, words);
    return backup(words.v[0], words.v[1], err);
}
