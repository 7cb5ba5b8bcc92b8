/* rounds.c - the runs of one configuration on several games, joined into rounds.
 * Invariant: a run belongs to one round at most; the k-th good runs of all games make the k-th round. */
#include "study/games/rounds.h"

#include "gp/gp.h"
#include "study/games/sweep_envs.h"

struct rounds {
    struct gp_trial *rows;
    const size_t *env;
    size_t n, n_envs, dim;
    struct missing_run missing;
};

static int compare_points(const struct rounds *v, size_t a, size_t b)
{
    return memcmp(v->rows[a].x, v->rows[b].x, v->dim * sizeof *v->rows->x);
}

static int by_point(const void *va, const void *vb, void *ctx)
{
    size_t a = *(const size_t *)va, b = *(const size_t *)vb;
    int order = compare_points(ctx, a, b);

    return order != 0 ? order : a < b ? -1 : a > b;
}

static bool is_lost(const struct gp_trial *row)
{
    return row->state == GP_TRIAL_FAILED || row->state == GP_TRIAL_STOPPED || row->state == GP_TRIAL_DROPPED;
}

/* The mean of the runs, all of which have ended well. */
static void join(struct rounds *v, const size_t *member, size_t n, struct gp_trial *ret)
{
    double score = 0, cost = 0, third = 0, variance = 0, outcomes[GP_MAX_LIMITS] = {0};

    ret->state = GP_TRIAL_DONE;
    for (size_t k = 0; k < n; k++) {
        const struct gp_trial *row = &v->rows[member[k]];
        score += row->score / (double)n;
        cost += row->cost / (double)n;
        third += row->third / (double)n;
        variance += row->score_se * row->score_se;
        for (size_t i = 0; i < GP_MAX_LIMITS; i++)
            outcomes[i] += row->outcomes[i] / (double)n;
        if (row->state == GP_TRIAL_INFEASIBLE) /* a limit holds in every game */
            ret->state = GP_TRIAL_INFEASIBLE;
    }
    ret->score = score;
    ret->cost = cost;
    ret->third = third;
    ret->score_se = sqrt(variance) / (double)n;
    memcpy(ret->outcomes, outcomes, sizeof outcomes);
}

/* member: a run of each game, n_trials for none. lost: runs of each that came to nothing and may explain that. */
static void judge_round(struct rounds *v, const size_t *member, size_t *lost)
{
    size_t n_envs = v->n_envs, first = v->n, missing = n_envs, n_done = 0;
    bool is_broken = false;

    for (size_t k = 0; k < n_envs; k++) {
        if (member[k] < v->n) {
            const enum gp_trial_state state = v->rows[member[k]].state;
            n_done += state == GP_TRIAL_DONE || state == GP_TRIAL_INFEASIBLE;
            first = member[k] < first ? member[k] : first;
        } else if (lost[k] > 0) {
            lost[k]--;
            is_broken = true;
        } else {
            missing = k;
        }
    }
    struct gp_trial joined = v->rows[first];
    if (n_done == n_envs)
        join(v, member, n_envs, &joined);
    else
        joined.state = is_broken ? GP_TRIAL_DROPPED : GP_TRIAL_PENDING;
    for (size_t k = 0; k < n_envs; k++)
        if (member[k] < v->n)
            v->rows[member[k]].state = GP_TRIAL_DROPPED;
    v->rows[first] = joined;
    if (!is_broken && missing < n_envs && first < v->missing.of)
        v->missing = (struct missing_run){first, missing};
}

/* order: the m trials of one configuration, by number. */
static void judge_config(struct rounds *v, const size_t *order, size_t m)
{
    size_t at[SWEEP_ENVS_MAX] = {0}, lost[SWEEP_ENVS_MAX] = {0}, member[SWEEP_ENVS_MAX], n_found;

    for (size_t i = 0; i < m; i++) {
        struct gp_trial *row = &v->rows[order[i]];
        lost[v->env[order[i]]] += is_lost(row);
        if (row->state == GP_TRIAL_STOPPED) /* its score would be a bound of one game's */
            row->state = GP_TRIAL_DROPPED;
    }
    do {
        n_found = 0;
        for (size_t k = 0; k < v->n_envs; k++) {
            while (at[k] < m && (v->env[order[at[k]]] != k || is_lost(&v->rows[order[at[k]]])))
                at[k]++;
            member[k] = at[k] < m ? order[at[k]++] : v->n;
            n_found += member[k] < v->n;
        }
        if (n_found > 0)
            judge_round(v, member, lost);
    } while (n_found > 0);
}

void rounds_judge(struct gp_trial *rows, const size_t *env, size_t n, size_t n_envs, size_t dim,
                  struct missing_run *ret_missing)
{
    struct rounds v = {.rows = rows, .env = env, .n = n, .n_envs = n_envs, .dim = dim, .missing = {n, 0}};
    size_t from = 0;
    MEM_LOCAL size_t *order = mem_array(n + 1, sizeof *order);

    for (size_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof *order, by_point, &v);
    for (size_t i = 1; i <= n; i++)
        if (i == n || compare_points(&v, order[i - 1], order[i]) != 0) {
            judge_config(&v, order + from, i - from);
            from = i;
        }
    *ret_missing = v.missing;
}
