/* policy.c - the network as a flat vector with named tensors, its initial values, one step and whole sequences.
 * encoder (D -> H, policy_encoder.c) -> L core layers (mlp, MinGRU or LSTM, H -> H) -> one linear of A + 1 outputs.
 * With a value network of its own the same layers hold two networks side by side: weights between them are 0 and get no
 * gradient, so whatever runs or exports a policy sees a wider one.
 * Invariant: tensors lie in the flat vector in order and without gaps; forward over T steps gives the same numbers
 * as T single steps up to rounding of sums. */
#include "trainer/trainer_priv.h"

#include <lapack.h>

#define QR_BLOCK 32 /* columns that LAPACK takes at a time, if it has the work space */

/* LSTM layers have three tensors, convolutions two; encoder and its list three, heads two */
_Static_assert(3 * POLICY_MAX_LAYERS + 2 * POLICY_MAX_CONVS + 5 <= KERN_MAX_TENSORS, "no policy has more tensors");

void policy_add_tensor(struct policy *p, const char *layer, const char *kind, size_t rows, size_t cols, bool is_matrix)
{
    struct kern_tensor *tensor = &p->tensors[p->n_tensors];

    snprintf(p->names[p->n_tensors++], TENSOR_NAME_MAX, "%s.%s", layer, kind);
    tensor->offset = p->n_params;
    tensor->rows = rows;
    tensor->cols = cols;
    tensor->is_matrix = is_matrix;
    p->n_params += rows * cols;
}

/* One core layer: weight and what the kind has beside it, in the order that policy_core_tensor counts. */
static void policy_add_core(struct policy *p, const char *layer)
{
    size_t H = p->width;

    switch (p->set.core) {
    case POLICY_CORE_LSTM:
        policy_add_tensor(p, layer, "weight_ih", 4 * H, H, true);
        policy_add_tensor(p, layer, "weight_hh", 4 * H, H, true);
        policy_add_tensor(p, layer, "bias", 4 * H, 1, false);
        break;
    case POLICY_CORE_MINGRU:
        policy_add_tensor(p, layer, "weight", 3 * H, H, true);
        break;
    default:
        policy_add_tensor(p, layer, "weight", H, H, true);
        policy_add_tensor(p, layer, "bias", H, 1, false);
        break;
    }
}

void policy_init(struct policy *p, const struct kern *kern, const struct policy_settings *set,
                 const struct env_shape *shape)
{
    char layer[8];

    memset(p, 0, sizeof *p);
    p->set = *set;
    p->ops = kern_ops(kern);
    p->n_frames = set->frame_stack > 0 ? (size_t)set->frame_stack : 1;
    p->frame_size = (size_t)shape->obs_size;
    p->obs_size = p->frame_size * p->n_frames;
    p->grid_size = (size_t)shape->channels * (size_t)shape->height * (size_t)shape->width * p->n_frames;
    p->n_floats = (size_t)shape->n_floats;
    p->frame_bytes = shape->u8 ? env_row_bytes(shape) : p->frame_size * p->ops->act_size;
    p->row_bytes = shape->u8 ? env_mixed_bytes(p->obs_size, p->n_floats * p->n_frames) : p->obs_size * p->ops->act_size;
    p->byte_scale = shape->u8 ? 1.0f / shape->byte_scale : 0.0f;
    p->n_nets = set->value_net == POLICY_VALUE_SEPARATE ? 2 : 1;
    p->width = (size_t)set->hidden_size * p->n_nets;
    p->n_layers = set->core == POLICY_CORE_NONE ? 0 : (size_t)set->num_layers;
    p->n_gates = set->core == POLICY_CORE_MINGRU ? 3 : set->core == POLICY_CORE_LSTM ? 4 : 0;
    p->state_size = set->core == POLICY_CORE_MINGRU ? p->width : set->core == POLICY_CORE_LSTM ? 2 * p->width : 0;
    p->recurrent = p->state_size > 0 && p->n_layers > 0;
    p->act = (enum kern_act)set->activation;
    p->encoder_act = (enum kern_act)(set->encoder_activation - POLICY_ACTIVATION_NONE + KERN_ACT_NONE);
    if (set->encoder_activation == POLICY_ACTIVATION_AUTO)
        p->encoder_act = p->recurrent ? KERN_ACT_NONE : p->act;
    kern_heads_init(&p->heads, shape, set->action_bounds == POLICY_BOUNDS_TANH);
    p->n_logits = (size_t)p->heads.n_logits;
    p->heads.n_bins = (int)set->value_bins;
    p->heads.value_log = (float)log1p((double)set->value_max);
    p->n_out = kern_heads_out(&p->heads);

    policy_init_encoder(p, kern, shape);
    for (size_t l = 0; l < p->n_layers; l++) {
        snprintf(layer, sizeof layer, "core.%u", (unsigned)l % POLICY_MAX_LAYERS);
        policy_add_core(p, layer);
    }
    policy_add_tensor(p, "heads", "weight", p->n_out, p->width, true);
    policy_add_tensor(p, "heads", "bias", p->n_out, 1, false);
}

