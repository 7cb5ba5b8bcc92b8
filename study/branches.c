/* branches.c - see branches.h. */
#include "study/branches.h"

#include "base/status.h"
#include "study/search.h"
#include "study/setup.h"
#include "trainer/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define APART 1.1 /* ratio of neighbours, at least: nearer ones would teach little */

enum status branches_check(const struct setup *setup, const struct search *search, struct error *err)
{
    size_t at = search_find(search, BRANCHES_STEPS_KEY);

    if (setup->sweep.branches == 0)
        return ST_OK;
    if (setup_is_program(setup))
        return FAIL(err, ST_CONFIG,
                    "sweep.branches: only Trawl's own trainer can say what a shorter run would have given; a program "
                    "can add such results itself (POST /api/v1/studies/NAME/trials:add, docs/http-api.md)");
    if (setup->sweep.seeds > 1 || search->envs.n > 0)
        return FAIL(err, ST_CONFIG, "sweep.branches and sweep.%s do not go together; leave one out",
                    setup->sweep.seeds > 1 ? "seeds" : "envs");
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

size_t branches_of_run(const struct train_settings *train, double least, size_t n, int64_t *ret_steps)
{
    const int64_t rollout = train->total_agents * train->horizon;
    const double longest = (double)train->total_timesteps / APART;
    int64_t last = 0;
    size_t found = 0;

    n = n < SWEEP_BRANCHES_MAX ? n : SWEEP_BRANCHES_MAX;
    if (!train_holds_shorter(train) || !(least > 0))
        return 0;
    for (size_t k = 0; k < n; k++) {
        double want = least * pow((double)train->total_timesteps / least, (double)k / (double)n);
        int64_t steps = (int64_t)ceil(want / (double)rollout) * rollout;
        if ((double)steps > longest || (double)steps < APART * (double)last)
            continue;
        ret_steps[found++] = last = steps;
    }
    return found;
}

enum status branches_config(const struct setup *setup, int64_t env_steps, const char *source, char **ret_text,
                            struct error *err)
{
    struct setup_override length = {.key = BRANCHES_STEPS_KEY};
    struct setup *derived = NULL;
    enum status rc;

    snprintf(length.value, sizeof length.value, "%lld", (long long)env_steps);
    rc = setup_derive(setup, &length, 1, source, &derived, err);
    if (rc == ST_OK)
        rc = setup_to_ini(derived, ret_text, err);
    setup_destroy(derived);
    return rc;
}

enum status branches_params(const char *params, int64_t env_steps, char **ret_params, struct error *err)
{
    cJSON *json = NULL;

    TRY(json_parse(params, strlen(params), &json, err));
    cJSON_DeleteItemFromObjectCaseSensitive(json, BRANCHES_STEPS_KEY);
    json_add_f64(json, BRANCHES_STEPS_KEY, (double)env_steps);
    *ret_params = json_print(json, false);
    cJSON_Delete(json);
    return ST_OK;
}
