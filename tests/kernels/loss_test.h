/* loss_test.h - random minibatches for the loss, shared by the tests of actions that are choices and of those that are
 * numbers. */
#pragma once

#include "tests/kernels/kern_test.h"

struct batch {
    struct kern_heads heads;
    size_t T, B, M, A, O;
    float *out, *old_logp, *adv, *ret, *old_value;
    float *weight; /* NULL: none */
    double *out64;
    int32_t *actions;
    uint8_t *mask; /* NULL: none */
    float mean_std[2];
    struct kern_hyper hyper;
};

/* Without actions and what was believed of them. */
static struct batch batch_open(struct rng *rng, struct kern_heads heads, size_t T, size_t B, float scale)
{
    struct batch b = {.heads = heads, .T = T, .B = B, .M = T * B, .mean_std = {0.3f, 1.7f}};
    b.A = (size_t)b.heads.n_logits;
    b.O = kern_heads_out(&b.heads);
    b.out = test_normal(rng, b.M * b.O, scale);
    b.out64 = test_f64(b.out, b.M * b.O);
    b.adv = test_normal(rng, b.M, 1.0f);
    b.ret = test_normal(rng, b.M, 1.0f);
    b.old_value = test_normal(rng, b.M, 1.0f);
    b.old_logp = NEW(float, b.M);
    b.actions = NEW(int32_t, b.M * (size_t)b.heads.n_heads);
    return b;
}

static struct kern_loss loss_of(const struct batch *b, float *dout, struct kern_stats *stats)
{
    return (struct kern_loss){.T = b->T,
                              .B = b->B,
                              .B_all = b->B,
                              .heads = &b->heads,
                              .hyper = &b->hyper,
                              .out = b->out,
                              .actions = b->actions,
                              .mask = b->mask,
                              .old_logp = b->old_logp,
                              .old_value = b->old_value,
                              .adv = b->adv,
                              .ret = b->ret,
                              .weight = b->weight,
                              .mean_std = b->mean_std,
                              .dout = dout,
                              .part = stats};
}
