/* ask_points.c - trials at values that were given: read, checked against the space, queued or added.
 * Invariant: a point that is taken is one that a proposal could be: in range, whole where it must be, and one that the
 * trainer's own check takes. A trial that was trained elsewhere needs only the range. */
#include "sweep/control/ask/ask_points.h"
#include "study/space/trial_check.h"
#include "sweep/control/ask/ask_trial.h"
#include "sweep/controller/sched_study.h"
#include "web/api/ask_form.h"

#define ADDED_ORIGIN "added"
#define KEY_MAX 100
#define LIST_MAX 2000

static enum status read_choice(const struct search *s, size_t k, const cJSON *value, double *ret_x, struct error *err)
{
    const struct space_param *p = &s->space.params[k];
    const char *text = cJSON_IsString(value) ? value->valuestring
                       : cJSON_IsBool(value) ? (cJSON_IsTrue(value) ? "true" : "false")
                                             : NULL;
    char number[NUM_TEXT_MAX];
    double listed;

    if (cJSON_IsNumber(value))
        text = num_format_f64(value->valuedouble, number);
    for (size_t c = 0; text != NULL && c < p->n_choices; c++)
        if (strcmp(s->choices[k][c], text) == 0 ||
            (cJSON_IsNumber(value) && num_parse_f64(s->choices[k][c], &listed) && listed == value->valuedouble)) {
            *ret_x = (double)c;
            return ST_OK;
        }
    STRBUF(list, LIST_MAX);
    for (size_t c = 0; c < p->n_choices; c++)
        strbuf_addf(&list, "%s%s", c > 0 ? ", " : "", s->choices[k][c]);
    return FAIL(err, ST_USAGE, "params: %s is none of its values: %s", search_param_name(s->space.params[k].key),
                list.text);
}

static enum status read_number(const struct search *s, size_t k, const cJSON *params, const cJSON *value, double *ret_x,
                               struct error *err)
{
    const struct space_param *p = &s->space.params[k];
    char lo[32], hi[32];

    search_show(s, k, p->min, lo, sizeof lo);
    search_show(s, k, p->max, hi, sizeof hi);
    if (json_get_f64(params, value->string, ret_x) && *ret_x >= p->min && *ret_x <= p->max)
        return ST_OK;
    MEM_LOCAL char *given = json_print((cJSON *)value, false);
    return FAIL(err, ST_USAGE, "params: %s is searched from %s to %s; %.60s is not a number in that range",
                search_param_name(s->space.params[k].key), lo, hi, given);
}

/* Start values, or the middle, for what is not given. */
static void start_point(const struct space *space, double *ret_x)
{
    double u[SPACE_MAX_DIM];

    for (size_t k = 0; k < space->dim; k++)
        u[k] = 0.5;
    space_from_unit(space, u, ret_x);
    for (size_t k = 0; k < space->dim; k++)
        if (space->params[k].has_init)
            ret_x[k] = space->params[k].init;
}

/* What an inactive parameter was given as has no effect: it gets its one value. A value that is between those of a
 * trial (a power of two, a step) is refused, unless a trial has run with it. */
static enum status snap(const struct search *s, bool has_run, double *x, struct error *err)
{
    double u[SPACE_MAX_DIM], snapped[SPACE_MAX_DIM];
    char near[32];

    space_to_unit(&s->space, x, u);
    space_from_unit(&s->space, u, snapped);
    for (size_t k = 0; k < s->space.dim; k++) {
        const struct space_param *p = &s->space.params[k];
        bool same = fabs(snapped[k] - x[k]) <= 1e-9 * fmax(fabs(x[k]), p->max - p->min);
        search_show(s, k, snapped[k], near, sizeof near);
        bool is_active = space_is_active(&s->space, k, x);
        if (!same && is_active && !has_run)
            return FAIL(err, ST_USAGE, "params: %s can have no such value; the nearest is %s",
                        search_param_name(s->space.params[k].key), near);
        if (!same && !is_active)
            x[k] = snapped[k];
    }
    return ST_OK;
}

static enum status read_params(const struct search *s, const cJSON *params, bool has_run, double *ret_x,
                               struct error *err)
{
    const cJSON *value;
    bool given[SPACE_MAX_DIM] = {false};

    start_point(&s->space, ret_x);
    cJSON_ArrayForEach(value, params)
    {
        size_t k;
        TRY(search_find_given(s, "params", value->string, &k, err));
        if (given[k])
            return FAIL(err, ST_USAGE, "params: %s is given twice", value->string);
        given[k] = true;
        TRY(s->space.params[k].scale == SPACE_CATEGORICAL ? read_choice(s, k, value, &ret_x[k], err)
                                                          : read_number(s, k, params, value, &ret_x[k], err));
    }
    return snap(s, has_run, ret_x, err);
}

