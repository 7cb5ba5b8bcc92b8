/* ini.c - loads ini text into entries, line by line: section headers, key = value (or key: value), comments
 * (';' and '#', not inside quotes), outer blanks. Any other line is refused with its number.
 * Not inih: Debian's inih cuts lines at 200 bytes and reports neither line numbers, repeated sections nor NUL bytes. A
 * quoted value may hold ';' and '#', and its quote character doubled. */
#include "base/config/config_priv.h"

#include "base/os/file.h"

#define ORIGIN_MAX 256 /* "path:line"; of a longer path the end is kept */
#define TEXT_NAME_MAX 220

struct loader {
    struct config *config;
    const char *name; /* of the file, for messages */
    int line; /* number of the line that is read, from 1 */
    char section[CONFIG_KEY_MAX]; /* as written */
    size_t first_entry; /* of this text: repeats are looked for from here on */
    char *value; /* (CONFIG_LINE_MAX_BYTES + 1) value of that line, owned */
};

static const char *origin_of(const struct loader *loader, char buf[ORIGIN_MAX])
{
    size_t n = strlen(loader->name);
    const char *name = n > TEXT_NAME_MAX ? loader->name + n - TEXT_NAME_MAX : loader->name;

    snprintf(buf, ORIGIN_MAX, "%s:%d", name, loader->line);
    return buf;
}

#define LINE_FAIL(loader, fmt, ...)                                                                                    \
    FAIL(err, ST_CONFIG, "%s: " fmt, origin_of((loader), (char[ORIGIN_MAX]){0}), __VA_ARGS__)

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Bytes of the line up to a comment, blanks at the end removed. A comment starts at a ';' or '#' that begins the line
 * or follows a blank, outside of a quoted value. */
static size_t content_length(const char *line, size_t n)
{
    char quote = '\0';
    bool in_value = false;
    size_t i;

    for (i = 0; i < n; i++) {
        bool after_blank = i == 0 || is_blank(line[i - 1]);
        if (quote != '\0') {
            if (line[i] == quote)
                quote = '\0'; /* a doubled one opens again at once */
        } else if ((line[i] == ';' || line[i] == '#') && after_blank) {
            break;
        } else if (in_value && (line[i] == '"' || line[i] == '\'') &&
                   (after_blank || line[i - 1] == '=' || line[i - 1] == ':' || line[i - 1] == line[i])) {
            if (memchr(line + i + 1, line[i], n - i - 1) != NULL) /* a single one is only a character */
                quote = line[i];
        } else if (line[i] == '=' || line[i] == ':') {
            in_value = true;
        }
    }
    while (i > 0 && is_blank(line[i - 1]))
        i--;
    return i;
}

/* Removes quotes in place. False: the closing quote is missing. */
static bool unquote(char *value)
{
    size_t n = strlen(value), to = 0;
    char quote = value[0];

    if (quote != '"' && quote != '\'')
        return true;
    if (n < 2 || value[n - 1] != quote)
        return false;
    for (size_t i = 1; i < n - 1; i++) {
        if (value[i] == quote && (i + 1 >= n - 1 || value[++i] != quote))
            return false;
        value[to++] = value[i];
    }
    value[to] = '\0';
    return true;
}

static const struct config_entry *find_in_text(const struct loader *loader, const char *key, bool is_section)
{
    for (size_t i = loader->first_entry; i < loader->config->n_entries; i++) {
        const struct config_entry *entry = &loader->config->entries[i];
        if ((entry->value == NULL) == is_section && strcmp(entry->key, key) == 0)
            return entry;
    }
    return NULL;
}

static enum status add(struct loader *loader, const char *key, const char *value, struct error *err)
{
    char origin[ORIGIN_MAX];

    return config_add_entry(loader->config, CONFIG_FILE, key, value, origin_of(loader, origin), err);
}

/* The text without blanks at both ends. */
static const char *trim(const char *text, size_t *n)
{
    for (; *n > 0 && is_blank(*text); --*n)
        text++;
    while (*n > 0 && is_blank(text[*n - 1]))
        --*n;
    return text;
}

/* "[name]" without comment. */
static enum status take_section(struct loader *loader, const char *line, size_t n, struct error *err)
{
    char spelt[CONFIG_KEY_MAX];

