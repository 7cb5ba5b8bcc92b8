/* branches.c - see branches.h. */
#include "study/space/branches.h"

#include "study/setup/outcomes.h"
#include "study/space/search.h"
#include "study/setup/setup.h"

#define APART 1.1 /* ratio of neighbours, at least: nearer ones would teach little */

size_t branches_length(const struct setup *setup, const struct search *search)
{
    return search_find(search, setup_is_program(setup) ? setup->sweep.branches_length : BRANCHES_STEPS_KEY);
}

/* Of a program, which reports scores at steps and nothing else that a trial may need. */
static enum status check_program(const struct setup *setup, const struct search *search, struct error *err)
{
    const char *name = setup->sweep.branches_length, *needed[OUTCOMES_MAX];
    size_t k = branches_length(setup, search);

    if (name[0] == '\0')
        return FAIL(err, ST_CONFIG,
                    "sweep.branches needs to know which parameter of the program is the length of a run: set "
                    "sweep.branches_length to its name if the first steps of a run are those of a shorter one, so if "
                    "nothing anneals over the length; a program can also add such results itself (trials:add with "
                    "branch_of, docs/http-api.md)");
    if (k == search->space.dim)
        return FAIL(err, ST_CONFIG,
                    "sweep.branches_length is '%s', which the study does not search; add [sweep.%s] with min and max",
                    name, name);
    if (search->space.params[k].scale == SPACE_CATEGORICAL || search->space.params[k].scale == SPACE_POW2)
        return FAIL(err, ST_CONFIG,
                    "sweep.branches_length: %s has single values, and branches end between them; give it a range",
                    name);
    if (search->space.params[k].max < 2)
        return FAIL(err, ST_CONFIG,
                    "sweep.branches_length: the range of %s ends at %g, and branches end at whole steps below it; name "
                    "the parameter that is the length of a run, in the steps that the program reports",
                    name, search->space.params[k].max);
    if (outcomes_needed(&search->outcomes, needed) > 0)
        return FAIL(
            err, ST_CONFIG,
            "sweep.branches of a program have a score and a cost alone; drop the limits and the third objective");
    if (search->cost == SEARCH_COST_OWN)
        return FAIL(err, ST_CONFIG, "sweep.branches of a program cannot have costs of its own; set another sweep.cost");
    return ST_OK;
}

enum status branches_check(const struct setup *setup, const struct search *search, struct error *err)
{
    size_t at = search_find(search, BRANCHES_STEPS_KEY);

    if (setup->sweep.branches_length[0] != '\0' && !setup_is_program(setup))
        return FAIL(
            err, ST_CONFIG,
            "sweep.branches_length is of programs (sweep.command); Trawl's own trainer knows train.total_timesteps");
    if (setup->sweep.branches == 0)
        return ST_OK;
    if (setup->sweep.seeds > 1 || search->envs.n > 0)
        return FAIL(err, ST_CONFIG, "sweep.branches and sweep.%s do not go together; leave one out",
                    setup->sweep.seeds > 1 ? "seeds" : "envs");
    if (setup_is_program(setup))
        return check_program(setup, search, err);
    if (!train_holds_shorter(&setup->train))
        return FAIL(err, ST_CONFIG,
                    "sweep.branches needs runs that contain every shorter one: set train.decay_steps (half of the "
                    "shortest run, %.0f, with a learning_rate 2 to 4 times as high is a start) or train.anneal_lr = "
                    "false, and no train.max_seconds",
                    (at < search->space.dim ? search->space.params[at].min : (double)setup->train.total_timesteps / 8) /
                        2);
    if (at == search->space.dim)
        return FAIL(err, ST_CONFIG, "sweep.branches needs a range of run lengths; add [sweep.%s] with min and max",
                    BRANCHES_STEPS_KEY);
    return ST_OK;
}

/* Multiples of `round`, for a run of `length`. */
static size_t spread(double length, double least, int64_t round, size_t n, int64_t *ret_steps)
{
    int64_t last = 0;
    size_t found = 0;

    n = n < SWEEP_BRANCHES_MAX ? n : SWEEP_BRANCHES_MAX;
    for (size_t k = 0; k < n && least > 0; k++) {
        double want = least * pow(length / least, (double)k / (double)n);
        int64_t steps = (int64_t)ceil(want / (double)round) * round;
        if ((double)steps > length / APART || (double)steps < APART * (double)last)
            continue;
        ret_steps[found++] = last = steps;
    }
    return found;
}

size_t branches_of_run(const struct train_settings *train, double least, size_t n, int64_t *ret_steps)
{
    return train_holds_shorter(train)
               ? spread((double)train->total_timesteps, least, train->total_agents * train->horizon, n, ret_steps)
               : 0;
}

size_t branches_of_program(double length, double least, size_t n, int64_t *ret_steps)
{
    return spread(length, least, 1, n, ret_steps);
}

enum status branches_config(const struct setup *setup, const char *key, int64_t env_steps, const char *source,
                            char **ret_text, struct error *err)
{
    struct setup_override length = {.key = key};
    AT_END(setup_destroy_at) struct setup *derived = NULL;

    snprintf(length.value, sizeof length.value, "%lld", (long long)env_steps);
    TRY(setup_derive(setup, &length, 1, source, &derived, err));
    return setup_to_ini(derived, ret_text, err);
}

enum status branches_params(const char *params, const char *key, int64_t env_steps, char **ret_params,
                            struct error *err)
{
    JSON_LOCAL cJSON *json = NULL;

    TRY(json_parse(params, strlen(params), &json, err));
    cJSON_DeleteItemFromObjectCaseSensitive(json, key);
    json_add_f64(json, key, (double)env_steps);
    *ret_params = json_print(json, false);
    return ST_OK;
}
