/* pareto_repeat.c - running a point of the front again under a new seed: noise decides which points lie on the front, and
 * only repeats tell. Of the expected front by rising cost, the member whose uncertainty is largest against its gain over
 * the cheaper neighbour is repeated, when that ratio is above REPEAT_DOUBT.
 * Invariant: at most one proposal in REPEAT_EVERY is a repeat, and by trial number alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gp/pareto_priv.h"

#define REPEAT_EVERY 8
#define REPEAT_DONE_MIN 20 /* finished points before the first repeat */
#define REPEAT_DOUBT 0.5
#define REPEAT_RUNS_MAX 8 /* of one point */
#define REPEAT_GAIN_MIN 0.25 /* in standard deviations of all scores: smaller gains are not worth knowing better */

struct member {
    double cost, mean, sd;
    size_t group;
};

static int compare_members(const void *va, const void *vb)
{
    const struct member *a = va, *b = vb;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    return a->group < b->group ? -1 : a->group > b->group;
}

enum status pareto_judge(struct pareto_search *s, struct candidate *c, struct error *err)
{
    double *cross = mem_array(s->score.ld > s->cost.ld ? s->score.ld : s->cost.ld, sizeof *cross);
    if (!cross)
        return FAIL(err, ST_NOMEM, "no memory for a prediction");
    model_predict(&s->cost, c->u, 1, cross, &c->f1_mean, &c->f1_sd);
    model_predict(&s->score, c->u, 1, cross, &c->f2_mean, &c->f2_sd);
    mem_free(cross);
    return ST_OK;
}

enum status pareto_repeat(struct pareto_search *s, int64_t number, size_t *ret_group, struct error *err)
{
    const struct observations *o = &s->obs;
    size_t n = 0;
    double floor_score = -INFINITY, most = REPEAT_DOUBT;
    *ret_group = o->n;
    for (size_t g = 0; g < o->n; g++)
        n += o->done_score[g].n > 0.0;
    if (number % REPEAT_EVERY != REPEAT_EVERY - 1 || n < REPEAT_DONE_MIN || s->score.constant)
        return ST_OK;
    struct member *m = mem_array(n, sizeof *m);
    double *cross = mem_array(s->score.ld, sizeof *cross);
    if (!m || !cross) {
        mem_free(m);
        mem_free(cross);
        return FAIL(err, ST_NOMEM, "no memory for a front of %zu points", n);
    }
    n = 0;
    for (size_t g = 0; g < o->n; g++)
        if (o->done_score[g].n > 0.0) {
            m[n] = (struct member){.cost = o->cost[g].mean, .group = g};
            m[n++].mean = s->expected[g];
        }
    qsort(m, n, sizeof *m, compare_members);
    for (size_t i = 0; i < n; i++) {
        if (!(m[i].mean > floor_score))
            continue;
        double gain = isfinite(floor_score) ? fmax(m[i].mean - floor_score, REPEAT_GAIN_MIN) : 1.0;
        floor_score = m[i].mean;
        size_t g = m[i].group;
        model_predict(&s->score, o->u + g * o->dim, 1, cross, &m[i].mean, &m[i].sd);
        if (!o->pending[g] && o->done_score[g].n < REPEAT_RUNS_MAX && m[i].sd / gain > most) {
            most = m[i].sd / gain;
            *ret_group = g;
        }
    }
    mem_free(m);
    mem_free(cross);
    return ST_OK;
}
