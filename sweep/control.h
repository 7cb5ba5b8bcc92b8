/* control.h - what the files behind `trawl sweep` and its readers share: search space, a study as loaded from the
 * store, messages between controller and worker, progress. Running a study is scheduler.h's. */
#ifndef SWEEP_CONTROL_H
#define SWEEP_CONTROL_H

#include "sweep/sweep.h"
#include "web/web.h"

/* ---- search.c: the space that a config asks to search, and its JSON in the store ---- */

#define SEARCH_MAX_CHOICES 64

enum search_cost { SEARCH_COST_WALL, SEARCH_COST_DEVICE, SEARCH_COST_STEPS }; /* choices of sweep.cost */

struct search {
    struct space space;
    char from[104]; /* study of the same store that teaches this one; "": none */
    enum search_cost cost; /* what the study counts as the cost of a trial */
    char *choices[SPACE_MAX_DIM][SEARCH_MAX_CHOICES]; /* texts of categorical parameters, owned */
    const struct opt_def *opts[SPACE_MAX_DIM]; /* NULL until search_bind */
};

void search_free(struct search *search);
/* Out of the [sweep.SECTION.KEY] sections of a finished setup; a search without parameters is an error that teaches. */
enum status search_from_setup(const struct setup *setup, struct search *ret_search, struct error *err) MUST_USE;
/* {"params": [{"key", "scale", "int", "min", "max", "init"?, "choices"?, "when"?}], "cost"?, "from"?}; caller: mem_free. */
enum status search_to_json(const struct search *search, char **ret_text, struct error *err) MUST_USE;
enum status search_from_json(const char *text, struct search *ret_search, struct error *err) MUST_USE;
/* Finds the option of every parameter, so that values can be written as texts. */
enum status search_bind(struct search *search, const struct setup *setup, struct error *err) MUST_USE;
/* {"train.learning_rate": 0.01, "train.optimizer": "muon"}; caller: mem_free. */
enum status search_params_json(const struct search *search, const double *x, char **ret_text,
                               struct error *err) MUST_USE;
size_t search_find(const struct search *search, const char *key); /* which parameter; dim: none */
enum status search_point(const struct search *search, const char *params_json, double *ret_x,
                         struct error *err) MUST_USE;
/* Text of parameter i for the config (bound searches only) and for people. */
void search_value_text(const struct search *search, size_t i, double value, char *buf, size_t size);
void search_show(const struct search *search, size_t i, double value, char *buf, size_t size);

/* The config's own values as a point of a bound search; false: one of them is not in the space, or another start was asked. */
bool search_config_point(const struct search *search, const struct setup *setup, double *ret_x);

/* ---- search_depends.c: parameters that can have no effect ---- */

/* Takes parameters out whose option depends on a value that the config does not have, and lists them in inert; those that depend
 * on another parameter of the space become conditional. Of a bound search. */
enum status search_find_dependent(struct search *search, const struct setup *setup, struct strbuf *inert,
                                  struct error *err) MUST_USE;

/* ---- search_widen.c: ranges of a study that is resumed ---- */

/* Makes stored as wide as want, bound both; *ret_wider: something changed. What is narrower or another space is an ST_CONFIG that
 * says where, and stored is then not to be used. */
enum status search_widen(struct search *stored, const struct search *want, bool *ret_wider, struct error *err) MUST_USE;
/* Its [sweep.SECTION.KEY] sections. */
void search_to_ini(const struct search *search, struct strbuf *out);

/* ---- trial_check.c: can it be trained? By the settings alone, before it is proposed. One thread at a time ---- */

struct trial_check;
/* Copies the setup's settings. search (may be NULL; borrowed, bound): the space of trial_check_point. */
enum status trial_check_create(struct trial_check **ret_check, const struct setup *setup, const struct search *search,
                               struct error *err) MUST_USE;
