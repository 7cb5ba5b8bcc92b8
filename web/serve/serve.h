/* serve.h - an HTTP server with pages and an API over a store (public face of web/serve/).
 * The caller owns the settings, hooks and texts until serve_destroy; the server has its own threads and connections to
 * the store, which it only reads. Everything that changes a study goes through the hook `control`. */
#ifndef WEB_SERVE_SERVE_H
#define WEB_SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "store/store.h"
#include "study/search.h"
#include "web/report/report.h"

struct gp_history;
struct gp_insight;
struct gp_picked;
struct gp_trial;
struct promise;
struct strbuf;

#define SERVE_HOSTS_MAX 16
#define SERVE_ENV_MAX 32

struct serve_study { /* what web/ cannot read out of a study itself */
    char env[SERVE_ENV_MAX]; /* "" when unknown */
    enum search_cost cost; /* what it counts */
};

/* What the models say about a study; the texts and arrays are the model's. */
struct serve_model {
    bool is_there; /* else see note */
    const char *note;
    cJSON *insight, *front; /* bodies of /insight and /model/front without study and version; NULL: none; the model's */
};

struct serve_frame { /* one decision of a policy that plays */
    int64_t step, episode;
    double reward, score; /* score: so far, NaN when the game has it only at its end */
    bool ended; /* an episode ended with this step */
    double ended_score, ended_perf, ended_length;
};

struct serve_play_info {
    char env[SERVE_ENV_MAX];
    double width, height;
};

/* What web/ may not include itself, filled by sweep/. Called from several threads at a time; a model and a play by one
 * at a time. */
struct serve_hooks {
    void *ctx;
    enum status (*study)(void *ctx, const struct study *study, struct serve_study *ret_info, struct error *err);
    enum status (*model_create)(void *ctx, const char *study, void **ret_model, struct serve_model *ret_what,
                                struct error *err);
    enum status (*model_slice)(void *ctx, void *model, const char *key, int64_t trial, cJSON **ret_json,
                               struct error *err);
    void (*model_destroy)(void *model);
    /* gp_beliefs_init of the trials; x (n, dim): values of the space's parameters, NaN where a trial has none
     * (ST_CORRUPT). history->trials[i].x is not read. */
    enum status (*advise)(void *ctx, const struct study *study, const double *x, size_t dim,
                          const struct gp_history *history, struct gp_insight *ret_advice, struct error *err);
    /* By the rules of `trawl export --pick`. */
    enum status (*pick)(void *ctx, const struct study *study, const struct gp_insight *advice,
                        const struct gp_history *history, const char *rule, struct gp_picked *ret_picked,
                        struct error *err);
    /* note: of the pick, may be NULL. */
    enum status (*export_text)(void *ctx, const struct study *study, const struct trial *trial, const char *rule,
                               const char *note, const struct promise *promise, const char *format, struct strbuf *out,
                               struct error *err);
    /* [{"key", "value", "default", "origin", "differs", "against"?}]; against: may be NULL. */
    enum status (*trial_config)(void *ctx, const struct study *study, const struct trial *trial,
                                const struct trial *against, cJSON **ret_rows, struct error *err);
    enum status (*report)(void *ctx, const char *study, enum report_format format, struct strbuf *out,
                          struct error *err);
    /* request: the body of POST /control. *ret_message: caller's mem_free. */
    enum status (*control)(void *ctx, const char *study, const cJSON *request, char **ret_message, struct error *err);
    enum status (*play_open)(void *ctx, const struct trial *trial, const char *checkpoint, int64_t seed, bool greedy,
                             void **ret_play, struct serve_play_info *ret_info, struct error *err);
    /* Adds the commands of docs/http-api.md as one JSON array. */
    enum status (*play_step)(void *play, struct strbuf *draw, struct serve_frame *ret_frame, struct error *err);
    void (*play_close)(void *play);
};

struct serve_settings {
    const char *store_path;
    const char *bind; /* NULL: loopback */
    int port; /* 0: any free one */
    bool control;
    const char *hosts[SERVE_HOSTS_MAX]; /* names besides the loopback's that a Host header may hold */
    size_t n_hosts;
    const char *token; /* of a bind beyond the loopback; NULL: one is made */
    const char *program, *version, *commit;
    struct serve_hooks hooks; /* a hook that is NULL: what needs it answers 404 */
};

struct serve;
/* Answers when it returns. ST_EXISTS: the port is in use. */
enum status serve_create(struct serve **ret_serve, const struct serve_settings *settings, struct error *err) MUST_USE;
void serve_destroy(struct serve *serve); /* ends streams, waits for its threads; NULL is fine */
int serve_port(const struct serve *serve);
const char *serve_token(const struct serve *serve); /* "": none needed */

#endif
