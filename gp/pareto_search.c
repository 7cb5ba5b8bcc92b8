/* pareto_search.c - what a proposal of the model-based method knows: the history grouped, its front, a Gaussian process
 * for the score and one for ln cost, pending points at what the models expect there, and the improvement over front and
 * reference. */
#include "gp/pareto_priv.h"

#include "base/text/num.h"

#define ROWS_MAX                                                                                                       \
    384 /* distinct points per model; the front, the newest half, and the rest spread over the older ones */
#define PENDING_MAX 64 /* pending points that are conditioned on, the newest */
#define PENDING_MAX_MANY 512 /* the same where they are many: the newest half, and a spread of the older */
/* L-BFGS does its long way on part of the rows, a fraction of the cube of the cost, and the end on (nearly) all. */
#define FIT_EVALS 40 /* likelihood evaluations per model when it is small ... */
#define FIT_SMALL 96
#define FIT_EVALS_MORE 10 /* ... and these on top, on up to FIT_ROWS rows, when it is not */
#define FIT_ROWS 192
#define REFIT_GROWTH 4 /* fitted again when the ended trials have grown by one part in this many */
#define REF_POINTS 10 /* the first finished points, which set the reference */
#define REF_MARGIN 0.1 /* of their range of costs, beyond the most expensive */

/* Where what group g did is known in every objective: as a trial whose cost is the logarithm. */
static struct gp_trial group_trial(const struct pareto_search *s, const struct mean_ss *score, size_t g)
{
    const struct observations *o = &s->obs;
    bool known = score[g].n > 0.0 && o->cost[g].n > 0.0 && (!s->has_third || o->third[g].n > 0.0);
    return (struct gp_trial){.state = known ? GP_TRIAL_DONE : GP_TRIAL_FAILED,
                             .score = score[g].mean,
                             .cost = o->cost[g].mean,
                             .third = s->has_third ? o->third[g].mean : 0.0};
}

/* Groups on the front of finished runs' means, by rising cost, into s->front; before the first own run, of other
 * studies'. While no group keeps all limits, those that come nearest to it for their cost. */
static void find_front(struct pareto_search *s, const struct gp_history *history)
{
    const struct observations *o = &s->obs;
    const struct mean_ss *score = o->score;
    MEM_LOCAL struct gp_trial *trials = mem_array(o->n, sizeof *trials);
    MEM_LOCAL bool *on_front = mem_array(o->n, sizeof *on_front);
    for (size_t g = 0; g < o->n; g++) {
        score = o->done_score[g].n > 0.0 ? o->done_score : score;
        s->has_feasible = s->has_feasible || (o->feasible[g] && o->done_score[g].n > 0.0);
    }
    for (size_t g = 0; g < o->n; g++) {
        trials[g] = group_trial(s, score, g);
        if (history->n_limits > 0 && !s->has_feasible)
            trials[g].score = -pareto_violation(s, history, g);
        else if (history->n_limits > 0 && !o->feasible[g])
            trials[g].state = GP_TRIAL_INFEASIBLE;
    }
    pareto_front(&(struct gp_history){.n = o->n, .trials = trials, .has_third = s->has_third}, NULL, on_front);
    for (size_t g = 0; g < o->n; g++) {
        size_t at = s->n_front;
        if (!on_front[g])
            continue;
        for (; at > 0 && o->cost[s->front[at - 1]].mean > o->cost[g].mean; at--)
            s->front[at] = s->front[at - 1];
        s->front[at] = g;
        s->n_front++;
    }
}

