/* bench_promise.c - `trawl-bench promise`: does advice keep its word? A study is played in which a share of the runs
 * confirms what would be shown (gp_confirm_next), or every config has several seeds (gp_seed_next); then best, knee,
 * cost<= and score>= are picked (gp_pick), and each pick is run again under fresh seeds: how often does the mean of
 * GP_PROMISE_SEEDS of them lie in the interval that was stated? And how good is the front that is shown, by the true
 * values of its members?
 * Invariant: fresh runs come from a stream that the study has never drawn from. */
#include "bench/bench_commands.h"
#include "bench/sweep/known.h"

#include "base/rng.h"
#include "gp/gp.h"
#include "sweep/cli.h"

#define FRESH_SETS 100 /* of GP_PROMISE_SEEDS runs for each pick */
#define N_RULES 4

enum { STREAM_DRAW = 1, STREAM_FRESH = 77 };
static const char *const rule_names[N_RULES] = {
    [GP_BEST] = "best", [GP_KNEE] = "knee", [GP_COST_MAX] = "cost<=", [GP_SCORE_MIN] = "score>="};

struct promise_bench {
    const char *problems, *data, *fronts;
    int64_t trials, seeds, first_seed, percent, each, noise;
    bool json;
};

struct promise_study {
    const struct problem *problem;
    double noise;
    struct gp_history history;
    struct gp_trial *trials; /* (max) */
    double *x; /* (max, dim) */
    size_t n_confirm, n_points;
};

/* What picks of one rule came to. */
struct kept {
    size_t n; /* picks */
    double inside, width, seeds, off; /* sums: share of sets inside, width, runs of the point, |mean - score| */
};

/* One run. Its distance from the truth is the problem's, multiplied by the study's noise. */
static void draw(const struct promise_study *s, const double *x, struct rng *rng, struct outcome *ret)
{
    struct outcome truth;

    s->problem->ops->draw(s->problem, x, rng, ret);
    if (ret->failed || s->noise == 1.0)
        return;
    s->problem->ops->truth(s->problem, 1, x, &truth);
    ret->score = truth.score + s->noise * (ret->score - truth.score);
    if (s->problem->has_bounds)
        ret->score = fmin(fmax(ret->score, s->problem->score_min), s->problem->score_max);
}

static void run_trial(struct promise_study *s, const double *x, uint64_t seed)
{
    size_t number = s->history.n++, dim = s->problem->space.dim;
    struct rng rng = rng_split(rng_split(rng_seed(seed), STREAM_DRAW), number);
    struct outcome o;

    memcpy(s->x + number * dim, x, dim * sizeof *x);
    draw(s, x, &rng, &o);
    s->trials[number] = (struct gp_trial){.x = s->x + number * dim,
                                          .state = o.failed ? GP_TRIAL_FAILED : GP_TRIAL_DONE,
                                          .score = o.score,
                                          .cost = o.cost};
}

/* The trial whose config to run again now, as a sweep does it; n: none. Of the share of runs that confirm, half is for
 * on the way, evenly, the rest for the end. */
static size_t to_repeat(struct promise_study *s, const struct promise_bench *b)
{
    AT_END(gp_insight_free) struct gp_insight in = {0};

    size_t percent = (size_t)b->percent, left = (size_t)b->trials - s->history.n, i = s->history.n;
    bool at_end = 100 * (left + s->n_confirm) <= percent * (size_t)b->trials;
    bool confirms = at_end || 200 * (s->n_confirm + 1) <= percent * (s->history.n + 1);
    if (b->each == 1 && !confirms)
        return i;
    gp_beliefs_init(&in, &s->problem->space, &s->history);
    if (b->each > 1)
        i = gp_seed_next(&s->problem->space, &in, &s->history, (size_t)b->each);
    if (i == s->history.n && confirms) {
        i = gp_confirm_next(&in, &s->history, GP_CONFIRM_DOUBTFUL);
        s->n_confirm += i < s->history.n;
    }
    return i;
}

static enum status play(struct promise_study *s, const struct promise_bench *b, uint64_t seed, struct error *err)
{
    struct suggester *suggester = NULL;
    struct suggest_settings settings = {.method = SUGGEST_PARETO, .seed = seed};
    struct suggestion suggestion;
    enum status rc = suggester_create(&suggester, &s->problem->space, &settings, err);

    while (rc == ST_OK && s->history.n < (size_t)b->trials) {
        size_t i = to_repeat(s, b);
        if (i < s->history.n) {
            run_trial(s, s->trials[i].x, seed);
            continue;
        }
        rc = suggester_next(suggester, &s->history, (int64_t)(b->each > 1 ? s->n_points : s->history.n), &suggestion,
                            err);
        if (rc == ST_OK)
            run_trial(s, suggestion.x, seed);
        s->n_points++;
    }
    suggester_destroy(suggester);
    return rc;
}

