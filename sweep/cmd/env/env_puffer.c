/* env_puffer.c - what `trawl env build` has to know of a game written for PufferLib before it compiles it: the options
 * that its binding.c asks for, with the defaults of its config, and whether its struct has a stream of its own. */
#include "base/config/config.h"
#include "base/os/file.h"
#include "sweep/cmd/env/env_commands.h"

#include <ctype.h>
#include <dirent.h>
#include <strings.h>

#define SOURCE_MAX_BYTES (16u << 20)
#define OPTIONS_MAX 256
#define KEY_MAX 64

struct options {
    char keys[OPTIONS_MAX][KEY_MAX];
    bool is_text[OPTIONS_MAX]; /* the game asks for a text, or the config has one */
    bool is_optional[OPTIONS_MAX]; /* the game has a value of its own where no config has one */
    bool has_texts; /* the game is given its texts; 4.0's binding hands it numbers alone */
    size_t n, n_left_out; /* left_out: above OPTIONS_MAX */
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Returns its number; OPTIONS_MAX: it is none. */
static size_t add_option(struct options *options, const char *key, size_t n)
{
    bool ok = n > 0 && n < KEY_MAX && !isdigit((unsigned char)key[0]);

    for (size_t i = 0; i < n; i++)
        ok = ok && is_word(key[i]);
    for (size_t i = 0; i < options->n; i++)
        if (strlen(options->keys[i]) == n && strncmp(options->keys[i], key, n) == 0)
            return i;
    options->n_left_out += ok && options->n == OPTIONS_MAX;
    if (!ok || options->n == OPTIONS_MAX)
        return OPTIONS_MAX;
    snprintf(options->keys[options->n], KEY_MAX, "%.*s", (int)n, key);
    return options->n++;
}

static bool is_call(const char *text, const char *name, const char *end)
{
    size_t n = strlen(name);

    return (size_t)(end - text) >= n && strncmp(end - n, name, n) == 0 &&
           (end - n == text || !is_word(end[-(int)n - 1]));
}

/* dict_get(kwargs, "width"), dict_get_unsafe(env_kwargs, "width"), own_get(kwargs, "width", 8): not those of vec_kwargs.
 * All but the first look whether there is one. */
static void find_options(const char *text, struct options *options)
{
    for (const char *at = text; (at = strstr(at, "kwargs")) != NULL;) {
        const char *from = at, *call, *key = at += strlen("kwargs");
        while (from > text && is_word(from[-1]))
            from--;
        call = from;
        while (call > text && strchr(" (\n\t", call[-1]) != NULL)
            call--;
        key += strspn(key, ", \n\t");
        if (*key != '"' || key == at || call == from || strncmp(from, "vec", 3) == 0 || is_call(text, "dict_set", call))
            continue;
        size_t i = add_option(options, key + 1, strcspn(key + 1, "\""));
        if (i < OPTIONS_MAX && is_call(text, "dict_get_str", call))
            options->is_text[i] = true;
        else if (i < OPTIONS_MAX && !is_call(text, "dict_get", call))
            options->is_optional[i] = true;
    }
}

/* Does a header of the folder have one of the texts? */
static bool has_text(const char *dir, const char *a, const char *b)
{
    DIR *folder = opendir(dir);
    bool found = false;

    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[PATH_MAX], *text = NULL;
        size_t n;
        if (!word_ends_in(entry->d_name, ".h"))
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        if (file_read_all(path, SOURCE_MAX_BYTES, &text, &n, NULL) == ST_OK)
            found = found || strstr(text, a) != NULL || strstr(text, b) != NULL;
        mem_free(text);
    }
    if (folder != NULL)
        closedir(folder);
    return found;
}

static bool is_bool(const char *value)
{
    return strcasecmp(value, "true") == 0 || strcasecmp(value, "false") == 0;
}

static const char *set_by(const struct config *config, const char *key)
{
    char full[CONFIG_KEY_MAX];

    snprintf(full, sizeof full, "env.%s", key);
    return config_peek(config, full);
}