/* ret_keep (groups, zeroed): all that have values, or ROWS_MAX of them. */
static void choose_rows(const struct pareto_search *s, const struct mean_ss *values, size_t n_known, bool *ret_keep)
{
    const struct observations *o = &s->obs;
    size_t room = ROWS_MAX;
    for (size_t i = 0; i < s->n_front && room > 0; i++)
        if (values[s->front[i]].n > 0.0) {
            ret_keep[s->front[i]] = true;
            room--;
        }
    size_t newest = room / 2 < n_known ? room / 2 : n_known, older = 0, seen = 0, g = o->n;
    for (; g-- > 0 && newest > 0;)
        if (values[g].n > 0.0 && !ret_keep[g]) {
            ret_keep[g] = true;
            room--;
            newest--;
        }
    size_t oldest = g + 1; /* groups before this one are the older ones */
    for (g = 0; g < oldest; g++)
        older += values[g].n > 0.0 && !ret_keep[g];
    for (g = 0; g < oldest; g++) /* spread evenly: room of older */
        if (values[g].n > 0.0 && !ret_keep[g]) {
            ret_keep[g] =
                (seen + 1) * room / (older > room ? older : room) > seen * room / (older > room ? older : room);
            seen++;
        }
}

/* The rows of one model out of all groups that have values; the front's, the newest and a spread of the older when
 * there are too many. */
static void load_rows(struct pareto_search *s, struct model *model, const struct mean_ss *values, size_t n_pending)
{
    const struct observations *o = &s->obs;
    size_t dim = o->dim, n_known = 0, n = 0;
    for (size_t g = 0; g < o->n; g++)
        n_known += values[g].n > 0.0;
    MEM_LOCAL bool *keep = mem_array(o->n, sizeof *keep);
    MEM_LOCAL double *rows = mem_array2(n_known, 4, sizeof *rows), *u = mem_array2(n_known, dim, sizeof *u);
    double *mean = rows, *ss = rows + n_known, *repeats = rows + 2 * n_known, *least = rows + 3 * n_known;
    choose_rows(s, values, n_known, keep);
    for (size_t g = 0; g < o->n; g++) {
        if (!keep[g])
            continue;
        if (values == o->score)
            s->score_row[g] = n;
        memcpy(u + n * dim, o->u + g * dim, dim * sizeof *u);
        mean[n] = values[g].mean;
        ss[n] = values[g].ss;
        repeats[n] = values[g].n;
        least[n++] = o->score_var[g].mean;
    }
    model_free(model);
    model_init(model, s->space, n + n_pending);
    model_set_data(model, &(struct model_data){.n = n,
                                               .u = u,
                                               .mean = mean,
                                               .ss = ss,
                                               .repeats = repeats,
                                               .noise_min = values == o->score ? least : NULL,
                                               .smooth = s->smooth});
}

enum status pareto_load_model(struct pareto_search *s, struct model *model, const struct mean_ss *values,
                              size_t n_pending, const struct model *like, struct error *err)
{
    load_rows(s, model, values, n_pending);
    if (like)
        memcpy(model->theta, like->theta, sizeof model->theta);
    else
        model_fit(model, FIT_EVALS, FIT_SMALL);
    if (!like && model->n > FIT_SMALL)
        model_fit(model, FIT_EVALS_MORE, FIT_ROWS);
    return model_factor(model, err);
}

void pareto_load_score(struct pareto_search *s, struct model *model)
{
    load_rows(s, model, s->obs.score, 0);
    memcpy(model->theta, s->score.theta, sizeof model->theta);
}

/* Pending points enter the objectives' models at their expected outputs, as the models' last rows. */
static enum status believe_pending(struct pareto_search *s, size_t n_pending, struct error *err)
{
    const struct observations *o = &s->obs;
    size_t dim = o->dim, n = 0, seen = 0, all = 0;
    if (n_pending == 0)
        return ST_OK;
    for (size_t g = 0; g < o->n; g++)
        all += o->pending[g];
    size_t newest = s->many && all > n_pending ? n_pending / 2 : n_pending, room = n_pending - newest;
    MEM_LOCAL double *u = mem_array2(n_pending, dim, sizeof *u);
    for (size_t g = o->n; g-- > 0 && n < n_pending;) {
        if (!o->pending[g])
            continue;
        size_t older = seen++ - newest; /* of all - newest, room are taken */
        if (n < newest || (older + 1) * room / (all - newest) > older * room / (all - newest))
            memcpy(u + n++ * dim, o->u + g * dim, dim * sizeof *u);
    }
    TRY(model_believe(&s->score, u, n, err));
    TRY(model_believe(&s->cost, u, n, err));
    if (s->has_third)
        TRY(model_believe(&s->third, u, n, err));
    return ST_OK;
}

