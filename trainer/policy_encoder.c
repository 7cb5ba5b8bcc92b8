/* policy_encoder.c - what makes H numbers of an observation: one linear layer, after convolutions where the game shows
 * a grid and policy.encoder asks for them. conv: n_convs layers of 3x3 filters, each with a border of zeros and an
 * activation -> linear (all their numbers -> H). The list that a game shows beside its grid goes into that linear layer
 * too, by a weight of its own. Invariant: the encoder's tensors come first in the flat vector, in the order that
 * numbers take: filters and bias of each convolution, then the linear layer's weight and bias, then the list's
 * weight. */
#include "trainer/trainer_priv.h"

#include <inttypes.h>

#define CONV_KERNEL 3
#define CONV_PAD 1
#define CONV_CHANNELS_STEP 8 /* what a GPU's convolutions want, and what keeps every filter aligned */

enum status policy_check_encoder(const struct policy_settings *set, const char *env, const struct env_shape *shape,
                                 struct error *err)
{
    if (set->encoder < POLICY_ENCODER_LINEAR || set->encoder > POLICY_ENCODER_CONV)
        return FAIL(err, ST_CONFIG, "policy.encoder is %d, it must be linear or conv", set->encoder);
    if (set->encoder == POLICY_ENCODER_LINEAR)
        return ST_OK;
    if (shape->channels < 1)
        return FAIL(err, ST_CONFIG,
                    "policy.encoder is conv, but %s shows a plain list of %d numbers and no grid; use linear", env,
                    shape->obs_size);
    if (set->conv_layers < 1 || set->conv_layers > POLICY_MAX_CONVS)
        return FAIL(err, ST_CONFIG, "policy.conv_layers is %" PRId64 ", it must be 1 to %d", set->conv_layers,
                    POLICY_MAX_CONVS);
    if (set->conv_channels < CONV_CHANNELS_STEP || set->conv_channels > POLICY_MAX_CHANNELS ||
        set->conv_channels % CONV_CHANNELS_STEP != 0)
        return FAIL(err, ST_CONFIG, "policy.conv_channels is %" PRId64 ", it must be a multiple of %d from %d to %d",
                    set->conv_channels, CONV_CHANNELS_STEP, CONV_CHANNELS_STEP, POLICY_MAX_CHANNELS);
    if (set->conv_stride < 1 || set->conv_stride > CONV_KERNEL)
        return FAIL(err, ST_CONFIG, "policy.conv_stride is %" PRId64 ", it must be 1 to %d", set->conv_stride,
                    CONV_KERNEL);
    return ST_OK;
}

/* Numbers of an observation that pass the convolutions by; 0 without convolutions, where all are the linear layer's. */
static size_t list_size(const struct policy *p)
{
    return p->n_convs > 0 ? p->obs_size - p->grid_size : 0;
}

struct kern_source policy_obs_source(const struct policy *p)
{
    bool bytes = p->byte_scale > 0.0f;
    return (struct kern_source){
        .row = p->obs_size, .bytes = bytes, .scale = p->byte_scale, .n_floats = bytes ? p->n_floats * p->n_frames : 0};
}

/* How the first layers find what they read of observations. */
static struct kern_source first_source(const struct policy *p, size_t first, void *wide)
{
    struct kern_source source = policy_obs_source(p);

    source.first = first;
    source.wide = wide;
    return p->wide_bytes > 0 ? source : (struct kern_source){0};
}

/* Numbers of convolution i's output. */
static size_t conv_numbers(const struct policy *p, size_t i)
{
    return kern_conv_height(&p->convs[i]) * kern_conv_width(&p->convs[i]) * p->convs[i].out;
}

/* Of all of them, the most. */
static size_t conv_numbers_max(const struct policy *p)
{
    size_t max = 0;
    for (size_t i = 0; i < p->n_convs; i++)
        max = conv_numbers(p, i) > max ? conv_numbers(p, i) : max;
    return max;
}

