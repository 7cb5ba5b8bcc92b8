/* netrc.c - logins and settings from the files that trackers' own clients keep in the home directory.
 * No text that is read here goes into a message. */
#include "base/os/file.h"
#include "web/http/http.h"

#include <strings.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES (1u << 20)
#define PATH_MAX_BYTES 4096
#define WORD_BYTES 512

/* The text of the first existing file of $NETRC, ~/.netrc and ~/_netrc; NULL: none. */
static char *netrc_text(size_t *ret_n)
{
    static const char *const names[] = {".netrc", "_netrc"};
    const char *given = getenv("NETRC"), *home = getenv("HOME");
    char path[PATH_MAX_BYTES];
    struct stat st;
    char *text = NULL;

    for (size_t i = 0; i < 3 && text == NULL; i++) {
        if (i == 0 && given != NULL && given[0] != '\0')
            snprintf(path, sizeof path, "%s", given);
        else if (i > 0 && home != NULL && (given == NULL || given[0] == '\0'))
            snprintf(path, sizeof path, "%s/%s", home, names[i - 1]);
        else
            continue;
        if (stat(path, &st) != 0 || file_read_regular(path, FILE_MAX_BYTES, &text, ret_n, NULL) != ST_OK) {
            text = NULL;
            continue;
        }
        if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
            log_warn("%s holds passwords and others may read it; `chmod 600 %s` keeps them out, continuing", path,
                     SHELL_WORD(path));
    }
    return text;
}

/* The next word; comments run to the end of a line; a word may stand in "". */
static bool next_word(const char **at, char *word, size_t size)
{
    const char *p = *at;
    size_t n = 0;

    for (;;) {
        p += strspn(p, " \t\r\n");
        if (*p != '#')
            break;
        p += strcspn(p, "\n");
    }
    if (*p == '\0') {
        *at = p;
        return false;
    }
    if (*p == '"') {
        for (p++; *p != '\0' && *p != '"'; p++) {
            if (*p == '\\' && p[1] != '\0')
                p++;
            if (n + 1 < size)
                word[n++] = *p;
        }
        p += *p == '"';
    } else {
        for (; *p != '\0' && strchr(" \t\r\n", *p) == NULL; p++)
            if (n + 1 < size)
                word[n++] = *p;
    }
    word[n] = '\0';
    *at = p;
    return true;
}

bool netrc_find(const char *host, char *ret_login, size_t login_size, char *ret_password, size_t password_size)
{
    size_t n = 0;
    char *text = netrc_text(&n), word[WORD_BYTES];
    bool ours = false, found = false;

    ret_login[0] = ret_password[0] = '\0';
    if (text == NULL)
        return false;
    for (const char *at = text; next_word(&at, word, sizeof word);) {
        if (strcmp(word, "machine") == 0 || strcmp(word, "default") == 0) {
            if (found)
                break;
            ours = word[0] == 'd' ? false : next_word(&at, word, sizeof word) && strcasecmp(word, host) == 0;
            ret_login[0] = ret_password[0] = '\0';
        } else if (strcmp(word, "login") == 0) {
            if (next_word(&at, word, sizeof word) && ours)
                snprintf(ret_login, login_size, "%s", word);
        } else if (strcmp(word, "password") == 0) {
            if (next_word(&at, word, sizeof word) && ours) {
                snprintf(ret_password, password_size, "%s", word);
                found = ret_password[0] != '\0';
            }
        } else if (strcmp(word, "macdef") == 0) { /* up to an empty line */
            const char *end = strstr(at, "\n\n");
            at = end != NULL ? end : at + strlen(at);
        }
        if (found && ret_login[0] != '\0')
            break;
    }
    explicit_bzero(word, sizeof word);
    explicit_bzero(text, n);
    mem_free(text);
    return found;
}

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]) != NULL)
        text[--n] = '\0';
    return text;
}

bool track_ini_value(const char *path, const char *section, const char *key, char *ret_value, size_t size)
{
    char *text = NULL, *rest, *line, here[128] = "";
    size_t n = 0;
    bool found = false;

    if (!file_exists(path) || file_read_regular(path, FILE_MAX_BYTES, &text, &n, NULL) != ST_OK)
        return false;
    rest = text;
    while ((line = strsep(&rest, "\n")) != NULL) {
        char *word = trim(line), *split;
        if (*word == '#' || *word == ';' || *word == '\0')
            continue;
        if (*word == '[') {
            word[strcspn(word, "]")] = '\0';
            snprintf(here, sizeof here, "%s", trim(word + 1));
            continue;
        }
        split = strpbrk(word, "=:");
        if (split == NULL || strcmp(here, section) != 0)
            continue;
        *split = '\0';
        if (strcmp(trim(word), key) != 0)
            continue;
        snprintf(ret_value, size, "%s", trim(split + 1));
        found = true;
    }
    explicit_bzero(text, n);
    mem_free(text);
    return found;
}