/* Bounds that cut the front in the middle. */
static double rule_value(const struct gp_insight *in, enum gp_rule rule)
{
    double lo = INFINITY, hi = -INFINITY;

    for (size_t i = 0; i < in->n; i++)
        if (in->beliefs[i].on_front) {
            double v = rule == GP_COST_MAX ? in->beliefs[i].log_cost : in->beliefs[i].score;
            lo = fmin(lo, v);
            hi = fmax(hi, v);
        }
    return rule == GP_COST_MAX ? exp(0.5 * (lo + hi)) : lo + 0.7 * (hi - lo);
}

static void judge(const struct promise_study *s, const struct gp_insight *in, size_t i, enum gp_rule rule,
                  uint64_t seed, bool json, struct kept *kept)
{
    const struct gp_belief *b = &in->beliefs[i];
    double inside = 0.0, all = 0.0, n_all = 0.0;

    for (uint64_t set = 0; set < FRESH_SETS; set++) {
        double sum = 0.0, n = 0.0;
        for (uint64_t k = 0; k < GP_PROMISE_SEEDS; k++) {
            struct rng rng = rng_split(rng_split(rng_split(rng_seed(seed), STREAM_FRESH + (uint64_t)rule), set), k);
            struct outcome o;
            draw(s, s->trials[i].x, &rng, &o);
            if (!o.failed) {
                sum += o.score;
                n += 1.0;
            }
        }
        all += sum;
        n_all += n;
        if (n > 0.0)
            inside += sum / n >= b->lo && sum / n <= b->hi ? 1.0 / FRESH_SETS : 0.0;
    }
    kept->n++;
    kept->inside += inside;
    kept->width += b->hi - b->lo;
    kept->seeds += (double)b->n_seeds;
    kept->off += fabs(all / n_all - b->score);
    if (json)
        printf("{\"problem\":\"%s\",\"seed\":%llu,\"rule\":\"%s\",\"inside\":%.3f,\"truth\":%.5g,\"score\":%.5g,"
               "\"score_sd\":%.4g,\"noise_sd\":%.4g,\"lo\":%.5g,\"hi\":%.5g,\"n_seeds\":%zu,\"mean\":%.5g,"
               "\"n_points\":%zu}\n",
               s->problem->name, (unsigned long long)seed, rule_names[rule], inside, all / n_all, b->score, b->score_sd,
               b->noise_sd, b->lo, b->hi, b->n_seeds, b->mean, s->n_points);
}

/* Sums over studies of the front that is shown, and of all that was tried. */
struct shown {
    double members, regret, tried;
};

/* Regret of the true values of the trials in `in` (NULL: of all that finished). Sets *ret_n. */
static double regret_of(const struct promise_study *s, const struct gp_insight *in, const struct known *known,
                        size_t *ret_n)
{
    MEM_LOCAL struct outcome *points = mem_array(s->history.n, sizeof *points);
    size_t n = 0;

    for (size_t i = 0; i < s->history.n; i++)
        if (s->trials[i].state == GP_TRIAL_DONE && (in == NULL || in->beliefs[i].on_front))
            s->problem->ops->truth(s->problem, 1, s->trials[i].x, &points[n++]);
    *ret_n = n;
    return 1.0 - known_hypervolume(points, n, known) / known->hypervolume;
}

static void judge_front(const struct promise_study *s, const struct gp_insight *in, const struct known *known,
                        uint64_t seed, bool json, struct shown *shown)
{
    size_t n, n_tried;
    double regret = regret_of(s, in, known, &n), tried = regret_of(s, NULL, known, &n_tried);

    shown->members += (double)n;
    shown->regret += regret;
    shown->tried += tried;
    if (json)
        printf("{\"problem\":\"%s\",\"seed\":%llu,\"rule\":\"front\",\"members\":%zu,\"regret\":%.5g,\"tried\":%.5g}\n",
               s->problem->name, (unsigned long long)seed, n, regret, tried);
}

static enum status play_and_judge(const struct promise_bench *b, const struct problem *problem,
                                  const struct known *known, uint64_t seed, struct kept *kept, struct shown *shown,
                                  struct error *err)
{
    size_t max = (size_t)b->trials;
    struct promise_study s = {.problem = problem,
                              .noise = (double)b->noise,
                              .trials = mem_array(max, sizeof *s.trials),
                              .x = mem_array2(max, problem->space.dim, sizeof *s.x)};
    AT_END(gp_insight_free) struct gp_insight in = {0};
    enum status rc;

    s.history = (struct gp_history){.trials = s.trials,
                                    .has_score_bounds = problem->has_bounds,
                                    .score_min = problem->score_min,
                                    .score_max = problem->score_max};
    rc = play(&s, b, seed, err);
    if (rc == ST_OK)
        gp_beliefs_init(&in, &problem->space, &s.history);
    for (int rule = 0; rc == ST_OK && in.beliefs != NULL && rule < N_RULES; rule++) {
        struct gp_picked picked = gp_pick(&in, &s.history, (enum gp_rule)rule, rule_value(&in, (enum gp_rule)rule));
        if (picked.i < s.history.n)
            judge(&s, &in, picked.i, (enum gp_rule)rule, seed, b->json, &kept[rule]);
    }
    if (rc == ST_OK && in.beliefs != NULL)
        judge_front(&s, &in, known, seed, b->json, shown);
    mem_free(s.trials);
    mem_free(s.x);
    return rc;
}

