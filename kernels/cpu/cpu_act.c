/* cpu_act.c - acting: draws actions from the policy's output, and what follows a step of the games.
 * A draw is a pure function of (*rng, agent, head), so neither threads nor batch layout change it. */
#include "base/base.h"
#include "kernels/cpu/cpu_priv.h"

#include "envs/env_math.h"
#include "kernels/cpu/cpu_heads.h"

#define AGENT_GRAIN 16

static int head_argmax(const float *logits, const uint8_t *mask, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (head_allows(mask, i) && (best < 0 || logits[i] > logits[best]))
            best = i;
    return best;
}

/* The first allowed choice at which the cumulative probability passes u in [0, 1); the last one if rounding leaves
 * none. */
static int head_draw(const float *logits, const uint8_t *mask, int n, float log_sum, float u)
{
    float sum = 0.0f;
    int last = 0;
    for (int i = 0; i < n; i++) {
        if (!head_allows(mask, i))
            continue;
        sum += vec_exp(logits[i] - log_sum);
        last = i;
        if (sum > u)
            break;
    }
    return last;
}

/* A standard normal number by Box and Muller's method, of one draw: |x| <= 5.8. */
static float normal_draw(struct rng *rng)
{
    uint64_t bits = rng_u64(rng);
    float radius = sqrtf(-2.0f * vec_log((float)((uint32_t)(bits >> 40) + 1) * (1.0f / 16777216.0f)));
    double sine, cosine;

    env_sincos_any((double)(uint32_t)bits * (2.0 * ENV_PI / 4294967296.0), &sine, &cosine);
    return radius * (float)cosine;
}

/* The number of head j from its mean and log-deviation; returns its log-probability. */
static float real_draw(const struct kern_sample *s, size_t i, int j, float mean, float raw, struct rng *rng)
{
    size_t at = i * (size_t)s->heads->n_heads + (size_t)j;
    float u = s->greedy ? mean : mean + vec_exp(gauss_log_std(raw)) * normal_draw(rng);

    s->actions[at] = gauss_to_word(u);
    if (s->reals != NULL)
        s->reals[at] = gauss_action(s->heads, j, u);
    return gauss_logp(u, mean, raw, s->heads->squash);
}

static void sample_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct kern_sample *s = (const struct kern_sample *)ctx;
    const struct kern_heads *heads = s->heads;
    size_t A = (size_t)heads->n_logits, O = kern_heads_out(heads);
    float centres[KERN_MAX_BINS];

    (void)worker;
    for (int b = 0; b < heads->n_bins; b++)
        centres[b] = bins_centre(heads, b);
    for (size_t i = from; i < to; i++) {
        const float *logits = s->out + i * O;
        const uint8_t *mask = s->mask == NULL ? NULL : s->mask + i * A;
        struct rng rng = rng_split(*s->rng, s->first + i);
        float logp = 0.0f;
        int at = 0, at_std = heads->n_logits - heads->n_reals;

        rng.counter = s->rng->counter;
        for (int j = 0; j < heads->n_heads; j++) {
            int n = heads->sizes[j];
            if (n == 0) {
                logp += real_draw(s, i, j, logits[at++], logits[at_std++], &rng);
                continue;
            }
            const uint8_t *allowed = head_mask(mask, at, n);
            float log_sum = head_log_sum(logits + at, allowed, n);
            int a = s->greedy ? head_argmax(logits + at, allowed, n)
                              : head_draw(logits + at, allowed, n, log_sum, rng_f32(&rng));
            s->actions[i * (size_t)heads->n_heads + (size_t)j] = a;
            logp += logits[at + a] - log_sum;
            at += n;
        }
        s->logp[i] = logp;
        s->value[i] = heads->n_bins > 0 ? bins_value(heads, centres, logits + A) : logits[A];
    }
}

void cpu_sample(struct kern *k, const struct kern_sample *s)
{
    cpu_run(k, s->N, AGENT_GRAIN, sample_part, s);
    s->rng->counter += s->partial ? 0 : (uint64_t)s->heads->n_heads;
}

void cpu_step_post(struct kern *k, const struct kern_step_post *p)
{
    float clip = p->hyper->reward_clip;

    (void)k; /* a few kilobytes: not worth waking the helpers */
    for (size_t i = 0; i < p->N; i++)
        p->reset[i] = p->terms[i] | p->truncs[i];
    if (!(clip > 0.0f))
        return;
    for (size_t i = 0; i < p->N; i++) {
        float r = p->rewards[i];
        r = r > clip ? clip : r;
        p->rewards[i] = r < -clip ? -clip : r;
    }
}
