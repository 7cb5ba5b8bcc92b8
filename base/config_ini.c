/* config_ini.c - loads ini text into entries.
 * inih splits lines into names and values, but it does not tell line numbers, repeated sections, cut lines or NUL
 * bytes. So it is fed by our line reader, which hands out exactly one line for each line of the text: it finds section
 * headers, strips comments (';' and '#', not inside quotes) and outer blanks, and refuses what inih would silently
 * mangle. The handler is called by inih before the next line is read, so `line` is the line of its entry.
 * A quoted value may hold ';' and '#', and its quote character doubled; inih sees quoted ';' as PROTECTED. */
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/config_priv.h"
#include "base/file.h"
#include "base/mem.h"

#define PROTECTED '\x1f' /* no text holds it: control characters are refused */
#define ORIGIN_MAX 256 /* "path:line"; of a longer path the end is kept */
#define VALUE_MAX 1024 /* more than inih's line */
#define TEXT_NAME_MAX 220

struct loader {
    struct config *config;
    const char *name; /* of the file, for messages */
    const char *at; /* next byte */
    const char *end; /* behind the last byte */
    int line; /* of the line handed out last, from 1 */
    char section[CONFIG_KEY_MAX];
    size_t first_entry; /* of this text: repeats are looked for from here on */
    enum status rc; /* first failure of reader or handler */
    int error_line;
    struct error error;
};

static void origin_of(const struct loader *loader, int line, char *buf)
{
    size_t n = strlen(loader->name);
    const char *name = n > TEXT_NAME_MAX ? loader->name + n - TEXT_NAME_MAX : loader->name;

    snprintf(buf, ORIGIN_MAX, "%s:%d", name, line);
}

#define LINE_FAIL(loader, status, fmt, ...)                                                                            \
    do {                                                                                                               \
        char where_[ORIGIN_MAX];                                                                                       \
        origin_of((loader), (loader)->line, where_);                                                                   \
        (loader)->error_line = (loader)->line;                                                                         \
        (loader)->rc = FAIL(&(loader)->error, (status), "%s: " fmt, where_, __VA_ARGS__);                              \
    } while (0)

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

/* Takes quotes off in place. False: the closing one is missing. */
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

static void add(struct loader *loader, const char *key, const char *value)
{
    char origin[ORIGIN_MAX];

    origin_of(loader, loader->line, origin);
    loader->error_line = loader->line;
    loader->rc = config_add_entry(loader->config, CONFIG_FILE, key, value, origin, &loader->error);
}

/* "[name]" without comment. */
static void take_section(struct loader *loader, const char *line, size_t n)
{
    char raw[CONFIG_KEY_MAX];
    const struct config_entry *earlier;

    if (n < 3 || line[n - 1] != ']') {
        LINE_FAIL(loader, ST_CONFIG, "%s is not of the form [section]", "a section line");
        return;
    }
    line++;
    n -= 2;
    while (n > 0 && is_blank(line[0])) {
        line++;
        n--;
    }
    while (n > 0 && is_blank(line[n - 1]))
        n--;
    if (n == 0 || n >= sizeof raw) {
        LINE_FAIL(loader, ST_CONFIG, "a section name has %zu bytes, 1 to %d are possible", n, CONFIG_KEY_MAX - 1);
        return;
    }
    memcpy(raw, line, n);
    raw[n] = '\0';
    (void)config_spell_key(raw, loader->section);
    earlier = find_in_text(loader, loader->section, true);
    if (earlier != NULL)
        LINE_FAIL(loader, ST_CONFIG, "section [%s] was opened before at %s; merge the two", loader->section,
                  earlier->origin);
    else
        add(loader, loader->section, NULL);
}

static bool check_bytes(struct loader *loader, const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)line[i];
        if (c == '\0')
            LINE_FAIL(loader, ST_CONFIG, "holds a %s byte; this is no text file", "NUL");
        else if (c < 0x20 && !is_blank(line[i]))
            LINE_FAIL(loader, ST_CONFIG, "holds the control character 0x%02x; this is no text file", c);
        else
            continue;
        return false;
    }
    return true;
}