    if (n < 3 || line[n - 1] != ']')
        return LINE_FAIL(loader, "%s is not of the form [section]", "a section line");
    n -= 2;
    line = trim(line + 1, &n);
    if (n == 0 || n >= sizeof spelt)
        return LINE_FAIL(loader, "a section name has %zu bytes, 1 to %d are allowed", n, CONFIG_KEY_MAX - 1);
    memcpy(loader->section, line, n);
    loader->section[n] = '\0';
    (void)config_spell_key(loader->section, spelt);
    const struct config_entry *earlier = find_in_text(loader, spelt, true);
    if (earlier != NULL)
        return LINE_FAIL(loader, "section [%s] was opened before at %s; merge the two", spelt, earlier->origin);
    return add(loader, loader->section, NULL, err);
}

static enum status check_bytes(struct loader *loader, const char *line, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)line[i];
        if (c == '\0')
            return LINE_FAIL(loader, "holds a %s byte; this is not a text file", "NUL");
        if (c < 0x20 && !is_blank(line[i]))
            return LINE_FAIL(loader, "holds the control character 0x%02x; this is not a text file", c);
    }
    return ST_OK;
}

/* "key = value" without comment; the first '=' or ':' separates the two. */
static enum status take_value(struct loader *loader, const char *line, size_t n, struct error *err)
{
    char key[2 * CONFIG_KEY_MAX], spelt[CONFIG_KEY_MAX];
    size_t n_key = 0, n_value;

    while (n_key < n && line[n_key] != '=' && line[n_key] != ':')
        n_key++;
    if (n_key == n)
        return LINE_FAIL(loader, "no [section] and no key = value; a comment begins with %s", "; or #");
    n_value = n - n_key - 1;
    const char *value = trim(line + n_key + 1, &n_value);
    line = trim(line, &n_key);
    if (n_value > CONFIG_LINE_MAX_BYTES)
        return LINE_FAIL(loader, "the value has %zu bytes, at most %d are allowed", n_value, CONFIG_LINE_MAX_BYTES);
    if (n_key == 0)
        return LINE_FAIL(loader, "%s precedes the '='; write key = value", "nothing");
    if (loader->section[0] == '\0')
        return LINE_FAIL(loader, "key %.*s precedes the first [section]; put it into one",
                         (int)(n_key < 80 ? n_key : 80), line);
    if (n_key >= CONFIG_KEY_MAX ||
        snprintf(key, sizeof key, "%s.%.*s", loader->section, (int)n_key, line) >= (int)sizeof key ||
        !config_spell_key(key, spelt))
        return LINE_FAIL(loader, "the name %.40s... is longer than %d bytes", line, CONFIG_KEY_MAX - 1);
    memcpy(loader->value, value, n_value);
    loader->value[n_value] = '\0';
    if (!unquote(loader->value))
        return LINE_FAIL(loader, "the quotes of %.80s do not match; inside quotes write a quote twice", spelt);
    const struct config_entry *earlier = find_in_text(loader, spelt, false);
    if (earlier != NULL)
        return LINE_FAIL(loader, "%.80s was set before at %s; keep one of them", spelt, earlier->origin);
    return add(loader, key, loader->value, err);
}

static enum status load_lines(struct loader *loader, const char *at, const char *end, struct error *err)
{
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *line = at;
        size_t n = (size_t)((newline != NULL ? newline : end) - at);
        at += n + (newline != NULL);
        loader->line++;
        TRY(check_bytes(loader, line, n, err));
        line = trim(line, &n);
        n = content_length(line, n);
        if (n > 0)
            TRY(line[0] == '[' ? take_section(loader, line, n, err) : take_value(loader, line, n, err));
    }
    return ST_OK;
}

static enum status load(struct config *config, const char *name, const char *text, size_t n, struct error *err)
{
    struct loader loader = {.config = config, .name = name, .first_entry = config->n_entries};
    size_t skip = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* byte order mark */
    MEM_LOCAL char *value = mem_alloc(CONFIG_LINE_MAX_BYTES + 1);

    loader.value = value;
    config->n_texts++;
    return load_lines(&loader, text + skip, text + n, err);
}

enum status config_load_text(struct config *config, const char *name, const char *text, struct error *err)
{
    return load(config, name, text, strlen(text), err);
}

enum status config_load_file(struct config *config, const char *path, struct error *err)
{
    struct error read_err = {0};
    MEM_LOCAL char *text = NULL;
    size_t n = 0;
    enum status rc = file_read_all(path, CONFIG_FILE_MAX_BYTES, &text, &n, &read_err);

    if (rc == ST_LIMIT)
        return FAIL(err, ST_CONFIG, "%s:1: larger than %d bytes; this is not a config", path, CONFIG_FILE_MAX_BYTES);
    if (rc != ST_OK)
        return FAIL(err, rc, "%s", read_err.text);
    return load(config, path, text, n, err);
}