/* What is known of group g in model m's terms, or expected of one that is pending. */
static double known_or_expected(const struct pareto_search *s, const struct model *m, const struct mean_ss *values,
                                size_t g, double *cross)
{
    double mean;
    if (values[g].n > 0.0)
        return (values[g].mean - m->y_mean) / m->y_sd;
    model_predict_mean(m, s->obs.u + g * s->obs.dim, 1, cross, &mean);
    return mean;
}

/* ln cost of group g, known or expected; as expected of a run of the longest length with the same values, if that is
 * more: the first runs are short ones. */
static double cost_at_length(const struct pareto_search *s, size_t g, double *cross)
{
    size_t steps = space_steps_param(s->space), dim = s->obs.dim;
    double u[SPACE_MAX_DIM], longest, own = known_or_expected(s, &s->cost, s->obs.cost, g, cross);
    if (steps == dim)
        return own;
    memcpy(u, s->obs.u + g * dim, dim * sizeof *u);
    u[steps] = 1.0;
    model_predict_mean(&s->cost, u, 1, cross, &longest);
    return fmax(own, longest);
}

/* The middle score of the first finished points (those that keep all limits, or all), or with a third objective, for
 * which more of the score is given up, their lower quartile, minus the margin where they are few; and their worst cost
 * at full length and third objective. False: there is none. Standardised. Where many are pending these count at what is
 * expected of them: those that end first are the cheapest, and with them alone nothing but cheap points would be
 * sought, for as long as the first expensive ones take. */
static bool first_points(const struct pareto_search *s, bool kept_only, bool starts_too, double ret_ref[EHVI_MAX])
{
    const struct observations *o = &s->obs;
    double score[REF_POINTS], cost = -INFINITY, lo = INFINITY, third = -INFINITY, third_lo = INFINITY;
    MEM_LOCAL double *cross = mem_array(pareto_search_ld(s), sizeof *cross);
    size_t n = 0;
    for (size_t k = 0; k < 2 * o->n; k++) {
        size_t g = k % o->n;
        bool waits = s->many && o->pending[g] && o->score[g].n == 0.0 && !kept_only;
        bool is_own = o->done_score[g].n > 0.0 || waits;
        bool unknown = o->score[g].n == 0.0 || o->cost[g].n == 0.0 || (s->has_third && o->third[g].n == 0.0);
        if ((unknown && !waits) || is_own != (k >= o->n) || (kept_only && !o->feasible[g]) ||
            (o->stopped[g].n > 0.0 && !is_own) || (o->start[g] && !starts_too))
            continue;
        double c = cost_at_length(s, g, cross);
        double z = s->has_third ? known_or_expected(s, &s->third, o->third, g, cross) : 0.0;
        lo = fmin(lo, c);
        third_lo = fmin(third_lo, z);
        if (n < REF_POINTS) {
            third = fmax(third, z);
            score[n++] = known_or_expected(s, &s->score, o->score, g, cross);
            cost = fmax(cost, c);
        }
    }
    if (n == 0)
        return false;
    num_sort(score, n);
    ret_ref[0] = cost + REF_MARGIN * fmax(cost - lo, 1.0);
    ret_ref[1] = s->has_third ? -score[n / 4] : -0.5 * (score[(n - 1) / 2] + score[n / 2]);
    if (kept_only && n < REF_POINTS) /* they may be alike */
        ret_ref[1] += REF_MARGIN * fmax(score[n - 1] - score[0], 1.0);
    ret_ref[2] = third + REF_MARGIN * fmax(third - third_lo, 1.0);
    return true;
}