void policy_plan_step(const struct policy *p, struct policy_step *s, struct plan *plan, size_t n)
{
    size_t a = p->ops->act_size;

    plan_add(plan, &s->x[0], "step activations", a, n, p->width, 1);
    plan_add(plan, &s->x[1], "step activations", a, n, p->width, 1);
    if (p->recurrent)
        plan_add(plan, &s->gates, "step gates", a, n, p->n_gates * p->width, 1);
    plan_add(plan, &s->out, "step outputs", sizeof(float), n, p->n_out, 1);
    policy_plan_encoder_step(p, s, plan, n);
}

void policy_plan_pass(const struct policy *p, struct policy_pass *s, struct plan *plan, size_t n_tokens, size_t n_block,
                      size_t n_shards)
{
    bool lstm = p->set.core == POLICY_CORE_LSTM;
    size_t a = p->ops->act_size;

    policy_plan_encoder_pass(p, s, plan, n_tokens, n_block, n_shards);
    plan_add(plan, &s->encoded, "encoder activations", a, n_tokens, p->width, 1);
    for (size_t l = 0; l < p->n_layers; l++) {
        if (p->recurrent) {
            plan_add(plan, &s->gates[l], "core gates", a, n_tokens, p->n_gates * p->width, 1);
            plan_add(plan, &s->state[l], "core states", a, n_tokens, p->width, 1);
            if (lstm)
                plan_add(plan, &s->cell[l], "core states", a, n_tokens, p->width, 1);
        }
        plan_add(plan, &s->core[l], "core activations", a, n_tokens, p->width, 1);
    }
    plan_add(plan, &s->out, "policy outputs", sizeof(float), n_tokens, p->n_out, 1);
    plan_add(plan, &s->dout, "policy output gradients", sizeof(float), n_tokens, p->n_out, 1);
    plan_add(plan, &s->dx[0], "activation gradients", a, n_shards, n_block, p->width);
    plan_add(plan, &s->dx[1], "activation gradients", a, n_shards, n_block, p->width);
    if (p->recurrent && lstm)
        plan_add(plan, &s->dstate, "state gradients", sizeof(float), n_shards, n_block, p->state_size);
    else if (p->recurrent)
        plan_add(plan, &s->dgates, "gate gradients", a, n_shards, n_block, 3 * p->width);
    s->n_block = n_block;
}

struct policy_pass policy_pass_at(const struct policy *p, const struct policy_pass *s, size_t token, size_t shard)
{
    struct policy_pass at = *s;
    size_t back = shard * s->n_block * p->width, forward = token * p->width;

    policy_encoder_at(p, &at, token, shard);
    at.encoded = act_at(p->ops, s->encoded, forward);
    for (size_t l = 0; l < p->n_layers; l++) {
        if (p->recurrent) {
            at.gates[l] = act_at(p->ops, s->gates[l], forward * p->n_gates);
            at.state[l] = act_at(p->ops, s->state[l], forward);
            if (s->cell[l] != NULL)
                at.cell[l] = act_at(p->ops, s->cell[l], forward);
        }
        at.core[l] = act_at(p->ops, s->core[l], forward);
    }
    at.out += token * p->n_out;
    at.dout += token * p->n_out;
    at.dx[0] = act_at(p->ops, s->dx[0], back);
    at.dx[1] = act_at(p->ops, s->dx[1], back);
    if (s->dgates != NULL)
        at.dgates = act_at(p->ops, s->dgates, 3 * back);
    if (s->dstate != NULL)
        at.dstate += shard * s->n_block * p->state_size;
    return at;
}

