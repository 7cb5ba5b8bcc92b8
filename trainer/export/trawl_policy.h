/* trawl_policy.h - runs a policy of Trawl without Trawl: C99 or C++, the standard library and libm alone.
 * `trawl export my.ckpt -o my.safetensors` writes the policy, `-o my.h` this header and the policy in it
 * (docs/export.md).
 *   struct trawl_policy p;
 *   if (trawl_policy_load(&p, "my.safetensors") != 0) ...             or trawl_policy_open(&p, bytes, n)
 *   float *state = (float *)calloc(p.state_size + 1, sizeof *state);  zeros at the start of each episode
 *   trawl_policy_forward(&p, state, obs, out);                        obs (obs_size) -> out (n_out); state moves on
 *   trawl_policy_act(&p, out, NULL, NULL, action);                    action (n_heads): the likeliest
 *   trawl_policy_close(&p);
 * One thread at a time uses a struct; each player has a state. For little-endian machines. */
#ifndef TRAWL_POLICY_H
#define TRAWL_POLICY_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRAWL_POLICY_HEADS 64 /* as many as a game may have */

struct trawl_policy {
    size_t obs_size, n_heads, n_columns, n_out, state_size; /* n_columns: of all heads; n_out: and of the value */
    int sizes[TRAWL_POLICY_HEADS]; /* choices of each head; 0: a number from low to high */
    float low[TRAWL_POLICY_HEADS], high[TRAWL_POLICY_HEADS];
    size_t width, n_core, n_reals, memory, bins; /* private; memory: of a core layer */
    double value_max; /* of bins */
    int grid[3], convs, channels, stride, scaled, squash;
    char core[8], act[8], encoder_act[8];
    /* scale (obs_size, 2), convolutions, encoder, list, core, heads: each weight (out, in), then bias */
    const float *w;
    float *x, *y, *z;
    void *file;
};

static inline float trawl_policy_activate(const char *act, float x)
{
    return act[0] == 'r' ? (x > 0.0f ? x : 0.0f) : act[0] == 't' ? tanhf(x) : act[0] == 's' ? 1 / (1 + expf(-x)) : x;
}

/* y (n) += w x, w (n, k); returns what comes after w. */
static inline const float *trawl_policy_add(float *y, const float *w, const float *x, size_t n, size_t k)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++)
            y[i] += w[i * k + j] * x[j];
    return w + n * k;
}

/* y (n) = act(w x + b), the bias lies after w. */
static inline const float *trawl_policy_linear(float *y, const float *w, const float *x, size_t n, size_t k,
                                               const char *act)
{
    memcpy(y, w + n * k, n * sizeof *y);
    w = trawl_policy_add(y, w, x, n, k);
    for (size_t i = 0; i < n; i++)
        y[i] = trawl_policy_activate(act, y[i]);
    return w + n;
}

/* A 3x3 convolution with a border of zeros, channels last; size: height, width, channels of x, then of y. */
static inline const float *trawl_policy_conv(const struct trawl_policy *p, const float *w, float *y, const float *x,
                                             int size[3])
{
    int s = p->stride, high = (size[0] - 1) / s + 1, wide = (size[1] - 1) / s + 1, c = size[2], n = p->channels;
    for (int i = 0; i < high * wide * n; i++) {
        float sum = w[n * 9 * c + i % n];
        for (int k = 0; k < 9; k++) {
            int row = i / (wide * n) * s + k / 3 - 1, col = i / n % wide * s + k % 3 - 1;
            for (int j = 0; row >= 0 && col >= 0 && row < size[0] && col < size[1] && j < c; j++)
                sum += w[(i % n * 9 + k) * c + j] * x[(row * size[1] + col) * c + j];
        }
        y[i] = trawl_policy_activate(p->act, sum);
    }
    size[0] = high, size[1] = wide, size[2] = n;
    return w + n * 9 * c + n;
}

/* A core layer: y (width) of x (width) and its state, which moves on. */
static inline const float *trawl_policy_core(const struct trawl_policy *p, const float *w, float *y, const float *x,
                                             float *h)
{
    size_t n = p->width, lstm = p->core[0] == 'l';
    float *a = p->z, *b = a + n, *c = b + n, *d = c + n;
    if (p->memory == 0)
        return trawl_policy_linear(y, w, x, n, n, p->act);
    memset(a, 0, 4 * n * sizeof *a);
    if (lstm)
        memcpy(a, w + 8 * n * n, 4 * n * sizeof *a);
    w = trawl_policy_add(a, w, x, lstm ? 4 * n : 3 * n, n);
    if (lstm)
        w = trawl_policy_add(a, w, h, 4 * n, n) + 4 * n;
    for (size_t j = 0; j < n; j++) {
        float in = trawl_policy_activate("s", a[j]), keep = trawl_policy_activate("s", b[j]);
        if (lstm) { /* input, forget, new, output; the state is h, then the cell */
            h[n + j] = keep * h[n + j] + in * tanhf(c[j]);
            y[j] = h[j] = trawl_policy_activate("s", d[j]) * tanhf(h[n + j]);
        } else { /* candidate, update, output */
            h[j] += keep * ((a[j] >= 0.0f ? a[j] + 0.5f : in) - h[j]);
            y[j] = x[j] + trawl_policy_activate("s", c[j]) * (h[j] - x[j]);
        }
    }
    return w;
}

