/* term.c - a block of lines redrawn in place on a terminal, with plain ANSI sequences on stderr; sizes and colours.
 * Invariants: (1) the cursor is hidden only between term_begin and term_end; (2) a log line never tears the block: it
 * wipes the block, is printed where it stood, and the next draw starts below. */
#include "sweep/term.h"

#include <sys/ioctl.h>

#define DRAW_MAX 65536

static volatile bool active;
static int lines_drawn, width_drawn;
static FILE *own_err; /* NULL: stderr */

FILE *term_err(void)
{
    return own_err != NULL ? own_err : stderr;
}

int term_width(int fd)
{
    struct winsize ws;

    if (ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col >= 20)
        return ws.ws_col;
    return 80;
}

static int term_height(void)
{
    struct winsize ws;

    if (ioctl(fileno(term_err()), TIOCGWINSZ, &ws) == 0 && ws.ws_row >= 4)
        return ws.ws_row;
    return 24;
}

static void wipe(void)
{
    if (lines_drawn > 0)
        fprintf(term_err(), "\x1b[%dA\r\x1b[J", lines_drawn);
    lines_drawn = 0;
}

static void log_above(void *ctx, enum log_level level, const char *line)
{
    static const char *const names[] = {"debug", "info", "warning", "error"};

    (void)ctx;
    wipe();
    fprintf(term_err(), "trawl: %s: %s\n", names[level], line);
}

void term_set_err(FILE *file)
{
    own_err = file;
    log_set_sink(file != NULL || active ? log_above : NULL, NULL);
}

void term_print(const char *line)
{
    if (active)
        wipe();
    fprintf(term_err(), "%s\n", line);
}

bool term_begin(void)
{
    const char *kind = getenv("TERM");

    if (!isatty(fileno(term_err())) || kind == NULL || strcmp(kind, "dumb") == 0)
        return false;
    active = true;
    lines_drawn = 0;
    log_set_sink(log_above, NULL);
    fputs("\x1b[?25l", term_err());
    fflush(term_err());
    return true;
}

/* Bytes of text that fill at most width columns (UTF-8: continuation bytes take none, nor do colours). */
static size_t fit(const char *text, size_t n, int width)
{
    int columns = 0;
    size_t i = 0;

    for (; i < n; i++) {
        if (text[i] == '\x1b') {
            while (i < n && text[i] != 'm')
                i++;
            continue;
        }
        if (((unsigned char)text[i] & 0xc0) != 0x80 && ++columns > width)
            break;
    }
    return i;
}

void term_draw(const char *text)
{
    char out[DRAW_MAX];
    size_t used = 0;
    int width = term_width(fileno(term_err())) - 1, lines = 0;

    if (!active)
        return;
    if (lines_drawn > 0 && (width != width_drawn || lines_drawn >= term_height()))
        used = (size_t)snprintf(out, sizeof out, "\x1b[H\x1b[J"); /* resized: lines may have been folded */
    else if (lines_drawn > 0)
        used = (size_t)snprintf(out, sizeof out, "\x1b[%dA\r", lines_drawn);
    width_drawn = width;
    while (*text != '\0' && used + 8 < sizeof out) {
        size_t n = strcspn(text, "\n"), keep = fit(text, n, width);
        int wrote = snprintf(out + used, sizeof out - used, "%.*s%s\x1b[K\n", (int)keep, text,
                             memchr(text, '\x1b', keep) != NULL ? "\x1b[0m" : "");
        if (wrote < 0 || (size_t)wrote >= sizeof out - used)
            break;
        used += (size_t)wrote;
        lines++;
        text += n + (text[n] == '\n');
    }
    fwrite(out, 1, used, term_err());
    if (lines < lines_drawn)
        fputs("\x1b[J", term_err());
    fflush(term_err());
    lines_drawn = lines;
}

void term_end(void)
{
    if (!active)
        return;
    active = false;
    lines_drawn = 0;
    log_set_sink(own_err != NULL ? log_above : NULL, NULL);
    fputs("\x1b[?25h", term_err());
    fflush(term_err());
}

void term_emergency(void)
{
    static const char show[] = "\x1b[?25h\n";

    if (active && write(fileno(term_err()), show, sizeof show - 1) < 0)
        return;
}

const char *term_bar(double fraction, int width, char buf[80])
{
    if (width > 76)
        width = 76;
    int full = (int)(fraction * width + 0.5);
    buf[0] = '[';
    for (int i = 0; i < width; i++)
        buf[1 + i] = i < full ? '#' : '-';
    buf[1 + width] = ']';
    buf[2 + width] = '\0';
    return buf;
}

/* Reading the environment alone: setlocale would change how numbers are printed. */
static bool locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < COUNT(names); i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0')
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

void term_style_take(struct term_style *ret_style)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    *ret_style = (struct term_style){
        .width = term_width(fileno(term_err())),
        .height = term_height(),
        .color = (no_color == NULL || no_color[0] == '\0') && term != NULL && strncmp(term, "vt", 2) != 0,
        .unicode = locale_is_utf8(),
    };
}

const char *term_paint(const struct term_style *style, enum term_color color)
{
    static const char *const codes[] = {"\x1b[0m", "\x1b[2m", "\x1b[32m", "\x1b[1;33m", "\x1b[31m", "\x1b[1m"};

    return style->color ? codes[color] : "";
}
