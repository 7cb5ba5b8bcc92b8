/* solo.cu - a training that one block of the device makes alone, whole iterations in one launch: rollout, advantages,
 * minibatches, optimiser. Small nets leave most of a GPU idle and wait for launches; as many of these trainings as
 * there are multiprocessors run side by side, and none of them waits for another (decision 0022).
 * Invariants: (1) a block touches nothing but its own training, so its bytes do not depend on others; (2) every sum has
 * an order that follows from the shape; how iterations are shared out among launches changes no byte; (3) games are
 * compiled without contraction (-fmad=false), as everywhere. */
#include "kernels/cuda/solo/solo_learn.cuh"
#include "kernels/cuda/solo/solo_play.cuh"

#include <string.h>

#define SOLO_SHARED_OTHER 9216 /* bytes of the kernel beside its dynamic shared memory */
#define SOLO_AGENTS SOLO_PARTIALS /* at most: their keys are shuffled in s.partial */

/* The report of a turn to the host. */
[[maybe_unused]] __device__ static inline void solo_report(const struct solo_args &a, int turn, uint64_t begun_ns)
{
    uint64_t *ns = (uint64_t *)(a.reports + (size_t)KERN_SOLO_MAX * a.report_bytes);

    __syncthreads();
    for (uint32_t i = threadIdx.x; i < a.report_bytes; i += SOLO_BLOCK)
        a.reports[(size_t)turn * a.report_bytes + i] = a.report[i];
    if (threadIdx.x == 0)
        ns[turn] = ptx_clock_ns() - begun_ns;
}

static __global__ void __launch_bounds__(SOLO_BLOCK, 1) solo_k(const __grid_constant__ struct solo_args a)
{
#if __CUDA_ARCH__ >= 900 /* elsewhere nothing: see cuda_solo_bf16 */
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ struct solo_state state;
    const struct solo s = solo_place(a, shared);

    solo_load_weights(a, s);
    for (int i = 0; i < a.n_turns; i++) {
        const uint64_t begun_ns = ptx_clock_ns();
        solo_play(a, s, a.turns[i]);
        solo_learn(a, s, state, a.turns[i], shared);
        solo_report(a, i, begun_ns);
    }
    for (int i = threadIdx.x; i < a.n_params; i += SOLO_BLOCK)
        a.weights[i] = __float2bfloat16(a.params[i]);
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0)
        *(volatile uint64_t *)(a.reports + (size_t)KERN_SOLO_MAX * (a.report_bytes + sizeof(uint64_t))) = 1;
#else
    (void)a;
#endif
}

/* ---- launch ---- */

static uint32_t solo_take(uint32_t *at, size_t bytes)
{
    uint32_t here = *at;

    *at += (uint32_t)((bytes + 15) / 16 * 16);
    return here;
}

/* Where everything lies; returns the bytes of shared memory in all. Muon has the memory by turns with the rest; small
 * matrices have it together. */
