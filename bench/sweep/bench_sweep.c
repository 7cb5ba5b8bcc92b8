/* bench_sweep.c - `trawl-bench sweep`: how fast a method's front comes near the best known one, on problems of which
 * the truth is known; `trawl-bench front`: the dense search that makes those fronts.
 * Invariant: a problem whose data are not there is skipped with a warning, never silently. */
#include "bench/sweep/play.h"

#include "base/os/file.h"
#include "bench/bench_commands.h"
#include "base/text/json.h"
#include "gp/gp.h"
#include "study/setup/setup.h"
#include "sweep/cli.h"
#include "sweep/signals.h"

#define MAX_TRIALS 20000
#define UNLIMITED "-unlimited" /* after a method's name: it does not see the problem's limit */
#define MAX_NAMES 64
#define DATA_HERE "bench/sweep/data" /* what the repository itself holds */

/* ---- problems by name ---- */

enum status problem_find(const char *file, const char *const *dirs, size_t n_dirs, char *ret_path, size_t max,
                         struct error *err)
{
    for (size_t i = 0; i < n_dirs; i++) {
        int n = snprintf(ret_path, max, "%s/%s", dirs[i], file);
        if (n > 0 && (size_t)n < max && file_exists(ret_path))
            return ST_OK;
    }
    return FAIL(err, ST_NOTFOUND, "%s is neither in --data nor in %s; bench/sweep/README.md says how it is made", file,
                DATA_HERE);
}

enum status problem_open(struct problem *problem, const char *name, const char *data_dir, struct error *err)
{
    const char *dirs[] = {DATA_HERE, data_dir}, *names[MAX_NAMES], *near;
    size_t n = 0;

    *problem = (struct problem){0};
    for (const struct problem_entry *e = problem_entries; e->name != NULL; e++) {
        if (strcmp(e->name, name) != 0) {
            names[n++] = e->name;
            continue;
        }
        snprintf(problem->name, sizeof problem->name, "%s", name);
        problem->ops = e->ops;
        return e->ops->open(problem, dirs, data_dir != NULL ? 2 : 1, err);
    }
    near = word_nearest(name, names, n);
    return FAIL(err, ST_USAGE, "bench: no problem '%s'%s%s; `trawl-bench sweep --help` lists all", name,
                near != NULL ? "; nearest: " : "", near != NULL ? near : "");
}

void problem_close(struct problem *problem)
{
    if (problem->ops != NULL && problem->ops->close != NULL)
        problem->ops->close(problem);
    *problem = (struct problem){0};
}

/* ---- lists ---- */

struct names {
    char text[1024];
    const char *v[MAX_NAMES];
    size_t n;
};

/* "a,b,c"; "all" stands for every problem. */
static enum status split_names(const char *list, struct names *ret, struct error *err)
{
    char *rest = NULL;

    ret->n = 0;
    if (strcmp(list, "all") == 0) {
        for (const struct problem_entry *e = problem_entries; e->name != NULL; e++)
            ret->v[ret->n++] = e->name;
        return ST_OK;
    }
    if (strlen(list) >= sizeof ret->text)
        return FAIL(err, ST_USAGE, "bench: '%s' is too long a list", list);
    strcpy(ret->text, list);
    for (char *word = strtok_r(ret->text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (ret->n == MAX_NAMES)
            return FAIL(err, ST_USAGE, "bench: more than %d names in one list", MAX_NAMES);
        ret->v[ret->n++] = word;
    }
    return ST_OK;
}

static enum status find_method(const char *name, struct play_method *ret, struct error *err)
{
    const char *at = suggest_method_names(), *suffix = strstr(name, UNLIMITED);
    size_t length = suffix != NULL && suffix[strlen(UNLIMITED)] == '\0' ? (size_t)(suffix - name) : strlen(name);