void trial_check_destroy(struct trial_check *check); /* NULL is fine */
void trial_check_reset(struct trial_check *check); /* to the setup's values */
/* An option of env, policy or train; bool: not 0, choice: its index. */
void trial_check_set(struct trial_check *check, const struct opt_def *opt, double value);
enum status trial_check_ask(const struct trial_check *check, struct error *err) MUST_USE; /* the trainer's reason */
enum status trial_check_point(struct trial_check *check, const double *x, struct error *err) MUST_USE;
bool trial_check_allows(void *check, const double *x); /* as suggest_settings.allowed */

/* ---- study_view.c: a study with its history, front and reference ---- */

struct study_view {
    struct study study;
    struct search search;
    struct trial *trials;
    size_t n, cap; /* trials loaded; room in x and gp */
    double **x; /* (n) points of dim natural values, owned; a point never moves */
    struct gp_trial *gp; /* (n) as the model sees them: score negated when minimised */
    struct gp_history history;
    bool *on_front; /* (n) by what is believed of the trials, where advice has it; else by their runs */
    bool *front_run; /* (n) by single runs alone */
    struct gp_insight advice; /* beliefs of the first advice.n trials, without edges and importance; n 0: none yet */
    bool advice_stale; /* trials have changed since */
    struct pareto_ref ref;
    struct gp_trial *other; /* of history.other, and their points; owned (warm_start_load) */
    double *other_x;
};

/* The trial as front and models see it: score higher is better, state; x is left. */
void study_judge(const struct study *study, enum search_cost cost_kind, const struct trial *trial,
                 struct gp_trial *ret_row);
enum status study_view_load(struct store *store, const char *name, struct study_view *ret_view,
                            struct error *err) MUST_USE;
/* What a score of this study can be. */
void study_score_bounds(const struct study *study, struct gp_history *history);
void study_view_free(struct study_view *view);
enum status study_view_reserve(struct study_view *view, size_t n, struct error *err) MUST_USE; /* room for n trials */
/* Takes trial (its strings) and its point x (dim) as the last row. */
enum status study_view_append(struct study_view *view, struct trial *trial, const double *x,
                              struct error *err) MUST_USE;
/* What all trials together say, unless it is there: for readers, who show nothing else as advice. */
enum status study_view_advise(struct study_view *view, struct error *err) MUST_USE;
/* Takes advice that somebody else has worked out, of this study's first trials. */
void study_view_take_advice(struct study_view *view, struct gp_insight *advice);
bool study_view_same_point(const struct study_view *view, size_t a,
                           size_t b); /* runs of one config, but for the seed? */
size_t study_view_first_run(const struct study_view *view, int64_t number); /* the first trial of this one's config */
/* The belief in trial i; NULL: none. */
const struct gp_belief *study_view_belief(const struct study_view *view, size_t i);
/* After trials[i] changed: its row of the history, the front and the reference. */
enum status study_view_update(struct study_view *view, size_t i, struct error *err) MUST_USE;
/* The best single run by the study's direction, of equals the cheapest; n if none. It may be luck: advice is export_pick's. */
size_t study_view_pick(const struct study_view *view,
                       enum gp_rule rule); /* GP_BEST or GP_KNEE by its advice; n: none */
void study_view_promise(const struct study_view *view, size_t i, struct promise *ret_promise); /* of trial i */
size_t study_view_best_run(const struct study_view *view);
int64_t study_view_count(const struct study_view *view, enum trial_state state);
size_t study_view_front_size(const struct study_view *view);
/* What a study of this kind of cost counts: seconds or env steps; NaN when unknown. */
double study_trial_cost(enum search_cost kind, const struct trial *trial);
const char *study_cost_text(enum search_cost kind, double cost, char *buf); /* as study_view_cost_text */
double study_view_trial_cost(const struct study_view *view, const struct trial *trial);
/* Parameter k of trial i as tables show it: "-" where it has no effect, and of train.total_timesteps the steps that were run. */
void study_view_param_text(const struct study_view *view, size_t i, size_t k, char *buf, size_t size);
/* A cost as people read it, "12.3 s" or "4.1k steps", "-" when unknown. buf: 32. */
const char *study_view_cost_text(const struct study_view *view, double cost, char *buf);
double study_view_cost(const struct study_view *view); /* s, over all trials */
double study_view_score(const struct study_view *view,
                        double row_score); /* of a row or belief, in the study's direction */
