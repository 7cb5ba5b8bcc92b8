/* dialect_report.c - the report on a config of PufferLib's: one message with all that was done, or one error. */
#include "study/dialect/dialect.h"

#include <stdarg.h>

#define LIST_MAX_BYTES 65536u

void dialect_note(struct strbuf *list, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    strbuf_addf(list, "%s%s", list->len > 0 ? ", " : "", text);
}

void dialect_refuse(struct dialect *dialect, const struct config_item *item, const char *why)
{
    strbuf_addf(&dialect->refused, "%s%s: %s%s%.80s: %s", dialect->n_refused > 0 ? "\n  " : "", item->origin, item->key,
                item->value != NULL ? " = " : "", item->value != NULL ? item->value : "", why);
    dialect->n_refused++;
}

const char *dialect_version_text(enum dialect_version version)
{
    return version == DIALECT_3 ? "PufferLib 3.0" : version == DIALECT_4 ? "PufferLib 4.0" : "PufferLib";
}

/* One error with all that is wrong with the config as PufferLib's, unknown names included. */
enum status dialect_fail(struct dialect *dialect, const struct config *config, struct error *err)
{
    char what[512];

    for (size_t i = 0; i < config_n_items(config); i++)
        if (config_unknown(config, i, what, sizeof what)) {
            strbuf_addf(&dialect->refused, "\n  %s: %s", config_item(config, i).origin, what);
            dialect->n_refused++;
        }
    TRY(strbuf_status(&dialect->refused, "the list of what cannot be trained", err));
    return FAIL(err, ST_CONFIG, "%zu line(s) of this config cannot be trained here as they are:\n  %s",
                dialect->n_refused, dialect->refused.text);
}

static void add_dropped(const struct dialect *dialect, struct strbuf *out)
{
    bool any = false;

    for (size_t i = 0; i < dialect_n_rows; i++) {
        const char *why = dialect_rows[i].why;
        bool listed = false;
        if (!dialect->seen[i] || dialect_rows[i].how == DIALECT_AS)
            continue;
        for (size_t k = 0; k < i && !listed; k++)
            listed = dialect->seen[k] && dialect_rows[k].how != DIALECT_AS && strcmp(dialect_rows[k].why, why) == 0;
        if (listed)
            continue;
        strbuf_add(out, any ? "; " : "\n  left out, no effect on what is trained here: ");
        any = true;
        for (size_t k = i; k < dialect_n_rows; k++)
            if (dialect->seen[k] && dialect_rows[k].how != DIALECT_AS && strcmp(dialect_rows[k].why, why) == 0)
                strbuf_addf(out, "%s%s", k > i ? ", " : "", dialect_rows[k].key);
        strbuf_addf(out, " (%s)", why);
    }
}

/* A config without PufferLib's names costs no message and no memory. */
static bool has_something(const struct dialect *dialect)
{
    bool any = dialect->has_defaults || dialect->mapped.len > 0 || dialect->changed.len > 0 || dialect->differs.len > 0;

    for (size_t i = 0; i < dialect_n_rows; i++)
        any = any || dialect->seen[i];
    return any;
}

enum status dialect_report(const struct dialect *dialect, struct error *err)
{
    if (!has_something(dialect))
        return ST_OK;
    STRBUF(out, LIST_MAX_BYTES);
    STRBUF(mapped, LIST_MAX_BYTES);

    strbuf_add(&mapped, dialect->mapped.len > 0 ? dialect->mapped.text : "");
    for (size_t i = 0; i < dialect_n_rows; i++)
        if (dialect->seen[i] && dialect_rows[i].how == DIALECT_AS)
            dialect_note(&mapped, "%s -> %s", dialect_rows[i].key, dialect_rows[i].to);
    if (dialect->has_defaults)
        strbuf_addf(&out,
                    "read as a config of %s (%s): what its files leave out, %zu options, has that version's defaults; "
                    "--base.defaults none takes Trawl's",
                    dialect_version_text(dialect->version), dialect->why, dialect->n_defaults);
    else
        strbuf_add(&out,
                   "names of PufferLib are read; what is left out has Trawl's defaults (--base.defaults 4.0 or 3.0 "
                   "takes those of that version)");
    if (mapped.len > 0)
        strbuf_addf(&out, "\n  under our names: %s", mapped.text);
    if (dialect->changed.len > 0)
        strbuf_addf(&out, "\n  changed: %s", dialect->changed.text);
    add_dropped(dialect, &out);
    TRY(strbuf_status(&mapped, "the message of a config", err));
    TRY(strbuf_status(&out, "the message of a config", err));
    log_info("%s", out.text);
    if (dialect->differs.len > 0)
        log_warn("trained otherwise than by PufferLib: %s", dialect->differs.text);
    return ST_OK;
}