    *ret = (struct play_method){.own = SUGGEST_SOBOL, .ignores_limit = name[length] != '\0'};
    for (int i = 0; *at != '\0'; i++) {
        size_t n = strcspn(at, "|");
        if (length == n && strncmp(at, name, n) == 0) {
            ret->own = (enum suggest_method)i;
            return ST_OK;
        }
        at += n + (at[n] == '|');
    }
    return FAIL(err, ST_USAGE, "bench: no method '%s'; one of %s", name, suggest_method_names());
}

/* ---- sweep ---- */

struct sweep_bench {
    const char *problems, *methods, *data, *fronts, *taught_by;
    int64_t trials, parallel, seeds, first_seed, taught, branches;
    bool json, reversed, rows;
};

/* Sums over the seeds of what a line of the table shows. */
struct tally {
    double regret[4], at_cost, p95_ms, calibration[5];
    size_t n[4], n_studies, n_predicted;
};
static const char *const calibrations[5] = {"score_z", "scores_inside", "cost_z", "costs_inside", "on_bounds"};
static const size_t checkpoints[4] = {30, 60, 100, 150};
#define COST_UNITS 20.0 /* the spent cost at which methods are compared, in reference costs */

static double item(const cJSON *json, const char *key, size_t i)
{
    return cJSON_GetNumberValue(cJSON_GetArrayItem(json_get(json, key), (int)i));
}

static void tally_add(struct tally *t, const cJSON *study)
{
    size_t n = (size_t)cJSON_GetArraySize(json_get(study, "regret")), i = 0;

    for (size_t k = 0; k < 4; k++)
        if (n >= checkpoints[k]) {
            t->regret[k] += item(study, "regret", checkpoints[k] - 1);
            t->n[k]++;
        }
    while (i + 1 < n && item(study, "spent", i + 1) <= COST_UNITS)
        i++;
    t->at_cost += n > 0 ? item(study, "regret", i) : 1.0;
    double p95 = json_f64_or(study, "latency_p95_ms", 0.0);
    t->p95_ms += p95;
    t->n_studies++;
    for (size_t k = 0; k < 5; k++) {
        double v = 0.0;
        t->n_predicted += json_get_f64(study, calibrations[k], &v) && k == 0;
        t->calibration[k] += v;
    }
}

static void tally_print(const struct tally *t, const char *problem, const char *method)
{
    printf("%-22s %-9s", problem, method);
    for (size_t k = 0; k < 4; k++)
        if (t->n[k] > 0)
            printf(" %6.3f", t->regret[k] / (double)t->n[k]);
        else
            printf("      -");
    printf("   %6.3f   %8.2f", t->at_cost / (double)t->n_studies, t->p95_ms / (double)t->n_studies);
    for (size_t k = 0; k < 5 && t->n_predicted > 0; k++)
        printf(" %6.2f", t->calibration[k] / (double)t->n_predicted);
    printf("\n");
    fflush(stdout);
}

#define SOURCE_SEED 1000000 /* added to a study's seed: that of the study that teaches it */

/* The study that teaches: of the same problem, or of another with the same parameters. */
struct teacher {
    const struct problem *problem;
    double scale, offset; /* of its scores */
    bool is_other;
};

static enum status play_source(const struct sweep_bench *b, const struct teacher *teacher, int64_t seed,
                               struct play *ret_source, struct error *err)
{
    play_init(ret_source, teacher->problem, "pareto", (uint64_t)(seed + SOURCE_SEED), (size_t)b->taught, 1);
    ret_source->scale = teacher->scale;
    ret_source->offset = teacher->offset;
    return play_run(ret_source, (struct play_method){.own = SUGGEST_PARETO}, err);
}

static enum status play_one(const struct sweep_bench *b, const struct problem *problem, const struct teacher *teacher,
                            const struct known *known, const char *method, int64_t seed, struct tally *tally,
                            struct error *err)
{
    struct play study, source = {0};
    struct play_method id;
    enum status rc;

    TRY(find_method(method, &id, err));
    play_init(&study, problem, method, (uint64_t)seed, (size_t)b->trials, (size_t)b->parallel);
    study.branches = (size_t)b->branches;
    rc = b->taught > 0 ? play_source(b, teacher, seed, &source, err) : ST_OK;
    study.source = b->taught > 0 ? &source : NULL;
    study.other_game = teacher->is_other && !b->rows;
    THEN(rc, play_run(&study, id, err));
    if (rc == ST_OK) {
        cJSON *json = play_measure(&study, known);
        if (b->json)
            cli_print_json(json);
        else {
            tally_add(tally, json);
            cJSON_Delete(json);
        }
        fflush(stdout);
    }
    play_free(&study);
    play_free(&source);
    return rc;
}

/* other: an open problem, or one that has no ops. Another's scores are brought to this problem's range; what is
 * reversed is mirrored between a middling and the best score. */
static enum status find_teacher(const struct sweep_bench *b, const struct problem *problem, const struct problem *other,
                                const struct known *known, struct teacher *ret, struct error *err)
{
    struct known theirs = *known;
    bool is_other = other->ops != NULL;

    if (is_other && other->space.dim != problem->space.dim)
        return FAIL(err, ST_USAGE,
                    "bench: %s has %zu parameters and %s has %zu; only the same ones can be carried over", other->name,
                    other->space.dim, problem->name, problem->space.dim);
    if (is_other)
        TRY(known_load(&theirs, b->fronts, other->name, err));
    double range = known->best_score - known->ref_score, sign = b->reversed ? -1.0 : 1.0;
    *ret = (struct teacher){.problem = is_other ? other : problem, .is_other = is_other};
    ret->scale = sign * range / (theirs.best_score - theirs.ref_score);
    ret->offset = (b->reversed ? known->best_score : known->ref_score) - ret->scale * theirs.ref_score;
    return ST_OK;
}

static enum status play_problem(const struct sweep_bench *b, const char *name, const struct names *methods,
                                struct error *err)
{
    AT_END(problem_close) struct problem problem = {0}, other = {0};
    struct known known;
    struct teacher teacher = {0};
    enum status rc = problem_open(&problem, name, b->data, err);