/* The view as web/ wants it, borrowed from it; path: the store's. */
void study_view_report(const struct study_view *view, const char *path, struct report *ret_report);
/* {"study": ..., "trials": [...]} on stdout. */
enum status study_view_print_json(struct study_view *view, const char *path, struct error *err) MUST_USE;

/* ---- insight.c: what the models say about a study ---- */

/* gp_insight_init, with edges that can be followed: each bound to try is one that its option allows and at which trials can
 * be run; where there is none, there is no edge. The caller: gp_insight_free. */
enum status insight_init(struct gp_insight *ret_insight, const struct study_view *view, struct error *err) MUST_USE;
/* x, a bound beyond the parameter's on this side (-1, 1), made one that the option allows: whole, a power of two or above
 * 0 where it must be. False: there is no wider one. */
bool insight_bound(const struct space_param *param, const struct opt_def *opt, int side, double *x);
/* Recommended trial, importance of the parameters, bounds that the front leans on and that could be wider, with the command
 * that widens them; to stdout. */
enum status insight_print(const struct study_view *view, const char *store_path, struct error *err) MUST_USE;
/* {"recommended", "score_noise_sd", "params": [...], "front": [...]} or {"note"}; the caller deletes it. */
enum status insight_to_json(const struct study_view *view, cJSON **ret_json, struct error *err) MUST_USE;

/* ---- timeline.c: when each slot had a trial ---- */

enum status timeline_print(const struct study_view *view, struct error *err) MUST_USE; /* to stdout */
/* {"begin_ms", "whole_s", "pause_s", "slots": [{"slot", "trials", "busy_s", "idle_s", "training_s"}]}; caller deletes. */
enum status timeline_to_json(const struct study_view *view, cJSON **ret_json, struct error *err) MUST_USE;

/* ---- warm_start.c: trials of another study ---- */

/* Can the study `from` teach one of this setup and space? ST_CONFIG with a list of what is fixed otherwise there; a warning of what
 * is near. */
enum status warm_start_check(struct store *store, const char *from, const struct setup *setup,
                             const struct search *search, struct error *err) MUST_USE;
/* Fills history.other of a bound view from the study that it names; nothing when it names none. */
enum status warm_start_load(struct store *store, const struct setup *setup, struct study_view *view,
                            struct error *err) MUST_USE;

/* ---- early_stop.c: learned from the curves of finished trials ---- */

struct early_stop {
    bool on;
    size_t n, cap;
    struct gp_curve *curves; /* (n) owned, with their points */
};
void early_stop_free(struct early_stop *es); /* a zeroed one is fine */
/* Trial i of the view, if it is done: its curve. */
enum status early_stop_learn(struct early_stop *es, struct store *store, const struct study_view *view, size_t i,
                             struct error *err) MUST_USE;
/* Should trial i, which has come to env_steps and score in seconds of training, be stopped? The reason is for the store. */
bool early_stop_judge(const struct early_stop *es, const struct study_view *view, size_t i, const struct setup *setup,
                      int64_t env_steps, double score, double seconds, char *ret_reason, size_t size);

/* ---- proto.c: newline-delimited JSON over a socket, both ways ---- */