/* The rows before the value's that are kept at 0: a log-deviation is then its bias, the same in every state. */
static size_t policy_fixed_rows(const struct policy *p)
{
    return p->set.action_std == POLICY_STD_FIXED ? (size_t)p->heads.n_reals : 0;
}

/* ---- initial values ---- */

double rng_normal(struct rng *rng)
{
    double u = 1.0 - rng_f64(rng), v = rng_f64(rng); /* u in (0, 1] */
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

/* w (rows, cols), whose rows are `stride` numbers apart, = gain times a matrix with orthonormal rows or columns,
 * whichever are fewer: the Q of a Gaussian matrix, its signs fixed by R's diagonal so that Q is uniform. */
static void policy_fill_orthogonal(float *w, size_t stride, size_t rows, size_t cols, double gain, struct rng *rng)
{
    size_t tall = rows > cols ? rows : cols, thin = rows > cols ? cols : rows;
    MEM_LOCAL double *q = mem_array2(tall, thin, sizeof *q); /* (tall, thin) by columns */
    MEM_LOCAL double *tau =
        mem_array((2 + QR_BLOCK) * thin, sizeof *tau); /* (thin) tau, (thin) signs, (thin, QR_BLOCK) work */
    double *sign = tau + thin, *work = sign + thin;
    lapack_int m = (lapack_int)tall, n = (lapack_int)thin, n_work = n * QR_BLOCK, info;

    for (size_t i = 0; i < tall; i++)
        for (size_t j = 0; j < thin; j++)
            q[j * tall + i] = rng_normal(rng);
    LAPACK_dgeqrf(&m, &n, q, &m, tau, work, &n_work, &info);
    for (size_t j = 0; j < thin; j++)
        sign[j] = q[j * tall + j] < 0.0 ? -gain : gain;
    LAPACK_dorgqr(&m, &n, &n, q, &m, tau, work, &n_work, &info);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            w[i * stride + j] = (float)(rows > cols ? q[j * tall + i] * sign[j] : q[i * tall + j] * sign[i]);
}

static double act_gain(enum kern_act act)
{
    return act == KERN_ACT_RELU ? M_SQRT2 : 1.0;
}

void policy_fill_params(const struct policy *p, struct rng rng, float *params)
{
    size_t W = p->width, H = W / p->n_nets; /* of a network */

    memset(params, 0, p->n_params * sizeof *params);
    for (size_t i = 0; i < p->n_tensors; i++) {
        const struct kern_tensor *tensor = &p->tensors[i];
        const char *name = p->names[i];
        struct rng own = rng_split(rng, i);
        float *w = params + tensor->offset;

        if (strcmp(name, "heads.bias") == 0)
            for (size_t j = 1; j <= (size_t)p->heads.n_reals; j++)
                w[p->n_logits - j] = (float)log(p->set.action_std_init);
        if (!tensor->is_matrix) {
            for (size_t j = 0; p->set.core == POLICY_CORE_LSTM && strncmp(name, "core", 4) == 0 && j < p->width; j++)
                w[p->width + j] = 1.0f; /* forget gates begin open: c keeps 0.73 of itself at each step, not half */
            continue;
        }
        if (strncmp(name, "heads", 5) == 0) { /* near-uniform actions, value of full size */
            policy_fill_orthogonal(w, W, p->n_logits - policy_fixed_rows(p), H, 0.01, &own);
            if (p->heads.n_bins == 0) /* bins begin equal: a value of 0 */
                policy_fill_orthogonal(w + p->n_logits * W + (W - H), W, 1, H, 1.0, &own);
        } else if (strncmp(name, "core", 4) == 0) { /* the gates one by one */
            for (size_t at = 0; at < tensor->rows; at += H)
                policy_fill_orthogonal(w + at * W + at % W, W, H, H, p->recurrent ? 1.0 : act_gain(p->act), &own);
        } else {
            bool last = strcmp(name, "encoder.weight") == 0 || strcmp(name, "encoder.list") == 0;
            size_t rows = last ? H : tensor->rows;
            for (size_t at = 0; at < tensor->rows; at += rows)
                policy_fill_orthogonal(w + at * tensor->cols, tensor->cols, rows, tensor->cols,
                                       act_gain(last ? p->encoder_act : p->act), &own);
        }
    }
}

/* ---- weights ---- */

/* The order of policy_init: the encoder's tensors, core layers (policy_add_core), heads weight, bias. */
const void *policy_w(const struct policy *p, const struct policy_weights *w, size_t i)
{
    return act_at(p->ops, w->act, p->tensors[i].offset);
}

static size_t policy_core_tensor(const struct policy *p, size_t l)
{
    return p->n_encoder_tensors + l * (!p->recurrent ? 2 : p->set.core == POLICY_CORE_LSTM ? 3 : 1);
}

bool policy_plays_at_once(const struct policy *p)
{
    return p->n_convs == 0 && p->n_frames == 1 && p->wide_bytes == 0 && !p->set.norm_obs;
}

void policy_fill_net(const struct policy *p, struct kern_net *ret_net)
{
    static const enum kern_core cores[] = {
        [POLICY_CORE_NONE] = KERN_CORE_NONE,
        [POLICY_CORE_MLP] = KERN_CORE_MLP,
        [POLICY_CORE_MINGRU] = KERN_CORE_MINGRU,
        [POLICY_CORE_LSTM] = KERN_CORE_LSTM,
    };

    *ret_net = (struct kern_net){
        .core = p->n_layers == 0 ? KERN_CORE_NONE : cores[p->set.core],
        .encoder_act = p->encoder_act,
        .act = p->act,
        .obs_size = p->obs_size,
        .width = p->width,
        .n_layers = p->n_layers,
        .heads = p->heads,
        .encoder_w = p->tensors[2 * p->n_convs].offset,
        .encoder_b = p->tensors[2 * p->n_convs + 1].offset,
        .heads_w = p->tensors[p->n_tensors - 2].offset,
        .heads_b = p->tensors[p->n_tensors - 1].offset,
    };
    for (size_t l = 0; l < p->n_layers; l++) {
        size_t i = policy_core_tensor(p, l), next = policy_core_tensor(p, l + 1);
        ret_net->core_w[l] = p->tensors[i].offset;
        ret_net->core_b[l] = next - i > 1 ? p->tensors[next - 1].offset : 0; /* MinGRU has none */
    }
}

/* ---- layers ---- */

/* The product of core layer l with x (M, H): the gates of a recurrent layer, all of an MLP layer. */
static struct kern_linear core_linear(const struct policy *p, const struct policy_weights *w, size_t l, const void *x,
                                      size_t M)
{
    size_t i = policy_core_tensor(p, l), next = policy_core_tensor(p, l + 1);
    const void *b = next - i > 1 ? policy_w(p, w, next - 1) : NULL; /* MinGRU has none */

    return (struct kern_linear){.M = M,
                                .N = p->tensors[i].rows,
                                .K = p->width,
                                .act = p->recurrent ? KERN_ACT_NONE : p->act,
                                .x = x,
                                .w = policy_w(p, w, i),
                                .b = b};
}

static struct kern_heads_layer heads_layer(const struct policy *p, const struct policy_weights *w, const void *x,
                                           size_t M)
{
    const float *weights = w->params + p->tensors[p->n_tensors - 2].offset;
    const float *b = w->params + p->tensors[p->n_tensors - 1].offset;

    return (struct kern_heads_layer){.M = M, .O = p->n_out, .H = p->width, .x = x, .w = weights, .b = b};
}

/* Without the tensors of one direction. state: (B, S). */
static struct kern_lstm core_lstm(const struct policy *p, const struct policy_weights *w, size_t l, void *gates,
                                  float *state, const uint8_t *reset, size_t T, size_t B)
{
    const void *w_hh = policy_w(p, w, policy_core_tensor(p, l) + 1);
    return (struct kern_lstm){
        .T = T, .B = B, .H = p->width, .gates = gates, .w_hh = w_hh, .reset = reset, .state = state};
}

/* ---- forward ---- */

/* y (n, H) of core layer l from x (n, H); h (n, S) its state. */
static void policy_core_step(const struct policy *p, struct kern *k, struct policy_step *s,
                             const struct policy_weights *w, size_t l, void *y, const void *x, float *h,
                             const uint8_t *reset, size_t n)
{
    const struct kern_ops *ops = p->ops;
    struct kern_linear in = core_linear(p, w, l, x, n);

    in.y = p->recurrent ? s->gates : y;
    ops->linear_forward(k, &in);
    if (p->set.core == POLICY_CORE_LSTM) {
        struct kern_lstm cell = core_lstm(p, w, l, s->gates, h, reset, 1, n);
        cell.out = y;
        ops->lstm_step(k, &cell);
    } else if (p->set.core == POLICY_CORE_MINGRU) {
        ops->mingru_step(k,
                         &(struct kern_mingru){
                             .B = n, .H = p->width, .gates = s->gates, .x = x, .reset = reset, .state = h, .out = y});
    }
}

void policy_forward_step(const struct policy *p, struct kern *k, struct policy_step *s, const struct policy_weights *w,
                         const void *obs, float *h, size_t h_rows, const uint8_t *reset, size_t n)
{
    size_t cur = 0;

    policy_encode_step(p, k, s, w, obs, n);
    for (size_t l = 0; l < p->n_layers; l++, cur ^= 1)
        policy_core_step(p, k, s, w, l, s->x[cur ^ 1], s->x[cur], p->recurrent ? h + l * h_rows * p->state_size : NULL,
                         reset, n);
    struct kern_heads_layer heads = heads_layer(p, w, s->x[cur], n);
    heads.out = s->out;
    p->ops->heads_forward(k, &heads);
}

/* The MinGRU of layer l over a sequence, both ways; h0 (B, S). */
static struct kern_mingru pass_mingru(const struct policy *p, const struct policy_pass *s, size_t l, const void *x,
                                      const float *h0, const uint8_t *reset, size_t T, size_t B)
{
    return (struct kern_mingru){.T = T,
                                .B = B,
                                .H = p->width,
                                .gates = s->gates[l],
                                .x = x,
                                .reset = reset,
                                .h0 = h0,
                                .out = s->core[l],
                                .h = s->state[l]};
}

/* Core layer l over a sequence, from x (T, B, H) into s->core[l]; h0 (B, S). */
static void policy_core_forward(const struct policy *p, struct kern *k, struct policy_pass *s,
                                const struct policy_weights *w, size_t l, const void *x, float *h0,
                                const uint8_t *reset, size_t T, size_t B)
{
    const struct kern_ops *ops = p->ops;
    struct kern_linear in = core_linear(p, w, l, x, T * B);

    in.y = p->recurrent ? s->gates[l] : s->core[l];
    if (p->set.core == POLICY_CORE_MINGRU) {
        struct kern_mingru cell = pass_mingru(p, s, l, x, h0, reset, T, B);
        cell.product = &in;
        ops->mingru_forward(k, &cell);
        return;
    }
    ops->linear_forward(k, &in);
    if (p->set.core == POLICY_CORE_LSTM) {
        struct kern_lstm cell = core_lstm(p, w, l, s->gates[l], h0, reset, T, B);
        cell.out = s->core[l], cell.h_prev = s->state[l], cell.c_prev = s->cell[l];
        ops->lstm_forward(k, &cell);
    }
}

void policy_forward(const struct policy *p, struct kern *k, struct policy_pass *s, const struct policy_weights *w,
                    const void *obs, float *h0, const uint8_t *reset, size_t T, size_t B)
{
    const void *x = s->encoded;

    policy_encode(p, k, s, w, obs, T * B);
    for (size_t l = 0; l < p->n_layers; l++) {
        policy_core_forward(p, k, s, w, l, x, p->recurrent ? h0 + l * B * p->state_size : NULL, reset, T, B);
        x = s->core[l];
    }
    struct kern_heads_layer heads = heads_layer(p, w, x, T * B);
    heads.out = s->out;
    p->ops->heads_forward(k, &heads);
}

/* ---- backward ---- */

/* Core layer l on the way back: dx (T, B, H) and its gradients from dy, which is overwritten, and its input x. */
static void policy_core_backward(const struct policy *p, struct kern *k, struct policy_pass *s,
                                 const struct policy_weights *w, float *grads, size_t l, void *dx, void *dy,
                                 const void *x, const float *h0, const uint8_t *reset, size_t T, size_t B, bool add)
{
    const struct kern_ops *ops = p->ops;
    const struct kern_tensor *tensor = &p->tensors[policy_core_tensor(p, l)];
    struct kern_linear in = core_linear(p, w, l, x, T * B);

    in.y = s->core[l], in.dy = dy, in.dx = dx, in.add_dw = add;
    in.dw = grads + tensor->offset;
    if (p->set.core == POLICY_CORE_LSTM) {
        struct kern_lstm cell = core_lstm(p, w, l, s->gates[l], NULL, reset, T, B);
        struct kern_linear hidden = in; /* W_hh, whose input is the state before each step */
        cell.c_prev = s->cell[l], cell.dout = dy, cell.dstate = s->dstate;
        ops->lstm_backward(k, &cell);
        in.dy = hidden.dy = s->gates[l];
        hidden.x = s->state[l], hidden.w = cell.w_hh;
        hidden.dx = NULL, hidden.dw = grads + tensor[1].offset;
        ops->linear_backward(k, &hidden);
        in.db = grads + tensor[2].offset;
    } else if (p->set.core == POLICY_CORE_MINGRU) {
        struct kern_mingru cell = pass_mingru(p, s, l, x, h0, reset, T, B);
        in.dy = s->dgates, in.add_dx = true;
        cell.dout = dy, cell.dx = dx, cell.dgates = s->dgates, cell.product = &in;
        ops->mingru_backward(k, &cell);
        return;
    } else {
        in.db = grads + tensor[1].offset;
    }
    ops->linear_backward(k, &in);
}

void policy_backward(const struct policy *p, struct kern *k, struct policy_pass *s, const struct policy_weights *w,
                     float *grads, const void *obs, const float *h0, const uint8_t *reset, size_t T, size_t B, bool add)
{
    const struct kern_tensor *last = &p->tensors[p->n_tensors - 2];
    const void *x = p->n_layers > 0 ? s->core[p->n_layers - 1] : s->encoded;
    struct kern_heads_layer heads = heads_layer(p, w, x, T * B);
    size_t cur = 0;

    heads.dout = s->dout, heads.dx = s->dx[0], heads.add_dw = add;
    heads.dw = grads + last[0].offset, heads.db = grads + last[1].offset;
    p->ops->heads_backward(k, &heads);
    for (size_t l = p->n_layers; l-- > 0; cur ^= 1) {
        x = l > 0 ? s->core[l - 1] : s->encoded;
        policy_core_backward(p, k, s, w, grads, l, s->dx[cur ^ 1], s->dx[cur], x,
                             p->recurrent ? h0 + l * B * p->state_size : NULL, reset, T, B, add);
    }
    policy_encode_backward(p, k, s, w, grads, s->dx[cur], obs, T * B, add);
}

/* Of a matrix whose rows [from, from + n) belong to one of two networks, the columns of the other, which begin at
 * `other`. */
static void mask_block(const struct policy *p, struct kern *k, float *dw, size_t from, size_t n, size_t other)
{
    p->ops->zero_rows(k, dw + from * p->width + other, p->width / 2 * sizeof *dw, p->width * sizeof *dw, n);
}

void policy_mask_gradient(const struct policy *p, struct kern *k, float *grads)
{
    size_t W = p->width, H = W / 2, fixed = policy_fixed_rows(p);
    float *heads = grads + p->tensors[p->n_tensors - 2].offset;

    if (fixed > 0)
        p->ops->zero(k, heads + (p->n_logits - fixed) * W, fixed * W * sizeof *heads);
    if (p->n_nets == 1)
        return;
    for (size_t i = p->n_encoder_tensors; i + 2 < p->n_tensors; i++)
        for (size_t at = 0; p->tensors[i].is_matrix && at < p->tensors[i].rows; at += H)
            mask_block(p, k, grads + p->tensors[i].offset, at, H, at % W == 0 ? H : 0);
    mask_block(p, k, heads, 0, p->n_logits, H);
    mask_block(p, k, heads, p->n_logits, p->n_out - p->n_logits, 0);
}