static size_t solo_lay(struct solo_args *a, size_t room)
{
    const size_t bf16_bytes = sizeof(__nv_bfloat16), C = (size_t)a->chunk, H = (size_t)a->H, L = (size_t)a->L;
    const size_t ldx = (size_t)a->Dp + SOLO_PAD, ldh = H + SOLO_PAD, O = (size_t)a->n_out;
    const size_t dy = 2 * C * ldh, rows = (size_t)a->play_chunk * (size_t)a->D;
    struct solo_shared *at = &a->at;
    const uint32_t together = a->n_matrices < SOLO_BLOCK / SOLO_GROUP ? a->n_matrices : SOLO_BLOCK / SOLO_GROUP;
    uint32_t n = 0, matrix = 0;

    at->encoder = solo_take(&n, H * ldx * bf16_bytes);
    at->core = solo_take(&n, L * H * ldh * bf16_bytes);
    at->bias = solo_take(&n, (1 + L) * H * sizeof(float));
    at->heads = solo_take(&n, O * H * sizeof(float));
    at->heads_bias = solo_take(&n, O * sizeof(float));
    at->x = solo_take(&n, C * ldx * bf16_bytes);
    at->y = solo_take(&n, (1 + L) * C * ldh * bf16_bytes);
    at->dy = solo_take(&n, (dy > rows ? dy : rows) * bf16_bytes);
    at->out = solo_take(&n, C * O * sizeof(float));
    at->dout = solo_take(&n, C * O * sizeof(float));
    at->logp = solo_take(&n, C * sizeof(float));
    at->adv = solo_take(&n, C * sizeof(float));
    at->ret = solo_take(&n, C * sizeof(float));
    at->value = solo_take(&n, C * sizeof(float));
    at->action = solo_take(&n, C * sizeof(int32_t));
    at->partial = solo_take(&n, SOLO_PARTIALS * sizeof(float));
    for (uint32_t i = 0; i < a->n_matrices && a->muon; i++) {
        uint32_t need = muon_round_up((uint32_t)muon_part_bytes(&a->items[i]), 128);
        matrix = need > matrix ? need : matrix;
    }
    a->muon_bytes = (size_t)matrix * together <= room ? matrix : 0;
    matrix = a->muon_bytes > 0 ? matrix * together : matrix;
    return n > matrix ? n : matrix;
}

static uint32_t solo_power(size_t n, uint32_t most)
{
    uint32_t p = SOLO_ROWS;

    while (p < n && p < most)
        p *= 2;
    return p;
}

/* The largest chunk that fits. */
static bool solo_choose(struct solo_args *a, size_t shared_max, size_t *ret_bytes)
{
    const uint32_t most = solo_power((size_t)a->B * (size_t)a->T, SOLO_BLOCK / 2);
    const size_t room = shared_max - SOLO_SHARED_OTHER;

    for (uint32_t chunk = most; chunk >= 2 * SOLO_ROWS; chunk /= 2) {
        a->chunk = (int)chunk;
        a->play_chunk = (int)solo_power((size_t)a->N, chunk);
        *ret_bytes = solo_lay(a, room);
        if (*ret_bytes <= room)
            return true;
    }
    return false;
}

static void solo_fill_items(struct solo_args *a, const struct kern_solo *s)
{
    for (int matrices = 1; matrices >= 0; matrices--) {
        for (size_t i = 0; i < s->n_tensors; i++) {
            if (s->tensors[i].is_matrix != (matrices == 1))
                continue;
            a->items[a->n_items++] = muon_item_of(&s->tensors[i]);
        }
        a->n_matrices = matrices == 1 ? a->n_items : a->n_matrices;
    }
}