/* controller -> worker
 *   open {config, device, lanes, cores?, memory_bytes?}     device: "auto" (as config says), "cpu", "cuda:1"
 *   run {trial, attempt, number, study, config, metric, owner?, checkpoint_path?, checkpoint_every_s?, checkpoint_end?,
 *        resume_from?}
 *       owner: of its checkpoints; checkpoint_end: writes one when the trial is done
 *   stop {trial, attempt, checkpoint}
 *   exit
 * worker -> controller
 *   hello {version, pid, device, lanes, kind, threads, vector_units} or hello {version, reason}
 *       kind: "cpu" or "cuda"; threads of each lane
 *   alive {lanes: [{trial, attempt, env_steps, iterations, waits}], memory_bytes, device_memory_bytes}   once a second
 *       waits: for device memory that the worker's other trials hold; that it makes no progress is then no hang
 *   anew {trial, attempt, reason}                           resume_from is missing, damaged or another trial's
 *   training {trial, attempt, env_steps}                    its cost begins, or goes on from there
 *   metrics {trial, attempt, env_steps, wall_s, values}     wall_s: its cost so far, by the same method as cost_s
 *   checkpoint {trial, attempt, path, env_steps}
 *   evaluating {trial, attempt, cost_s}                     training has ended; what follows is no part of its cost
 *   result {trial, attempt, state, score, perf, cost_s, device_s, wall_s, env_steps, reason, cost_method, checkpoint?, lost,
 *           start_s, program, device, vector_units, score_se?, eval_episodes?, eval_unfinished?, eval_s?}
 *       wall_s: that passed since training began; checkpoint: the file that holds the state it ended in; score: the value of
 *       `metric`. eval_...: of a trial that is done
 * trial is the row in the store, number the one that people know. lost: the device is of no use to this process any more,
 * which ends. With several trials on it the process ends without a word on any: whose fault it was is not known. */
#define PROTO_MAX_BYTES (1u << 20)
#define PROTO_VERSION 3

struct proto {
    int fd;
    char *buf; /* (cap) */
    size_t cap, n; /* bytes in buf */
    size_t at, n_line; /* of them: the last message, until the next is received (taking in may move buf) */
    bool closed; /* the peer has closed; nothing whole is left in buf */
    int send_ms; /* how long a peer may take nothing before proto_send gives it up; 0: for ever */
};
enum status proto_create(struct proto *proto, int fd, struct error *err) MUST_USE;
void proto_destroy(struct proto *proto); /* closes fd */
/* {"type": type}; NULL: out of memory. */
cJSON *proto_message(const char *type);
/* Takes message. A closed peer is ST_IO, one that takes nothing for send_ms ST_BUSY, a message that is too long ST_LIMIT. */
enum status proto_send(struct proto *proto, cJSON *message, struct error *err) MUST_USE;
/* *ret_message is NULL when nothing came within timeout_ms, a signal came, or the peer closed (proto->closed). */
enum status proto_receive(struct proto *proto, int timeout_ms, cJSON **ret_message, struct error *err) MUST_USE;
/* Takes what has come, for a later proto_receive: the peer need not wait while nobody listens. */
void proto_take_in(struct proto *proto);

/* ---- worker_limits.c: in the worker, before its device opens ---- */

/* Cores, memory and the order in which the kernel ends processes, as an `open` message says. */
void worker_limits_apply(const cJSON *open_message);
/* The limit that a worker out of memory has met, and what to do about it: "sweep.worker_memory leaves it 60 MB" is of
 * memory_bytes (0: none), an inherited limit of address space is its caller's. False: there is no limit. */
bool worker_limits_explain(int64_t memory_bytes, char *buf, size_t size);

/* How many checkpoints of a study lie beside the store, and their bytes. */
void checkpoints_usage(const char *store_path, const char *study, int64_t *ret_n, double *ret_bytes);

/* ---- progress.c: what a sweep shows on stderr ---- */

struct scheduler;
struct study_run;
struct flight;

struct progress {
    const struct scheduler *sched;
    struct study_run *run;
    bool tty, quiet;
    double begin_s;
    double fraction_before; /* of the study, done by earlier controllers */
};
/* Listens to the scheduler from now on. */
void progress_begin(struct progress *progress, struct scheduler *sched, struct study_run *run, bool quiet);
void progress_end(struct progress *progress);
/* A line about a trial that has ended, the nth of its study, to stderr. */
void progress_print_trial(const struct study_view *view, const struct trial *trial, int64_t n);
/* ---- summary.c, to stdout ---- */

/* Front, failures, what to take, next commands. */
enum status progress_print_summary(struct study_view *view, const char *store_path, struct error *err) MUST_USE;
void summary_print_cap(
    const struct study_view *view); /* a warning when every trial is more expensive than sweep.max_cost */
void print_front_table(const struct study_view *view); /* by its advice, if there is any */

#endif
