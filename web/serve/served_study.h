/* served_study.h - a study as the server last read it: its trials, its front, and what its trials together say.
 * One thread (the watcher) creates and updates views; others read them under the server's lock `data`. A view owns all
 * that it points to; view_free. */
#ifndef WEB_SERVE_SERVED_STUDY_H
#define WEB_SERVE_SERVED_STUDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "gp/gp.h"
#include "store/store.h"
#include "study/export.h"
#include "web/serve/serve.h"

struct promise;
struct serve;
struct store;
struct strbuf;

struct last_report { /* of a running trial: its last report */
    int64_t env_steps;
    double wall_s, score; /* NaN: none */
};

struct view {
    struct study study;
    size_t n, cap;
    struct trial *trials; /* (n) number i at index i; without config and log_tail */
    struct gp_trial *rows; /* (n) as the front sees them */
    bool *on_front; /* (n) by advice where there is some, else by single runs */
    struct gp_insight advice; /* of the first advice.n trials */
    int64_t advised; /* version of `settled` that it is of */
    double advice_rest_s; /* monotonic: not again before */
    int64_t *changed; /* (n) version at which it last changed */
    struct last_report *live; /* (n) */
    double *x; /* (n, dim) values of the searched parameters, choices by index; NaN: not there */
    size_t dim;
    cJSON *space; /* {"params": [...]}; owned */
    const cJSON *params[SPACE_MAX_DIM]; /* rows of space */
    const char *keys[SPACE_MAX_DIM];
    enum search_cost cost;
    struct pareto_ref ref;
    double hypervolume, cost_s;
    size_t knee, best; /* the picks of that name; n: none */
    size_t best_run; /* the best single run; n: none */
    size_t n_front, n_confirming; /* confirming: running */
    int64_t count[TRIAL_STATES];
    char env[SERVE_ENV_MAX];
    int64_t started_ms, finished_ms;
    int64_t version;
    int64_t settled; /* version in which a trial ended last: what models depend on */
};

void view_free(struct view *view);
/* Reads a study for the first time. */
enum status view_create(struct view **ret_view, struct serve *s, struct store *store, struct study *study,
                        int64_t version, struct error *err) MUST_USE;
/* Reads what may have changed: trials that were not final and those that are new. *ret_changed: the view is to be
 * published under `version`; study's strings are taken. */
enum status view_update(struct view *view, struct store *store, struct study *study, int64_t version, bool *ret_changed,
                        struct error *err) MUST_USE;
/* What the trials together say. view_advise only reads, so it may be asked by the thread that writes views, without the
 * lock; view_take_advice wants it. */
bool view_wants_advice(const struct view *view, double now_s);
enum status view_advise(const struct view *view, const struct serve *s, struct gp_insight *ret_advice,
                        struct error *err) MUST_USE;
enum status view_take_advice(struct view *view, struct gp_insight *advice, int64_t version, struct error *err) MUST_USE;
const char *view_advice_state(const struct view *view); /* "ready", "stale" (trials have ended since) or "none" */
struct gp_history view_history(const struct view *view); /* of the trials that the advice is of */
void view_promise(const struct view *view, size_t i, struct promise *ret_promise);
/* n_seeds, score_mean, score_lo, score_hi, seeds_mean, cost_mean, cost_lo, cost_hi, score_noise_sd, start_s. */
void put_promise(struct strbuf *out, const struct promise *promise);
const char *view_state(const struct view *view, bool has_writer); /* "running", "waiting", ... */
cJSON *view_counts(const struct view *view); /* NULL: out of memory */
cJSON *view_summary(const struct view *view, bool has_writer); /* an element of /studies; NULL: out of memory */
double view_cost(const struct view *view, size_t i); /* as the study counts; NaN */
double view_score(const struct view *view, double row_score); /* in the study's direction */
/* The value of parameter k of trial i as JSON. */
void view_put_param(const struct view *view, size_t i, size_t k, struct strbuf *out);

#endif
