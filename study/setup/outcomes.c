/* outcomes.c - limits of outcomes and the third objective: from the config, in the space's JSON, and of a trial. */
#include "study/setup/outcomes.h"

#include "base/config/config.h"
#include "store/store.h"

#define PREFIX "sweep.limit."

size_t outcomes_needed(const struct outcomes *o, const char *ret[OUTCOMES_MAX])
{
    size_t n = 0;

    for (size_t k = 0; k <= o->n_limits; k++) {
        const char *metric = k < o->n_limits ? o->metrics[k] : o->third;
        if (metric[0] != '\0' && word_index(ret, n, metric) == n)
            ret[n++] = metric;
    }
    return n;
}

/* ---- the config ---- */

static size_t find(const struct outcomes *o, const char *name)
{
    size_t k = 0;

    while (k < o->n_limits && strcmp(o->names[k], name) != 0)
        k++;
    return k;
}

/* "sweep.limit.NAME" of a section line, "sweep.limit.NAME.FIELD" of a value: its NAME and FIELD (""). False: another
 * item; also "sweep.limit" and "sweep.limit.min", which are a program's parameter that is called limit. */
static bool split(const struct config_item *item, char name[CONFIG_KEY_MAX], const char **ret_field)
{
    const char *rest = item->key + strlen(PREFIX), *dot;

    if (strncmp(item->key, PREFIX, strlen(PREFIX)) != 0)
        return false;
    dot = item->value != NULL ? strrchr(rest, '.') : rest + strlen(rest);
    if (dot == NULL)
        return false;
    snprintf(name, CONFIG_KEY_MAX, "%.*s", (int)(dot - rest), rest);
    *ret_field = item->value != NULL ? dot + 1 : "";
    return true;
}

static enum status note(struct outcomes *o, const struct config_item *item, const char *name, const char *field,
                        struct error *err)
{
    static const char *const fields[] = {"metric", "min", "max"};
    const char *near = word_nearest(field, fields, 3);
    size_t k = find(o, name);

    if (field[0] != '\0' && (near == NULL || strcmp(near, field) != 0))
        return FAIL(err, ST_CONFIG, "%s: [sweep.limit.%s] has metric, min and max, and no %.40s", item->origin, name,
                    field);
    if (name[0] == '\0' || strchr(name, '.') != NULL || strlen(name) >= OUTCOME_NAME_MAX)
        return FAIL(err, ST_CONFIG, "%s: '%.60s' is not a name of a limit; write [sweep.limit.NAME], up to %d letters",
                    item->origin, name, OUTCOME_NAME_MAX - 1);
    if (k < o->n_limits)
        return ST_OK;
    if (k == GP_MAX_LIMITS)
        return FAIL(err, ST_CONFIG, "%s: [sweep.limit.%s] is one too many; a study has up to %d limits", item->origin,
                    name, GP_MAX_LIMITS);
    snprintf(o->names[k], sizeof o->names[k], "%.*s", OUTCOME_NAME_MAX - 1, name);
    snprintf(o->origins[k], sizeof o->origins[k], "%s", item->origin);
    o->n_limits++;
    return ST_OK;
}

static enum status take_bound(const struct config *config, const char *name, const char *field, double *bound,
                              struct error *err)
{
    char key[2 * CONFIG_KEY_MAX];

    snprintf(key, sizeof key, PREFIX "%s.%s", name, field);
    const char *text = config_peek(config, key);
    if (text != NULL && !num_parse_f64(text, bound))
        return FAIL(err, ST_CONFIG, "%s: [sweep.limit.%s] has %s = %.40s; a number is needed, like 0.5, 4e9 or 4G",
                    config_origin(config, key), name, field, text);
    return ST_OK;
}

