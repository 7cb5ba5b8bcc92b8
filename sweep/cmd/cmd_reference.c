/* cmd_reference.c - `trawl reference` (hidden): docs/options.md, written from the option tables, so that it cannot
 * lie. */
#include "study/dialect/dialect.h"
#include "study/setup/setup.h"
#include "study/version.h"
#include "sweep/cmd/commands.h"

static const char head[] =
    "# Options\n\n"
    "Written by `trawl reference > docs/options.md` from the tables that the program itself reads; do not edit.\n\n"
    "A key appears in a config file as `key = value` under its `[section]`, or on the command line as\n"
    "`--section.key value`. Later ones win: defaults, the game's own defaults, the file, the command line. Numbers may "
    "be\n"
    "written `1_000_000`, `1M`, `64k` or `3e7`. The column *swept* states how a sweep searches the option if its\n"
    "`[sweep.SECTION.KEY]` section is empty; such a section may hold `distribution` (linear, log, logit, pow2, int,\n"
    "categorical), `min`, `max`, `mean` (where the first trial starts) and, for choices, `values`.\n";

static enum status add_game(const struct env_def *env, struct strbuf *out, struct error *err)
{
    struct config *config = config_create();
    enum status rc = config_add_table(config, &env->options, err);

    THEN(rc, config_write_reference(config, out, err));
    for (size_t i = 0; rc == ST_OK && i < env->about->n_defaults; i++)
        strbuf_addf(out, "%s`%s = %s` unless the config does.\n", i == 0 ? "\nSets " : "", env->about->defaults[i].key,
                    env->about->defaults[i].value);
    config_destroy(config);
    return rc;
}

static const char *const how_text[] = {"read as", "left out", "only", "else a warning", "by code"};

/* Names of the PufferLib ini family. */
static void add_dialect(struct strbuf *out)
{
    strbuf_add(out,
               "\n## Names from the PufferLib ini family\n\nConfigs of PufferLib 3.0 and 4.0 train here as they do "
               "there: [puffer.md](puffer.md). Their names, their version,\nand how they are read:\n\n| name | of | "
               "how | ours, or the values | why |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < dialect_n_rows; i++) {
        const struct dialect_row *r = &dialect_rows[i];
        strbuf_addf(out, "| `%s` | %s | %s | ", r->key,
                    r->of == DIALECT_3      ? "3.0"
                    : r->of == DIALECT_4    ? "4.0"
                    : r->of == DIALECT_BOTH ? "both"
                                            : "",
                    how_text[r->how]);
        for (const char *at = r->to; at != NULL && *at != '\0'; at += at[strcspn(at, "|")] == '|')
            strbuf_addf(out, "%s`%.*s`", at > r->to ? " " : "", (int)strcspn(at, "|"), at), at += strcspn(at, "|");
        strbuf_addf(out, " | %s |\n", r->why != NULL ? r->why : "");
    }
    strbuf_add(out, "\nOptions of its games that our rules fix; another value is an error:\n\n| game | option | only "
                    "value |\n|---|---|---|\n");
    for (size_t i = 0; i < dialect_n_game_rows; i++)
        if (dialect_game_rows[i].only != NULL)
            strbuf_addf(out, "| %s | `env.%s` | %.*s |\n", dialect_game_rows[i].game, dialect_game_rows[i].key,
                        (int)strcspn(dialect_game_rows[i].only, "|"), dialect_game_rows[i].only);
    strbuf_add(out, "\nIts values, case-insensitive:\n\n| key | theirs | ours |\n|---|---|---|\n");
    for (size_t i = 0; i < dialect_n_values; i++)
        strbuf_addf(out, "| `%s` | `%s` | `%s` |\n", dialect_values[i].key, dialect_values[i].from,
                    dialect_values[i].to);
    strbuf_add(out,
               "\nDefaults of that version for options that no file sets:\n\n| option | 3.0 | 4.0 |\n|---|---|---|\n");
    for (size_t i = 0; i < dialect_n_defaults; i++) {
        const struct dialect_default *d = &dialect_defaults[i];
        strbuf_addf(out, "| `%s`%s%s | %s | %s |\n", d->key, d->game != NULL ? " of " : "",
                    d->game != NULL ? d->game : "", d->v3 != NULL ? d->v3 : "", d->v4 != NULL ? d->v4 : "");
    }
}

enum status cmd_reference(int argc, char **argv, struct error *err)
{
    AT_END(setup_destroy_at) struct setup *setup = NULL;

    (void)argc;
    (void)argv;
    STRBUF(out, OUTPUT_MAX_BYTES);
    strbuf_add(&out, head);
    TRY(setup_create(&setup, err));
    TRY(config_add_table(setup->config, &frames_opt_table, err));
    TRY(config_write_reference(setup->config, &out, err));
    for (size_t i = 0; i < env_count(); i++)
        TRY(add_game(env_at(i), &out, err));
    add_dialect(&out);
    TRY(strbuf_status(&out, "the option reference", err));
    fputs(out.text, stdout);
    return ST_OK;
}
