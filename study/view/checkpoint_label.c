/* checkpoint_label.c - the first lines of the config text in a checkpoint: which trial it belongs to, and which build
 * on which device made it.
 *
 *   ; checkpoint of trial 17 of the study first (study 3 of 2026-11-29 01:02:03.456, config 1a2b3c4d)
 *   ; made by trawl 0.1.0 (abc1234) on Intel(R) Xeon(R) ... (2 threads, SkylakeX)
 *
 * A training alone has the second line only.
 * Invariant: a trial resumes its own file and no other's, whatever the file is called. */
#include "study/view/checkpoint_label.h"

#include "base/os/file.h"
#include "store/store.h"
#include "study/version.h"
#include "trainer/trainer.h"

#define OF "; checkpoint of "
#define BY "; made by "
#define LABEL_MAX_BYTES (2u << 20)

void checkpoint_owner(const struct study *study, const struct trial *trial, char *buf, size_t size)
{
    time_t created = (time_t)(study->created_ms / 1000);
    struct tm utc;
    char date[32] = "";

    if (gmtime_r(&created, &utc) != NULL)
        (void)strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &utc);
    snprintf(buf, size, "trial %lld of the study %.100s (study %lld of %s.%03d, config %08lx)",
             (long long)trial->number, study->name, (long long)study->id, date, (int)(study->created_ms % 1000),
             (unsigned long)file_crc32(0, trial->config, strlen(trial->config)));
}

enum status checkpoint_label(const char *owner, const char *maker, const char *config, char **ret_text,
                             struct error *err)
{
    STRBUF(sb, LABEL_MAX_BYTES);

    if (owner != NULL)
        strbuf_addf(&sb, OF "%s\n", owner);
    strbuf_addf(&sb, BY "%s\n%s", maker, config);
    TRY(strbuf_status(&sb, "a checkpoint's text", err));
    *ret_text = strbuf_take(&sb);
    return ST_OK;
}

/* What follows the mark in the text's first lines, "" if it is not there. */
static void read_line(const char *text, const char *mark, char *buf, size_t size)
{
    size_t n = strlen(mark);

    buf[0] = '\0';
    for (; text != NULL && text[0] == ';'; text = strchr(text, '\n'), text = text != NULL ? text + 1 : NULL)
        if (strncmp(text, mark, n) == 0) {
            snprintf(buf, size, "%.*s", (int)strcspn(text + n, "\n"), text + n);
            return;
        }
}

enum status checkpoint_read_label(const char *path, char *ret_owner, char *ret_maker, size_t size, struct error *err)
{
    MEM_LOCAL char *text = NULL;

    TRY(checkpoint_read_config(path, &text, err));
    read_line(text, OF, ret_owner, size);
    read_line(text, BY, ret_maker, size);
    return ST_OK;
}

void checkpoint_maker(const char *device, const char *before, char *buf, size_t size)
{
    char now[CHECKPOINT_LABEL_MAX];
    size_t n, n_before = before != NULL ? strlen(before) : 0;

    snprintf(now, sizeof now, "%s on %s", program_text, device);
    n = strlen(now);
    if (n_before == 0 || (n_before >= n && strcmp(before + n_before - n, now) == 0))
        snprintf(buf, size, "%s", n_before == 0 ? now : before);
    else
        snprintf(buf, size, "%s" CHECKPOINT_THEN "%s", before, now);
}
