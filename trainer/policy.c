/* policy.c - the network as a flat vector with named tensors, its initial values, one step and whole sequences.
 * encoder (D -> H, activation) -> L core layers (mlp or MinGRU, H -> H) -> one linear of A + 1 outputs.
 * Invariant: tensors lie in the flat vector in order and without gaps; forward over T steps gives the same numbers
 * as T single steps up to rounding of sums. */
#include "trainer/trainer_priv.h"

#include "base/mem.h"

#include <lapacke.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static void policy_add_tensor(struct policy *p, const char *layer, const char *kind, size_t rows, size_t cols,
                              bool is_matrix)
{
    struct kern_tensor *tensor = &p->tensors[p->n_tensors];

    snprintf(p->names[p->n_tensors++], TENSOR_NAME_MAX, "%s.%s", layer, kind);
    tensor->offset = p->n_params;
    tensor->rows = rows;
    tensor->cols = cols;
    tensor->is_matrix = is_matrix;
    p->n_params += rows * cols;
}

void policy_init(struct policy *p, const struct policy_settings *set, const struct env_shape *shape)
{
    char layer[8];

    memset(p, 0, sizeof *p);
    p->set = *set;
    p->obs_size = (size_t)shape->obs_size;
    p->width = (size_t)set->hidden_size;
    p->n_layers = set->core == POLICY_CORE_NONE ? 0 : (size_t)set->num_layers;
    p->recurrent = set->core == POLICY_CORE_MINGRU && p->n_layers > 0;
    p->heads.n_heads = shape->n_heads;
    for (int i = 0; i < shape->n_heads; i++) {
        p->heads.sizes[i] = shape->head_sizes[i];
        p->heads.n_logits += shape->head_sizes[i];
    }
    p->n_logits = (size_t)p->heads.n_logits;
    p->n_out = p->n_logits + 1;

    policy_add_tensor(p, "encoder", "weight", p->width, p->obs_size, true);
    policy_add_tensor(p, "encoder", "bias", p->width, 1, false);
    for (size_t l = 0; l < p->n_layers; l++) {
        snprintf(layer, sizeof layer, "core.%u", (unsigned)l % POLICY_MAX_LAYERS);
        policy_add_tensor(p, layer, "weight", p->recurrent ? 3 * p->width : p->width, p->width, true);
        if (!p->recurrent)
            policy_add_tensor(p, layer, "bias", p->width, 1, false);
    }
    policy_add_tensor(p, "heads", "weight", p->n_out, p->width, true);
    policy_add_tensor(p, "heads", "bias", p->n_out, 1, false);
}

void policy_plan_step(const struct policy *p, struct policy_step *s, struct plan *plan, size_t n)
{
    plan_add(plan, &s->x[0], "step activations", sizeof(float), n, p->width, 1);
    plan_add(plan, &s->x[1], "step activations", sizeof(float), n, p->width, 1);
    if (p->recurrent)
        plan_add(plan, &s->gates, "step gates", sizeof(float), n, 3 * p->width, 1);
    plan_add(plan, &s->out, "step outputs", sizeof(float), n, p->n_out, 1);
}

void policy_plan_pass(const struct policy *p, struct policy_pass *s, struct plan *plan, size_t n_tokens, size_t n_block,
                      size_t n_lanes)
{
    plan_add(plan, &s->encoded, "encoder activations", sizeof(float), n_tokens, p->width, 1);
    for (size_t l = 0; l < p->n_layers; l++) {
        if (p->recurrent) {
            plan_add(plan, &s->gates[l], "core gates", sizeof(float), n_tokens, 3 * p->width, 1);
            plan_add(plan, &s->state[l], "core states", sizeof(float), n_tokens, p->width, 1);
        }
        plan_add(plan, &s->core[l], "core activations", sizeof(float), n_tokens, p->width, 1);
    }
    plan_add(plan, &s->out, "policy outputs", sizeof(float), n_tokens, p->n_out, 1);
    plan_add(plan, &s->dout, "policy output gradients", sizeof(float), n_tokens, p->n_out, 1);
    plan_add(plan, &s->dx[0], "activation gradients", sizeof(float), n_lanes, n_block, p->width);
    plan_add(plan, &s->dx[1], "activation gradients", sizeof(float), n_lanes, n_block, p->width);
    if (p->recurrent)
        plan_add(plan, &s->dgates, "gate gradients", sizeof(float), n_lanes, n_block, 3 * p->width);
    s->n_block = n_block;
}

struct policy_pass policy_pass_at(const struct policy *p, const struct policy_pass *s, size_t token, size_t lane)
{
    struct policy_pass at = *s;
    size_t back = lane * s->n_block * p->width;

