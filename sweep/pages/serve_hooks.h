/* serve_hooks.h - what `trawl serve` gives to web/: everything that needs the game, the config or the models. The hooks
 * are called from several threads of the server; each opens what it needs. */
#ifndef SWEEP_PAGES_SERVE_HOOKS_H
#define SWEEP_PAGES_SERVE_HOOKS_H

#include "base/json.h"
#include "base/status.h"
#include "store/store.h"
#include "web/report/report.h"

struct gp_history;
struct gp_insight;
struct gp_picked;
struct promise;
struct serve_frame;
struct serve_hooks;
struct serve_model;
struct serve_play_info;
struct strbuf;

struct serve_ctx { /* read-only once the server runs */
    const char *store_path;
};
/* serve_config.c, models.c: hooks, as struct serve_hooks says */
enum status serve_advise(void *ctx, const struct study *study, const double *x, size_t dim,
                         const struct gp_history *history, struct gp_insight *ret_advice, struct error *err) MUST_USE;
enum status serve_pick(void *ctx, const struct study *study, const struct gp_insight *advice,
                       const struct gp_history *history, const char *rule, struct gp_picked *ret_picked,
                       struct error *err) MUST_USE;
enum status serve_export(void *ctx, const struct study *study, const struct trial *trial, const char *rule,
                         const char *note, const struct promise *promise, const char *format, struct strbuf *out,
                         struct error *err) MUST_USE;
enum status serve_trial_config(void *ctx, const struct study *study, const struct trial *trial,
                               const struct trial *against, cJSON **ret_rows, struct error *err) MUST_USE;
enum status serve_report(void *ctx, const char *study, enum report_format format, struct strbuf *out,
                         struct error *err) MUST_USE;
enum status serve_control(void *ctx, const char *study, const cJSON *request, char **ret_message,
                          struct error *err) MUST_USE;
enum status serve_model_create(void *ctx, const char *study, void **ret_model, struct serve_model *ret_what,
                               struct error *err) MUST_USE;
enum status serve_model_slice(void *ctx, void *model, const char *key, int64_t trial, cJSON **ret_json,
                              struct error *err) MUST_USE;
void serve_model_destroy(void *model);

/* serve_play.c */
enum status serve_play_open(void *ctx, const struct trial *trial, const char *checkpoint, int64_t seed, bool greedy,
                            void **ret_play, struct serve_play_info *ret_info, struct error *err) MUST_USE;
enum status serve_play_step(void *play, struct strbuf *draw, struct serve_frame *ret_frame, struct error *err) MUST_USE;
void serve_play_close(void *play);

void serve_hooks_fill(struct serve_hooks *ret_hooks, struct serve_ctx *ctx);

#endif