enum status ask_points_read(const struct search *search, const cJSON *params, double *ret_x, struct error *err)
{
    return read_params(search, params, false, ret_x, err);
}

static enum status read_point(const struct sched_study *ss, const cJSON *body, bool has_run, double *ret_x,
                              struct error *err)
{
    return read_params(&ss->view.search, json_get(body, "params"), has_run, ret_x, err);
}

static enum status check_legal(const struct sched_study *ss, const double *x, struct error *err)
{
    struct trial_check *check = trial_check_create(ss->setup, &ss->view.search); /* the study's is the proposer's */
    struct error why = {0};

    enum status rc = trial_check_point(check, x, &why);
    trial_check_destroy(check);
    return rc == ST_OK ? ST_OK : FAIL(err, ST_USAGE, "params: no trial can have these values: %s", why.text);
}

enum status ask_enqueue(struct sched_study *ss, const cJSON *body, cJSON *out, struct error *err)
{
    const struct study_view *v = &ss->view;
    double x[SPACE_MAX_DIM];

    TRY(read_point(ss, body, false, x, err));
    TRY(check_legal(ss, x, err));
    for (size_t i = 0; i < v->n; i++)
        if (v->trials[i].state == TRIAL_QUEUED && strcmp(v->trials[i].origin, ENQUEUED_ORIGIN) == 0 &&
            memcmp(v->x[i], x, v->search.space.dim * sizeof *x) == 0) {
            json_add_i64(out, "trial", v->trials[i].number);
            json_add_bool(out, "again", true);
            return ST_OK;
        }
    if (stop_rules_trials_left(v) == 0)
        return FAIL(err, ST_EXISTS, "enqueue: the study %s has its %lld trials; `trawl add %s --trials N` allows more",
                    v->study.name, (long long)v->study.limits.trials_max, v->study.name);
    TRY(sched_study_queue(ss, x, ENQUEUED_ORIGIN, NAN, err));
    json_add_i64(out, "trial", v->trials[v->n - 1].number);
    json_add_bool(out, "again", false);
    return ST_OK;
}

enum status ask_points_queue(struct store *store, const char *study, const cJSON *params, int64_t *ret_number,
                             struct error *err)
{
    struct sched_study *ss = NULL;
    double x[SPACE_MAX_DIM];

    TRY(sched_study_open(&ss, store, study, err));
    enum status rc = read_params(&ss->view.search, params, false, x, err);
    THEN(rc, check_legal(ss, x, err));
    THEN(rc, sched_study_queue(ss, x, ENQUEUED_ORIGIN, NAN, err));
    if (rc == ST_OK)
        *ret_number = ss->view.trials[ss->view.n - 1].number;
    sched_study_destroy(ss);
    return rc;
}

/* The trial that was added under this key before. */
static enum status added_before(struct sched_study *ss, const char *token, cJSON *out, struct error *err)
{
    AT_END(lease_free) struct lease lease = {0};

    TRY(store_lease_find(ss->store, token, &lease, err));
    json_add_i64(out, "trial", lease.number);
    json_add_bool(out, "again", true);
    return ST_OK;
}

/* The result that the body means, with what the study needs of it (ret_settled->values: mem_free). */
static enum status read_added(const struct search *search, const cJSON *body, struct trial_result *ret_result,
                              struct outcomes_settled *ret_settled, struct error *err)
{
    TRY(ask_result_read(body, "add", search->cost, NAN, ret_result, err));
    TRY(outcomes_settle(&search->outcomes, NULL, "score", 0, json_get(body, "metrics"), ret_result, ret_settled, err));
    ret_result->outcomes = ret_settled->values;
    if (ret_result->state != TRIAL_DONE || ret_settled->lacks[0] == '\0')
        return ST_OK;
    mem_free(ret_settled->values);
    return FAIL(err, ST_USAGE, "add: %s", ret_settled->lacks);
}

/* The game of a trial that was trained elsewhere. */
static enum status read_env(const struct search *search, const cJSON *body, size_t *ret_env, struct error *err)
{
    const char *name = json_get_str(body, "env");

    *ret_env = name != NULL ? sweep_envs_find(&search->envs, name) : search->envs.n;
    if (*ret_env < search->envs.n || (name == NULL && search->envs.n == 0))
        return ST_OK;
    return search->envs.n == 0
               ? FAIL(err, ST_USAGE,
                      "add: the study trains on one game, and no env is given with a trial (found %.60s)", name)
               : FAIL(err, ST_USAGE, "add: env is %.60s; the study's games are %s, %s%s",
                      name != NULL ? name : "missing", search->envs.names[0], search->envs.names[1],
                      search->envs.n > 2 ? ", ..." : "");
}