    if (rc == ST_OK && b->taught_by != NULL)
        rc = problem_open(&other, b->taught_by, b->data, err);
    if (rc == ST_NOTFOUND && err != NULL) {
        log_warn("%s skipped: %s", name, err->text);
        error_clear(err);
        return ST_OK;
    }
    TRY(rc);
    TRY(known_load(&known, b->fronts, name, err));
    TRY(find_teacher(b, &problem, &other, &known, &teacher, err));
    for (size_t m = 0; m < methods->n; m++) {
        struct tally tally = {0};
        for (int64_t seed = b->first_seed; seed < b->first_seed + b->seeds; seed++) {
            TRY(play_one(b, &problem, &teacher, &known, methods->v[m], seed, &tally, err));
            if (signals_stop())
                return FAIL(err, ST_INTERRUPTED, "stopped; finished studies were printed");
        }
        if (!b->json)
            tally_print(&tally, name, methods->v[m]);
    }
    return ST_OK;
}

static enum status sweep_run(const struct sweep_bench *b, struct error *err)
{
    struct names problems, methods;
    struct play_method id;

    if (b->trials < 1 || b->trials > MAX_TRIALS)
        return FAIL(err, ST_USAGE, "bench: --trials is %lld, 1 to %d are allowed", (long long)b->trials, MAX_TRIALS);
    if (b->parallel < 1 || b->parallel > 1024)
        return FAIL(err, ST_USAGE, "bench: --parallel is %lld, 1 to 1024 are allowed", (long long)b->parallel);
    if (b->taught < 0 || b->taught > MAX_TRIALS)
        return FAIL(err, ST_USAGE, "bench: --taught is %lld, 0 to %d are allowed", (long long)b->taught, MAX_TRIALS);
    if (b->branches < 0 || b->branches > SWEEP_BRANCHES_MAX)
        return FAIL(err, ST_USAGE, "bench: --branches is %lld, 0 to %d are allowed", (long long)b->branches,
                    SWEEP_BRANCHES_MAX);
    TRY(split_names(b->problems, &problems, err));
    TRY(split_names(b->methods, &methods, err));
    for (size_t m = 0; m < methods.n; m++)
        TRY(find_method(methods.v[m], &id, err));
    signals_catch();
    if (!b->json)
        printf("%-22s %-9s %6s %6s %6s %6s   %6s   %8s %6s %6s %6s %6s %6s\n%-22s %-9s %27s   %6s   %8s %34s\n",
               "problem", "method", "30", "60", "100", "150", "cost20", "p95 ms", "score", "in 95", "cost", "in 95",
               "bounds", "", "", "regret after N trials", "", "latency", "what came of predictions");
    for (size_t i = 0; i < problems.n; i++)
        TRY(play_problem(b, problems.v[i], &methods, err));
    return ST_OK;
}

static size_t list_problems(char *ret, size_t max)
{
    size_t n = 0;

    for (const struct problem_entry *e = problem_entries; e->name != NULL && n < max; e++)
        n += (size_t)snprintf(ret + n, max - n, "\n  %-26s %s", e->name, e->about);
    return n;
}

enum status bench_sweep(int argc, char **argv, struct error *err)
{
    struct sweep_bench b = {.problems = "all",
                            .methods = "pareto",
                            .fronts = "bench/sweep/fronts.json",
                            .trials = 150,
                            .parallel = 1,
                            .seeds = 20};
    struct cli_words words;
    char about[8192];
    const struct cli_opt opts[] = {
        {"problem", 0, CLI_TEXT, &b.problems, "P,...", "problems below, or all (all)"},
        {"method", 0, CLI_TEXT, &b.methods, "M,...",
         "methods of sweep.method; with -unlimited: blind to a problem's limit (pareto)"},
        {"trials", 0, CLI_INT, &b.trials, "N", "trials of a study (150)"},
        {"parallel", 0, CLI_INT, &b.parallel, "K", "trials under way at a time, in virtual time (1)"},
        {"seeds", 0, CLI_INT, &b.seeds, "S", "studies of each problem and method (20)"},
        {"first-seed", 0, CLI_INT, &b.first_seed, "N", "seed of the first of them (0)"},
        {"branches", 0, CLI_INT, &b.branches, "N",
         "shorter runs that each run gives on its way, as sweep.branches (0)"},
        {"taught", 0, CLI_INT, &b.taught, "N", "finished trials of an earlier study that teach each study (0)"},
        {"taught-by", 0, CLI_TEXT, &b.taught_by, "P",
         "problem of that earlier study, with the same parameters (the same)"},
        {"reversed", 0, CLI_FLAG, &b.reversed, NULL,
         "that study's scores are mirrored between a middling and the best score: it teaches the opposite"},
        {"rows", 0, CLI_FLAG, &b.rows, NULL, "its trials teach, as those of the same game, also where it is another"},
        {"data", 0, CLI_TEXT, &b.data, "DIR", "where data from outside the repository lie"},
        {"fronts", 0, CLI_TEXT, &b.fronts, "FILE", "best known fronts (bench/sweep/fronts.json)"},
        {"json", 0, CLI_FLAG, &b.json, NULL, "print one JSON object a study, one a line"},
    };
    int n = snprintf(
        about, sizeof about,
        "Plays studies on problems of which the truth is known. Regret is 1 - hypervolume / best known, of "
        "the true\n(ln cost, score) of the trials so far; a method sees noisy results only. With --json "
        "each study gives regret,\nspent (cumulative cost / reference cost) and reached (0: median of "
        "random designs, 1: best known score)\nafter every trial, in the order of ending. Trials that models proposed "
        "are compared with what these "
        "expected of one\nrun: how many predicted standard deviations better scores and costs came out (score, "
        "cost), which share lay inside the\npredicted 95 %% (in 95), and which share of their coordinates is on "
        "a bound (bounds).\n\nproblems:");
    (void)list_problems(about + n, sizeof about - (size_t)n);
    const struct cli cli = {
        .name = "bench sweep",
        .synopsis = "trawl-bench sweep [options]",
        .about = about,
        .examples = "  trawl-bench sweep --problem rl-toy --method pareto,sobol --trials 60 --seeds 5\n"
                    "  trawl-bench sweep --problem all --data DIR --json > studies.jsonl",
        CLI_OPTS(opts),
    };

