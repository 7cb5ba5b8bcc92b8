/* player.c - one game played by a checkpoint's policy, a decision at a time, to be watched.
 * It is a trainer of the least size (no rollout worth the name, no minibatch) that gets the weights alone.
 * Invariant: same checkpoint, seed and choice of greedy, same game. */
#include "base/mem.h"
#include "trainer/acting.h"

#include <math.h>
#include <string.h>

struct player {
    struct trainer *t; /* owned */
    struct acting play; /* of one game */
    char *state; /* of the game and its log, on the host; owned */
    size_t state_bytes;
    float *host_rewards; /* (n) owned */
    bool greedy;
    int64_t steps, episodes, ep_steps;
    double ep_return;
    struct env_log before; /* of the game, up to the last step */
};

static enum status player_begin(struct player *p, int64_t seed, struct error *err)
{
    struct kern *kern = p->t->kern;

    TRY(acting_open(&p->play, p->t, 1, seed, false, "the size of the policy", err));
    p->state_bytes = kern_env_state_bytes(p->play.games);
    p->state = mem_alloc(p->state_bytes);
    p->host_rewards = mem_array(p->play.n, sizeof *p->host_rewards);
    TRY(kern_env_save(kern, p->play.games, p->state, err));
    return kern_sync(kern, err);
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
    p->greedy = greedy;
    rc = env_def_check(def, env_settings, 1, &shape, err);
    small.total_agents = shape.n_agents;
    small.horizon = 1;
    small.minibatch_size = 1;
    small.replay_ratio = 0;
    small.prio_alpha = 0;
    if (rc == ST_OK)
        rc = trainer_create(&p->t, kern, def, env_settings, policy, &small, err);
    if (rc == ST_OK)
        rc = trainer_load_weights(p->t, checkpoint, err);
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
    acting_close(&p->play);
    trainer_destroy(p->t);
    mem_free(p->state);
    mem_free(p->host_rewards);
    mem_free(p);
}

const void *player_state(const struct player *p)
{
    return p->state;
}

/* The game's log lies after its state. Its growth is the episode that ended. */
static void player_count(struct player *p, double reward, struct player_frame *ret)
{
    struct env_log log;

    memcpy(&log, p->state + p->state_bytes - sizeof log, sizeof log);
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
    struct kern *kern = p->t->kern;
    size_t n = p->play.n;
    double reward = 0;

    acting_step(&p->play, p->greedy);
    TRY(kern_download(kern, p->host_rewards, p->play.rewards, n * sizeof *p->host_rewards, err));
    TRY(kern_env_save(kern, p->play.games, p->state, err));
    acting_post(&p->play);
    for (size_t i = 0; i < n; i++)
        reward += (double)p->host_rewards[i] / (double)n;
    player_count(p, reward, ret_frame);
    return ST_OK;
}