/* Where the trial comes from. A branch's run is a trial of the study that differs in a larger length alone, and that
 * pays for it; the seed is that run's, where none is given. */
static enum status read_origin(const struct study_view *v, const cJSON *body, const double *x, char *ret, size_t size,
                               int64_t *seed, struct error *err)
{
    const struct space *space = &v->search.space;
    double cost, whole;
    int64_t of;
    size_t run, n_differ = 0, n_longer = 0;

    snprintf(ret, size, "%s", ADDED_ORIGIN);
    if (!json_get_i64(body, "branch_of", &of))
        return ST_OK;
    if (v->search.envs.n > 0)
        return FAIL(err, ST_USAGE, "add: branch_of: a study of several games has no branches");
    TRY(study_view_find(v, of, &run, err));
    if (trial_is_branch(&v->trials[run], NULL))
        return FAIL(err, ST_USAGE, "add: branch_of: trial %lld is a branch itself; name the run that it is a part of",
                    (long long)of);
    for (size_t k = 0; k < space->dim; k++) {
        n_differ += x[k] != v->x[run][k];
        n_longer += x[k] < v->x[run][k] && space->params[k].scale != SPACE_CATEGORICAL;
    }
    if (n_differ != 1 || n_longer != 1)
        return FAIL(err, ST_USAGE,
                    "add: branch_of: %zu of its values differ from those of trial %lld, %zu of them lower there; a "
                    "branch has a smaller length of its run, and all else is the same",
                    n_differ, (long long)of, n_differ - n_longer);
    whole = v->trials[run].state == TRIAL_DONE ? study_view_trial_cost(v, &v->trials[run]) : INFINITY;
    if (json_get_f64(body, "cost", &cost) && cost > whole)
        return FAIL(
            err, ST_USAGE,
            "add: branch_of: it costs %g, and trial %lld %g in all; a branch costs what its run had cost by then", cost,
            (long long)of, whole);
    *seed = json_get_i64(body, "seed", seed) ? *seed : v->trials[run].seed;
    snprintf(ret, size, TRIAL_BRANCH " %lld", (long long)of);
    return ST_OK;
}

enum status ask_add_check(const struct search *search, const cJSON *body, struct error *err)
{
    struct trial_result result;
    struct outcomes_settled settled;
    double x[SPACE_MAX_DIM];

    TRY(ask_body_check(ASK_ADD, body, err));
    TRY(read_params(search, json_get(body, "params"), true, x, err));
    size_t env;
    TRY(read_env(search, body, &env, err));
    TRY(read_added(search, body, &result, &settled, err));
    mem_free(settled.values);
    return ST_OK;
}

enum status ask_add(struct sched_study *ss, const cJSON *body, cJSON *out, struct error *err)
{
    const char *key = json_get_str(body, "key"), *client = json_get_str(body, "client");
    struct trial_result result;
    struct outcomes_settled settled;
    char token[LEASE_TOKEN_MAX], origin[40];
    double x[SPACE_MAX_DIM];
    size_t env;
    struct error why = {0};

    if (key != NULL && (key[0] == '\0' || strlen(key) > KEY_MAX))
        return FAIL(err, ST_USAGE, "add: the key has %zu bytes; 1 to %d are allowed", strlen(key), KEY_MAX);
    if (client != NULL && strlen(client) >= LEASE_CLIENT_MAX)
        return FAIL(err, ST_USAGE, "add: the client's name has more than %d bytes", LEASE_CLIENT_MAX - 1);
    int64_t seed = json_i64_or(body, "seed", 0);
    TRY(read_point(ss, body, true, x, err));
    TRY(read_env(&ss->view.search, body, &env, err));
    TRY(read_origin(&ss->view, body, x, origin, sizeof origin, &seed, err));
    TRY(read_added(&ss->view.search, body, &result, &settled, err));
    if (key != NULL)
        snprintf(token, sizeof token, "add-%lld-%s", (long long)ss->view.study.id, key);
    else
        snprintf(token, sizeof token, "add-%lld.%zu", (long long)ss->view.study.id, ss->view.n);
    MEM_LOCAL char *text = json_print(body, false);
    enum status rc =
        sched_study_add(ss, x, env, origin, seed, &result, client != NULL ? client : "elsewhere", token, text, &why);
    mem_free(settled.values);
    if (rc == ST_EXISTS)
        return added_before(ss, token, out, err);
    if (rc != ST_OK)
        return FAIL(err, rc, "%s", why.text);
    json_add_i64(out, "trial", (int64_t)ss->view.n - 1);
    json_add_bool(out, "again", false);
    return ST_OK;
}