static enum status take_limit(struct outcomes *o, const struct config *config, size_t k, struct error *err)
{
    struct gp_limit *b = &o->bounds[k];
    const char *origin = o->origins[k];
    char key[2 * CONFIG_KEY_MAX], lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX];

    snprintf(key, sizeof key, PREFIX "%s.metric", o->names[k]);
    const char *metric = config_peek(config, key);
    metric = metric != NULL ? metric : o->names[k];
    *b = (struct gp_limit){-(double)INFINITY, (double)INFINITY};
    TRY(take_bound(config, o->names[k], "min", &b->min, err));
    TRY(take_bound(config, o->names[k], "max", &b->max, err));
    if (metric[0] == '\0' || strlen(metric) >= OUTCOME_METRIC_MAX)
        return FAIL(err, ST_CONFIG, "%s: [sweep.limit.%s] needs metric = NAME, up to %d letters", origin, o->names[k],
                    OUTCOME_METRIC_MAX - 1);
    snprintf(o->metrics[k], sizeof o->metrics[k], "%s", metric);
    if (isinf(b->min) && isinf(b->max))
        return FAIL(err, ST_CONFIG, "%s: [sweep.limit.%s] bounds nothing; write max = NUMBER, or min", origin,
                    o->names[k]);
    if (b->min > b->max)
        return FAIL(err, ST_CONFIG, "%s: [sweep.limit.%s] has min %s above max %s, which no trial can keep", origin,
                    o->names[k], num_format_f64(b->min, lo), num_format_f64(b->max, hi));
    return ST_OK;
}

enum status outcomes_take(struct outcomes *o, struct config *config, struct error *err)
{
    char name[CONFIG_KEY_MAX];
    const char *field;

    o->n_limits = 0;
    for (size_t i = 0; i < config_n_items(config); i++) {
        struct config_item item = config_item(config, i);
        if (split(&item, name, &field))
            TRY(note(o, &item, name, field, err));
    }
    for (size_t k = 0; k < o->n_limits; k++)
        TRY(take_limit(o, config, k, err));
    for (size_t i = config_n_items(config); i-- > 0;) {
        struct config_item item = config_item(config, i);
        if (split(&item, name, &field))
            config_remove(config, i);
    }
    return ST_OK;
}

void outcomes_write(const struct outcomes *o, struct strbuf *out)
{
    char number[NUM_TEXT_MAX];

    for (size_t k = 0; k < o->n_limits; k++) {
        strbuf_addf(out, "\n[sweep.limit.%s]\nmetric = %s\n", o->names[k], o->metrics[k]);
        if (isfinite(o->bounds[k].min))
            strbuf_addf(out, "min = %s\n", num_format_f64(o->bounds[k].min, number));
        if (isfinite(o->bounds[k].max))
            strbuf_addf(out, "max = %s\n", num_format_f64(o->bounds[k].max, number));
    }
}

/* ---- the space's JSON ---- */

void outcomes_add_json(const struct outcomes *o, cJSON *space)
{
    cJSON *limits = o->n_limits > 0 ? cJSON_AddArrayToObject(space, "limits") : NULL, *objective;

    for (size_t k = 0; k < o->n_limits; k++) {
        cJSON *limit = cJSON_CreateObject();
        json_add_str(limit, "name", o->names[k]);
        json_add_str(limit, "metric", o->metrics[k]);
        if (isfinite(o->bounds[k].min))
            json_add_f64(limit, "min", o->bounds[k].min);
        if (isfinite(o->bounds[k].max))
            json_add_f64(limit, "max", o->bounds[k].max);
        cJSON_AddItemToArray(limits, limit);
    }
    if (o->third[0] == '\0')
        return;
    objective = cJSON_AddObjectToObject(space, "objective");
    json_add_str(objective, "metric", o->third);
    json_add_str(objective, "goal", o->third_max ? "maximize" : "minimize");
    json_add_str(objective, "scale", o->third_log ? "log" : "linear");
}

enum status outcomes_read_json(const cJSON *space, struct outcomes *o, struct error *err)
{
    const cJSON *limit, *objective = json_get(space, "objective");
    const char *third = json_get_str(objective, "metric"), *goal = json_get_str(objective, "goal");
    const char *scale = json_get_str(objective, "scale");