/* inih's fgets. */
static char *read_line(char *buf, int size, void *stream)
{
    struct loader *loader = stream;
    const char *line = loader->at, *newline;
    size_t n, room = size > 2 ? (size_t)size - 2 : 0;

    if (loader->rc != ST_OK || line >= loader->end)
        return NULL;
    newline = memchr(line, '\n', (size_t)(loader->end - line));
    n = (size_t)((newline != NULL ? newline : loader->end) - line);
    loader->at = line + n + (newline != NULL);
    loader->line++;
    if (!check_bytes(loader, line, n))
        return NULL;
    for (; n > 0 && is_blank(*line); n--) /* inih takes an indented line for more of the value above */
        line++;
    n = content_length(line, n);
    if (n > room) {
        LINE_FAIL(loader, ST_CONFIG, "the line has %zu bytes, at most %zu are possible", n, room);
        return NULL;
    }
    if (n > 0 && line[0] == '[') {
        take_section(loader, line, n);
        n = 0; /* nothing left for inih, which would cut the name at 49 bytes */
    }
    if (loader->rc != ST_OK)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        buf[i] = line[i] == ';' ? PROTECTED : line[i]; /* a comment would have been stripped */
    }
    buf[n] = '\n';
    buf[n + 1] = '\0';
    return buf;
}

/* inih's callback; 0 means failure. Its own section argument is always "". */
static int take_value(void *user, const char *section, const char *name, const char *value)
{
    struct loader *loader = user;
    char key[2 * CONFIG_KEY_MAX], spelt[CONFIG_KEY_MAX], text[VALUE_MAX];
    const struct config_entry *earlier;

    (void)section;
    if (loader->rc != ST_OK)
        return 0;
    snprintf(text, sizeof text, "%s", value);
    for (char *at = text; *at != '\0'; at++)
        if (*at == PROTECTED)
            *at = ';';
    snprintf(key, sizeof key, "%s.%s", loader->section, name);
    if (name[0] == '\0') {
        LINE_FAIL(loader, ST_CONFIG, "%s stands in front of the '='; write key = value", "nothing");
    } else if (loader->section[0] == '\0') {
        LINE_FAIL(loader, ST_CONFIG, "key %.80s stands in front of the first [section]; put it into one", name);
    } else if (!config_spell_key(key, spelt)) {
        LINE_FAIL(loader, ST_CONFIG, "the name %.40s... is longer than %d bytes", name, CONFIG_KEY_MAX - 1);
    } else if (!unquote(text)) {
        LINE_FAIL(loader, ST_CONFIG, "the quotes of %.80s do not match; inside quotes write a quote twice", spelt);
    } else if ((earlier = find_in_text(loader, spelt, false)) != NULL) {
        LINE_FAIL(loader, ST_CONFIG, "%.80s was set before at %s; keep one of them", spelt, earlier->origin);
    } else {
        add(loader, spelt, text);
    }
    return loader->rc == ST_OK;
}

static enum status load(struct config *config, const char *name, const char *text, size_t n, struct error *err)
{
    struct loader loader = {.config = config, .name = name, .at = text, .end = text + n};
    int line;

    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        loader.at += 3; /* byte order mark */
    loader.first_entry = config->n_entries;
    line = ini_parse_stream(read_line, &loader, take_value, &loader);
    if (line > 0 && (loader.rc == ST_OK || line < loader.error_line)) {
        char where[ORIGIN_MAX];
        origin_of(&loader, line, where);
        return FAIL(err, ST_CONFIG, "%s: no [section] and no key = value; a comment begins with ; or #", where);
    }
    if (line < 0)
        return FAIL(err, ST_NOMEM, "%s: out of memory", name);
    if (loader.rc != ST_OK)
        return FAIL(err, loader.rc, "%s", loader.error.text);
    return ST_OK;
}

enum status config_load_text(struct config *config, const char *name, const char *text, struct error *err)
{
    return load(config, name, text, strlen(text), err);
}

enum status config_load_file(struct config *config, const char *path, struct error *err)
{
    struct error read_err = {0};
    char *text = NULL;
    size_t n = 0;
    enum status rc = file_read_all(path, CONFIG_FILE_MAX_BYTES, &text, &n, &read_err);

    if (rc == ST_LIMIT)
        return FAIL(err, ST_CONFIG, "%s:1: larger than %d bytes; this is no config", path, CONFIG_FILE_MAX_BYTES);
    if (rc != ST_OK)
        return FAIL(err, rc, "%s", read_err.text);
    rc = load(config, path, text, n, err);
    mem_free(text);
    return rc;
}