/* The default of an option: what the game's config sets; NULL when it sets nothing, or not a number. */
static const char *default_of(const struct config *config, const char *key)
{
    const char *value = set_by(config, key);
    double number;

    if (value == NULL)
        return NULL;
    if (is_bool(value))
        return strcasecmp(value, "true") == 0 ? "true" : "false";
    return num_parse_f64(value, &number) ? value : NULL;
}

/* What the config sets and binding.c does not read: PufferLib lets it stand, so it is an option too, without effect. But
 * 3.0's number of instances is the trainer's. */
static void add_config_options(const struct config *config, struct options *options)
{
    for (size_t i = 0; i < config_n_items(config); i++) {
        struct config_item item = config_item(config, i);
        size_t n = options->n;
        if (item.value != NULL && strncmp(item.key, "env.", 4) == 0 && strcmp(item.key, "env.num_envs") != 0)
            (void)add_option(options, item.key + 4, strlen(item.key + 4));
        if (options->n > n)
            options->is_text[n] = default_of(config, options->keys[n]) == NULL;
    }
    for (size_t i = 0; i < options->n; i++) { /* "5,4,3": the game takes it apart */
        const char *value = set_by(config, options->keys[i]);
        options->is_text[i] =
            options->is_text[i] || (options->has_texts && value != NULL && strchr(value, ',') != NULL);
    }
}

/* In PufferLib's tree ocean/snake has config/snake.ini, or in older trees config/ocean/snake.ini; a game that lies alone
 * may have its own beside it. places: where it was looked for, for messages. */
static enum status load_config(struct config *config, const char *dir, const char *name, struct strbuf *places,
                               struct error *err)
{
    static const char *const folders[] = {"/config", "/config/ocean", ""};
    char path[PATH_MAX], tree[PATH_MAX];

    snprintf(tree, sizeof tree, "%.3000s", dir);
    for (int i = 0; i < 2 && strrchr(tree, '/') != NULL; i++)
        *strrchr(tree, '/') = '\0';
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%.3000s%s/%s.ini", i < 2 ? tree : dir, folders[i], name);
        if (file_exists(path)) {
            strbuf_clear(places);
            strbuf_addf(places, "%s sets none that is a number", path);
            return config_load_file(config, path, err);
        }
        strbuf_addf(places, "%s%s", i == 0 ? "there is no " : i == 1 ? ", no " : " and no ", path);
    }
    return ST_OK;
}

/* A game may divide by an option or size its board by it, so 0 is rarely playable. */
static void warn_without_value(const struct options *options, const struct config *config, const char *places)
{
    const char *first = NULL;
    STRBUF(list, 1u << 16);

    for (size_t i = 0; i < options->n; i++) {
        if (options->is_optional[i] ||
            (options->is_text[i] ? set_by(config, options->keys[i]) : default_of(config, options->keys[i])) != NULL)
            continue;
        strbuf_addf(&list, "%s%s", first != NULL ? ", " : "", options->keys[i]);
        first = first != NULL ? first : options->keys[i];
    }
    if (first != NULL)
        log_warn("env build: no value for %s: %s; the default is 0 until your config sets one: [env] %s = VALUE (or "
                 "--env.%s VALUE)",
                 list.text, places, first, first);
}

/* A game of the newer form may name the type of its observations after it has included what uses the name; precision_t
 * is that of PufferLib's CUDA trainer, in a branch of an #if that no other compiler takes. */
static void add_late_type(const char *text, struct strbuf *sb)
{
    const char *late = strstr(text, "#include \"pufferenv.h\""), *end;

    while (late != NULL && (late = strstr(late, "typedef ")) != NULL) {
        late += strlen("typedef ");
        for (end = late; is_word(*end) || *end == ' '; end++)
            ;
        if (*end == ';' && end - late > 6 && strncmp(end - 6, " obs_t", 6) == 0 &&
            strncmp(late, "precision_t ", 12) != 0)
            strbuf_addf(sb, "typedef %.*s;\n", (int)(end - late), late);
    }
}

