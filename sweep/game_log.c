/* game_log.c - see game_log.h. */
#include "sweep/game_log.h"

#define OTHERS_SHOWN 20
#define LAST_LINES 10 /* <= OTHERS_SHOWN */

static void show_line(struct game_log *log, const char *line)
{
    bool own = strncmp(line, "trawl: ", 7) == 0;

    if (own && log->again)
        return;
    log->n_others += log->counts && !own;
    if (!own && log->n_others == OTHERS_SHOWN + 1)
        log_info("%s: its games have printed %d lines; further ones are left out, except the last if it dies "
                 "(TRAWL_DEBUG=1 shows all)",
                 log->who, OTHERS_SHOWN);
    log->show(log->ctx, line, !own && log->n_others > OTHERS_SHOWN);
}

/* Passes whole lines on. */
static void show_lines(struct game_log *log, bool all)
{
    for (;;) {
        char line[GAME_LOG_BYTES + 1];
        const char *from = log->text + log->shown, *end = memchr(from, '\n', log->n - log->shown);
        size_t n = end != NULL ? (size_t)(end - from) : log->n - log->shown;
        if (end == NULL && (!all || n == 0))
            return;
        memcpy(line, from, n);
        line[n] = '\0';
        show_line(log, line);
        log->shown += n + (end != NULL);
    }
}

static bool continues(char c) /* within a character of UTF-8 */
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* n, less the bytes of a character at the end that is not all there yet. */
static size_t whole(const char *text, size_t n)
{
    size_t at = n;

    while (at > 0 && n - at < 3 && continues(text[at - 1]))
        at--;
    if (at > 0 && (unsigned char)text[at - 1] >= 0xc0 && utf8_length(text + at - 1, n - at + 1) == 0)
        return at - 1;
    return n;
}

/* Frees n bytes by dropping the oldest lines; the part of a line that is there so far stays whole where it can. */
static void make_room(struct game_log *log, size_t n)
{
    size_t all = log->n;

    if (log->n + n <= sizeof log->text)
        return;
    size_t drop = log->n + n - sizeof log->text;
    const char *end = memchr(log->text + drop, '\n', log->n - drop);
    if (end != NULL)
        drop = (size_t)(end - log->text) + 1;
    while (drop < log->n && continues(log->text[drop]))
        drop++;
    if (drop > log->shown) { /* of a line longer than the buffer */
        log->n = whole(log->text, all);
        show_lines(log, true);
        log->n = all;
    }
    memmove(log->text, log->text + drop, log->n - drop);
    log->n -= drop;
    log->shown -= drop;
}

void game_log_add(struct game_log *log, const char *bytes, size_t n)
{
    for (size_t part; n > 0; bytes += part, n -= part) {
        part = n < sizeof log->text / 4 ? n : sizeof log->text / 4;
        make_room(log, part);
        memcpy(log->text + log->n, bytes, part);
        log->n += part;
        show_lines(log, false);
    }
}

void game_log_end(struct game_log *log)
{
    show_lines(log, true);
}

void game_log_show_last(struct game_log *log)
{
    size_t from = log->n;

    show_lines(log, true);
    if (log->n_others <= OTHERS_SHOWN)
        return;
    for (int ends = 0; from > 0; from--)
        if (log->text[from - 1] == '\n' && ends++ == LAST_LINES)
            break;
    log->n_others = 0;
    log->shown = from;
    log->again = true;
    show_lines(log, true);
    log->again = false;
}
