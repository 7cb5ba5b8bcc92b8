/* cmd_replay.c - `trawl replay`: a study's proposals again, from the results that each of them had seen. */
#include "base/text/json.h"
#include "store/store.h"
#include "study/version.h"
#include "sweep/cmd/commands.h"
#include "sweep/proposals/replay.h"

struct tally {
    int64_t n[REPLAY_OUTCOMES];
    int64_t first; /* that differs; -1: none */
};

static void print_difference(const struct replayed *r)
{
    printf("trial %lld: it was proposed as %s (%s), and is now ", (long long)r->number, r->params, r->origin);
    if (r->now_params != NULL)
        printf("%s (%s)\n", r->now_params, r->now_origin);
    else
        printf("not proposed: %s\n", r->why);
}

static void add_difference(cJSON *list, const struct replayed *r)
{
    cJSON *json = cJSON_CreateObject();

    json_add_i64(json, "trial", r->number);
    json_add_str(json, "params", r->params);
    json_add_str(json, "origin", r->origin);
    json_add_str(json, "now_params", r->now_params);
    json_add_str(json, "now_origin", r->now_params != NULL ? r->now_origin : NULL);
    if (r->now_params == NULL)
        json_add_str(json, "why", r->why);
    cJSON_AddItemToArray(list, json);
}

/* differences: a list; NULL: they are printed. */
static enum status replay_all(struct replay *replay, struct tally *t, cJSON *differences, struct error *err)
{
    struct replayed r;

    t->first = -1;
    for (;;) {
        TRY(replay_next(replay, &r, err));
        if (r.number < 0)
            return ST_OK;
        t->n[r.outcome]++;
        if (r.outcome != REPLAY_DIFFERS)
            continue;
        t->first = t->first < 0 ? r.number : t->first;
        if (differences != NULL)
            add_difference(differences, &r);
        else
            print_difference(&r);
    }
}

static void print_tally(const char *name, const struct tally *t)
{
    printf("%s: %lld of %lld proposals are the same again, to the byte\n", name, (long long)t->n[REPLAY_SAME],
           (long long)(t->n[REPLAY_SAME] + t->n[REPLAY_DIFFERS]));
    if (t->n[REPLAY_GIVEN] > 0)
        printf("  not proposed: %lld of the trials (the config itself, branches, values that people gave, repeats)\n",
               (long long)t->n[REPLAY_GIVEN]);
    if (t->n[REPLAY_UNRECORDED] > 0)
        printf("  %lld proposals are of an older Trawl, which did not keep what they had seen\n",
               (long long)t->n[REPLAY_UNRECORDED]);
}

static enum status replay(const char *path, const char *name, bool as_json, struct error *err)
{
    AT_END(store_close_at) struct store *store = NULL;
    struct replay *replay = NULL;
    struct tally t = {0};
    cJSON *differences = NULL;
    JSON_LOCAL cJSON *json = NULL;

    TRY(store_open_reader(&store, path, err));
    TRY(replay_open(&replay, store, name, err));
    if (as_json) {
        json = cJSON_CreateObject();
        differences = cJSON_AddArrayToObject(json, "differences");
    }
    enum status rc = replay_all(replay, &t, differences, err);
    replay_close(replay);
    TRY(rc);
    if (as_json) {
        json_add_str(json, "study", name);
        json_add_i64(json, "same", t.n[REPLAY_SAME]);
        json_add_i64(json, "given", t.n[REPLAY_GIVEN]);
        json_add_i64(json, "unrecorded", t.n[REPLAY_UNRECORDED]);
        cli_print_json(json);
        json = NULL;
    } else {
        print_tally(name, &t);
    }
    if (t.first >= 0)
        return FAIL(
            err, ST_CORRUPT,
            "%s: %lld proposals differ, the first is trial %lld. Another build of Trawl (this is %s), another kind of "
            "processor, or a trial of the study of --from that was dropped since then can be why",
            name, (long long)t.n[REPLAY_DIFFERS], (long long)t.first, program_text);
    return ST_OK;
}

enum status cmd_replay(int argc, char **argv, struct error *err)
{
    const char *path = "trawl.db";
    bool json = false;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &path, "FILE", "the store (trawl.db)"},
        {"json", 0, CLI_FLAG, &json, NULL, "print one JSON object"},
    };
    const struct cli cli = {
        .name = "replay",
        .synopsis = "trawl replay NAME [--store FILE] [--json]",
        .about =
            "Makes every proposal of a study again, from the results that it had seen, and compares the values "
            "to\nthe byte. With many workers the order of results varies; the store has the order in which this "
            "study's\nproposals saw them, so they can be checked, whatever was killed meanwhile. Trains nothing and "
            "changes\nnothing; exit code 1 if a proposal differs.",
        .examples = "  trawl replay first --store my.db\n"
                    "  trawl replay first --json",
        CLI_OPTS(opts),
        CLI_WORDS(1, 1, "a study's name"),
    };

    CLI_PARSE(cli, words);
    return replay(path, words.v[0], json, err);
}
