/* player.c - one game played by a checkpoint's policy, a decision at a time, to be watched.
 * It is a trainer of the least size (no rollout worth the name, no minibatch) that gets the weights alone.
 * Invariant: same checkpoint, seed and choice of greedy, same game. */
#include "trainer/trainer_priv.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

struct player {
    struct trainer *t; /* owned */
    size_t n; /* agents */
    struct plan plan;
    struct policy_step step;
    struct kern_env *game; /* owned */
    void *obs; /* (n, D) act */
    float *h, *rewards, *logp, *value;
    int32_t *actions;
    uint8_t *mask, *terms, *truncs, *reset;
    struct rng *rng;
    char *state; /* of the game and its log, on the host; owned */
    size_t state_bytes;
    float *host_rewards; /* (n) owned */
    bool greedy;
    int64_t steps, episodes, ep_steps;
    double ep_return;
    struct env_log before; /* of the game, up to the last step */
};

static void player_plan(struct player *p)
{
    struct trainer *t = p->t;
    struct plan *plan = &p->plan;
    size_t n = p->n, L = t->policy.recurrent ? t->policy.n_layers : 0;

    plan_add(plan, &p->obs, "observations", t->ops->act_size, n, t->policy.obs_size, 1);
    plan_add(plan, &p->h, "states", sizeof(float), L, n, t->policy.state_size);
    plan_add(plan, &p->rewards, "rewards", sizeof(float), n, 1, 1);
    plan_add(plan, &p->logp, "log-probabilities", sizeof(float), n, 1, 1);
    plan_add(plan, &p->value, "values", sizeof(float), n, 1, 1);
    plan_add(plan, &p->actions, "actions", sizeof(int32_t), n, (size_t)t->shape.n_heads, 1);
    if (t->shape.has_mask)
        plan_add(plan, &p->mask, "masks", 1, n, t->policy.n_logits, 1);
    plan_add(plan, &p->terms, "terminations", 1, n, 1, 1);
    plan_add(plan, &p->truncs, "truncations", 1, n, 1, 1);
    plan_add(plan, &p->reset, "resets", 1, n, 1, 1);
    plan_add(plan, &p->rng, "random stream", sizeof(struct rng), 1, 1, 1);
    policy_plan_step(&t->policy, &p->step, plan, n);
}

static enum status player_begin(struct player *p, int64_t seed, struct error *err)
{
    struct trainer *t = p->t;
    struct rng root = rng_split(rng_split(t->root, STREAM_EVAL), (uint64_t)seed),
               sample = rng_split(root, STREAM_SAMPLE);

    player_plan(p);
    TRY(plan_check(&p->plan, t->kern, "the size of the policy", err));
    TRY(plan_alloc(&p->plan, t->kern, err));
    TRY(kern_env_create(t->kern, &p->game, t->def, t->env_settings, 1, rng_split(root, STREAM_ENV), err));
    p->state_bytes = kern_env_state_bytes(p->game);
    p->state = mem_alloc(p->state_bytes);
    p->host_rewards = mem_array(p->n, sizeof *p->host_rewards);
    if (p->state == NULL || p->host_rewards == NULL)
        return FAIL(err, ST_NOMEM, "no memory to play a game");
    t->ops->env_reset(t->kern, p->game, p->obs, p->mask);
    TRY(kern_upload(t->kern, p->rng, &sample, sizeof sample, err));
    TRY(kern_env_save(t->kern, p->game, p->state, err));
    return kern_sync(t->kern, err);
}

enum status player_create(struct player **ret_player, struct kern *kern, const struct env_def *def,
                          const void *env_settings, const struct policy_settings *policy,
                          const struct train_settings *train, const char *checkpoint, int64_t seed, bool greedy,
                          struct error *err)
{
    struct player *p = mem_alloc(sizeof *p);
    struct train_settings small = *train;
    struct env_shape shape;
    enum status rc;

    *ret_player = NULL;
    if (p == NULL)
        return FAIL(err, ST_NOMEM, "no memory to play a game");
    p->greedy = greedy;
    rc = env_def_check(def, env_settings, 1, &shape, err);
    small.total_agents = shape.n_agents;
    small.horizon = 1;
    small.minibatch_size = 1;
    small.replay_ratio = 0;
    small.prio_alpha = 0;
    if (rc == ST_OK)
        rc = trainer_create(&p->t, kern, def, env_settings, policy, &small, err);
    if (rc == ST_OK) {
        p->n = p->t->n_agents;
        rc = checkpoint_load_weights(p->t, checkpoint, err);
    }
    if (rc == ST_OK)
        rc = player_begin(p, seed, err);
    if (rc != ST_OK) {
        player_destroy(p);
        return rc;
    }
    *ret_player = p;
    return ST_OK;
}

void player_destroy(struct player *p)
{
    if (p == NULL)
        return;
    if (p->t != NULL) {
        kern_env_destroy(p->t->kern, p->game);
        plan_free(&p->plan, p->t->kern);
    }
    trainer_destroy(p->t);
    mem_free(p->state);
    mem_free(p->host_rewards);
    mem_free(p);
}

const void *player_state(const struct player *p)
{
    return p->state;
}

/* The game's log lies behind its state. What it gained is the episode that ended. */
static void player_count(struct player *p, double reward, struct player_frame *ret)
{
    struct env_log log;

    memcpy(&log, p->state + p->t->def->state_size, sizeof log);
    p->steps++;
    p->ep_steps++;
    p->ep_return += reward;
    *ret = (struct player_frame){.step = p->steps,
                                 .episode = p->episodes,
                                 .reward = reward,
                                 .ep_return = p->ep_return,
                                 .score = NAN,
                                 .perf = NAN,
                                 .ended = log.episodes > p->before.episodes};
    if (ret->ended) {
        double n = log.episodes - p->before.episodes;
        ret->score = (log.score - p->before.score) / n;
        ret->perf = (log.perf - p->before.perf) / n;
        ret->ep_length = (double)p->ep_steps;
        p->episodes++;
        p->ep_steps = 0;
        p->ep_return = 0;
    }
    p->before = log;
}

enum status player_step(struct player *p, struct player_frame *ret_frame, struct error *err)
{
    struct trainer *t = p->t;
    struct policy_weights w = trainer_weights(t);
    struct kern_env_io io = {.actions = p->actions,
                             .rewards = p->rewards,
                             .terms = p->terms,
                             .truncs = p->truncs,
                             .obs = p->obs,
                             .mask = p->mask};
    double reward = 0;

    policy_forward_step(&t->policy, t->kern, &p->step, &w, p->obs, p->h, p->n, p->reset, p->n);
    t->ops->sample(t->kern, p->actions, p->logp, p->value, p->step.out, p->mask, &t->policy.heads, p->rng, p->greedy,
                   p->n);
    t->ops->env_step(t->kern, p->game, &io);
    TRY(kern_download(t->kern, p->host_rewards, p->rewards, p->n * sizeof *p->host_rewards, err));
    TRY(kern_env_save(t->kern, p->game, p->state, err));
    t->ops->step_post(t->kern, p->rewards, p->reset, p->terms, p->truncs, t->hyper, p->n);
    for (size_t i = 0; i < p->n; i++)
        reward += (double)p->host_rewards[i] / (double)p->n;
    player_count(p, reward, ret_frame);
    return ST_OK;
}