static void print_kept(const char *problem, const struct kept *kept, const struct shown *shown, double n)
{
    struct kept all = {0};

    for (int rule = 0; rule < N_RULES; rule++) {
        const struct kept *k = &kept[rule];
        all.n += k->n;
        all.inside += k->inside;
        if (k->n > 0)
            printf("%-16s %-8s %5zu %8.1f %% %10.4g %10.4g %6.1f\n", problem, rule_names[rule], k->n,
                   100.0 * k->inside / (double)k->n, k->width / (double)k->n, k->off / (double)k->n,
                   k->seeds / (double)k->n);
    }
    if (all.n > 0)
        printf("%-16s %-8s %5zu %8.1f %%   (front: %.1f members, regret %.3f; of all that was tried %.3f)\n", problem,
               "all", all.n, 100.0 * all.inside / (double)all.n, shown->members / n, shown->regret / n,
               shown->tried / n);
    fflush(stdout);
}

static enum status promise_problem(const struct promise_bench *b, const char *name, struct error *err)
{
    struct problem problem;
    struct kept kept[N_RULES] = {0};
    struct shown shown = {0};
    struct known known;

    TRY(problem_open(&problem, name, b->data, err));
    enum status rc = known_load(&known, b->fronts, name, err);
    for (int64_t seed = b->first_seed; rc == ST_OK && seed < b->first_seed + b->seeds; seed++)
        rc = play_and_judge(b, &problem, &known, (uint64_t)seed, kept, &shown, err);
    problem_close(&problem);
    if (rc == ST_OK && !b->json)
        print_kept(name, kept, &shown, (double)b->seeds);
    return rc;
}

enum status bench_promise(int argc, char **argv, struct error *err)
{
    struct promise_bench b = {.problems = "steep,rl-toy,hartmann-steps,trawl-pong,trawl-cartpole",
                              .fronts = "bench/sweep/fronts.json",
                              .trials = 80,
                              .seeds = 10,
                              .percent = 20,
                              .each = 1,
                              .noise = 1};
    char list[512], *rest = NULL;
    const struct cli_opt opts[] = {
        {"problem", 0, CLI_TEXT, &b.problems, "P,...",
         "problems of `trawl-bench sweep` (steep,rl-toy,hartmann-steps,trawl-pong,trawl-cartpole)"},
        {"trials", 0, CLI_INT, &b.trials, "N", "runs of a study, those that confirm among them (80)"},
        {"confirm", 0, CLI_INT, &b.percent, "P", "per cent of the runs that may confirm (20)"},
        {"each", 0, CLI_INT, &b.each, "K", "runs that every config has unless it is beaten (1)"},
        {"noise", 0, CLI_INT, &b.noise, "N", "factor on the noise of the problem's runs (1)"},
        {"seeds", 0, CLI_INT, &b.seeds, "S", "studies of each problem (10)"},
        {"first-seed", 0, CLI_INT, &b.first_seed, "N", "seed of the first of them (0)"},
        {"fronts", 0, CLI_TEXT, &b.fronts, "FILE", "best known fronts (bench/sweep/fronts.json)"},
        {"data", 0, CLI_TEXT, &b.data, "DIR", "where data from outside the repository lie"},
        {"json", 0, CLI_FLAG, &b.json, NULL, "print one JSON object a pick, one a line"},
    };
    const struct cli cli = {
        .name = "bench promise",
        .synopsis = "trawl-bench promise [options]",
        .about =
            "Plays studies in which a share of the runs confirms the advice, picks by every rule, and runs each pick\n"
            "again under fresh seeds. Printed: picks, how often the mean of 5 fresh runs lies in the stated 95 %\n"
            "interval, the interval's mean width, mean |fresh mean - stated score|, runs of the picked point; and the\n"
            "regret of the front that is shown, as `trawl-bench sweep` measures it, beside that of all trials.",
        .examples = "  trawl-bench promise --problem steep --seeds 50",
        CLI_OPTS(opts),
    };

    CLI_PARSE(cli, words);
    if (b.trials < 4 || b.trials > 10000 || b.seeds < 1 || b.each < 1 || b.noise < 0 || b.percent < 0 ||
        b.percent > 100 || strlen(b.problems) >= sizeof list)
        return FAIL(
            err, ST_USAGE,
            "bench: --trials must be 4 to 10000, --seeds and --each 1 or more, --noise 0 or more, --confirm 0 to 100, "
            "--problem short");
    strcpy(list, b.problems);
    if (!b.json)
        printf("%-16s %-8s %5s %10s %10s %10s %6s\n", "problem", "rule", "picks", "inside", "width", "off", "runs");
    for (char *name = strtok_r(list, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest))
        TRY(promise_problem(&b, name, err));
    return ST_OK;
}
