/* cpu_advantage.c - advantages and returns of a rollout, and which segments a minibatch takes.
 *   delta_t = rho_t (r_t + gamma V'_{t+1} (1 - term_t) - V_t)      V' = boot where truncated, else values[t + 1]
 *   A_t = delta_t + gamma lambda c_t (1 - done_t) A_{t+1},  R_t = A_t + V_t
 * Sums over segments run in f64 in index order by one thread: there are only thousands of them. */
#include "base/base.h"
#include "kernels/cpu/cpu_priv.h"

#include "kernels/cpu/vec_math.h"

#define AGENT_GRAIN 16
#define BUCKET_SHIFT 19 /* a bucket for each of the first 13 bits of a key: 32 kB on the stack */
#define N_BUCKETS ((size_t)1 << (32 - BUCKET_SHIFT))

static void advantage_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct kern_advantage *a = (const struct kern_advantage *)ctx;
    const float gamma = a->hyper->gamma, decay = a->hyper->gamma * a->hyper->gae_lambda;
    const float rho_clip = a->log_ratio == NULL ? 1.0f : a->hyper->rho_clip;
    const float c_clip = a->log_ratio == NULL ? 1.0f : a->hyper->c_clip;

    (void)worker;
    for (size_t t = a->T; t-- > 0;) {
        bool is_last = t + 1 == a->T;
        size_t row = t * a->N, later = is_last ? row : row + a->N;
        for (size_t i = from; i < to; i++) {
            float ratio = a->log_ratio == NULL ? 1.0f : vec_exp(a->log_ratio[row + i]);
            float rho = ratio > rho_clip ? rho_clip : ratio;
            float c = ratio > c_clip ? c_clip : ratio;
            float v = a->values[row + i];
            float next = a->truncs[row + i] != 0 ? a->boot[row + i] : a->values[row + a->N + i];
            float carry = is_last ? 0.0f : a->adv[later + i];
            next = a->terms[row + i] != 0 ? 0.0f : next;
            carry = (a->terms[row + i] | a->truncs[row + i]) != 0 ? 0.0f : carry;
            float adv = rho * (a->rewards[row + i] + gamma * next - v) + decay * c * carry;
            a->adv[row + i] = adv;
            a->ret[row + i] = adv + v;
        }
    }
}

void cpu_advantage(struct kern *k, const struct kern_advantage *a)
{
    cpu_run(k, a->N, AGENT_GRAIN, advantage_part, a);
}

void cpu_mean_std(struct kern *k, float *mean_std, const float *x, size_t n)
{
    double sum = 0.0, sq = 0.0, mean;

    (void)k;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i];
    mean = sum / (double)n;
#pragma omp simd reduction(+ : sq)
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - mean;
        sq += d * d;
    }
    mean_std[0] = (float)mean;
    mean_std[1] = (float)sqrt(sq / (double)n);
}

void cpu_mean_std_join(struct kern *k, float *mean_std, const float *parts, size_t n_parts)
{
    double mean = 0.0, var = 0.0;

    (void)k;
    for (size_t i = 0; i < n_parts; i++)
        mean += (double)parts[2 * i] / (double)n_parts;
    for (size_t i = 0; i < n_parts; i++) {
        double apart = (double)parts[2 * i] - mean, deviation = (double)parts[2 * i + 1];
        var += (deviation * deviation + apart * apart) / (double)n_parts;
    }
    mean_std[0] = (float)mean;
    mean_std[1] = (float)sqrt(var);
}

/* The order of entries i by (key, i), where key i is draw i of the stream: a definition that a GPU follows without
 * going one by one. Entries go to buckets by their first bits, of which a bucket holds one or two of the usual
 * thousands, and are sorted there; keys are drawn again where they are looked at. */
static uint32_t shuffle_key(const struct rng *rng, size_t i)
{
    struct rng at = {.key = rng->key, .counter = rng->counter + i};
    return rng_u32(&at);
}

static void bucket_sort(int32_t *entries, size_t n, const struct rng *rng)
{
    for (size_t i = 1; i < n; i++) {
        int32_t entry = entries[i];
        uint32_t key = shuffle_key(rng, (size_t)entry);
        size_t j = i;
        for (; j > 0 && shuffle_key(rng, (size_t)entries[j - 1]) > key; j--) /* equal keys: already in order */
            entries[j] = entries[j - 1];
        entries[j] = entry;
    }
}

void cpu_segments_shuffle(struct kern *k, int32_t *perm, const struct rng *rng, size_t N)
{
    uint32_t ends[N_BUCKETS + 1] = {0};
    size_t from = 0;

    (void)k;
    for (size_t i = 0; i < N; i++)
        ends[(shuffle_key(rng, i) >> BUCKET_SHIFT) + 1]++;
    for (size_t b = 0; b < N_BUCKETS; b++)
        ends[b + 1] += ends[b];
    for (size_t i = 0; i < N; i++) /* ends[b] runs from where bucket b begins to where it ends */
        perm[ends[shuffle_key(rng, i) >> BUCKET_SHIFT]++] = (int32_t)i;
    for (size_t b = 0; b < N_BUCKETS; b++) {
        bucket_sort(perm + from, ends[b] - from, rng);
        from = ends[b];
    }
}

void cpu_segments_priority(struct kern *k, const struct kern_segments *s)
{
    float *prob = s->prob;
    double total = 0.0;

    (void)k;
    memset(prob, 0, s->N * sizeof *prob);
    for (size_t t = 0; t < s->T; t++)
#pragma omp simd
        for (size_t i = 0; i < s->N; i++)
            prob[i] += fabsf(s->adv[t * s->N + i]);
    for (size_t i = 0; i < s->N; i++) {
        prob[i] = powf(prob[i], s->hyper->prio_alpha);
        total += (double)prob[i];
    }
    for (size_t i = 0; i < s->N; i++)
        prob[i] = (float)(((double)prob[i] + 1e-6) / (total + 1e-6));
}

void cpu_segments_pick(struct kern *k, const struct kern_segments *s)
{
    const float *prob = s->prob;
    double u = rng_f64(s->rng), total = 0.0, step, passed;
    size_t i = 0;

    (void)k;
    for (size_t j = 0; j < s->N; j++)
        total += (double)prob[j];
    step = total / (double)s->B;
    passed = (double)prob[0];
    for (size_t j = 0; j < s->B; j++) {
        double at = ((double)j + u) * step;
        while (passed <= at && i + 1 < s->N)
            passed += (double)prob[++i];
        s->idx[j] = (int32_t)i;
        s->weight[j] = powf((float)s->N * prob[i], -s->hyper->prio_beta);
    }
}

void cpu_rng_advance(struct kern *k, struct rng *rng, uint64_t n)
{
    (void)k;
    rng->counter += n;
}
