/* cmd_migrate.c - `trawl migrate`: a whole store from a file to PostgreSQL, or back. */
#include "base/text/json.h"
#include "store/store.h"
#include "sweep/cmd/commands.h"

static cJSON *copied_json(const struct store_copied *copied)
{
    cJSON *json = cJSON_CreateObject();
    char sum[20];

    for (size_t i = 0; i < STORE_TABLES; i++) {
        cJSON *row = cJSON_CreateObject();
        snprintf(sum, sizeof sum, "%llx", (unsigned long long)copied->tables[i].sum);
        json_add_i64(row, "rows", copied->tables[i].rows.n);
        json_add_i64(row, "changed", copied->tables[i].rows.n_unchecked);
        json_add_str(row, "sum", sum);
        json_add(json, copied->tables[i].name, row);
    }
    return json;
}

enum status cmd_migrate(int argc, char **argv, struct error *err)
{
    bool json = false;
    struct store_copied copied;
    const struct cli_opt opts[] = {{"json", 0, CLI_FLAG, &json, NULL, "print one JSON object"}};
    const struct cli cli = {
        .name = "migrate",
        .synopsis = "trawl migrate FROM TO [--json]",
        .about =
            "Copies a whole store, studies, trials, curves and what waits for trackers, into an empty one: from a\n"
            "file into a database of PostgreSQL, back, or between two of a kind. FROM stays as it is. Neither may\n"
            "have a controller meanwhile. All rows are written in one transaction, read again and compared by\ncount "
            "and sum; a target that has a study is refused. Ids stay, so trackers continue where they are.\n"
            "Checkpoints are separate files: copy STORE.checkpoints too, so that trials can resume from them.",
        .examples = "  trawl migrate runs.db postgresql://db/trawl\n"
                    "  trawl migrate postgresql://db/trawl runs.db",
        CLI_OPTS(opts),
        CLI_WORDS(2, 2, "a store and an empty one"),
    };

    CLI_PARSE(cli, words);
    TRY(store_address_check(words.v[1], err));
    TRY(check_writable(words.v[1], err));
    TRY(store_migrate(words.v[0], words.v[1], &copied, err));
    if (json) {
        cli_print_json(copied_json(&copied));
        return ST_OK;
    }
    printf("%s has all of %s: rows and their sums\n", words.v[1], words.v[0]);
    for (size_t i = 0; i < STORE_TABLES; i++) {
        printf("  %-12s %10lld  %016llx", copied.tables[i].name, (long long)copied.tables[i].rows.n,
               (unsigned long long)copied.tables[i].sum);
        if (copied.tables[i].rows.n_unchecked > 0)
            printf("  (%lld with bytes that are not UTF-8: they are ? now, without a checksum)",
                   (long long)copied.tables[i].rows.n_unchecked);
        printf("\n");
    }
    return ST_OK;
}
