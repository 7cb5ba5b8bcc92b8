/* follow.c - watches a study that a daemon runs: reads the store, and asks the daemon for its slots.
 * Invariant: watching changes nothing; however it ends, the study continues. */
#include "sweep/control/follow.h"

#include "base/text/json.h"
#include "study/view/study_view.h"
#include "sweep/control/socket/control_client.h"
#include "sweep/control/status_json.h"
#include "sweep/show/progress.h"
#include "sweep/show/status_block.h"
#include "sweep/signals.h"
#include "sweep/term.h"

#define BLOCK_MAX 65536
#define TAKEOVER_S 15 /* a standby has the store by then */
#define LOOK_MS 500
#define LOAD_SHARE 10 /* a study is read again after this many times the time that reading took */

struct follow {
    const char *store_path, *name;
    struct store *store;
    struct study_view view;
    struct sweep_status status;
    bool quiet, tty, served; /* served: the daemon answers */
    char env[64];
    double begin_s, fraction_before; /* for the time left */
    int64_t n_ended; /* at the last look */
    double load_s, loaded_at_s;
    double served_s; /* when a controller was last seen */
};

static enum status load(struct follow *f, struct error *err)
{
    double begin_s = clock_mono_s();

    study_view_free(&f->view);
    TRY(study_view_load(f->store, f->name, &f->view, err));
    TRY(study_view_advise(&f->view, err));
    f->loaded_at_s = clock_mono_s();
    f->load_s = f->loaded_at_s - begin_s;
    return ST_OK;
}

static void ask_daemon(struct follow *f)
{
    cJSON *request = cJSON_CreateObject();
    JSON_LOCAL cJSON *answer = NULL;
    struct error why = {0};

    f->served = false;
    json_add_str(request, "command", "status");
    json_add_str(request, "study", f->name);
    if (control_call(f->store_path, request, &answer, &f->served, &why) == ST_OK)
        sweep_status_from_json(json_get(answer, "live"), &f->status);
    if (f->served)
        f->served_s = clock_mono_s();
}

static bool has_ended(const struct trial *t)
{
    return t->state != TRIAL_QUEUED && t->state != TRIAL_RUNNING;
}

/* Trials that have ended since the last look, a line each. */
static void print_lines(struct follow *f)
{
    const struct study_view *v = &f->view;
    int64_t n = 0;

    for (size_t i = 0; i < v->n; i++) {
        n += has_ended(&v->trials[i]);
        if (n > f->n_ended && has_ended(&v->trials[i]) && !f->quiet && !f->tty)
            progress_print_trial(v, &v->trials[i], n);
    }
    f->n_ended = n;
}

static double seconds_left(struct follow *f)
{
    double now_s = clock_mono_s(), gained;

    if (!isfinite(f->status.fraction))
        return NAN;
    if (f->begin_s == 0) {
        f->begin_s = now_s;
        f->fraction_before = f->status.fraction;
    }
    gained = f->status.fraction - f->fraction_before;
    return gained > 0 ? (now_s - f->begin_s) * (1 - f->status.fraction) / gained : NAN;
}

static void draw(struct follow *f)
{
    struct term_style style;

    if (!f->tty)
        return;
    STRBUF(text, BLOCK_MAX);
    term_style_take(&style);
    status_block_write(&(struct status_block){&f->view, f->env, &f->status, seconds_left(f)}, &style, &text);
    if (text.len > 0)
        term_draw(text.text);
}

/* Only its name is needed. */
static void find_env(struct follow *f)
{
    const char *at = f->view.study.config != NULL ? strstr(f->view.study.config, "[env]") : NULL;

    at = at != NULL ? strstr(at, "name = ") : NULL;
    if (at != NULL)
        snprintf(f->env, sizeof f->env, "%.*s", (int)strcspn(at + 7, "\n"), at + 7);
}

static enum status look(struct follow *f, struct error *err)
{
    if (clock_mono_s() - f->loaded_at_s >= LOAD_SHARE * f->load_s) {
        TRY(load(f, err));
        print_lines(f);
    }
    ask_daemon(f);
    draw(f);
    return ST_OK;
}

/* No daemon answers here: has another one the store, or another controller the study, or may a standby take it yet? */
static bool stays_served(struct follow *f)
{
    int64_t pid;

    if (store_is_address(f->store_path) && store_is_held(f->store_path, f->name, &pid))
        f->served_s = clock_mono_s();
    return store_is_address(f->store_path) && clock_mono_s() - f->served_s < TAKEOVER_S;
}

static enum status watch(struct follow *f, struct error *err)
{
    TRY(load(f, err));
    find_env(f);
    print_lines(f);
    while (!signals_stop()) {
        usleep(LOOK_MS * 1000);
        TRY(look(f, err));
        if (f->view.study.state != STUDY_RUNNING) {
            TRY(load(f, err));
            print_lines(f);
            return ST_OK;
        }
        if (!f->served && !stays_served(f))
            return FAIL(err, ST_IO,
                        "the daemon of %s is gone; the study %s continues when one starts again: `trawl daemon --store "
                        "%s`",
                        f->store_path, f->name, SHELL_WORD(f->store_path));
    }
    return FAIL(err, ST_INTERRUPTED, "no longer watching; the daemon continues %s (`trawl stop %s --store %s` ends it)",
                f->name, f->name, SHELL_WORD(f->store_path));
}

enum status follow_study(const char *store_path, const char *name, bool quiet, struct error *err)
{
    struct follow f = {.store_path = store_path, .name = name, .quiet = quiet, .served_s = clock_mono_s()};

    enum status rc = store_open_reader(&f.store, store_path, err);
    f.tty = !quiet && rc == ST_OK && term_begin();
    THEN(rc, watch(&f, err));
    if (f.tty)
        term_end();
    study_view_free(&f.view);
    store_close(f.store);
    return rc;
}
