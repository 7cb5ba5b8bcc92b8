/* player.c - one game played by a checkpoint's policy, a decision at a time, to be watched.
 * It is a trainer of the least size (no rollout worth the name, no minibatch) that gets the weights alone.
 * Invariant: same checkpoint, seed and choice of greedy, same game. */
#include "trainer/acting.h"

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
    small.devices = 1;
    small.total_agents = shape.n_agents;
    small.horizon = 1;
    small.minibatch_size = 1;
    small.replay_ratio = 0;
    small.prio_alpha = 0;
    THEN(rc, trainer_create(&p->t, kern, def, env_settings, policy, &small, err));
    THEN(rc, trainer_load_weights(p->t, checkpoint, err));
    THEN(rc, player_begin(p, seed, err));
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
        struct env_log ended = {.episodes = n, .perf = log.perf - p->before.perf};
        log_bound_perf(p->t, &ended);
        ret->score = (log.score - p->before.score) / n;
        ret->perf = ended.perf / n;
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
    TRY(kern_sync(kern, err)); /* which reports a game that failed */
    acting_post(&p->play);
    for (size_t i = 0; i < n; i++)
        reward += (double)p->host_rewards[i] / (double)n;
    player_count(p, reward, ret_frame);
    return ST_OK;
}

struct trainer *player_trainer(struct player *p)
{
    return p->t;
}

/* ,"name":[x, ..] of n numbers on the device. */
static enum status trace_floats(struct player *p, struct strbuf *out, const char *name, const float *device, size_t n,
                                struct error *err)
{
    MEM_LOCAL float *host = mem_array(n, sizeof *host);
    enum status rc = kern_download(p->t->kern, host, device, n * sizeof *host, err);
    char number[NUM_TEXT_MAX];

    strbuf_addf(out, "\"%s\":[", name);
    for (size_t i = 0; rc == ST_OK && i < n; i++)
        strbuf_addf(out, "%s%s", i > 0 ? "," : "", num_format_f64((double)host[i], number));
    strbuf_add(out, "],");
    return rc;
}

/* numbers (D): back to what they were before they were normalised. */
static enum status undo_scale(struct player *p, float *numbers, struct error *err)
{
    const struct trainer *t = p->t;
    size_t n = t->norm_of.n_numbers, first = t->policy.frame_size - n;
    MEM_LOCAL float *scale = mem_array(2 * n, sizeof *scale);
    enum status rc = kern_download(t->kern, scale, t->norm_of.obs_scale, 2 * n * sizeof *scale, err);

    for (size_t i = 0; rc == ST_OK && i < n * t->policy.n_frames; i++) {
        const float *of = scale + 2 * (i % n);
        float *number = &numbers[frames_place(t, first + i % n, i / n)];
        *number = *number / of[1] + of[0];
    }
    return rc;
}

/* The observation of the first agent, of bytes as numbers of their size. */
static enum status trace_obs(struct player *p, struct strbuf *out, struct error *err)
{
    const struct policy *policy = &p->t->policy;
    struct env_shape stack = {.u8 = policy->byte_scale > 0.0f,
                              .obs_size = (int)policy->obs_size,
                              .n_floats = (int)(policy->n_floats * policy->n_frames)};
    size_t n = policy->obs_size;
    char number[NUM_TEXT_MAX];

    MEM_LOCAL char *row = mem_alloc(policy->row_bytes);
    MEM_LOCAL float *numbers = mem_array(n, sizeof *numbers);
    enum status rc = kern_download(p->t->kern, row, p->play.obs, policy->row_bytes, err);
    env_numbers(&stack, row, 1.0f, numbers);
    if (rc == ST_OK && policy->set.norm_obs && policy->n_frames > 1) /* of frames that are past */
        rc = undo_scale(p, numbers, err);
    strbuf_add(out, "\"obs\":[");
    for (size_t i = 0; rc == ST_OK && i < n; i++)
        strbuf_addf(out, "%s%s", i > 0 ? "," : "", num_format_f64((double)numbers[i], number));
    strbuf_add(out, "],");
    return rc;
}

enum status player_trace(struct player *p, struct strbuf *out, struct error *err)
{
    const struct acting *play = &p->play;
    const struct policy *policy = &p->t->policy;
    size_t A = policy->n_logits;
    struct player_frame frame;
    uint8_t begins, *mask;

    TRY(kern_download(p->t->kern, &begins, play->reset, 1, err));
    strbuf_addf(out, "{\"begins\":%s,", begins || p->steps == 0 ? "true" : "false");
    bool again = policy->set.norm_obs && policy->n_frames == 1;
    if (again) /* as the game gives it, and then as the policy gets it again */
        p->t->ops->env_observe(p->t->kern, play->games, play->obs, play->mask);
    TRY(trace_obs(p, out, err));
    if (again)
        normalise_apply(p->t, play->obs, play->n);
    if (play->mask != NULL) {
        mask = mem_array(A, 1);
        enum status rc = kern_download(p->t->kern, mask, play->mask, A, err);
        strbuf_add(out, "\"mask\":[");
        for (size_t i = 0; rc == ST_OK && i < A; i++)
            strbuf_addf(out, "%s%d", i > 0 ? "," : "", mask[i] != 0);
        strbuf_add(out, "],");
        mem_free(mask);
        TRY(rc);
    }
    TRY(player_step(p, &frame, err));
    TRY(trace_floats(p, out, "columns", play->step.out, A, err));
    for (size_t l = 0; policy->recurrent && l < policy->n_layers; l++) {
        char name[32];
        snprintf(name, sizeof name, "state_%zu", l);
        TRY(trace_floats(p, out, name, play->h + l * play->n * policy->state_size, policy->state_size, err));
    }
    TRY(trace_floats(p, out, "value", play->value, 1, err));
    out->text[--out->len] = '\0'; /* the last comma */
    strbuf_add(out, "}\n");
    return strbuf_status(out, "a decision", err);
}
