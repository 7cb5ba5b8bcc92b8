/* dialect.c - recognises a config of PufferLib's, and goes through its entries with the rows of dialect_table.c.
 * Invariants: (1) an option of ours is never taken for a name of theirs; (2) a value of a file or of the command line
 * beats every default; (3) nothing that changes what is trained is dropped without an error. */
#include "study/dialect/dialect.h"

#include "envs/envs.h"
#include "envs/plugin/library.h"

#include <strings.h>

#define LIST_MAX_BYTES 65536u
#define WORD_BYTES 128

/* ---- shared helpers ---- */

bool dialect_row_has(const struct dialect_row *row, const char *key)
{
    size_t n = strcspn(row->key, "*");

    return row->key[n] == '*' ? strncmp(row->key, key, n) == 0 : strcmp(row->key, key) == 0;
}

/* NULL: not one of PufferLib's names. */
static const struct dialect_row *find_row(const char *key)
{
    for (size_t i = 0; i < dialect_n_rows; i++)
        if (dialect_row_has(&dialect_rows[i], key))
            return &dialect_rows[i];
    return NULL;
}

static void note_seen(struct dialect *dialect, const struct dialect_row *row, const struct config_item *item)
{
    if (item->layer >= CONFIG_FILE)
        dialect->seen[row - dialect_rows] = true;
}

size_t dialect_find(const struct config *config, const char *key)
{
    size_t best = DIALECT_NOT_SET;

    for (size_t i = 0; i < config_n_items(config); i++) {
        struct config_item item = config_item(config, i);
        if (item.value != NULL && strcmp(item.key, key) == 0 &&
            (best == DIALECT_NOT_SET || item.layer >= config_item(config, best).layer))
            best = i;
    }
    return best;
}

const char *dialect_get(const struct config *config, const char *key)
{
    size_t i = dialect_find(config, key);

    return i != DIALECT_NOT_SET ? config_item(config, i).value : NULL;
}

bool dialect_is_set(const struct config *config, const char *key)
{
    size_t i = dialect_find(config, key);

    return i != DIALECT_NOT_SET && config_item(config, i).layer >= CONFIG_FILE;
}

bool dialect_same_value(const char *value, const char *list)
{
    double a, b;

    while (*list != '\0') {
        char word[WORD_BYTES];
        size_t n = strcspn(list, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, list);
        if (strcasecmp(word, value) == 0 ||
            (num_parse_f64(word, &a) && num_parse_f64(value, &b) && !(a < b) && !(a > b)))
            return true;
        list += n + (list[n] == '|');
    }
    return false;
}

enum status dialect_default(struct dialect *dialect, struct config *config, const char *key, const char *value,
                            struct error *err)
{
    char origin[64];

    snprintf(origin, sizeof origin, "%s's default", dialect_version_text(dialect->version));
    return config_set(config, CONFIG_ENV, key, value, origin, err);
}

/* ---- which version, which game ---- */

/* Names of theirs in files, by the version that has them: one vote each, a section of the sweep has one too. An option
 * of a game may have the name of one of theirs: no vote for names of [env]. */
static enum dialect_version vote(const struct config *config, char *why, size_t size)
{
    size_t n3 = 0, n4 = 0, n = 0;
    char last[CONFIG_KEY_MAX] = "";

    for (size_t i = 0; i < config_n_items(config); i++) {
        struct config_item item = config_item(config, i);
        char param[CONFIG_KEY_MAX];
        const char *field;
        bool is_range = config_split_sweep(item.key, true, param, &field);
        const struct dialect_row *row = find_row(is_range ? param : item.key);
        bool is_name = item.value != NULL && strcmp(item.key, "base.env_name") == 0;
        if (item.text == 0 || item.value == NULL || row == NULL || strncmp(row->key, "env.", 4) == 0)
            continue;
        if (is_range && strcmp(param, last) == 0)
            continue;
        if (is_range)
            memcpy(last, param, sizeof last);
        if (n++ == 0 || is_name)
            snprintf(why, size, "%s at %s", item.key, item.origin);
        n3 += row->of == DIALECT_3 || (is_name && strncmp(item.value, "puffer_", 7) == 0);
        n4 += row->of == DIALECT_4;
    }
    return n == 0 ? DIALECT_NONE : n3 > n4 ? DIALECT_3 : DIALECT_4;
}

