/* numeric.c - after a loss or gradient that is not finite: finds the first bad tensor along the way the numbers took
 * (inputs, weights, activations, outputs, gradients), so that the message can name it. Slow; runs once, at the end. */
#include "trainer/trainer_priv.h"

#include <float.h>
#include <inttypes.h>

#define LARGE 1e6f /* an observation or reward beyond it is what training broke down by */

/* Element i of an array of f32 or bf16. */
static float numeric_at(const void *x, size_t size, size_t i)
{
    uint16_t half;
    float value;

    if (size == sizeof value) {
        memcpy(&value, (const char *)x + i * size, sizeof value);
        return value;
    }
    memcpy(&half, (const char *)x + i * size, sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Copies x (n) of elements of size bytes over and looks; *ret_at: index of the first value that is not finite or beyond
 * +-most, n if there is none. */
static enum status numeric_scan(struct trainer *t, const void *x, size_t size, size_t n, float most, size_t *ret_at,
                                float *ret_value, struct error *err)
{
    void *host = mem_try_array(n, size);
    size_t i = 0;

    t->n_looked++;
    if (host == NULL)
        return FAIL(err, ST_NUMERIC,
                    "training broke down at env step %" PRId64
                    " (NaN or Inf in loss or gradients); no memory to find where",
                    t->count.env_steps);
    enum status rc = kern_download(t->kern, host, x, n * size, err);
    while (rc == ST_OK && i < n && fabsf(numeric_at(host, size, i)) <= most)
        i++;
    *ret_at = i;
    *ret_value = rc == ST_OK && i < n ? numeric_at(host, size, i) : 0.0f;
    mem_free(host);
    return rc;
}

static const char *gradient_advice(const struct trainer *t)
{
    return t->set.max_grad_norm > 0 ? "a lower train.max_grad_norm"
                                    : "train.max_grad_norm = 1 (0 leaves gradients as they are)";
}

static enum status numeric_report(struct trainer *t, const char *what, const void *x, size_t size, size_t n,
                                  struct error *err)
{
    size_t at = n;
    float value = 0.0f;

    TRY(numeric_scan(t, x, size, n, FLT_MAX, &at, &value, err));
    if (at == n)
        return ST_OK;
    return FAIL(err, ST_NUMERIC,
                "%s is %g at element %zu of %zu, at env step %" PRId64 " (update %" PRId64 "); try a lower "
                "train.learning_rate, %s or train.reward_clip",
                what, (double)value, at, n, t->count.env_steps, t->count.updates, gradient_advice(t));
}

/* Rows of `row` numbers that the game gave, of an observation those from number `first` on; by: the option that has
 * scaled them, and may have overflowed, or NULL. */
static enum status numeric_report_game(struct trainer *t, const char *what, const void *x, size_t size, size_t n,
                                       size_t row, size_t first, const char *scale, const char *by, struct error *err)
{
    size_t at = n;
    float value = 0.0f;

    if (n > 0)
        TRY(numeric_scan(t, x, size, n, LARGE, &at, &value, err));
    if (at == n)
        return ST_OK;
    if (isfinite(value))
        return FAIL(err, ST_NUMERIC,
                    "training broke down at env step %" PRId64 " (update %" PRId64 "): number %zu of %s is %g; %s",
                    t->count.env_steps, t->count.updates, first + at % row, what, (double)value, scale);
    return FAIL(err, ST_NUMERIC,
                "training broke down at env step %" PRId64 " (update %" PRId64 "): number %zu of %s is %g; the game "
                "gave it%s%s; `trawl env check` plays the game and looks for the cause",
                t->count.env_steps, t->count.updates, first + at % row, what, (double)value,
                by != NULL ? ", or its numbers are too large for " : "", by != NULL ? by : "");
}

static enum status numeric_report_observations(struct trainer *t, size_t n, struct error *err)
{
    static const char what[] = "an observation";
    static const char scale[] =
        "a network learns best from about [-1, 1]: scale it in the game, or set policy.norm_obs = true";
    const struct policy *p = &t->policy;
    const char *by = p->set.norm_obs ? "policy.norm_obs" : NULL;
    size_t D = p->obs_size, floats = p->n_floats * p->n_frames;

    if (p->byte_scale == 0.0f)
        return numeric_report_game(t, what, t->mb.obs, t->ops->act_size, n * D, D, 0, scale, by, err);
    for (size_t i = 0; i < n && floats > 0; i++) { /* bytes are numbers, whatever they are */
        const float *end = policy_obs_at(p, t->mb.obs, i + 1);
        TRY(numeric_report_game(t, what, end - floats, sizeof *end, floats, floats, D - floats, scale, by, err));
    }
    return ST_OK;
}

enum status numeric_diagnose(struct trainer *t, struct error *err)
{
    static const char reward[] =
        "a network learns best from rewards of about 1: scale them in the game, or set train.scale_reward = true or "
        "train.reward_clip";
    struct policy *p = &t->policy;
    struct policy_pass *s = &t->pass;
    size_t M = trainer_segment_steps(t) * t->n_segments, H = p->width, a = t->ops->act_size, f = sizeof(float);
    char name[64];

    t->n_looked = 0;
    TRY(numeric_report_observations(t, M, err));
    TRY(numeric_report_game(t, "the rewards", t->roll.rewards, f, t->horizon * t->n_agents, t->n_agents, 0, reward,
                            t->set.scale_reward ? "train.scale_reward" : NULL, err));
    for (size_t i = 0; i < p->n_tensors; i++) {
        snprintf(name, sizeof name, "weight tensor %s", p->names[i]);
        TRY(numeric_report(t, name, t->params + p->tensors[i].offset, f, p->tensors[i].rows * p->tensors[i].cols, err));
    }
    for (size_t i = 0; i < p->n_convs; i++) {
        const struct kern_conv *c = &p->convs[i];
        snprintf(name, sizeof name, "output of encoder.%zu", i);
        TRY(numeric_report(t, name, s->conv[i], a, M * kern_conv_height(c) * kern_conv_width(c) * c->out, err));
    }
    TRY(numeric_report(t, "output of encoder", s->encoded, a, M * H, err));
    for (size_t l = 0; l < p->n_layers; l++) {
        snprintf(name, sizeof name, "output of core.%zu", l);
        TRY(numeric_report(t, name, s->core[l], a, M * H, err));
    }
    TRY(numeric_report(t, "output of heads", s->out, f, M * p->n_out, err));
    TRY(numeric_report(t, "advantage", t->mb.adv, f, M, err));
    TRY(numeric_report(t, "return", t->mb.ret, f, M, err));
    for (size_t i = p->n_tensors; i-- > 0;) { /* the way back starts at the heads */
        snprintf(name, sizeof name, "gradient of %s", p->names[i]);
        TRY(numeric_report(t, name, t->grads + p->tensors[i].offset, f, p->tensors[i].rows * p->tensors[i].cols, err));
    }
    return FAIL(err, ST_NUMERIC,
                "the norm of finite gradients overflows at env step %" PRId64 " (update %" PRId64
                "); try a lower train.learning_rate or %s",
                t->count.env_steps, t->count.updates, gradient_advice(t));
}
