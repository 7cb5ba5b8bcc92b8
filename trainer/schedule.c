/* schedule.c - what changes during training: learning rate, priority exponent, updates per rollout.
 * Everything is a function of env steps, so that a resumed run continues the same curves. */
#include "trainer/trainer_priv.h"

/* How far the run is into its last `share`: 0 before it, 1 at the run's end. */
static double decay_progress(double progress, double share)
{
    return share > 0.0 ? fmax(0.0, 1.0 - (1.0 - progress) / share) : 0.0;
}

void schedule_hyper(const struct train_settings *set, int64_t env_steps, struct kern_hyper *ret_hyper)
{
    double progress = fmin(1.0, (double)env_steps / (double)set->total_timesteps);
    double decay = set->anneal_lr ? decay_progress(progress, set->decay_share) : progress;
    double lr_min = set->learning_rate * set->min_lr_ratio;
    double lr = set->learning_rate;

    if (set->decay_steps > 0.0) {
        lr *= pow(1.0 + (double)env_steps / set->decay_steps, -2.0);
        decay = 0.0; /* what else anneals needs an end: it is held */
    } else if (set->anneal_lr)
        lr = lr_min + 0.5 * (set->learning_rate - lr_min) * (1.0 + cos(M_PI * decay));
    *ret_hyper = (struct kern_hyper){
        .lr = (float)lr,
        .gamma = (float)set->gamma,
        .gae_lambda = (float)set->gae_lambda,
        .rho_clip = (float)set->rho_clip,
        .c_clip = (float)set->c_clip,
        .clip_coef = (float)set->clip_coef,
        .vf_clip_coef = (float)set->vf_clip_coef,
        .vf_coef = (float)set->vf_coef,
        .ent_coef = (float)set->ent_coef,
        .max_grad_norm = (float)set->max_grad_norm,
        .beta1 = (float)set->beta1,
        .beta2 = (float)set->beta2,
        .eps = (float)set->eps,
        .weight_decay = (float)set->weight_decay,
        .reward_clip = (float)set->reward_clip,
        .prio_alpha = (float)set->prio_alpha,
        .prio_beta = (float)(set->prio_beta0 + (1.0 - set->prio_beta0) * set->prio_alpha * decay),
        .target_kl = (float)set->target_kl,
        .e3b_coef = (float)set->e3b_coef,
        .norm_adv = set->norm_adv,
    };
}

bool train_holds_shorter(const struct train_settings *set)
{
    bool lr = set->decay_steps > 0.0 || !set->anneal_lr || set->decay_share == 0.0;
    bool prio = set->prio_alpha == 0.0 || set->decay_steps > 0.0 || (set->anneal_lr && set->decay_share == 0.0);

    return lr && prio && set->max_seconds == 0.0;
}

double schedule_mean_minibatches(const struct train_settings *set, size_t horizon)
{
    double want = set->replay_ratio * (double)set->total_agents * (double)horizon / (double)set->minibatch_size;

    return set->replay_rounding == TRAIN_ROUNDING_FLOOR ? floor(want) : want;
}

/* Rounded to nearest; what rounding took or gave is carried to the next rollout, so the ratio holds on average. A
 * minibatch of a shorter rollout has fewer samples, and there are fewer minibatches: as many env steps to each as
 * before. */
int64_t schedule_minibatches(const struct train_settings *set, size_t horizon, double *carry)
{
    double want = schedule_mean_minibatches(set, horizon);
    double whole = floor(want + *carry + 0.5);

    *carry += want - whole;
    return (int64_t)whole;
}

size_t schedule_horizon(const struct train_settings *set, int64_t env_steps)
{
    int64_t left = env_steps < set->total_timesteps ? (set->total_timesteps - env_steps) / set->total_agents : 0;

    return (size_t)(left < set->horizon ? left : set->horizon);
}