static enum status find_version(struct dialect *dialect, struct config *config, struct error *err)
{
    const char *given = dialect_get(config, "base.defaults");

    dialect->version = vote(config, dialect->why, sizeof dialect->why);
    dialect->has_defaults = dialect->version != DIALECT_NONE && dialect->has_env_name;
    if (given == NULL)
        return ST_OK;
    dialect->has_defaults = strcasecmp(given, "none") != 0;
    if (!dialect->has_defaults)
        return ST_OK;
    if (!dialect_same_value(given, "3.0|4.0"))
        return FAIL(err, ST_CONFIG, "%s: base.defaults is %.40s, allowed is none, 3.0 or 4.0",
                    config_origin(config, "base.defaults"), given);
    dialect->version = dialect_same_value(given, "3.0") ? DIALECT_3 : DIALECT_4;
    snprintf(dialect->why, sizeof dialect->why, "base.defaults at %s", config_origin(config, "base.defaults"));
    return ST_OK;
}

/* The first name of "puffer_a puffer_b" that is a game here, without puffer_; false: none is. */
static bool pick_game(const char *names, char *ret_game, size_t size)
{
    while (*names != '\0') {
        size_t n = strcspn(names, " \t,");
        snprintf(ret_game, size, "%.*s", (int)n, names);
        if (strncmp(ret_game, "puffer_", 7) == 0)
            memmove(ret_game, ret_game + 7, strlen(ret_game + 7) + 1);
        if (n > 0 && env_find(ret_game) != NULL)
            return true;
        names += n;
        names += strspn(names, " \t,");
    }
    return false;
}

/* env.name or base.env_name, whichever counts: the command line's, else the last one of the files; default.ini has
 * None. */
static size_t find_name(const struct config *config)
{
    size_t best = DIALECT_NOT_SET;

    for (size_t i = 0; i < config_n_items(config); i++) {
        struct config_item item = config_item(config, i);
        if ((strcmp(item.key, "env.name") != 0 && strcmp(item.key, "base.env_name") != 0) || item.value == NULL ||
            item.value[0] == '\0' || strcasecmp(item.value, "None") == 0)
            continue;
        if (best == DIALECT_NOT_SET || item.layer >= config_item(config, best).layer)
            best = i;
    }
    return best;
}

/* Both names in one file, or both on the command line: neither comes later, so neither counts more. */
static enum status check_one_game(const struct config *config, size_t at, struct error *err)
{
    const struct config_item item = config_item(config, at);
    char game[WORD_BYTES], other_game[WORD_BYTES];

    for (size_t i = 0; i < config_n_items(config); i++) {
        const struct config_item other = config_item(config, i);
        bool is_name = strcmp(other.key, "env.name") == 0 || strcmp(other.key, "base.env_name") == 0;
        if (!is_name || other.text != item.text || other.layer != item.layer || strcmp(other.key, item.key) == 0 ||
            other.value == NULL || !pick_game(other.value, other_game, sizeof other_game) ||
            !pick_game(item.value, game, sizeof game) || strcmp(game, other_game) == 0)
            continue;
        return FAIL(err, ST_CONFIG, "%s: %s is %s, but %s at %s is %s; leave one of the two", item.origin, item.key,
                    item.value, other.key, other.origin, other.value);
    }
    return ST_OK;
}

static enum status choose_game(struct dialect *dialect, struct config *config, struct error *err)
{
    size_t at = find_name(config);

