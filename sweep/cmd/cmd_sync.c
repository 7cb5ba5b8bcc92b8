/* cmd_sync.c - `trawl sync`: sends the trackers the reports that still wait. A second run changes nothing. */
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "study/version.h"
#include "sweep/cmd/commands.h"
#include "sweep/signals.h"
#include "web/track/track.h"

#define PATIENCE_S 60 /* with trackers that do not answer */
#define LOOK_MS 100
#define LOG_EVERY_S 5

struct sync_cmd {
    const char *store_path, *name, *forget;
    double patience_s;
    struct store *store;
    int64_t n_studies, n_left;
    char why[ERROR_TEXT_MAX];
};

/* The [track] settings of a stored study, with the trackers that it is registered with; *ret_any: are there some? */
static enum status load_settings(struct sync_cmd *s, const struct study *study, struct setup **ret_setup, bool *ret_any,
                                 struct error *err)
{
    char **names = NULL, label[160];
    size_t n = 0, used = 0;

    TRY(store_tracker_names(s->store, study->id, &names, &n, err));
    *ret_any = n > 0;
    *ret_setup = NULL;
    snprintf(label, sizeof label, "study %.120s", study->name);
    enum status rc = n > 0 ? setup_from_text(ret_setup, label, study->config, err) : ST_OK;
    if (rc == ST_OK && n > 0) {
        struct track_settings *t = &(*ret_setup)->track;
        t->trackers[0] = '\0';
        for (size_t i = 0; i < n && used < sizeof t->trackers; i++)
            used += (size_t)snprintf(t->trackers + used, sizeof t->trackers - used, "%s%s", i > 0 ? "," : "", names[i]);
        t->strict = false;
        rc = track_settings_check(t, err);
    }
    store_names_free(names, n);
    if (rc != ST_OK) {
        setup_destroy(*ret_setup);
        *ret_setup = NULL;
    }
    return rc;
}

/* Until nothing is left that could be sent, no tracker has answered for too long, or the user stops it. While one of
 * them answers it takes the time that it needs; waiting for the budget of requests is not silence. */
static void wait_for(const struct sync_cmd *s, const struct study *study, struct uploader *uploader)
{
    const struct timespec nap = {.tv_nsec = LOOK_MS * 1000000L};
    double heard_s = clock_mono_s(), logged_s = heard_s;
    int64_t answers = 0;
    struct upload_counts counts;

    for (;;) {
        nanosleep(&nap, NULL);
        uploader_counts(uploader, &counts);
        store_fold(s->store); /* which the uploader's connections do not */
        double now_s = clock_mono_s();
        if (counts.idle || signals_stop())
            return;
        if (counts.answers != answers || !(counts.down || counts.asking))
            heard_s = now_s;
        answers = counts.answers;
        if (now_s - heard_s > s->patience_s)
            return;
        if (now_s - logged_s > LOG_EVERY_S) {
            log_info("%s: %lld row(s) sent%s%s", study->name, (long long)counts.sent, counts.down ? ", waiting: " : "",
                     counts.down ? counts.text : "");
            logged_s = now_s;
        }
    }
}

static enum status sync_study(struct sync_cmd *s, const struct study *study, struct error *err)
{
    struct uploader *uploader = NULL;
    struct upload_counts counts;
    AT_END(setup_destroy_at) struct setup *setup = NULL;
    bool any;

    TRY(load_settings(s, study, &setup, &any, err));
    if (!any)
        return ST_OK;
    const struct uploader_options options = {.store_path = s->store_path,
                                             .study_id = study->id,
                                             .study = study->name,
                                             .settings = &setup->track,
                                             .program = program_text,
                                             .single = strcmp(study->method, TRAIN_TRACK_METHOD) == 0,
                                             .drain = true};
    TRY(uploader_create(&uploader, &options, err));
    wait_for(s, study, uploader);
    uploader_close(uploader, 0, &counts);
    printf("%s: %lld row%s sent to %s, %lld left\n", study->name, (long long)counts.sent, counts.sent == 1 ? "" : "s",
           setup->track.trackers, (long long)counts.waiting);
    fflush(stdout);
    s->n_studies++;
    s->n_left += counts.waiting;
    if (counts.text[0] != '\0')
        snprintf(s->why, sizeof s->why, "%s", counts.text);
    return ST_OK;
}