/* Numbers of an observation that lie beside the grid. */
static inline size_t trawl_policy_list(const struct trawl_policy *p)
{
    return p->convs > 0 ? p->obs_size - (size_t)p->grid[0] * (size_t)p->grid[1] * (size_t)p->grid[2] : 0;
}

/* out (n_out) of obs (obs_size): the columns of the heads, then those of the value. */
static inline void trawl_policy_forward(const struct trawl_policy *p, float *state, const float *obs, float *out)
{
    int size[3] = {p->grid[0], p->grid[1], p->grid[2]};
    float *x = p->x, *y = p->y, *old;
    const float *w = p->w + (p->scaled ? 2 * p->obs_size : 0);
    size_t k = p->obs_size, list = trawl_policy_list(p);
    float *beside = p->z + 4 * p->width;
    for (size_t i = 0; i < k; i++)
        x[i] = p->scaled ? fminf(fmaxf((obs[i] - p->w[2 * i]) * p->w[2 * i + 1], -10.0f), 10.0f) : obs[i];
    memcpy(beside, x + k - list, list * sizeof *beside);
    for (int i = 0; i < p->convs; i++, old = x, x = y, y = old) {
        w = trawl_policy_conv(p, w, y, x, size);
        k = (size_t)(size[0] * size[1] * size[2]);
    }
    w = trawl_policy_linear(y, w, x, p->width, k, list > 0 ? "" : p->encoder_act);
    if (list > 0)
        w = trawl_policy_add(y, w, beside, p->width, list);
    for (size_t i = 0; list > 0 && i < p->width; i++)
        y[i] = trawl_policy_activate(p->encoder_act, y[i]);
    for (size_t i = 0; i < p->n_core; i++) {
        old = x, x = y, y = old;
        w = trawl_policy_core(p, w, y, x, state + i * p->memory);
    }
    trawl_policy_linear(out, w, y, p->n_out, p->width, "");
}

/* The value of out: the last column, or the mean of a distribution over bins. */
static inline float trawl_policy_value(const struct trawl_policy *p, const float *out)
{
    double sum = 0, mean = 0, top = -HUGE_VAL;
    const float *v = out + p->n_columns;
    for (size_t i = 0; i < p->bins; i++)
        top = v[i] > top ? v[i] : top;
    for (size_t i = 0; i < p->bins; i++) {
        double share = exp(v[i] - top), x = (2.0 * (double)i + 1 - (double)p->bins) / ((double)p->bins - 1);
        sum += share;
        mean += share * copysign(expm1(fabs(x) * log1p(p->value_max)), x);
    }
    return p->bins == 1 ? v[0] : (float)(mean / sum);
}

/* action (n_heads) of out: a choice's index, or a number in its range. mask (n_columns) or NULL: the choices that are
 * allowed. uniform NULL: the likeliest; else 2 random numbers in [0, 1) for each head, by which it is drawn. */
static inline void trawl_policy_act(const struct trawl_policy *p, const float *out, const unsigned char *mask,
                                    const float *uniform, float *action)
{
    const float *std = out + p->n_columns - p->n_reals;
    for (size_t h = 0; h < p->n_heads; h++, uniform = uniform ? uniform + 2 : NULL) {
        int n = p->sizes[h], best = -1, any = 0;
        float u = out[0], left = 0.0f;
        if (n == 0) {
            if (uniform)
                u += expf(fminf(fmaxf(*std, -10.0f), 4.0f)) * sqrtf(-2.0f * logf(1.0f - uniform[0])) *
                     cosf(6.2831853f * uniform[1]);
            u = p->squash ? tanhf(u) : fminf(fmaxf(u, -1.0f), 1.0f);
            action[h] = 0.5f * (p->low[h] + p->high[h]) + 0.5f * (p->high[h] - p->low[h]) * u;
            std++, out++;
            continue;
        }
        for (int i = 0; mask && i < n; i++)
            any |= mask[i]; /* where nothing is allowed, everything is */
        for (int i = 0; i < n; i++)
            if ((!any || mask[i]) && (best < 0 || out[i] > out[best]))
                best = i;
        u = out[best];
        for (int i = 0; uniform && i < n; i++)
            left += !any || mask[i] ? expf(out[i] - u) * uniform[0] : 0.0f;
        for (int i = 0; uniform && left >= 0.0f && i < n; i++)
            if (!any || mask[i])
                left -= expf(out[best = i] - u), left = left == 0.0f ? -1.0f : left;
        action[h] = (float)best;
        out += n, mask = mask ? mask + n : NULL;
    }
}

static inline void trawl_policy_close(struct trawl_policy *p)
{
    free(p->x);
    free(p->file);
    memset(p, 0, sizeof *p);
}