    if (at != DIALECT_NOT_SET)
        TRY(check_one_game(config, at, err));
    if (at != DIALECT_NOT_SET && !env_is_outside(config_item(config, at).value)) {
        struct config_item item = config_item(config, at);
        bool is_list = strpbrk(item.value, " \t,") != NULL, is_theirs = strcmp(item.key, "base.env_name") == 0;
        char game[WORD_BYTES], given[WORD_BYTES], hint[ENV_HINT_MAX];
        snprintf(given, sizeof given, "%s", item.value);
        if (!pick_game(item.value, game, sizeof game))
            return FAIL(err, ST_CONFIG, "%s: no game '%s'%s, --env.name picks one%s", item.origin, item.value,
                        env_hint(game, hint),
                        is_theirs ? "; one of PufferLib's own is built from its folder, and its library named before "
                                    "the config: trawl env build ocean/GAME, trawl train ./GAME.so CONFIG"
                                  : "");
        if (is_theirs || strcmp(game, given) != 0) {
            TRY(config_edit(config, at, "env.name", game, err));
            dialect_note(&dialect->mapped, "base.env_name -> env.name = %s%s%s%s", game,
                         is_list ? " (the first of '" : "", is_list ? given : "",
                         is_list ? "' that is a game here; --env.name picks another)" : "");
        }
    }
    for (size_t i = config_n_items(config); i-- > 0;)
        if (strcmp(config_item(config, i).key, "base.env_name") == 0)
            config_remove(config, i);
    return ST_OK;
}

enum status dialect_begin(struct dialect *dialect, struct config *config, struct error *err)
{
    *dialect = (struct dialect){0};
    strbuf_init(&dialect->mapped, LIST_MAX_BYTES);
    strbuf_init(&dialect->changed, LIST_MAX_BYTES);
    strbuf_init(&dialect->differs, LIST_MAX_BYTES);
    strbuf_init(&dialect->refused, LIST_MAX_BYTES);
    if (dialect_n_rows > DIALECT_ROWS_MAX)
        return FAIL(err, ST_INTERNAL, "DIALECT_ROWS_MAX is less than %zu", dialect_n_rows);
    for (size_t i = 0; i < config_n_items(config) && !dialect->has_env_name; i++)
        dialect->has_env_name =
            config_item(config, i).text > 0 && strcmp(config_item(config, i).key, "base.env_name") == 0;
    TRY(find_version(dialect, config, err));
    return choose_game(dialect, config, err);
}

void dialect_end(struct dialect *dialect)
{
    strbuf_free(&dialect->mapped);
    strbuf_free(&dialect->changed);
    strbuf_free(&dialect->differs);
    strbuf_free(&dialect->refused);
}

/* ---- defaults of the version ---- */

bool dialect_has_default_ini(const struct config *config)
{
    return dialect_is_set(config, "sweep.downsample");
}

enum status dialect_default_sweep(struct dialect *dialect, struct config *config, const struct dialect_sweep *s,
                                  struct error *err)
{
    const struct {
        const char *name, *value;
    } fields[] = {{"distribution", s->distribution}, {"min", s->min}, {"max", s->max}};

    for (size_t k = 0; k < 3; k++) {
        char key[2 * CONFIG_KEY_MAX];
        snprintf(key, sizeof key, "sweep.%s.%s", s->key, fields[k].name);
        TRY(dialect_default(dialect, config, key, fields[k].value, err));
    }
    return ST_OK;
}

static enum status set_defaults(struct dialect *dialect, struct config *config, const char *game, struct error *err)
{
    for (size_t i = 0; i < dialect_n_defaults; i++) {
        const struct dialect_default *d = &dialect_defaults[i];
        const char *value = dialect->version == DIALECT_3 ? d->v3 : d->v4;
        if (value != NULL && (d->game == NULL || strcmp(d->game, game) == 0))
            TRY(dialect_default(dialect, config, d->key, value, err));
    }
    for (size_t i = 0; i < dialect_n_sweeps && !dialect_has_default_ini(config); i++)
        if ((dialect_sweeps[i].of & dialect->version) != 0)
            TRY(dialect_default_sweep(dialect, config, &dialect_sweeps[i], err));
    return ST_OK;
}

/* ---- the rows ---- */

/* Another line of the same file sets the same option: two values of one thing. */
static enum status check_twice(const struct config *config, size_t at, const char *key, struct error *err)
{
    struct config_item item = config_item(config, at);