    TRY(cli_parse(&cli, argc, argv, &words, err));
    return words.help ? ST_OK : sweep_run(&b, err);
}

/* ---- front ---- */

static enum status front_run(const char *list, const char *data, size_t n_points, struct error *err)
{
    struct names problems;
    JSON_LOCAL cJSON *all = cJSON_CreateObject();

    TRY(split_names(list, &problems, err));
    for (size_t i = 0; i < problems.n; i++) {
        AT_END(problem_close) struct problem problem = {0};
        enum status rc = problem_open(&problem, problems.v[i], data, err);
        if (rc == ST_NOTFOUND && err != NULL) {
            log_warn("%s skipped: %s", problems.v[i], err->text);
            error_clear(err);
            continue;
        }
        TRY(rc);
        json_add(all, problems.v[i], known_search(&problem, n_points));
    }
    cli_print_json(all);
    all = NULL;
    return ST_OK;
}

enum status bench_front(int argc, char **argv, struct error *err)
{
    const char *problems = "all", *data = NULL;
    int64_t points = 200000;
    const struct cli_opt opts[] = {
        {"problem", 0, CLI_TEXT, &problems, "P,...", "problems of `trawl-bench sweep`, or all (all)"},
        {"data", 0, CLI_TEXT, &data, "DIR", "where data from outside the repository lie"},
        {"points", 0, CLI_INT, &points, "N", "random points, and as many improved ones (200000)"},
    };
    const struct cli cli = {
        .name = "bench front",
        .synopsis = "trawl-bench front [options]",
        .about = "Searches problems densely on their true values and prints the reference, the best score and the best "
                 "front\nfound, as the JSON that `trawl-bench sweep --fronts` reads.",
        .examples = "  trawl-bench front --data DIR > fronts.json",
        CLI_OPTS(opts),
    };

    CLI_PARSE(cli, words);
    if (points < 1 || points > 100000000)
        return FAIL(err, ST_USAGE, "bench: --points is %lld, 1 to 100000000 are allowed", (long long)points);
    return front_run(problems, data, (size_t)points, err);
}