    at.encoded += token * p->width;
    for (size_t l = 0; l < p->n_layers; l++) {
        if (p->recurrent) {
            at.gates[l] += token * 3 * p->width;
            at.state[l] += token * p->width;
        }
        at.core[l] += token * p->width;
    }
    at.out += token * p->n_out;
    at.dout += token * p->n_out;
    at.dx[0] += back;
    at.dx[1] += back;
    if (p->recurrent)
        at.dgates += 3 * back;
    return at;
}

/* ---- initial values ---- */

static double rng_normal(struct rng *rng)
{
    double u = 1.0 - rng_f64(rng), v = rng_f64(rng); /* u in (0, 1] */
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

/* w (rows, cols) = gain times a matrix with orthonormal rows or columns, whichever are fewer: the Q of a Gaussian
 * matrix, its signs fixed by R's diagonal so that Q is uniform. */
static enum status policy_fill_orthogonal(float *w, size_t rows, size_t cols, double gain, struct rng *rng,
                                          struct error *err)
{
    size_t tall = rows > cols ? rows : cols, thin = rows > cols ? cols : rows;
    double *q = mem_array2(tall, thin, sizeof *q); /* (tall, thin) */
    double *tau = mem_array(2 * thin, sizeof *tau); /* (thin) tau, (thin) signs */
    enum status rc = ST_OK;
    lapack_int m = (lapack_int)tall, n = (lapack_int)thin;

    if (q == NULL || tau == NULL) {
        rc = FAIL(err, ST_NOMEM, "no memory to initialise a %zu x %zu matrix; lower policy.hidden_size", rows, cols);
        goto done;
    }
    for (size_t i = 0; i < tall * thin; i++)
        q[i] = rng_normal(rng);
    if (LAPACKE_dgeqrf(LAPACK_ROW_MAJOR, m, n, q, n, tau) != 0) {
        rc = FAIL(err, ST_NOMEM, "LAPACK found no room to factor a %zu x %zu matrix; lower policy.hidden_size", rows,
                  cols);
        goto done;
    }
    for (size_t j = 0; j < thin; j++)
        tau[thin + j] = q[j * thin + j] < 0.0 ? -gain : gain;
    if (LAPACKE_dorgqr(LAPACK_ROW_MAJOR, m, n, n, q, n, tau) != 0) {
        rc = FAIL(err, ST_NOMEM, "LAPACK found no room to build a %zu x %zu matrix; lower policy.hidden_size", rows,
                  cols);
        goto done;
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            w[i * cols + j] = (float)(rows > cols ? q[i * thin + j] * tau[thin + j] : q[j * thin + i] * tau[thin + i]);
done:
    mem_free(tau);
    mem_free(q);
    return rc;
}

enum status policy_fill_params(const struct policy *p, struct rng rng, float *params, struct error *err)
{
    double relu_gain = p->set.activation == KERN_ACT_RELU ? M_SQRT2 : 1.0;

    memset(params, 0, p->n_params * sizeof *params);
    for (size_t i = 0; i < p->n_tensors; i++) {
        const struct kern_tensor *tensor = &p->tensors[i];
        const char *name = p->names[i];
        struct rng own = rng_split(rng, i);
        float *w = params + tensor->offset;

        if (!tensor->is_matrix)
            continue;
        if (strncmp(name, "heads", 5) == 0) { /* near-uniform actions, value of full size */
            TRY(policy_fill_orthogonal(w, p->n_logits, tensor->cols, 0.01, &own, err));
            TRY(policy_fill_orthogonal(w + p->n_logits * tensor->cols, 1, tensor->cols, 1.0, &own, err));
        } else if (strncmp(name, "core", 4) == 0 && p->recurrent) { /* the three gates one by one */
            for (size_t g = 0; g < 3; g++)
                TRY(policy_fill_orthogonal(w + g * p->width * p->width, p->width, p->width, 1.0, &own, err));
        } else {
            TRY(policy_fill_orthogonal(w, tensor->rows, tensor->cols, relu_gain, &own, err));
        }
    }
    return ST_OK;
}

/* ---- forward and backward ---- */

/* Tensor i's values; the order of policy_init: encoder weight, bias, core weights (and biases), heads weight, bias. */
static const float *policy_w(const struct policy *p, const float *params, size_t i)
{
    return params + p->tensors[i].offset;
}

static size_t policy_core_tensor(const struct policy *p, size_t l)
{
    return 2 + l * (p->recurrent ? 1 : 2);
}

void policy_forward_step(const struct policy *p, struct kern *k, struct policy_step *s, const float *params,
                         const float *obs, float *h, size_t h_rows, const uint8_t *reset, size_t n)
{
    const struct kern_ops *ops = kern_ops(k);
    enum kern_act act = (enum kern_act)p->set.activation;
    size_t H = p->width, cur = 0;

    ops->linear_forward(k, s->x[0], obs, policy_w(p, params, 0), policy_w(p, params, 1), n, H, p->obs_size, act);
    for (size_t l = 0; l < p->n_layers; l++, cur ^= 1) {
        size_t i = policy_core_tensor(p, l);
        if (p->recurrent) {
            ops->linear_forward(k, s->gates, s->x[cur], policy_w(p, params, i), NULL, n, 3 * H, H, KERN_ACT_NONE);
            ops->mingru_step(k, s->x[cur ^ 1], h + l * h_rows * H, s->gates, s->x[cur], reset, n, H);
        } else {
            ops->linear_forward(k, s->x[cur ^ 1], s->x[cur], policy_w(p, params, i), policy_w(p, params, i + 1), n, H,
                                H, act);
        }
    }
    ops->heads_forward(k, s->out, s->x[cur], policy_w(p, params, p->n_tensors - 2),
                       policy_w(p, params, p->n_tensors - 1), n, p->n_out, H);
}

void policy_forward(const struct policy *p, struct kern *k, struct policy_pass *s, const float *params,
                    const float *obs, const float *h0, const uint8_t *reset, size_t T, size_t B)
{
    const struct kern_ops *ops = kern_ops(k);
    enum kern_act act = (enum kern_act)p->set.activation;
    size_t H = p->width, M = T * B;
    const float *x = s->encoded;

    ops->linear_forward(k, s->encoded, obs, policy_w(p, params, 0), policy_w(p, params, 1), M, H, p->obs_size, act);
    for (size_t l = 0; l < p->n_layers; l++) {
        size_t i = policy_core_tensor(p, l);
        if (p->recurrent) {
            ops->linear_forward(k, s->gates[l], x, policy_w(p, params, i), NULL, M, 3 * H, H, KERN_ACT_NONE);
            ops->mingru_forward(k, s->core[l], s->state[l], s->gates[l], x, h0 + l * B * H, reset, T, B, H);
        } else {
            ops->linear_forward(k, s->core[l], x, policy_w(p, params, i), policy_w(p, params, i + 1), M, H, H, act);
        }
        x = s->core[l];
    }
    ops->heads_forward(k, s->out, x, policy_w(p, params, p->n_tensors - 2), policy_w(p, params, p->n_tensors - 1), M,
                       p->n_out, H);
}

void policy_backward(const struct policy *p, struct kern *k, struct policy_pass *s, const float *params, float *grads,
                     const float *obs, const float *h0, const uint8_t *reset, size_t T, size_t B, bool add)
{
    const struct kern_ops *ops = kern_ops(k);
    const struct kern_tensor *tensors = p->tensors;
    enum kern_act act = (enum kern_act)p->set.activation;
    size_t H = p->width, M = T * B, cur = 0, n = p->n_tensors;
    const float *x = p->n_layers > 0 ? s->core[p->n_layers - 1] : s->encoded;

    ops->heads_backward(k, s->dx[0], grads + tensors[n - 2].offset, grads + tensors[n - 1].offset, s->dout, x,
                        policy_w(p, params, n - 2), M, p->n_out, H, add);
    for (size_t l = p->n_layers; l-- > 0; cur ^= 1) {
        size_t i = policy_core_tensor(p, l);
        float *dy = s->dx[cur], *dx = s->dx[cur ^ 1];

        x = l > 0 ? s->core[l - 1] : s->encoded;
        if (p->recurrent) {
            ops->mingru_backward(k, dx, s->dgates, dy, s->state[l], s->gates[l], x, h0 + l * B * H, reset, T, B, H);
            ops->linear_backward(k, dx, grads + tensors[i].offset, NULL, s->dgates, s->gates[l], x,
                                 policy_w(p, params, i), M, 3 * H, H, KERN_ACT_NONE, true, add);
        } else {
            ops->linear_backward(k, dx, grads + tensors[i].offset, grads + tensors[i + 1].offset, dy, s->core[l], x,
                                 policy_w(p, params, i), M, H, H, act, false, add);
        }
    }
    ops->linear_backward(k, NULL, grads + tensors[0].offset, grads + tensors[1].offset, s->dx[cur], s->encoded, obs,
                         policy_w(p, params, 0), M, H, p->obs_size, act, false, add);
}
