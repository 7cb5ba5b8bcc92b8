/* known.c - what a dense search knows of a problem: the reference corner, the best score and the best known front.
 * `trawl-bench front` makes it once; bench/sweep/fronts.json keeps it, so that regrets of different days compare.
 * The search: random points, then rounds of points round members of the front found so far, in steps of several sizes.
 * Invariant: deterministic; true values only. */
#include "bench/sweep/known.h"

#include "base/os/file.h"

#define DESIGN_N 4096 /* random points that give the reference */
#define BATCH 4096
#define KEEP_MAX 16384 /* members of the front that the search holds */
#define SHOWN 48 /* points of the front that the file lists */
#define FRONTS_MAX_BYTES (4u << 20)

static int by_cost(const void *a, const void *b)
{
    const struct outcome *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return (x->score < y->score) - (x->score > y->score);
}

double known_hypervolume(struct outcome *points, size_t n, const struct known *known)
{
    double area = 0.0, best = known->ref_score, at = 0.0;

    qsort(points, n, sizeof *points, by_cost);
    for (size_t i = 0; i < n && points[i].cost < known->ref_cost; i++) {
        if (!(points[i].score > best))
            continue;
        if (best > known->ref_score)
            area += (log(points[i].cost) - at) * (best - known->ref_score);
        best = points[i].score;
        at = log(points[i].cost);
    }
    return best > known->ref_score ? area + (log(known->ref_cost) - at) * (best - known->ref_score) : 0.0;
}

/* ---- the search ---- */

struct member {
    struct outcome at; /* first, for by_cost */
    double u[SPACE_MAX_DIM];
};

struct search_state {
    const struct problem *problem;
    struct rng rng;
    size_t n_front;
    struct member *members; /* (KEEP_MAX + BATCH): the front, then the batch */
    double *x; /* (BATCH, dim) */
    struct outcome *out; /* (BATCH) */
};

static void evaluate_batch(struct search_state *s)
{
    const struct space *space = &s->problem->space;
    struct member *batch = s->members + s->n_front;

    for (size_t i = 0; i < BATCH; i++)
        space_from_unit(space, batch[i].u, s->x + i * space->dim);
    s->problem->ops->truth(s->problem, BATCH, s->x, s->out);
    for (size_t i = 0; i < BATCH; i++) {
        batch[i].at = s->out[i];
        if (!problem_is_kept(s->problem, &s->out[i]))
            batch[i].at.score = -(double)INFINITY; /* on no front */
    }
}

/* The front of members[0, n) to their beginning; every second member when it grows too long, the best score always. */
static void keep_front(struct search_state *s, size_t n)
{
    double best = -(double)INFINITY;

    qsort(s->members, n, sizeof *s->members, by_cost);
    s->n_front = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(s->members[i].at.score > best))
            continue;
        best = s->members[i].at.score;
        if (i != s->n_front)
            s->members[s->n_front] = s->members[i];
        s->n_front++;
    }
    if (s->n_front <= KEEP_MAX)
        return;
    size_t kept = 0, last = s->n_front - 1;
    for (size_t i = last % 2; i <= last; i += 2)
        s->members[kept++] = s->members[i];
    s->n_front = kept;
}

static void random_batch(struct search_state *s)
{
    for (size_t i = 0; i < BATCH; i++)
        for (size_t j = 0; j < s->problem->space.dim; j++)
            s->members[s->n_front + i].u[j] = rng_f64(&s->rng);
}

/* Steps from members of the front, in all or in a few coordinates; a tenth are crosses of two members. */
static void local_batch(struct search_state *s)
{
    static const double steps[] = {0.3, 0.1, 0.03, 0.01, 0.003};
    size_t dim = s->problem->space.dim;

    for (size_t i = 0; i < BATCH; i++) {
        struct member *m = &s->members[s->n_front + i];
        const struct member *from = &s->members[rng_below(&s->rng, (uint32_t)s->n_front)];
        const struct member *other = &s->members[rng_below(&s->rng, (uint32_t)s->n_front)];
        double step = steps[rng_below(&s->rng, COUNT(steps))];
        double share = rng_below(&s->rng, 2) ? 1.0 : 2.0 / (double)dim;
        bool cross = rng_below(&s->rng, 10) == 0;
        for (size_t j = 0; j < dim; j++) {
            double u = cross && rng_below(&s->rng, 2) ? other->u[j] : from->u[j];
            if (!cross && rng_f64(&s->rng) < share)
                u += step * problem_normal(&s->rng);
            m->u[j] = u < 0.0 ? 0.0 : u > 1.0 ? 1.0 : u;
        }
    }
}

