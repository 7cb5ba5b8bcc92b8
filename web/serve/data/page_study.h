/* page_study.h - a study as the server last read it: the study in memory that all readers share, and what the pages
 * add to it: the version in which each trial changed, reports of running trials, sums.
 * One thread (the watcher) creates and updates it; others read it under the server's lock `data`. It owns all that it
 * points to; page_study_free. */
#pragma once

#include "base/text/json.h"
#include "study/view/study_view.h"
#include "web/text/trial_field.h"

struct promise;
struct strbuf;

#define PAGE_STUDY_ENV_MAX 128

/* Columns of a trial after those of trial_fields: what is made of it. */
enum made {
    MADE_STATE = TRIAL_FIELDS,
    MADE_COST,
    MADE_ON_FRONT,
    MADE_LIVE_SCORE,
    MADE_LIVE_S,
    MADE_EXPECTED,
    MADE_EXPECTED_LO,
    MADE_EXPECTED_HI,
    MADE_N_SEEDS,
    MADE_ENV,
    MADE_OBJECTIVE,
    MADE_INFEASIBLE,
    COLUMNS
};
extern const char *const page_made_names[COLUMNS - TRIAL_FIELDS];

struct last_report { /* of a running trial: its last report */
    int64_t env_steps;
    double wall_s, score; /* NaN: none */
};

struct page_study {
    struct study_view view; /* trials without config and log_tail; advice of the first advice.n of them */
    int64_t advised; /* version of `settled` that the advice is of */
    double advice_rest_s; /* monotonic: not again before */
    int64_t *changed; /* (view.n) version at which it last changed */
    struct last_report *live; /* (view.n) */
    bool *shown_front; /* (view.n) view.on_front as readers last saw it */
    size_t cap;
    double hypervolume, cost_s;
    size_t knee, best; /* the picks of that name; n: none */
    size_t best_run; /* the best single run; n: none */
    size_t n_front, n_confirming; /* confirming: running */
    int64_t count[TRIAL_STATES];
    char env[PAGE_STUDY_ENV_MAX]; /* "" when unknown */
    bool has_controller; /* one that could run it: of a file that of the store, in PostgreSQL that of the study */
    int64_t started_ms, finished_ms;
    int64_t version;
    int64_t settled; /* version in which a trial ended last: what models depend on */
};

/* What the store has that may be new: read without the lock, applied under it. */
struct page_news {
    struct study study;
    struct page_trial { /* that was not final, then those that are new */
        struct trial trial;
        struct last_report live;
    } * trials; /* (n) */
    size_t n, cap;
};

/* The one name of a searched parameter in all answers: a program's without "param.", but for one that is also the name
 * of a column. */
const char *page_param_name(const struct search *search, size_t k);
void page_study_free(struct page_study *p); /* NULL is fine */
/* Reads a study for the first time. Takes study. */
enum status page_study_create(struct page_study **ret_study, struct store *store, struct study *study, int64_t version,
                              struct error *err) MUST_USE;
/* Reads what may have changed. Takes study; the caller applies the news. */
enum status page_study_read(const struct page_study *p, struct store *store, struct study *study,
                            struct page_news *ret_news, struct error *err) MUST_USE;
/* Takes what the news hold. *ret_changed: the study is to be published under `version`. */
void page_study_apply(struct page_study *p, struct page_news *news, int64_t version, bool *ret_changed);
/* Do both have the same trials, with the same results and the same remarks, in the same state of the study? */
bool page_study_is_same(const struct page_study *a, const struct page_study *b);
bool page_study_wants_advice(const struct page_study *p, double now_s);
void page_study_take_advice(struct page_study *p, struct gp_insight *advice, int64_t version);
const char *page_study_advice_state(const struct page_study *p); /* "ready", "stale" (trials have ended) or "none" */
/* n_seeds, score_mean, score_lo, score_hi, seeds_mean, cost_mean, cost_lo, cost_hi, score_noise_sd, start_s. */
void put_promise(struct strbuf *out, const struct promise *promise);
/* "running", "waiting", ...; has_writer: the store has a controller, of whatever studies. */
const char *page_study_state(const struct page_study *p, bool has_writer);
cJSON *page_study_counts(const struct page_study *p);
cJSON *page_study_summary(const struct page_study *p, bool has_writer); /* an element of /studies */
/* The value of parameter k of trial i as JSON; all of them as an object. */
void page_study_put_param(const struct page_study *p, size_t i, size_t k, struct strbuf *out);
void page_study_put_params(const struct page_study *p, size_t i, struct strbuf *out);