void policy_init_encoder(struct policy *p, const struct kern *kern, const struct env_shape *shape)
{
    struct kern_conv conv = {.height = (size_t)shape->height,
                             .width = (size_t)shape->width,
                             .in = (size_t)shape->channels * p->n_frames,
                             .out = (size_t)p->set.conv_channels,
                             .kernel = CONV_KERNEL,
                             .stride = (size_t)p->set.conv_stride,
                             .pad = CONV_PAD};
    char layer[16];

    p->n_convs = p->set.encoder == POLICY_ENCODER_CONV ? (size_t)p->set.conv_layers : 0;
    p->encoded_size = p->obs_size;
    for (size_t i = 0; i < p->n_convs; i++) {
        size_t scratch = kern_conv_scratch_bytes(kern, &conv);

        p->convs[i] = conv;
        p->conv_scratch_bytes = scratch > p->conv_scratch_bytes ? scratch : p->conv_scratch_bytes;
        p->encoded_size = conv_numbers(p, i);
        snprintf(layer, sizeof layer, "encoder.%u", (unsigned)i % POLICY_MAX_CONVS);
        policy_add_tensor(p, layer, "weight", conv.out, conv.kernel * conv.kernel * conv.in, true);
        policy_add_tensor(p, layer, "bias", conv.out, 1, false);
        conv.height = kern_conv_height(&p->convs[i]);
        conv.width = kern_conv_width(&p->convs[i]);
        conv.in = conv.out;
    }
    policy_add_tensor(p, "encoder", "weight", p->width, p->encoded_size, true);
    policy_add_tensor(p, "encoder", "bias", p->width, 1, false);
    if (list_size(p) > 0)
        policy_add_tensor(p, "encoder", "list", p->width, list_size(p), true);
    p->n_encoder_tensors = p->n_tensors;
    p->wide_bytes = p->byte_scale > 0.0f || list_size(p) > 0 ? kern_wide_bytes(kern) : 0;
}

/* ---- memory ---- */

void policy_plan_encoder_step(const struct policy *p, struct policy_step *s, struct plan *plan, size_t n)
{
    if (p->wide_bytes > 0)
        plan_add(plan, &s->wide, "widened observations", p->wide_bytes, 1, 1, 1);
    if (p->n_convs == 0)
        return;
    plan_add(plan, &s->conv[0], "step convolutions", p->ops->act_size, n, conv_numbers_max(p), 1);
    plan_add(plan, &s->conv[1], "step convolutions", p->ops->act_size, n, conv_numbers_max(p), 1);
    if (p->conv_scratch_bytes > 0)
        plan_add(plan, &s->conv_scratch, "patches of convolutions", p->conv_scratch_bytes, 1, 1, 1);
}

void policy_plan_encoder_pass(const struct policy *p, struct policy_pass *s, struct plan *plan, size_t n_tokens,
                              size_t n_block, size_t n_shards)
{
    size_t a = p->ops->act_size;

    s->n_shards = n_shards;
    if (p->wide_bytes > 0)
        plan_add(plan, &s->wide, "widened observations", p->wide_bytes, 1, 1, 1);
    if (p->n_convs == 0)
        return;
    for (size_t i = 0; i < p->n_convs; i++)
        plan_add(plan, &s->conv[i], "convolutions", a, n_tokens, conv_numbers(p, i), 1);
    plan_add(plan, &s->dconv[0], "gradients of convolutions", a, n_shards, n_block, conv_numbers_max(p));
    plan_add(plan, &s->dconv[1], "gradients of convolutions", a, n_shards, n_block, conv_numbers_max(p));
    if (p->conv_scratch_bytes > 0)
        plan_add(plan, &s->conv_scratch, "patches of convolutions", p->conv_scratch_bytes, 1, 1, 1);
}

void policy_encoder_at(const struct policy *p, struct policy_pass *at, size_t token, size_t shard)
{
    size_t back = shard * at->n_block * conv_numbers_max(p);

    for (size_t i = 0; i < p->n_convs; i++)
        at->conv[i] = act_at(p->ops, at->conv[i], token * conv_numbers(p, i));
    if (p->n_convs > 0) {
        at->dconv[0] = act_at(p->ops, at->dconv[0], back);
        at->dconv[1] = act_at(p->ops, at->dconv[1], back);
    }
    if (at->conv_scratch != NULL) /* of all the device's threads: each shard is one */
        at->conv_scratch = (char *)at->conv_scratch + shard * (p->conv_scratch_bytes / at->n_shards);
    if (at->wide != NULL)
        at->wide = (char *)at->wide + shard * (p->wide_bytes / at->n_shards);
}

/* ---- forward and backward ---- */

/* Where an encoder works: memory of its own, and what it reads of the policy. */
struct encoder_at {
    const struct policy *p;
    const struct policy_weights *w;
    void *scratch, *wide;
    const void *obs; /* (M, D) */
    size_t M;
};

/* Convolution i of x (M, ..). */
static struct kern_conv_layer conv_layer(const struct encoder_at *e, size_t i, const void *x)
{
    struct kern_conv_layer conv = {.shape = &e->p->convs[i],
                                   .M = e->M,
                                   .act = e->p->act,
                                   .x = x,
                                   .w = policy_w(e->p, e->w, 2 * i),
                                   .b = policy_w(e->p, e->w, 2 * i + 1),
                                   .scratch = e->scratch};
    if (i == 0)
        conv.from = first_source(e->p, 0, e->wide);
    return conv;
}

