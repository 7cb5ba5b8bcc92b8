/* numeric.c - after a loss or gradient that is not finite: finds the first bad tensor along the way the numbers took
 * (inputs, weights, activations, outputs, gradients), so that the message can name it. Slow; runs once, at the end. */
#include "trainer/trainer_priv.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Element i of an array of f32 or bf16. */
static float numeric_at(const void *x, size_t size, size_t i)
{
    uint16_t half;
    uint32_t bits;
    float value;

    if (size == sizeof value) {
        memcpy(&value, (const char *)x + i * size, sizeof value);
        return value;
    }
    memcpy(&half, (const char *)x + i * size, sizeof half);
    bits = (uint32_t)half << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Copies x (n) of elements of size bytes over and looks; *ret_at: index of the first bad value, n if there is none. */
static enum status numeric_scan(struct trainer *t, const void *x, size_t size, size_t n, size_t *ret_at,
                                float *ret_value, struct error *err)
{
    void *host = mem_try_array(n, size);
    size_t i = 0;

    if (host == NULL)
        return FAIL(err, ST_NUMERIC,
                    "training broke down at env step %" PRId64
                    " (NaN or Inf in loss or gradients); no memory to find where",
                    t->count.env_steps);
    enum status rc = kern_download(t->kern, host, x, n * size, err);
    while (rc == ST_OK && i < n && isfinite(numeric_at(host, size, i)))
        i++;
    *ret_at = i;
    *ret_value = rc == ST_OK && i < n ? numeric_at(host, size, i) : 0.0f;
    mem_free(host);
    return rc;
}

static enum status numeric_report_as(struct trainer *t, const char *what, const char *advice, const void *x,
                                     size_t size, size_t n, struct error *err)
{
    size_t at = n;
    float value = 0.0f;

    if (n == 0)
        return ST_OK;
    t->n_looked++;
    TRY(numeric_scan(t, x, size, n, &at, &value, err));
    if (at == n)
        return ST_OK;
    return FAIL(err, ST_NUMERIC, "%s is %g at element %zu of %zu, at env step %" PRId64 " (update %" PRId64 "); %s",
                what, (double)value, at, n, t->count.env_steps, t->count.updates, advice);
}

static enum status numeric_report(struct trainer *t, const char *what, const void *x, size_t size, size_t n,
                                  struct error *err)
{
    return numeric_report_as(
        t, what, "try a lower train.learning_rate, a lower train.max_grad_norm or train.reward_clip", x, size, n, err);
}

enum status numeric_diagnose(struct trainer *t, struct error *err)
{
    static const char from_game[] = "the game gave it; `trawl env check` plays the game and looks for the cause";
    struct policy *p = &t->policy;
    struct policy_pass *s = &t->pass;
    size_t M = trainer_segment_steps(t) * t->n_segments, H = p->width, a = t->ops->act_size, f = sizeof(float);
    char name[64];

    t->n_looked = 0;
    if (p->byte_scale == 0.0f) /* bytes are numbers, whatever they are */
        TRY(numeric_report_as(t, "observation", from_game, t->mb.obs, a, M * p->obs_size, err));
    for (size_t i = 0, n = p->n_floats * p->n_frames; p->byte_scale > 0.0f && i < M; i++)
        TRY(numeric_report_as(t, "observation", from_game, (char *)policy_obs_at(p, t->mb.obs, i + 1) - n * f, f, n,
                              err));
    TRY(numeric_report_as(t, "reward", from_game, t->roll.rewards, f, t->horizon * t->n_agents, err));
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
                "); try a lower train.learning_rate",
                t->count.env_steps, t->count.updates);
}