    for (size_t i = 0; item.text > 0 && i < config_n_items(config); i++) {
        struct config_item other = config_item(config, i);
        if (i == at || other.text != item.text || strcmp(other.key, key) != 0)
            continue;
        if (item.value == NULL || other.value == NULL)
            return FAIL(err, ST_CONFIG, "%s: [%s] is the same parameter as [%s] at %s; keep one of them", item.origin,
                        item.key, other.key, other.origin);
        if (!dialect_same_value(item.value, other.value))
            return FAIL(err, ST_CONFIG, "%s: %s sets what %s has set; keep one of them", item.origin, item.key,
                        other.origin);
    }
    return ST_OK;
}

/* Is it a name of the other version only, where its file also has the name that the config's version reads? */
static bool gives_way(const struct dialect *dialect, const struct config *config, size_t at,
                      const struct dialect_row *row, bool is_sweep)
{
    struct config_item item = config_item(config, at);
    char key[CONFIG_KEY_MAX];

    snprintf(key, sizeof key, "%s%s", is_sweep ? "sweep." : "", row->to);
    if (dialect->version == DIALECT_NONE || (row->of & dialect->version) != 0)
        return false;
    for (size_t i = 0; i < config_n_items(config); i++) {
        struct config_item other = config_item(config, i);
        if (i != at && item.text > 0 && other.text == item.text && strcmp(other.key, key) == 0)
            return true;
    }
    return false;
}

/* Why this value cannot be dropped, or NULL: it trains what is trained here. */
static const char *only(const struct config_item *item, bool is_sweep, const char *list, const char *why, char *buf,
                        size_t size)
{
    if (is_sweep) {
        snprintf(buf, size, "it cannot be swept, only %s is built here%s%s; remove the section", list,
                 why != NULL ? ": " : "", why != NULL ? why : "");
        return item->value == NULL ? buf : NULL; /* once for its section */
    }
    if (dialect_same_value(item->value, list))
        return NULL;
    snprintf(buf, size, "only %s is built here%s%s; remove the line to train with that", list, why != NULL ? ": " : "",
             why != NULL ? why : "");
    return buf;
}

/* The only value of a game's option that its rules have here; NULL: no such option. */
static const char *game_only(const char *game, const char *param)
{
    for (size_t i = 0; strncmp(param, "env.", 4) == 0 && i < dialect_n_game_rows; i++)
        if (strcmp(dialect_game_rows[i].game, game) == 0 && strcmp(dialect_game_rows[i].key, param + 4) == 0)
            return dialect_game_rows[i].only;
    return NULL;
}

/* Item i by its row; *ret_removed when it is gone. */
static enum status translate_item(struct dialect *dialect, struct config *config, const char *game, size_t i,
                                  bool *ret_removed, struct error *err)
{
    struct config_item item = config_item(config, i);
    char param[CONFIG_KEY_MAX], key[2 * CONFIG_KEY_MAX], text[512];
    const char *field = "", *why = NULL, *list;
    bool has_field = item.value != NULL, is_sweep = config_split_sweep(item.key, has_field, param, &field);

    if (!is_sweep)
        snprintf(param, sizeof param, "%s", item.key);
    if (config_find_opt(config, param) != NULL)
        return ST_OK;
    const struct dialect_row *row = find_row(param);
    list = row == NULL                                               ? game_only(game, param)
           : row->how == DIALECT_ONLY || row->how == DIALECT_DIFFERS ? row->to
                                                                     : NULL;
    if (list != NULL && has_field && dialect_find(config, item.key) != i) {
        why = NULL; /* a later one counts */
    } else if (list != NULL && row != NULL && row->how == DIALECT_DIFFERS) {
        if (has_field && !is_sweep && !dialect_same_value(item.value, list))
            dialect_note(&dialect->differs, "%s: %s = %s: %s", item.origin, item.key, item.value, row->why);
    } else if (list != NULL) {
        why = only(&item, is_sweep, list, row != NULL ? row->why : NULL, text, sizeof text);
    } else if (row == NULL) {
        return ST_OK;
    } else if (row->how == DIALECT_AS) {
        snprintf(key, sizeof key, is_sweep ? has_field ? "sweep.%s.%s" : "sweep.%s%s" : "%s%s", row->to, field);
        if (!gives_way(dialect, config, i, row, is_sweep)) {
            note_seen(dialect, row, &item);
            TRY(check_twice(config, i, key, err));
            return config_edit(config, i, key, NULL, err);
        }
        if (is_sweep ? !has_field : dialect_find(config, item.key) == i)
            dialect_note(&dialect->changed, "%s is left out (%s reads %s)", item.key,
                         dialect_version_text(dialect->version), row->to);
    } else if (row->how == DIALECT_DROP) {
        note_seen(dialect, row, &item);
    } else if (is_sweep && item.value == NULL) {
        why = "it cannot be swept here; remove the section";
    }
    if (why != NULL)
        dialect_refuse(dialect, &item, why);
    config_remove(config, i);
    *ret_removed = true;
    return ST_OK;
}

