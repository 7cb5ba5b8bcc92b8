/* test_parity_norm.c - what normalises and joins: the CPU against a GPU (parity.h). */
#include "tests/kernels/parity.h"

#define OPS(k) (kern_ops(k))

/* sums (D, 3) of rows before; f64s, whose bytes differ by rounding, so only what comes of them is compared. */
static void add_sums(struct parity *p, size_t D)
{
    double sums[3 * 64];
    for (size_t d = 0; d < D; d++) {
        sums[3 * d] = 500.0;
        sums[3 * d + 1] = rng_f64(&p->rng);
        sums[3 * d + 2] = 500.0 * (0.5 + rng_f64(&p->rng));
    }
    parity_bytes(p, "sums", BUF_SCRATCH, sums, 3 * D * sizeof *sums);
}

/* n, D: the sums are looked at by way of the scale that they give */
static void norm_add_make(struct parity *p, const size_t *s)
{
    parity_add(p, "scale", BUF_F32, BUF_OUT, 2 * s[1]);
    parity_normal(p, "x", BUF_ACT, BUF_IN, s[0] * s[1], 2.0f);
    add_sums(p, s[1]);
}

static void norm_add_run(struct kern *k, const struct call *c)
{
    const struct kern_norm norm = {.n = c->s[0], .D = c->s[1], .scale = c->p[0], .x = c->p[1], .sums = c->p[2]};
    OPS(k)->norm_add(k, &norm);
    OPS(k)->norm_freeze(k, &norm);
}

/* parts, D: one part has no rows, and each column has another one of its own that has none */
static void norm_join_make(struct parity *p, const size_t *s)
{
    double parts[1000] = {0};
    parity_add(p, "scale", BUF_F32, BUF_OUT, 2 * s[1]);
    add_sums(p, s[1]);
    for (size_t i = 0; i < s[0] * s[1]; i++)
        if (i / s[1] != 1 && i % 5 != 3) {
            parts[3 * i] = 1.0 + (double)(i % 70);
            parts[3 * i + 1] = 3.0 * rng_f64(&p->rng);
            parts[3 * i + 2] = parts[3 * i] * rng_f64(&p->rng);
        }
    parity_bytes(p, "parts", BUF_SCRATCH, parts, 3 * s[0] * s[1] * sizeof *parts);
}

static void norm_join_run(struct kern *k, const struct call *c)
{
    const struct kern_norm norm = {
        .n_parts = c->s[0], .D = c->s[1], .scale = c->p[0], .sums = c->p[1], .parts = c->p[2]};
    OPS(k)->norm_join(k, &norm);
    OPS(k)->norm_join(k, &norm); /* of parts that are zero now: nothing changes */
    OPS(k)->norm_freeze(k, &norm);
}

/* n, D */
static void norm_apply_make(struct parity *p, const size_t *s)
{
    parity_normal(p, "x", BUF_ACT, BUF_INOUT, s[0] * s[1], 4.0f);
    float *scale = parity_normal(p, "scale", BUF_F32, BUF_IN, 2 * s[1], 1.0f);
    for (size_t d = 0; d < s[1]; d++)
        scale[2 * d + 1] = 0.2f + fabsf(scale[2 * d + 1]);
}

static void norm_apply_run(struct kern *k, const struct call *c)
{
    OPS(k)->norm_apply(k, &(struct kern_norm){.n = c->s[0], .D = c->s[1], .x = c->p[0], .scale = c->p[1]});
}

/* T, N, whether in two calls */
static void reward_scale_make(struct parity *p, const size_t *s)
{
    struct kern_hyper hyper = {.gamma = 0.97f};
    parity_normal(p, "rewards", BUF_F32, BUF_INOUT, s[0] * s[1], 3.0f);
    parity_normal(p, "carry", BUF_F32, BUF_INOUT, s[1], 5.0f);
    parity_add(p, "discounted", BUF_F32, BUF_OUT, s[0] * s[1]);
    parity_add(p, "scale", BUF_F32, BUF_OUT, 2);
    parity_flags(p, "terms", s[0] * s[1], 0.05f);
    parity_flags(p, "truncs", s[0] * s[1], 0.05f);
    parity_bytes(p, "hyper", BUF_IN, &hyper, sizeof hyper);
    add_sums(p, 1);
}

static void reward_scale_run(struct kern *k, const struct call *c)
{
    struct kern_reward_scale r = {.part = c->s[2] ? KERN_REWARD_ADD : KERN_REWARD_ALL,
                                  .T = c->s[0],
                                  .N = c->s[1],
                                  .rewards = c->p[0],
                                  .carry = c->p[1],
                                  .discounted = c->p[2],
                                  .scale = c->p[3],
                                  .terms = c->p[4],
                                  .truncs = c->p[5],
                                  .hyper = c->p[6],
                                  .sums = c->p[7]};
    OPS(k)->reward_scale(k, &r);
    r.part = KERN_REWARD_APPLY;
    if (c->s[2])
        OPS(k)->reward_scale(k, &r);
}

/* parts */
static void mean_std_join_make(struct parity *p, const size_t *s)
{
    parity_add(p, "mean_std", BUF_F32, BUF_OUT, 2);
    parity_normal(p, "parts", BUF_F32, BUF_IN, 2 * s[0], 1.0f);
}

static void mean_std_join_run(struct kern *k, const struct call *c)
{
    OPS(k)->mean_std_join(k, (float *)c->p[0], (const float *)c->p[1], c->s[0]);
}

/* ---- table ---- */

static const struct parity_case cases[] = {
    PARITY_ROW(norm_add, true, {1, 1}, {7, 3}, {4096, 17}, {300, 64}),
    PARITY_ROW_OF(norm_freeze, true, norm_add_make, norm_add_run, {33, 5}),
    PARITY_ROW(norm_join, false, {2, 1}, {4, 17}, {8, 40}),
    PARITY_ROW(norm_apply, true, {1, 1}, {7, 3}, {4096, 17}, {300, 64}),
    PARITY_ROW(reward_scale, false, {1, 1}, {64, 300}, {7, 1}, {64, 300, 1}),
    PARITY_ROW(mean_std_join, false, {1}, {2}, {64}),
};

int main(int argc, char **argv)
{
    return parity_main(argc, argv, "parity_norm", cases, COUNT(cases));
}