static void find_reference(struct search_state *s, struct known *ret)
{
    double values[DESIGN_N];

    random_batch(s);
    evaluate_batch(s);
    for (size_t i = 0; i < DESIGN_N; i++)
        values[i] = s->out[i].cost;
    num_sort(values, DESIGN_N);
    ret->ref_cost = values[(size_t)(0.9 * DESIGN_N)];
    for (size_t i = 0; i < DESIGN_N; i++)
        values[i] = s->out[i].score;
    num_sort(values, DESIGN_N);
    ret->ref_score = values[DESIGN_N / 2];
    keep_front(s, s->n_front + BATCH);
}

static cJSON *known_json(struct search_state *s, struct known *known)
{
    cJSON *json = cJSON_CreateObject(), *front = cJSON_AddArrayToObject(json, "front");
    size_t inside = 0;

    known->best_score = s->members[s->n_front - 1].at.score;
    while (inside < s->n_front && s->members[inside].at.cost < known->ref_cost)
        inside++;
    MEM_LOCAL struct outcome *points = mem_array(s->n_front, sizeof *points);
    size_t shown = inside < SHOWN ? inside : SHOWN;
    for (size_t i = 0; i < shown; i++) {
        const struct outcome *at = &s->members[shown > 1 ? i * (inside - 1) / (shown - 1) : 0].at;
        double pair[2] = {at->cost, at->score};
        cJSON_AddItemToArray(front, cJSON_CreateDoubleArray(pair, 2));
    }
    for (size_t i = 0; i < s->n_front; i++)
        points[i] = s->members[i].at;
    known->hypervolume = known_hypervolume(points, s->n_front, known);
    json_add_f64(json, "ref_cost", known->ref_cost);
    json_add_f64(json, "ref_score", known->ref_score);
    json_add_f64(json, "best_score", known->best_score);
    json_add_f64(json, "hypervolume", known->hypervolume);
    return json;
}

cJSON *known_search(const struct problem *problem, size_t n_points)
{
    struct known known = {0};
    struct search_state s = {.problem = problem, .rng = rng_seed(20)};

    s.members = mem_array(KEEP_MAX + BATCH, sizeof *s.members);
    s.x = mem_array2(BATCH, problem->space.dim, sizeof *s.x);
    s.out = mem_array(BATCH, sizeof *s.out);
    find_reference(&s, &known);
    for (size_t n = 0; n < 2 * n_points; n += BATCH) {
        if (n < n_points)
            random_batch(&s);
        else
            local_batch(&s);
        evaluate_batch(&s);
        keep_front(&s, s.n_front + BATCH);
    }
    cJSON *json = known_json(&s, &known);
    mem_free(s.members);
    mem_free(s.x);
    mem_free(s.out);
    return json;
}

enum status known_load(struct known *ret, const char *path, const char *problem, struct error *err)
{
    MEM_LOCAL char *text = NULL;
    size_t n = 0;
    JSON_LOCAL cJSON *json = NULL;

    TRY(file_read_all(path, FRONTS_MAX_BYTES, &text, &n, err));
    if (json_parse(text, n, &json, err) != ST_OK)
        return error_prefix(err, "%s", path);
    const cJSON *entry = json_get(json, problem);
    if (entry == NULL)
        return FAIL(err, ST_NOTFOUND, "%s: nothing about '%s'; `trawl-bench front` makes the file", path, problem);
    if (!json_get_f64(entry, "ref_cost", &ret->ref_cost) || !json_get_f64(entry, "ref_score", &ret->ref_score) ||
        !json_get_f64(entry, "best_score", &ret->best_score) ||
        !json_get_f64(entry, "hypervolume", &ret->hypervolume) || !(ret->ref_cost > 0.0) || !(ret->hypervolume > 0.0))
        return FAIL(err, ST_CORRUPT, "%s: the entry of '%s' is not whole; make it again with `trawl-bench front`", path,
                    problem);
    return ST_OK;
}
