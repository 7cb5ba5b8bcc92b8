/* design.c - space-filling points: Sobol's sequence from GSL under a seeded scramble, and seeded random points.
 * The scramble of a dimension is a random lower triangular bit matrix and a random digital shift (Matousek's linear
 * scramble): every point is uniform, and blocks of 2^k points keep the sequence's balance. GSL leaves out the origin;
 * it is put back as point 0, which the shift moves like any other.
 * Invariant: a point depends on (seed, dim, index) alone. */
#include "gp/gp_priv.h"

enum { STREAM_SCRAMBLE = 1, STREAM_RANDOM };

static uint32_t parity(uint32_t bits)
{
    return (uint32_t)__builtin_parity(bits);
}

void design_init(struct design *design, size_t dim, struct rng rng)
{
    memset(design, 0, sizeof *design);
    design->dim = dim;
    design->rng = rng_split(rng, STREAM_RANDOM);
    if (dim > DESIGN_SOBOL_MAX_DIM)
        return;
    design->qrng.type = gsl_qrng_sobol;
    design->qrng.dimension = (unsigned)dim;
    design->qrng.state_size = gsl_qrng_sobol->state_size((unsigned)dim);
    design->qrng.state = mem_alloc(design->qrng.state_size);
    gsl_qrng_init(&design->qrng);
    struct rng scramble = rng_split(rng, STREAM_SCRAMBLE);
    for (size_t i = 0; i < dim; i++) {
        struct rng r = rng_split(scramble, i);
        design->shift[i] = rng_u32(&r) >> (32 - DESIGN_SOBOL_BITS);
        for (int b = 0; b < DESIGN_SOBOL_BITS; b++) { /* row of the b-th highest bit: itself and random higher ones */
            uint32_t self = 1u << (DESIGN_SOBOL_BITS - 1 - b);
            uint32_t higher = ((1u << DESIGN_SOBOL_BITS) - 1u) & ~(self | (self - 1u));
            design->rows[i][b] = self | (rng_u32(&r) & higher);
        }
    }
}

void design_free(struct design *design)
{
    mem_free(design->qrng.state);
    memset(design, 0, sizeof *design);
}

void design_sobol(struct design *design, uint64_t index, double *ret_u)
{
    if (!design->qrng.state) {
        design_random(design, index, UINT64_MAX, ret_u);
        return;
    }
    if (index < design->position || index == 0) {
        gsl_qrng_init(&design->qrng);
        design->position = 0;
        memset(design->raw, 0, sizeof design->raw);
    }
    for (; design->position < index; design->position++)
        gsl_qrng_get(&design->qrng, design->raw);
    const double scale = 1.0 / (1u << DESIGN_SOBOL_BITS);
    for (size_t i = 0; i < design->dim; i++) {
        uint32_t in = (uint32_t)(design->raw[i] * (1u << DESIGN_SOBOL_BITS)), out = 0;
        for (int b = 0; b < DESIGN_SOBOL_BITS; b++)
            out = out << 1 | parity(in & design->rows[i][b]);
        ret_u[i] = ((double)(out ^ design->shift[i]) + 0.5) * scale;
    }
}

void design_random(const struct design *design, uint64_t index, uint64_t attempt, double *ret_u)
{
    struct rng r = rng_split(rng_split(design->rng, index), attempt);
    for (size_t i = 0; i < design->dim; i++)
        ret_u[i] = rng_f64(&r);
}