static enum status sync_all(struct sync_cmd *s, struct error *err)
{
    struct study *studies = NULL;
    size_t n = 0;
    bool found = false;

    TRY(store_study_list(s->store, &studies, &n, err));
    enum status rc = ST_OK;
    for (size_t i = 0; rc == ST_OK && i < n && !signals_stop(); i++) {
        if (s->name != NULL && strcmp(studies[i].name, s->name) != 0)
            continue;
        int64_t held = 0;
        found = true;
        rc = store_study_hold(s->store, studies[i].name, &held, err); /* a controller would send too */
        if (rc == ST_BUSY && s->name == NULL) {
            log_info("%s: its controller sends; left out", studies[i].name);
            error_clear(err);
            rc = ST_OK;
            continue;
        }
        if (rc == ST_OK && s->forget != NULL)
            rc = store_tracker_forget(s->store, studies[i].id, s->forget, err);
        if (rc == ST_OK && s->forget != NULL)
            printf("%s no longer reports to %s\n", studies[i].name, s->forget);
        THEN(rc, sync_study(s, &studies[i], err));
        store_study_let_go(s->store, held);
    }
    study_list_free(studies, n);
    if (rc == ST_OK && !found && s->name != NULL) {
        struct study study;
        rc = store_study_find(s->store, s->name, &study, err); /* whose failure names the near ones */
        study_free(&study);
    }
    return rc;
}

static enum status run(struct sync_cmd *s, struct error *err)
{
    if (s->forget != NULL && s->name == NULL)
        return FAIL(err, ST_USAGE, "sync: --forget needs the name of the study that is to forget a tracker");
    if (!store_may_exist(s->store_path))
        return FAIL(err, ST_NOTFOUND, "there is no store at %s; check --store", s->store_path);
    TRY(store_open_controller(&s->store, s->store_path, err));
    signals_catch();
    TRY(sync_all(s, err));
    if (signals_stop())
        return FAIL(err, ST_INTERRUPTED, "interrupted; the rest waits in the store, run the command again");
    if (s->n_studies == 0 && s->forget == NULL)
        printf("nothing to send: %s%s of %s reports to a tracker (--track)\n",
               s->name != NULL ? "no run of the study " : "no study", s->name != NULL ? s->name : "", s->store_path);
    if (s->n_left > 0)
        return FAIL(err, ST_IO, "%lld row(s) are left%s%s; they wait in the store, run the command again",
                    (long long)s->n_left, s->why[0] != '\0' ? ": " : "", s->why);
    return ST_OK;
}

enum status cmd_sync(int argc, char **argv, struct error *err)
{
    struct sync_cmd s = {.store_path = "trawl.db", .patience_s = PATIENCE_S};
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &s.store_path, "FILE", "the store (trawl.db)"},
        {"timeout", 0, CLI_SECONDS, &s.patience_s, "TIME", "give up once no tracker has answered for this long (60s)"},
        {"forget", 0, CLI_TEXT, &s.forget, "TRACKER", "a tracker of the study that gets no more reports"},
    };
    const struct cli cli = {
        .name = "sync",
        .synopsis = "trawl sync [NAME] [--store FILE] [--timeout TIME] [--forget TRACKER]",
        .about =
            "Sends the trackers the rows that they have not received: after a run with track.offline, an outage, "
            "a\ncrash, or an end that did not wait for uploads. Prints for each study how many rows were sent and how\n"
            "many are left. Nothing is sent twice. --timeout limits only the time without an answer.\n"
            "Exit code 0: nothing is left; 1: some rows are left, and wait in the store for the next time; "
            "130:\ninterrupted, as 1. A running sweep sends its own rows. Logins come from the trackers' own "
            "variables\n"
            "and files, as in a sweep.",
        .examples = "  trawl sync --store my.db\n"
                    "  trawl sync first --store my.db --forget mlflow",
        CLI_OPTS(opts),
        CLI_WORDS(0, 1, "a study's name"),
    };
    enum status rc = cli_parse(&cli, argc, argv, &words, err);

    if (rc == ST_OK && !words.help) {
        s.name = words.n > 0 ? words.v[0] : NULL;
        rc = run(&s, err);
    }
    store_close(s.store);
    return rc;
}
