/* act.cu - acting: draws actions from the policy's output, and what follows a step of the games.
 * A draw is a pure function of (*rng, agent, head), the same stream as on the CPU: for equal logits the actions are
 * equal but where rounding decides between two choices. */
#include "kernels/bins.h"
#include "kernels/cuda/nets/softmax.h"

#define SAMPLE_BLOCK 64
#define POST_BLOCK 256

static __device__ __forceinline__ int head_argmax(const float *logits, const uint8_t *mask, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (head_allows(mask, i) && (best < 0 || logits[i] > logits[best]))
            best = i;
    return best;
}

/* The first allowed choice at which the cumulative probability passes u in [0, 1); the last one if rounding leaves
 * none. */
static __device__ __forceinline__ int head_draw(const float *logits, const uint8_t *mask, int n, float log_sum, float u)
{
    float sum = 0.0f;
    int last = 0;
    for (int i = 0; i < n; i++) {
        if (!head_allows(mask, i))
            continue;
        sum += expf(logits[i] - log_sum);
        last = i;
        if (sum > u)
            break;
    }
    return last;
}

/* A standard normal number by Box and Muller's method, of the same draw as on the CPU. */
static __device__ __forceinline__ float normal_draw(struct rng *rng)
{
    uint64_t bits = rng_u64(rng);
    float radius = sqrtf(-2.0f * logf((float)((uint32_t)(bits >> 40) + 1) * (1.0f / 16777216.0f)));
    return radius * cospif((float)((double)(uint32_t)bits * (1.0 / 2147483648.0)));
}

static __global__ void __launch_bounds__(SAMPLE_BLOCK)
    sample_k(int32_t *actions /* (N, n_heads) */, float *reals /* (N, n_heads) or NULL */, float *logp /* (N) */,
             float *value /* (N) */, const float *out /* (N, O) */, const uint8_t *mask /* (N, A) or NULL */,
             struct kern_heads heads, struct rng *rng, unsigned *ticket, bool greedy, bool partial, size_t N,
             size_t first /* its first agent's number */)
{
    size_t A = (size_t)heads.n_logits, i = (size_t)blockIdx.x * SAMPLE_BLOCK + threadIdx.x;
    struct rng parent = *rng;
    unsigned drawn = 0;
    __shared__ float centres[KERN_MAX_BINS];

    for (int b = (int)threadIdx.x; b < heads.n_bins; b += SAMPLE_BLOCK)
        centres[b] = bins_centre(&heads, b);
    /* A ticket: this block has read the counter. No block waits for it until the end. */
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        drawn = atomicInc(ticket, gridDim.x - 1);
    }
    if (i >= N)
        return;
    const float *logits = out + i * kern_heads_out(&heads);
    const uint8_t *own_mask = mask == NULL ? NULL : mask + i * A;
    struct rng own = rng_split(parent, first + i);
    float sum = 0.0f, v = heads.n_bins > 0 ? bins_value(&heads, centres, logits + A) : logits[A];
    int at = 0, at_std = heads.n_logits - heads.n_reals;

    own.counter = parent.counter;
    for (int j = 0; j < heads.n_heads; j++) {
        int n = heads.sizes[j];
        size_t place = i * (size_t)heads.n_heads + (size_t)j;
        if (n == 0) {
            float mean = logits[at++], raw = logits[at_std++];
            float u = greedy ? mean : mean + expf(gauss_log_std(raw)) * normal_draw(&own);
            actions[place] = gauss_to_word(u);
            if (reals != NULL)
                reals[place] = gauss_action(&heads, j, u);
            sum += gauss_logp(u, mean, raw, heads.squash);
            continue;
        }
        const uint8_t *allowed = head_mask(own_mask, at, n);
        float log_sum = head_log_sum(logits + at, allowed, n);
        int a =
            greedy ? head_argmax(logits + at, allowed, n) : head_draw(logits + at, allowed, n, log_sum, rng_f32(&own));
        actions[place] = a;
        sum += logits[at + a] - log_sum;
        at += n;
    }
    logp[i] = sum;
    value[i] = v;
    if (threadIdx.x == 0 && drawn == gridDim.x - 1 && !partial)
        rng->counter = parent.counter + (uint64_t)heads.n_heads;
}

void cuda_sample(struct kern *k, const struct kern_sample *s)
{
    struct cuda *cuda = cuda_of(k);

    sample_k<<<cuda_ceil_div(s->N, SAMPLE_BLOCK), SAMPLE_BLOCK, 0, cuda->stream>>>(
        s->actions, s->reals, s->logp, s->value, s->out, s->mask, *s->heads, s->rng, cuda->tickets, s->greedy,
        s->partial, s->N, s->first);
    cuda_launched(k, "sample");
}

static __global__ void __launch_bounds__(POST_BLOCK)
    step_post_k(float *rewards /* (N) */, uint8_t *reset /* (N) */, const uint8_t *terms /* (N) */,
                const uint8_t *truncs /* (N) */, const struct kern_hyper *hyper, size_t N)
{
    size_t i = (size_t)blockIdx.x * POST_BLOCK + threadIdx.x;
    float clip = hyper->reward_clip;

    if (i >= N)
        return;
    reset[i] = terms[i] | truncs[i];
    if (clip > 0.0f) {
        float r = rewards[i];
        r = r > clip ? clip : r;
        rewards[i] = r < -clip ? -clip : r;
    }
}

void cuda_step_post(struct kern *k, const struct kern_step_post *p)
{
    step_post_k<<<cuda_ceil_div(p->N, POST_BLOCK), POST_BLOCK, 0, cuda_of(k)->stream>>>(p->rewards, p->reset, p->terms,
                                                                                        p->truncs, p->hyper, p->N);
    cuda_launched(k, "step_post");
}
