/* cmd_reference.c - `trawl reference` (hidden): docs/options.md, written from the option tables, so that it cannot lie. */
#include "sweep/sweep.h"

#include <stdio.h>

static const char head[] =
    "# Options\n\n"
    "Written by `trawl reference > docs/options.md` from the tables that the program itself reads; do not edit.\n\n"
    "A key stands in a config file as `key = value` under its `[section]`, or on the command line as\n"
    "`--section.key value`. Later ones win: defaults, the game's own defaults, the file, the command line. Numbers may "
    "be\n"
    "written `1_000_000`, `1M`, `64k` or `3e7`. The column *swept* says how a sweep walks the option when its\n"
    "`[sweep.SECTION.KEY]` section is empty; such a section may hold `distribution` (linear, log, logit, pow2, int,\n"
    "categorical), `min`, `max`, `mean` (where the first trial starts) and, for choices, `values`.\n";

static enum status add_game(const struct env_def *env, struct strbuf *out, struct error *err)
{
    struct config *config = NULL;
    enum status rc = config_create(&config, err);

    if (rc == ST_OK)
        rc = config_add_table(config, &env->options, err);
    if (rc == ST_OK)
        rc = config_write_reference(config, out, err);
    for (size_t i = 0; rc == ST_OK && i < env->n_defaults; i++)
        strbuf_addf(out, "%s`%s = %s` unless told otherwise.\n", i == 0 ? "\nSets " : "", env->defaults[i].key,
                    env->defaults[i].value);
    config_destroy(config);
    return rc;
}

/* Names of the PufferLib ini family. */
static void add_dialect(struct strbuf *out)
{
    strbuf_add(
        out, "\n## Names from the PufferLib ini family\n\nConfigs of that family load as they are. These keys are read "
             "under our names:\n\n| theirs | ours |\n|---|---|\n");
    for (size_t i = 0; i < dialect_n_aliases; i++)
        if (dialect_aliases[i].to != NULL)
            strbuf_addf(out, "| `%s` | `%s` |\n", dialect_aliases[i].from, dialect_aliases[i].to);
    strbuf_add(out, "\nThese values too, in any case; a value of ours as it stands (`sweep.method = protein`) is what "
                    "it says:\n\n| key | theirs | ours |\n|---|---|---|\n");
    for (size_t i = 0; i < dialect_n_values; i++)
        strbuf_addf(out, "| `%s` | `%s` | `%s` |\n", dialect_values[i].key, dialect_values[i].from,
                    dialect_values[i].to);
    strbuf_add(out, "\nThese are accepted and ignored, with one warning:");
    for (size_t i = 0, n = 0; i < dialect_n_aliases; i++)
        if (dialect_aliases[i].to == NULL)
            strbuf_addf(out, "%s`%s`", n++ % 4 == 0 ? "\n" : " ", dialect_aliases[i].from);
    strbuf_add(out, "\n");
}

enum status cmd_reference(int argc, char **argv, struct error *err)
{
    struct setup *setup = NULL;
    struct strbuf out;
    enum status rc = setup_create(&setup, err);

    (void)argc;
    (void)argv;
    strbuf_init(&out, OUTPUT_MAX_BYTES);
    strbuf_add(&out, head);
    if (rc == ST_OK)
        rc = config_write_reference(setup->config, &out, err);
    for (size_t i = 0; rc == ST_OK && i < env_count(); i++)
        rc = add_game(env_at(i), &out, err);
    add_dialect(&out);
    if (rc == ST_OK)
        rc = strbuf_status(&out, "the option reference", err);
    if (rc == ST_OK)
        fputs(out.text, stdout);
    strbuf_free(&out);
    setup_destroy(setup);
    return rc;
}