    *o = (struct outcomes){0};
    cJSON_ArrayForEach(limit, json_get(space, "limits"))
    {
        const char *name = json_get_str(limit, "name"), *metric = json_get_str(limit, "metric");
        size_t k = o->n_limits;
        if (name == NULL || metric == NULL || k == GP_MAX_LIMITS || strlen(name) >= OUTCOME_NAME_MAX ||
            strlen(metric) >= OUTCOME_METRIC_MAX)
            return FAIL(err, ST_CORRUPT, "the store's search space: limit %zu is not whole", k);
        snprintf(o->names[k], sizeof o->names[k], "%s", name);
        snprintf(o->metrics[k], sizeof o->metrics[k], "%s", metric);
        o->bounds[k] = (struct gp_limit){-(double)INFINITY, (double)INFINITY};
        (void)json_get_f64(limit, "min", &o->bounds[k].min);
        (void)json_get_f64(limit, "max", &o->bounds[k].max);
        o->n_limits++;
    }
    if (objective == NULL)
        return ST_OK;
    if (third == NULL || goal == NULL || scale == NULL || strlen(third) >= OUTCOME_METRIC_MAX)
        return FAIL(err, ST_CORRUPT, "the store's search space: its objective is not whole");
    snprintf(o->third, sizeof o->third, "%s", third);
    o->third_max = strcmp(goal, "maximize") == 0;
    o->third_log = strcmp(scale, "log") == 0;
    return ST_OK;
}

/* ---- of a trial ---- */

static double value_of(const cJSON *values, const char *metric)
{
    double value = (double)NAN;

    (void)json_get_f64(values, metric, &value);
    return value;
}

void outcomes_judge(const struct outcomes *o, const char *values, struct gp_trial *row)
{
    JSON_LOCAL cJSON *json = NULL;
    double third;

    if (o->n_limits == 0 && o->third[0] == '\0')
        return;
    if (values != NULL && json_parse(values, strlen(values), &json, NULL) != ST_OK)
        json = NULL;
    for (size_t k = 0; k < o->n_limits; k++)
        row->outcomes[k] = value_of(json, o->metrics[k]);
    third = o->third[0] != '\0' ? value_of(json, o->third) : 0.0;
    third = o->third_log ? log(third) : third;
    row->third = o->third_max ? -third : third;
}

bool outcomes_same_third(const struct outcomes *a, const struct outcomes *b)
{
    return strcmp(a->third, b->third) == 0 && a->third_max == b->third_max && a->third_log == b->third_log;
}

bool outcomes_are_kept(const struct outcomes *o, const struct gp_trial *row)
{
    return gp_is_feasible(&(struct gp_history){.n_limits = o->n_limits, .limits = o->bounds}, row->outcomes);
}

double outcomes_third(const struct outcomes *o, double gp_third)
{
    double third = o->third_max ? -gp_third : gp_third;

    return o->third_log ? exp(third) : third;
}

void outcomes_explain(const struct outcomes *o, const struct gp_trial *row, char *buf, size_t size)
{
    char value[NUM_TEXT_MAX], bound[NUM_TEXT_MAX];
    size_t n = 0;

    buf[0] = '\0';
    for (size_t k = 0; k < o->n_limits && n < size; k++) {
        double v = row->outcomes[k];
        bool below = v < o->bounds[k].min;
        if (!isfinite(v))
            n += (size_t)snprintf(buf + n, size - n, "%s%s is unknown, which [sweep.limit.%s] bounds",
                                  n > 0 ? "; " : "", o->metrics[k], o->names[k]);
        else if (below || v > o->bounds[k].max)
            n += (size_t)snprintf(buf + n, size - n, "%s%s is %s, %s the %s of [sweep.limit.%s]", n > 0 ? "; " : "",
                                  o->metrics[k], num_format_short(v, value), below ? "below" : "above",
                                  num_format_short(below ? o->bounds[k].min : o->bounds[k].max, bound), o->names[k]);
    }
}