/* What counts as a gain: a score above that of first_points, and not more expensive than all of the first finished
 * points (a margin is added). Fixed from then on, so that neither end of the front draws all proposals. Those of
 * another study that teaches this one are the first: its own were chosen to be good from the start on. With limits the
 * first that keep them count beside all: these may lie where none keeps them, and those be few and alike. */
static void reference(const struct pareto_search *s, double ret_ref[EHVI_MAX])
{
    double kept[EHVI_MAX];
    if (!first_points(s, false, false, ret_ref))
        (void)!first_points(s, false, true, ret_ref); /* there is one: else these data have no model */
    if (s->n_limits > 0 && s->has_feasible && first_points(s, true, true, kept))
        for (size_t i = 0; i < EHVI_MAX; i++)
            ret_ref[i] = fmax(ret_ref[i], kept[i]);
    if (isfinite(s->cap))
        ret_ref[0] = s->cap;
}

/* Output of pending point p, one of the model's last rows. */
static double believed(const struct model *m, size_t n_pending, size_t p)
{
    size_t row = m->n - n_pending + p;
    return m->y[row] + model_trend(m, m->x + row, m->ld);
}

/* Front and reference in standardised units, of what keeps all limits. Scores are the model's means, so that one lucky
 * run does not stand in the way of better points; costs and the third objective are those seen. Pending points count at
 * what is expected of them, unless limits may take them from the front. */
static void load_front(struct pareto_search *s)
{
    const struct observations *o = &s->obs;
    size_t n = 0, dim = o->dim, ld = s->score.ld, max = o->n + s->n_pending;
    double ref[EHVI_MAX];
    MEM_LOCAL double *f = mem_array2(max, EHVI_MAX, sizeof *f), *cross = mem_array(ld, sizeof *cross);
    double *f1 = f, *f2 = f + max, *f3 = f + 2 * max;
    for (size_t g = 0; g < o->n; g++)
        if (o->done_score[g].n > 0.0 && o->feasible[g]) {
            if (s->has_third)
                f3[n] = (o->third[g].mean - s->third.y_mean) / s->third.y_sd;
            f1[n] = (o->cost[g].mean - s->cost.y_mean) / s->cost.y_sd;
            model_predict_mean(&s->score, o->u + g * dim, 1, cross, &f2[n]);
            f2[n] = -f2[n];
            n++;
        }
    for (size_t p = 0; p < s->n_pending && s->n_limits == 0; p++) {
        if (s->has_third)
            f3[n] = believed(&s->third, s->n_pending, p);
        f1[n] = believed(&s->cost, s->n_pending, p);
        f2[n++] = -believed(&s->score, s->n_pending, p);
    }
    reference(s, ref);
    ehvi_init(&s->ehvi, s->has_third ? 3 : 2, (const double *[]){f1, f2, f3}, n, ref);
}

/* The rows of a model have grown: the same hyper-parameters, factored again. */
static enum status load_again(struct pareto_search *s, struct model *model, const struct mean_ss *values,
                              size_t n_pending, struct error *err)
{
    double theta[OPTIMISE_MAX_DIM];
    memcpy(theta, model->theta, sizeof theta);
    load_rows(s, model, values, n_pending);
    memcpy(model->theta, theta, sizeof theta);
    return model_factor(model, err);
}

static double expected_at(const struct pareto_search *s, const struct model *m, size_t g, double *cross)
{
    double mean;
    model_predict_mean(m, s->obs.u + g * s->obs.dim, 1, cross, &mean);
    return m->y_mean + m->y_sd * mean;
}

/* Stopped runs would have ended between where they were and the best score: the model of the finished ones says where,
 * and then learns it. */