/* What comes after the convolutions: (M, H) of x (M, encoded_size). */
static struct kern_linear encoder_linear(const struct encoder_at *e, const void *x, void *y)
{
    const struct policy *p = e->p;
    struct kern_linear last = {.M = e->M,
                               .N = p->width,
                               .K = p->encoded_size,
                               .act = p->encoder_act,
                               .x = x,
                               .w = policy_w(p, e->w, 2 * p->n_convs),
                               .b = policy_w(p, e->w, 2 * p->n_convs + 1),
                               .y = y};
    if (p->n_convs == 0)
        last.from = first_source(p, 0, e->wide);
    return last;
}

/* The list's part of the same layer. */
static struct kern_linear encoder_list(const struct encoder_at *e, void *y)
{
    const struct policy *p = e->p;
    return (struct kern_linear){.M = e->M,
                                .N = p->width,
                                .K = list_size(p),
                                .act = p->encoder_act,
                                .x = e->obs,
                                .w = policy_w(p, e->w, 2 * p->n_convs + 2),
                                .b = policy_w(p, e->w, 2 * p->n_convs + 1),
                                .y = y,
                                .add_y = true,
                                .from = first_source(p, p->grid_size, e->wide)};
}

/* y (M, H) from x, what the last convolution gave, or the observation. */
static void encode_last(const struct encoder_at *e, struct kern *k, const void *x, void *y)
{
    struct kern_linear last = encoder_linear(e, x, y), list = encoder_list(e, y);

    if (list.K > 0) /* bias and activation once, after both */
        last.b = NULL, last.act = KERN_ACT_NONE;
    e->p->ops->linear_forward(k, &last);
    if (list.K > 0)
        e->p->ops->linear_forward(k, &list);
}

void policy_encode_step(const struct policy *p, struct kern *k, struct policy_step *s, const struct policy_weights *w,
                        const void *obs, size_t n)
{
    const struct encoder_at e = {p, w, s->conv_scratch, s->wide, obs, n};
    const void *x = obs;

    for (size_t i = 0; i < p->n_convs; i++) {
        struct kern_conv_layer conv = conv_layer(&e, i, x);
        x = conv.y = s->conv[i % 2];
        p->ops->conv_forward(k, &conv);
    }
    encode_last(&e, k, x, s->x[0]);
}

void policy_encode(const struct policy *p, struct kern *k, struct policy_pass *s, const struct policy_weights *w,
                   const void *obs, size_t M)
{
    const struct encoder_at e = {p, w, s->conv_scratch, s->wide, obs, M};
    const void *x = obs;

    for (size_t i = 0; i < p->n_convs; i++) {
        struct kern_conv_layer conv = conv_layer(&e, i, x);
        x = conv.y = s->conv[i];
        p->ops->conv_forward(k, &conv);
    }
    encode_last(&e, k, x, s->encoded);
}

void policy_encode_backward(const struct policy *p, struct kern *k, struct policy_pass *s,
                            const struct policy_weights *w, float *grads, void *dy, const void *obs, size_t M, bool add)
{
    const struct kern_tensor *tensors = p->tensors;
    const struct encoder_at e = {p, w, s->conv_scratch, s->wide, obs, M};
    size_t n = p->n_convs;
    struct kern_linear last = encoder_linear(&e, n > 0 ? s->conv[n - 1] : obs, s->encoded);
    struct kern_linear list = encoder_list(&e, NULL);

    last.dy = dy, last.dx = n > 0 ? s->dconv[n % 2] : NULL, last.add_dw = add;
    last.dw = grads + tensors[2 * n].offset, last.db = grads + tensors[2 * n + 1].offset;
    p->ops->linear_backward(k, &last);
    if (list.K > 0) { /* dy is before the activation now */
        list.dy = dy, list.act = KERN_ACT_NONE, list.add_dw = add;
        list.dw = grads + tensors[2 * n + 2].offset;
        p->ops->linear_backward(k, &list);
    }
    for (size_t i = n; i-- > 0;) {
        struct kern_conv_layer conv = conv_layer(&e, i, i > 0 ? s->conv[i - 1] : obs);
        conv.y = s->conv[i], conv.dy = s->dconv[(i + 1) % 2], conv.dx = i > 0 ? s->dconv[i % 2] : NULL;
        conv.dw = grads + tensors[2 * i].offset, conv.db = grads + tensors[2 * i + 1].offset, conv.add_dw = add;
        p->ops->conv_backward(k, &conv);
    }
}