/* Numbers that a policy of this description has; below 0: there is no such policy. */
static inline double trawl_policy_count(const struct trawl_policy *p)
{
    double h = p->grid[0], w = p->grid[1], c = p->grid[2], k = (double)p->obs_size, n = (double)p->width;
    double count = p->scaled ? 2 * k : 0, sides = p->memory == 0 ? 1 : p->core[0] == 'l' ? 8 : 3;
    double biases = p->memory == 0 ? 1 : p->core[0] == 'l' ? 4 : 0;
    if (k < 1 || n < 1 || p->bins < 1 || p->convs < 0 || p->convs > 16 ||
        (p->convs > 0 && (p->stride < 1 || p->channels < 1 || h * w * c < 1)))
        return -1;
    if (p->convs > 0 && (h < 1 || w < 1 || h * w * c > k))
        return -1;
    double list = p->convs > 0 ? k - h * w * c : 0;
    for (int i = 0; i < p->convs; i++, c = p->channels, k = h * w * c) {
        count += p->channels * (9 * c + 1);
        h = floor((h - 1) / p->stride) + 1, w = floor((w - 1) / p->stride) + 1;
    }
    return count + n * (k + list + 1) + (double)p->n_core * n * (sides * n + biases) + (double)p->n_out * (n + 1);
}

/* The description of a policy in its file; not 0: there is none. */
static inline int trawl_policy_read(struct trawl_policy *p, const char *json, unsigned long long n_data)
{
    const char *at = strstr(json, "\"layout\":\"1 obs "), *last = strstr(json, "\"heads.bias\":");
    unsigned long long end = 0;
    int used = 0;
    char bounds[8] = "";
    if (!at ||
        sscanf(at + 16,
               "%zu grid %d %d %d conv %d %d %d scaled %d width %zu core %7s %zu act %7s %7s value %zu %lf bounds "
               "%7s heads %zu%n",
               &p->obs_size, &p->grid[0], &p->grid[1], &p->grid[2], &p->convs, &p->channels, &p->stride, &p->scaled,
               &p->width, p->core, &p->n_core, p->encoder_act, p->act, &p->bins, &p->value_max, bounds, &p->n_heads,
               &used) != 17)
        return 1;
    at += 16 + used;
    for (size_t h = 0; h < p->n_heads; h++, at += used) {
        if (h == TRAWL_POLICY_HEADS || sscanf(at, " %d %f %f%n", &p->sizes[h], &p->low[h], &p->high[h], &used) != 3 ||
            p->sizes[h] < 0)
            return 1;
        p->n_reals += p->sizes[h] == 0;
        p->n_columns += p->sizes[h] == 0 ? 2 : (size_t)p->sizes[h];
    }
    p->squash = bounds[0] == 't';
    p->memory = p->core[0] == 'l' ? 2 * p->width : p->core[1] == 'i' ? p->width : 0;
    p->state_size = p->n_core * p->memory;
    p->n_out = p->n_columns + p->bins;
    if (4 * trawl_policy_count(p) != (double)n_data)
        return 1;
    last = last ? strstr(last, "_offsets\":[") : NULL; /* it ends the file, but not when others wrote it again */
    return !last || sscanf(last, "_offsets\":[%*u,%llu]", &end) != 1 || end != n_data;
}

/* bytes (n), borrowed: a file as Trawl wrote it, at an address that is a multiple of 4. Not 0: it is not a policy. */
static inline int trawl_policy_open(struct trawl_policy *p, const void *bytes, size_t n)
{
    unsigned long long head = 0;
    memset(p, 0, sizeof *p);
    if (n > 8)
        memcpy(&head, bytes, 8);
    char *json = head > 0 && head <= n - 8 ? (char *)calloc(1, (size_t)head + 1) : NULL;
    if (json)
        memcpy(json, (const char *)bytes + 8, (size_t)head);
    int bad = !json || trawl_policy_read(p, json, n - 8 - head);
    free(json);
    size_t grid = bad || p->convs == 0 ? 0 : (size_t)p->grid[0] * (size_t)p->grid[1] * (size_t)p->channels;
    size_t most = grid + p->obs_size + p->width;
    p->x = bad ? NULL : (float *)calloc(2 * most + 4 * p->width + p->obs_size, sizeof *p->x);
    if (!p->x)
        return 1;
    p->y = p->x + most, p->z = p->y + most;
    p->w = (const float *)(const void *)((const char *)bytes + 8 + head);
    return 0;
}

static inline int trawl_policy_load(struct trawl_policy *p, const char *path)
{
    FILE *file = fopen(path, "rb");
    long n = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    void *bytes = n > 0 ? malloc((size_t)n) : NULL;
    int bad = !bytes || fseek(file, 0, SEEK_SET) != 0 || fread(bytes, 1, (size_t)n, file) != (size_t)n ||
              trawl_policy_open(p, bytes, (size_t)n);
    if (file)
        fclose(file);
    if (bad)
        free(bytes);
    else
        p->file = bytes;
    return bad;
}
#endif
