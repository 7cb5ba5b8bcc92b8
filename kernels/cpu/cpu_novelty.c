/* cpu_novelty.c - the bonus of E3B (struct kern_novelty). An agent's steps follow from each other; agents are what the
 * workers share out. */
#include "base/base.h"
#include "kernels/cpu/cpu_priv.h"

#define F KERN_NOVELTY_FEATURES
#define AGENT_GRAIN 1
#define PIECE 64 /* numbers of an observation that are widened at a time */

/* Of observation `at`. */
static void features_of(float features[F], const struct kern_novelty *n, size_t at)
{
    struct kern_source from = n->from;
    const char *row;
    float obs[PIECE];

    from.row = from.row > 0 ? from.row : n->D;
    row = (const char *)n->obs + at * cpu_source_row_bytes(&from);
    memcpy(features, n->projection + n->D * F, F * sizeof *features);
    for (size_t d = 0; d < n->D; d++) {
        if (d % PIECE == 0)
            cpu_widen(obs, &from, row, 1, d, n->D - d < PIECE ? n->D - d : PIECE);
#pragma omp simd
        for (size_t j = 0; j < F; j++)
            features[j] += obs[d % PIECE] * n->projection[d * F + j];
    }
    for (size_t j = 0; j < F; j++)
        features[j] = sqrtf(2.0f / F) * cosf(features[j]);
}

/* The worth of one observation; known moves on. */
static float observe(float *known, const float features[F])
{
    float unknown[F], worth = 0.0f, scale; /* unknown: (I - known) features */

    memcpy(unknown, features, sizeof unknown);
    for (size_t i = 0; i < F; i++)
#pragma omp simd
        for (size_t j = 0; j < F; j++)
            unknown[j] -= known[i * F + j] * features[i];
    for (size_t j = 0; j < F; j++)
        worth += features[j] * unknown[j];
    worth = worth < 0.0f ? 0.0f : worth; /* rounding; NaN stays */
    scale = 1.0f / (KERN_NOVELTY_RIDGE + worth);
    for (size_t i = 0; i < F; i++)
#pragma omp simd
        for (size_t j = 0; j < F; j++)
            known[i * F + j] += scale * unknown[i] * unknown[j];
    return worth;
}

static void novelty_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct kern_novelty *n = (const struct kern_novelty *)ctx;
    const float coef = n->hyper->e3b_coef;
    float features[F];

    (void)worker;
    for (size_t i = from; i < to; i++) {
        float *known = n->known + i * F * F;
        for (size_t t = 0; t < n->T; t++) {
            size_t after = (t + 1) * n->N + i;
            if (n->reset[after])
                memset(known, 0, F * F * sizeof *known);
            features_of(features, n, after);
            float worth = observe(known, features);
            if (!n->reset[after])
                n->rewards[t * n->N + i] += coef * worth;
        }
    }
}

void cpu_novelty(struct kern *k, const struct kern_novelty *n)
{
    cpu_run(k, n->N, AGENT_GRAIN, novelty_part, n);
}