static enum status learn_stopped(struct pareto_search *s, size_t n_pending, struct error *err)
{
    struct observations *o = &s->obs;
    double best = -INFINITY;
    MEM_LOCAL double *cross = mem_array(s->score.ld, sizeof *cross);
    size_t n = 0;
    for (size_t g = 0; g < o->n; g++)
        best = o->score[g].n > 0.0 ? fmax(best, o->score[g].mean) : best;
    for (size_t g = 0; g < o->n; g++)
        if (o->stopped[g].n > 0.0 && o->score[g].n == 0.0) {
            double at = o->stopped[g].mean, mean = expected_at(s, &s->score, g, cross);
            o->score[g] = (struct mean_ss){1.0, fmin(fmax(mean, at), fmax(best, at)), 0.0};
            n++;
        }
    return n > 0 ? load_again(s, &s->score, o->score, n_pending, err) : ST_OK;
}

/* One that had already cost more than a whole run is expected to there: at least that much. Else it teaches nothing. */
static enum status learn_stopped_costs(struct pareto_search *s, size_t n_pending, struct error *err)
{
    struct observations *o = &s->obs;
    MEM_LOCAL double *cross = mem_array(s->cost.ld, sizeof *cross);
    bool any = false;
    MEM_LOCAL bool *costlier = mem_array(o->n, sizeof *costlier);
    for (size_t g = 0; g < o->n; g++) {
        costlier[g] = o->stopped_cost[g].n > 0.0 && o->cost[g].n == 0.0 &&
                      o->stopped_cost[g].mean > expected_at(s, &s->cost, g, cross);
        any = any || costlier[g];
    }
    for (size_t g = 0; g < o->n; g++)
        if (costlier[g])
            o->cost[g] = (struct mean_ss){1.0, o->stopped_cost[g].mean, 0.0};
    return any ? load_again(s, &s->cost, o->cost, n_pending, err) : ST_OK;
}

static enum status learn_history(struct pareto_search *s, const struct space *space, const struct gp_history *history,
                                 struct error *err)
{
    s->space = space;
    observations_init(&s->obs, s->space, history);
    s->has_third = history->has_third;
    s->has_ok = s->obs.n_failed >= OBSERVATIONS_FAILED_MIN;
    s->front = mem_array(s->obs.n, sizeof *s->front);
    s->score_row = mem_array(s->obs.n, sizeof *s->score_row);
    for (size_t g = 0; g < s->obs.n; g++)
        s->score_row[g] = SIZE_MAX;
    find_front(s, history);
    if (s->n_front == 0)
        return FAIL(err, ST_NUMERIC, "no finished trial lies inside the search space");
    return ST_OK;
}

enum status pareto_models_init(struct pareto_search *s, const struct space *space, const struct gp_history *history,
                               size_t max_pending, bool smooth, const struct pareto_search *like, struct error *err)
{
    s->smooth = smooth;
    TRY(learn_history(s, space, history, err));
    for (size_t g = 0; g < s->obs.n; g++)
        s->n_pending += s->obs.pending[g];
    s->n_pending = s->n_pending < max_pending ? s->n_pending : max_pending;
    TRY(pareto_load_model(s, &s->score, s->obs.score, s->n_pending, like ? &like->score : NULL, err));
    TRY(learn_stopped(s, s->n_pending, err));
    TRY(pareto_load_model(s, &s->cost, s->obs.cost, s->n_pending, like ? &like->cost : NULL, err));
    TRY(learn_stopped_costs(s, s->n_pending, err));
    if (s->has_third)
        TRY(pareto_load_model(s, &s->third, s->obs.third, s->n_pending, like ? &like->third : NULL, err));
    return pareto_load_limits(s, history, like, err);
}

static enum status load_ok(struct pareto_search *s, const struct pareto_search *like, struct error *err)
{
    return s->has_ok ? pareto_load_model(s, &s->ok, s->obs.ok, 0, like && like->has_ok ? &like->ok : NULL, err) : ST_OK;
}

