/* cpu_loss.c - the PPO loss and its gradient with respect to the policy's output, in one pass over the tokens.
 *   policy: max(-A r, -A clip(r, 1 +- eps)), r = exp(logp - old_logp), A = weight (adv - mean) / (std + 1e-8)
 *   value: 1/2 max((v - R)^2, (v_old + clip(v - v_old, +- eps_v) - R)^2), with bins their cross entropy (bins.h)
 *   entropy: summed over heads
 * Each is a mean over the tokens of the minibatch, which may come in several calls. Where both sides of a max are equal
 * the first one's gradient is taken.
 * A minibatch whose loss is not finite gets NaN in dout[0], so that its gradient norm is NaN and no step is made. */
#include "base/base.h"
#include "kernels/cpu/cpu_priv.h"

#include "kernels/cpu/cpu_heads.h"

#define TOKEN_GRAIN 64

enum partial { P_POLICY, P_VALUE, P_ENTROPY, P_KL, P_CLIPPED, P_RET, P_RET_SQ, P_ERR, P_ERR_SQ, P_COUNT };
_Static_assert((int)P_COUNT <= CPU_PARTIALS, "one worker's sums fit");

struct loss {
    struct cpu *cpu;
    const struct kern_loss *of;
    float adv_shift, adv_scale; /* A = (adv - shift) * scale */
    float inv_m; /* 1 / tokens of the minibatch */
};

/* Log-probability of the token's actions under logits; log_sum (n_heads) receives each head's. */
static inline float token_logp(const struct kern_heads *heads, const float *logits, const uint8_t *mask,
                               const int32_t *actions, float log_sum[ENV_MAX_HEADS])
{
    float logp = 0.0f;
    int at = 0, at_std = heads->n_logits - heads->n_reals;
    for (int j = 0; j < heads->n_heads; j++) {
        int n = heads->sizes[j];
        if (n == 0) {
            logp += gauss_logp(gauss_of_word(actions[j]), logits[at++], logits[at_std++], heads->squash);
            continue;
        }
        log_sum[j] = head_log_sum(logits + at, head_mask(mask, at, n), n);
        logp += logits[at + actions[j]] - log_sum[j];
        at += n;
    }
    return logp;
}

static void keep_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct kern_loss *l = (const struct kern_loss *)ctx;
    size_t A = (size_t)l->heads->n_logits, O = kern_heads_out(l->heads), n_heads = (size_t)l->heads->n_heads;
    float log_sum[ENV_MAX_HEADS];

    (void)worker;
    for (size_t i = from; i < to; i++) {
        ptrdiff_t b = (ptrdiff_t)(i % l->B);
        if ((b > 0 || l->has_before) && l->idx[b] == l->idx[b - 1])
            continue;
        l->log_ratio[i / l->B * l->N + (size_t)l->idx[b]] =
            token_logp(l->heads, l->out + i * O, l->mask == NULL ? NULL : l->mask + i * A, l->actions + i * n_heads,
                       log_sum) -
            l->old_logp[i];
    }
}

void cpu_segments_keep(struct kern *k, const struct kern_loss *l)
{
    cpu_run(k, l->T * l->B, TOKEN_GRAIN, keep_part, l);
}

/* dlogits (n) of one head from g = dloss/dlogp and the entropy bonus; returns the head's entropy. */
static inline float head_gradient(float *dlogits, const float *logits, const uint8_t *mask, int n, int action,
                                  float log_sum, float g, float ent_scale)
{
    float entropy = 0.0f;
    for (int i = 0; i < n; i++) {
        float logp = logits[i] - log_sum;
        float p = head_allows(mask, i) ? vec_exp(logp) : 0.0f;
        dlogits[i] = p;
        entropy -= p > 0.0f ? p * logp : 0.0f;
    }
    for (int i = 0; i < n; i++) {
        float p = dlogits[i];
        float plogp = p > 0.0f ? p * (logits[i] - log_sum) : 0.0f;
        dlogits[i] = g * ((i == action ? 1.0f : 0.0f) - p) + ent_scale * (plogp + p * entropy);
    }
    return entropy;
}

/* dout of all heads of a token; returns their entropy. */
static inline float heads_gradient(float *dout, const struct kern_heads *heads, const float *logits,
                                   const uint8_t *mask, const int32_t *actions, const float log_sum[ENV_MAX_HEADS],
                                   float g, float ent_scale)
{
    float entropy = 0.0f;
    int at = 0, at_std = heads->n_logits - heads->n_reals;
    for (int j = 0; j < heads->n_heads; j++) {
        int n = heads->sizes[j];
        if (n == 0) {
            entropy += gauss_gradient(dout + at, dout + at_std, gauss_of_word(actions[j]), logits[at], logits[at_std],
                                      heads->squash, g, ent_scale);
            at++, at_std++;
            continue;
        }
        entropy +=
            head_gradient(dout + at, logits + at, head_mask(mask, at, n), n, actions[j], log_sum[j], g, ent_scale);
        at += n;
    }
    return entropy;
}

/* 1/2 max(...) of the value loss; *ret_slope is its derivative with respect to v. */
static inline float value_loss(float v, float old, float target, float clip, float *ret_slope)
{
    float err = v - target, shift = v - old, clipped;

    *ret_slope = err;
    if (!(clip > 0.0f))
        return 0.5f * err * err;
    clipped = shift > clip ? clip : shift < -clip ? -clip : shift;
    clipped = old + clipped - target;
    if (clipped * clipped > err * err) {
        *ret_slope = shift > clip || shift < -clip ? 0.0f : err;
        return 0.5f * clipped * clipped;
    }
    return 0.5f * err * err;
}