/* Is this a training for one block? Fills what follows from its shape. */
static bool solo_fill_shape(struct solo_args *a, const struct kern_solo *s)
{
    const struct kern_net *net = s->net;
    const struct cuda_env *env = cuda_env_of(s->env);

    a->game = cuda_rollout_game(env);
    if (a->game == ROLLOUT_GAMES || env->game->rollout != NULL ||
        (net->core != KERN_CORE_NONE && net->core != KERN_CORE_MLP) || env->shape.n_agents != 1 ||
        env->shape.has_mask || net->heads.n_heads != 1 || net->heads.n_reals != 0 || net->heads.n_bins != 0 ||
        net->heads.n_logits >= ROLLOUT_OUT || net->width % SOLO_ROWS != 0 || net->width > SOLO_WIDTH ||
        net->n_layers > SOLO_LAYERS || net->obs_size > 1024 || s->N > SOLO_AGENTS || s->T * s->N > 1 << 20 ||
        s->n_tensors > SOLO_TENSORS || (net->heads.n_logits + 1) * net->width > SOLO_PARTIALS ||
        env->def->options.settings_size > SOLO_SETTINGS || env->def->state_size % 8 != 0)
        return false;
    a->n_params = (int)s->n_params;
    a->N = (int)s->N, a->T = (int)s->T, a->B = (int)s->B;
    a->D = (int)net->obs_size, a->H = (int)net->width;
    a->Dp = (a->D + SOLO_ROWS - 1) / SOLO_ROWS * SOLO_ROWS;
    a->L = net->core == KERN_CORE_NONE ? 0 : (int)net->n_layers;
    a->n_out = net->heads.n_logits + 1;
    a->state_size = (int)env->def->state_size;
    a->may_truncate = env->shape.may_truncate;
    a->muon = s->v == NULL, a->vtrace = s->log_ratio != NULL;
    a->encoder_act = net->encoder_act, a->act = net->act;
    a->heads_of = net->heads;
    memcpy(a->settings, env->settings, env->def->options.settings_size);
    a->encoder_w = (uint32_t)net->encoder_w, a->encoder_b = (uint32_t)net->encoder_b;
    for (int l = 0; l < a->L; l++) {
        a->core_w[l] = (uint32_t)net->core_w[l];
        a->core_b[l] = (uint32_t)net->core_b[l];
    }
    a->heads_w = (uint32_t)net->heads_w, a->heads_b = (uint32_t)net->heads_b;
    solo_fill_items(a, s);
    return true;
}

static void solo_fill_memory(struct solo_args *a, const struct kern_solo *s)
{
    struct cuda_env *env = cuda_env_of(s->env);

    a->params = s->params, a->m = s->m, a->v = s->v, a->grads = s->grads, a->norm = s->norm;
    a->weights = (__nv_bfloat16 *)s->weights;
    a->step = s->step, a->stats = s->stats, a->log = s->log;
    a->rng_sample = s->rng_sample, a->rng_segments = s->rng_segments;
    a->states = (unsigned char *)env->states, a->logs = env->logs;
    a->obs = (__nv_bfloat16 *)s->obs;
    a->reset = s->reset, a->terms = s->terms, a->truncs = s->truncs;
    a->actions = s->actions, a->perm = s->perm;
    a->logp = s->logp, a->rewards = s->rewards, a->boot = s->boot, a->values = s->values;
    a->adv = s->adv, a->ret = s->ret, a->log_ratio = s->log_ratio;
    a->report = (const unsigned char *)s->report;
    a->report_bytes = (uint32_t)s->report_bytes;
    a->reports = (unsigned char *)cuda_slot_memory(s->slot);
    a->n_turns = (int)s->n;
    for (size_t i = 0; i < s->n; i++)
        a->turns[i] = (struct solo_turn){s->turns[i].hyper, (int)s->turns[i].T, (int)s->turns[i].n_minibatches};
}

extern "C" bool cuda_solo_bf16(struct kern *k, const struct kern_solo *s)
{
    struct cuda *cuda = cuda_of(k);
    struct solo_args a = {};
    size_t bytes;

    if (cuda->made_for < 90 || !solo_fill_shape(&a, s) || !solo_choose(&a, cuda->shared_max, &bytes))
        return false;
    if (s->n > 0) {
        cuda_kernel_prepare(k, (const void *)solo_k, "solo");
        if (cuda->solo == NULL)
            cuda_check(k, cudaStreamCreateWithPriority(&cuda->solo, cudaStreamNonBlocking, 0), "solo");
        solo_fill_memory(&a, s);
        cuda_slot_expect(s->slot,
                         (volatile uint64_t *)(a.reports + KERN_SOLO_MAX * (s->report_bytes + sizeof(uint64_t))));
        solo_k<<<1, SOLO_BLOCK, bytes, cuda->solo>>>(a);
        cuda_launched(k, "solo");
    }
    return true;
}

/* Its products are of bf16 numbers. */
extern "C" bool cuda_solo_f32(struct kern *k, const struct kern_solo *s)
{
    (void)k;
    (void)s;
    return false;
}