/* [vec], [torch]: sections that only hold names of theirs. */
static bool is_their_section(const struct config *config, size_t i)
{
    struct config_item item = config_item(config, i);
    char buf[512];
    size_t n = strlen(item.key);

    if (item.value != NULL || !config_unknown(config, i, buf, sizeof buf))
        return false;
    for (size_t k = 0; k < dialect_n_rows; k++)
        if (strncmp(dialect_rows[k].key, item.key, n) == 0 && dialect_rows[k].key[n] == '.')
            return true;
    return false;
}

static enum status translate_names(struct dialect *dialect, struct config *config, const char *game, struct error *err)
{
    for (size_t i = 0; i < config_n_items(config);) {
        bool removed = false;
        if (is_their_section(config, i)) {
            config_remove(config, i);
            continue;
        }
        TRY(translate_item(dialect, config, game, i, &removed, err));
        i += !removed;
    }
    return ST_OK;
}

static enum status translate_value(struct dialect *dialect, struct config *config, size_t i, struct error *err)
{
    struct config_item item = config_item(config, i);
    char param[CONFIG_KEY_MAX], text[32];
    const char *field = "";
    bool is_sweep = config_split_sweep(item.key, true, param, &field);
    double number;
    int64_t whole;

    const struct opt_def *opt = config_find_opt(config, is_sweep ? param : item.key);
    for (size_t k = 0; k < dialect_n_values; k++) {
        const struct dialect_value *v = &dialect_values[k];
        if (strcmp(v->key, item.key) != 0 || strcasecmp(v->from, item.value) != 0)
            continue;
        if (item.layer >= CONFIG_FILE && dialect_find(config, item.key) == i)
            dialect_note(&dialect->changed, "%s = %s is read as %s", item.key, item.value, v->to);
        return config_edit(config, i, NULL, v->to, err);
    }
    if (is_sweep && strcmp(field, "min") != 0 && strcmp(field, "max") != 0 && strcmp(field, "mean") != 0)
        return ST_OK;
    if (dialect->version == DIALECT_NONE || opt == NULL || opt->type != OPT_INT || num_parse_i64(item.value, &whole) ||
        !num_parse_f64(item.value, &number) || !(number > -1e15 && number < 1e15))
        return ST_OK;
    snprintf(text, sizeof text, "%lld", (long long)number);
    dialect_note(&dialect->changed, "%s = %s is read as %s (it cuts fractions)", item.key, item.value, text);
    return config_edit(config, i, NULL, text, err);
}

enum status dialect_translate(struct dialect *dialect, struct config *config, const char *game, struct error *err)
{
    if (dialect->has_defaults)
        TRY(set_defaults(dialect, config, game, err));
    TRY(dialect_map(dialect, config, game, err));
    TRY(translate_names(dialect, config, game, err));
    for (size_t i = 0; i < config_n_items(config); i++)
        if (config_item(config, i).value != NULL)
            TRY(translate_value(dialect, config, i, err));
    if (dialect->n_refused > 0)
        return dialect_fail(dialect, config, err);
    for (size_t i = 0; i < config_n_items(config); i++) {
        struct config_item item = config_item(config, i);
        dialect->n_defaults += item.layer == CONFIG_ENV && strstr(item.origin, "PufferLib") == item.origin &&
                               strncmp(item.key, "sweep.", 6) != 0 && dialect_find(config, item.key) == i;
    }
    TRY(strbuf_status(&dialect->mapped, "the message of a config", err));
    return strbuf_status(&dialect->changed, "the message of a config", err);
}