/* A text as a literal of C. */
static void add_quoted(struct strbuf *sb, const char *text)
{
    strbuf_add(sb, "\"");
    for (; text != NULL && *text != '\0'; text++)
        strbuf_addf(sb, *text == '"' || *text == '\\' ? "\\%c" : (unsigned char)*text < ' ' ? " " : "%c", *text);
    strbuf_add(sb, "\"");
}

static enum status write_table(const struct options *options, const struct config *config, const char *text,
                               const char *dir, const char *name, const char *folder, struct error *err)
{
    char path[PATH_MAX];
    STRBUF(sb, 1u << 20);

    if (has_text(dir, "pufferenv.h", "pufferenv.h"))
        strbuf_addf(&sb, "#define PUFFER_HAS_MASK %d\n", has_text(dir, "action_mask", "action_mask"));
    add_late_type(text, &sb);
    strbuf_addf(&sb,
                "#define PUFFER_NAME \"%s\"\n#define PUFFER_HAS_RNG %d\n#define PUFFER_HAS_TEXTS %d\n"
                "#define PUFFER_OPTIONS(NUMBER, BOOL, TEXT, OPEN)",
                name, has_text(dir, "int rng;", "_t rng;"), options->has_texts);
    for (size_t i = 0; i < options->n; i++) {
        const char *key = options->keys[i], *def = default_of(config, key);
        if (options->is_text[i]) {
            strbuf_addf(&sb, " TEXT(%s, ", key);
            add_quoted(&sb, set_by(config, key));
            strbuf_add(&sb, ")");
            continue;
        }
        strbuf_addf(&sb, " %s(%s, \"%s\")",
                    def == NULL && options->is_optional[i] ? "OPEN"
                    : def != NULL && is_bool(def)          ? "BOOL"
                                                           : "NUMBER",
                    key, def != NULL ? def : "0");
    }
    strbuf_add(&sb, "\n");
    snprintf(path, sizeof path, "%s/puffer_game.h", folder);
    TRY(strbuf_status(&sb, path, err));
    return file_write_all(path, sb.text, sb.len, err);
}

enum status env_puffer_write(const char *dir, const char *name, const char *folder, struct error *err)
{
    struct options options = {.n = 0};
    char path[PATH_MAX];
    MEM_LOCAL char *text = NULL;
    size_t n = 0;
    STRBUF(places, 4 * PATH_MAX);

    snprintf(path, sizeof path, "%s/binding.c", dir);
    if (!file_exists(path)) /* the newer form */
        snprintf(path, sizeof path, "%s/%s.h", dir, name);
    TRY(file_read_all(path, SOURCE_MAX_BYTES, &text, &n, err));
    if (word_ends_in(path, "/binding.c") && strstr(text, "vecenv.h") == NULL)
        return FAIL(err, ST_CONFIG,
                    "env build: %s includes no vecenv.h, as the binding of a game for PufferLib 4.0 does%s; "
                    "docs/own-games.md names the forms that can be built",
                    path, strstr(text, "env_binding.h") != NULL ? " (it includes 3.0's env_binding.h)" : "");
    if (strstr(text, "pufferenv.h") != NULL && !has_text(dir, " obs_t;", "define obs_t") &&
        !has_text(dir, "\"../", "\"../"))
        return FAIL(
            err, ST_CONFIG,
            "env build: no header of %s defines obs_t, the type of its observations: write `typedef float obs_t;` "
            "above #include \"pufferenv.h\"",
            dir);
    options.has_texts = has_text(dir, "pufferenv.h", "dict_get_str") || strstr(text, "dict_get_str") != NULL;
    find_options(text, &options);
    struct config *config = config_create();
    enum status rc = load_config(config, dir, name, &places, err);
    add_config_options(config, &options);
    if (rc == ST_OK && options.n_left_out > 0)
        rc = FAIL(err, ST_CONFIG, "env build: %s: the game and its config have %zu options; at most %d can be taken",
                  dir, options.n + options.n_left_out, OPTIONS_MAX);
    THEN(rc, write_table(&options, config, text, dir, name, folder, err));
    if (rc == ST_OK)
        warn_without_value(&options, config, places.text);
    config_destroy(config);
    return rc;
}