void outcomes_text(const struct outcomes *o, char *buf, size_t size)
{
    char number[NUM_TEXT_MAX];
    size_t n = 0;

    buf[0] = '\0';
    if (o->third[0] != '\0')
        n = (size_t)snprintf(buf, size, "%s %s%s", o->third_max ? "maximize" : "minimize", o->third,
                             o->n_limits > 0 ? "; " : "");
    for (size_t k = 0; k < o->n_limits; k++) {
        const double ends[] = {o->bounds[k].min, o->bounds[k].max};
        for (int side = 0; side < 2 && n < size; side++)
            if (isfinite(ends[side]))
                n += (size_t)snprintf(buf + n, size - n, "%s%s %s %s",
                                      k > 0 || (side == 1 && isfinite(ends[0])) ? ", " : "", o->metrics[k],
                                      side == 0 ? ">=" : "<=", num_format_short(ends[side], number));
    }
}

/* What the result itself says under this name. */
static double own_value(const struct trial_result *r, const char *metric, const char *name)
{
    if (strcmp(name, metric) == 0)
        return r->score;
    if (strcmp(name, "env_steps") == 0)
        return (double)r->env_steps;
    if (strcmp(name, "cost") == 0)
        return r->cost_s;
    return strcmp(name, "perf") == 0 ? r->perf : (double)NAN;
}

/* "score, loss" of the curves of a trial; "nothing". */
static enum status list_reported(struct store *store, int64_t trial_id, char *buf, size_t size, struct error *err)
{
    char **names = NULL;
    size_t n = 0, used = 0;

    TRY(store_metric_names(store, trial_id, &names, &n, err));
    snprintf(buf, size, "nothing");
    for (size_t i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i > 0 ? ", " : "", names[i]);
    store_names_free(names, n);
    return ST_OK;
}

/* Which setting asks for the metric, as the config spells it. */
static const char *asking(const struct outcomes *o, const char *metric, char buf[OUTCOME_NAME_MAX + 32])
{
    for (size_t k = 0; k < o->n_limits; k++)
        if (strcmp(o->metrics[k], metric) == 0) {
            snprintf(buf, OUTCOME_NAME_MAX + 32, "[sweep.limit.%s]", o->names[k]);
            return buf;
        }
    return "sweep.objective";
}

enum status outcomes_settle(const struct outcomes *o, struct store *store, const char *metric, int64_t trial_id,
                            const cJSON *given, const struct trial_result *r, struct outcomes_settled *ret,
                            struct error *err)
{
    const char *needed[OUTCOMES_MAX];
    size_t n = outcomes_needed(o, needed);
    char by[OUTCOME_NAME_MAX + 32], reported[160];
    enum status rc = ST_OK;

    *ret = (struct outcomes_settled){0};
    if (n == 0)
        return ST_OK;
    JSON_LOCAL cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < n && rc == ST_OK; i++) {
        double value = value_of(given, needed[i]);
        bool known = !isnan(value);
        struct curve_point last;
        value = known ? value : own_value(r, metric, needed[i]);
        known = known || !isnan(value);
        if (!known && trial_id > 0)
            rc = store_metric_last(store, trial_id, needed[i], &last, &known, err);
        value = known && isnan(value) ? last.value : value;
        if (isfinite(value))
            json_add_f64(json, needed[i], value);
        if (rc != ST_OK || ret->lacks[0] != '\0')
            continue;
        if (!known && trial_id == 0)
            snprintf(ret->lacks, sizeof ret->lacks, "no %.95s: %s needs it in metrics", needed[i],
                     asking(o, needed[i], by));
        else if (!known && (rc = list_reported(store, trial_id, reported, sizeof reported, err)) == ST_OK)
            snprintf(ret->lacks, sizeof ret->lacks, "no %.95s: %s needs it, and the run reported %s", needed[i],
                     asking(o, needed[i], by), reported);
        else if (!isfinite(value))
            snprintf(ret->lacks, sizeof ret->lacks, "%.95s is %g at the end of the run, and %s needs it", needed[i],
                     value, asking(o, needed[i], by));
        else if (o->third_log && !(value > 0.0) && strcmp(needed[i], o->third) == 0)
            snprintf(ret->lacks, sizeof ret->lacks,
                     "%.95s is %g at the end of the run; sweep.objective_scale = log needs more than 0", needed[i],
                     value);
    }
    if (rc == ST_OK)
        ret->values = json_print(json, false);
    return rc;
}