/* How many ended trials hyper-parameters are fitted to. */
static size_t refit_count(size_t n_ended)
{
    size_t m = 0;
    for (size_t next = 1; next <= n_ended; next = m + (m < REFIT_GROWTH ? 1 : m / REFIT_GROWTH))
        m = next;
    return m;
}

/* Models of the first ended trials alone, whose hyper-parameters stay in use until there are a quarter more: fitted to
 * all at every proposal they were no better (bench/notes/controller.md). */
static enum status fit_first(struct pareto_search *s, const struct space *space, const struct gp_history *history,
                             bool smooth, struct error *err)
{
    MEM_LOCAL struct gp_trial *trials = mem_array(history->n, sizeof *trials);
    struct gp_history first = *history;
    size_t n_ended = 0;
    for (size_t i = 0; i < history->n; i++)
        if (history->trials[i].state != GP_TRIAL_PENDING && history->trials[i].state != GP_TRIAL_DROPPED)
            trials[n_ended++] = history->trials[i];
    first.trials = trials;
    first.n = refit_count(n_ended);
    enum status rc = pareto_models_init(s, space, &first, 0, smooth, NULL, NULL);
    if (rc == ST_NUMERIC) { /* those trials have no model, perhaps all of them have */
        pareto_search_free(s);
        memset(s, 0, sizeof *s);
        first.n = n_ended;
        rc = pareto_models_init(s, space, &first, 0, smooth, NULL, err);
    }
    THEN(rc, load_ok(s, NULL, err));
    return rc;
}

enum status pareto_search_init(struct pareto_search *s, const struct suggester *suggester,
                               const struct gp_history *history, int64_t number, bool many, struct error *err)
{
    /* Two kinds of models, which are wrong in different places, take turns; of batches by lot, which may all begin at
     * even numbers. */
    struct rng lot = rng_split(rng_split(suggester->root, (uint64_t)number), SUGGEST_STREAM_LOT);
    bool smooth = many ? rng_below(&lot, 2) == 0 : number % 2 == 0;
    double max_cost = suggester->settings.max_cost;
    const struct space *space = &suggester->model_space;
    MEM_LOCAL struct pareto_search *fitted = mem_alloc(sizeof *fitted);
    enum status rc = fit_first(fitted, space, history, smooth, err);
    s->many = many;
    THEN(rc, pareto_models_init(s, space, history, many ? PENDING_MAX_MANY : PENDING_MAX, smooth, fitted, err));
    THEN(rc, load_ok(s, fitted, err));
    if (rc == ST_OK)
        s->explained = model_explained(&s->score);
    THEN(rc, believe_pending(s, s->n_pending, err));
    if (rc == ST_OK) {
        s->cap = max_cost > 0.0 ? (log(max_cost) - s->cost.y_mean) / s->cost.y_sd : INFINITY;
        load_front(s);
    }
    pareto_search_free(fitted);
    return rc;
}

size_t pareto_search_ld(const struct pareto_search *s)
{
    const size_t ld[] = {s->score.ld, s->cost.ld, s->ok.ld, s->third.ld};
    size_t most = 0;
    for (size_t i = 0; i < sizeof ld / sizeof *ld; i++)
        most = ld[i] > most ? ld[i] : most;
    for (size_t k = 0; k < s->n_limits; k++)
        most = s->limit[k].ld > most ? s->limit[k].ld : most;
    return most;
}

void pareto_search_free(struct pareto_search *s)
{
    observations_free(&s->obs);
    ehvi_free(&s->ehvi);
    mem_free(s->front);
    mem_free(s->score_row);
    model_free(&s->score);
    model_free(&s->cost);
    model_free(&s->ok);
    model_free(&s->third);
    for (size_t k = 0; k < GP_MAX_LIMITS; k++)
        model_free(&s->limit[k]);
    for (size_t k = 0; k < BELIEFS_LEVELS; k++)
        model_free(&s->level[k]);
}