static void loss_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct loss *job = (const struct loss *)ctx;
    const struct kern_loss *l = job->of;
    const struct kern_heads *heads = l->heads;
    const float clip_coef = l->hyper->clip_coef, vf_clip_coef = l->hyper->vf_clip_coef, vf_coef = l->hyper->vf_coef;
    const float ent_coef = l->hyper->ent_coef, inv_m = job->inv_m;
    size_t A = (size_t)heads->n_logits, O = kern_heads_out(heads), n_heads = (size_t)heads->n_heads;
    float centres[KERN_MAX_BINS];
    double sums[P_COUNT] = {0};
    double *partials = job->cpu->partials + worker * CPU_PARTIALS;
    float low = 1.0f - clip_coef, high = 1.0f + clip_coef;
    float log_sum[ENV_MAX_HEADS];

    for (int b = 0; b < heads->n_bins; b++)
        centres[b] = bins_centre(heads, b);
    for (size_t i = from; i < to; i++) {
        const float *logits = l->out + i * O;
        const uint8_t *mask = l->mask == NULL ? NULL : l->mask + i * A;
        const int32_t *actions = l->actions + i * n_heads;
        float *dout = l->dout + i * O;
        float log_ratio = token_logp(heads, logits, mask, actions, log_sum) - l->old_logp[i];
        float ratio = vec_exp(log_ratio);
        float adv = (l->adv[i] - job->adv_shift) * job->adv_scale * (l->weight == NULL ? 1.0f : l->weight[i % l->B]);
        float plain = -adv * ratio;
        float clipped = -adv * (ratio < low ? low : ratio > high ? high : ratio);
        float g = clipped > plain ? 0.0f : plain * inv_m; /* d(-A r)/dlogp = -A r */
        float v = logits[A], slope, err;
        float entropy = heads_gradient(dout, heads, logits, mask, actions, log_sum, g, ent_coef * inv_m);

        sums[P_POLICY] += (double)(clipped > plain ? clipped : plain);
        if (heads->n_bins > 0) {
            sums[P_VALUE] += (double)bins_loss(dout + A, heads, centres, logits + A, l->ret[i], vf_coef * inv_m, &v);
        } else {
            sums[P_VALUE] += (double)value_loss(v, l->old_value[i], l->ret[i], vf_clip_coef, &slope);
            dout[A] = vf_coef * slope * inv_m;
        }
        err = l->ret[i] - v;
        sums[P_ENTROPY] += (double)entropy;
        sums[P_KL] += (double)(ratio - 1.0f - log_ratio);
        sums[P_CLIPPED] += ratio < low || ratio > high ? 1.0 : 0.0;
        sums[P_RET] += (double)l->ret[i];
        sums[P_RET_SQ] += (double)l->ret[i] * (double)l->ret[i];
        sums[P_ERR] += (double)err;
        sums[P_ERR_SQ] += (double)err * (double)err;
    }
    for (int p = 0; p < P_COUNT; p++)
        partials[p] = sums[p];
}

void cpu_ppo_loss(struct kern *k, const struct kern_loss *l)
{
    size_t M = l->T * l->B;
    double n_all = (double)l->T * (double)l->B_all;
    bool norm = l->hyper->norm_adv != 0;
    struct loss job = {.cpu = cpu_of(k),
                       .of = l,
                       .adv_shift = norm ? l->mean_std[0] : 0.0f,
                       .adv_scale = norm ? 1.0f / (l->mean_std[1] + 1e-8f) : 1.0f,
                       .inv_m = (float)(1.0 / n_all)};
    struct kern_stats *part = l->part;

    cpu_run(k, M, TOKEN_GRAIN, loss_part, &job);
    double policy = cpu_partial_sum(k, P_POLICY);
    double value = cpu_partial_sum(k, P_VALUE);
    double entropy = cpu_partial_sum(k, P_ENTROPY);
    double kl = cpu_partial_sum(k, P_KL);
    part->n_tokens += (double)M;
    part->policy_loss += policy;
    part->value_loss += value;
    part->entropy += entropy;
    part->approx_kl += kl;
    part->clip_fraction += cpu_partial_sum(k, P_CLIPPED);
    part->ret_sum += cpu_partial_sum(k, P_RET);
    part->ret_sq += cpu_partial_sum(k, P_RET_SQ);
    part->err_sum += cpu_partial_sum(k, P_ERR);
    part->err_sq += cpu_partial_sum(k, P_ERR_SQ);
    part->last_kl += kl / n_all;
    if (!isfinite((float)(policy / (double)M)) || !isfinite((float)(value / (double)M)) || !isfinite(entropy))
        l->dout[0] = NAN;
}

void cpu_minibatch_stats(struct kern *k, struct kern_stats *stats, struct kern_stats *parts, size_t n_parts,
                         const struct kern_hyper *hyper)
{
    (void)k;
    if (stats->stop) {
        memset(parts, 0, n_parts * sizeof *parts);
        return;
    }
    stats->n_minibatches += 1.0;
    stats->last_kl = 0.0;
    for (size_t i = 0; i < n_parts; i++) {
        const struct kern_stats *p = &parts[i];
        stats->n_tokens += p->n_tokens;
        stats->policy_loss += p->policy_loss;
        stats->value_loss += p->value_loss;
        stats->entropy += p->entropy;
        stats->approx_kl += p->approx_kl;
        stats->clip_fraction += p->clip_fraction;
        stats->ret_sum += p->ret_sum;
        stats->ret_sq += p->ret_sq;
        stats->err_sum += p->err_sum;
        stats->err_sq += p->err_sq;
        stats->last_kl += p->last_kl;
        parts[i] = (struct kern_stats){0};
    }
    if (hyper->target_kl > 0.0f && stats->last_kl > (double)hyper->target_kl)
        stats->stop = 1;
}
