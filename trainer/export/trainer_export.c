/* trainer_export.c - the policy of a trainer for other programs: brings its numbers to the host and calls the
 * writer. */
#include "trainer/export/export_priv.h"

#include <ctype.h>

#define IDENTIFIER_MAX 48

void exported_centres(const struct exported *e, float *ret_centres)
{
    int n = e->policy->heads.n_bins;
    double most = log1p((double)e->policy->set.value_max);

    for (int i = 0; i < n; i++) {
        double x = most * (2 * i + 1 - n) / (n - 1);
        ret_centres[i] = (float)copysign(expm1(fabs(x)), x);
    }
}

/* trawl_policy.h, and the file of safetensors as an array that it opens. */
static void header_write(const struct exported *e, const char *name, struct strbuf *out)
{
    char identifier[IDENTIFIER_MAX] = "";

    for (size_t i = 0; name[i] != '\0' && i + 1 < sizeof identifier; i++)
        identifier[i] = isalnum((unsigned char)name[i]) ? name[i] : '_';
    if (isdigit((unsigned char)identifier[0])) { /* no C name begins so */
        memmove(identifier + 1, identifier, sizeof identifier - 2);
        identifier[0] = '_';
    }
    STRBUF(file, out->max);
    safetensors_write(e, &file);
    strbuf_addf(out, "/* A policy for %s, made by `trawl export`: trawl_policy_open(&p, %s_policy.bytes, %zu) */\n",
                e->env, identifier, file.len);
    strbuf_add(out, trawl_policy_h);
    strbuf_addf(out, "\nstatic const union {\n    unsigned char bytes[%zu];\n    float aligned;\n} %s_policy = {{",
                file.len, identifier);
    for (size_t i = 0; i < file.len; i++)
        strbuf_addf(out, "%s%u,", i % 24 == 0 ? "\n    " : "", (unsigned)(unsigned char)file.text[i]);
    strbuf_add(out, "\n}};\n");
    if (out->status == ST_OK)
        out->status = file.status;
}

/* Numbers of an observation that are bytes. */
static size_t n_bytes(const struct policy *p)
{
    return p->byte_scale > 0.0f ? p->obs_size - p->n_floats * p->n_frames : 0;
}

/* A form that normalises clips to this; bytes are brought within it before. */
#define NORM_LIMIT 10.0f
static float shrink(const struct policy *p)
{
    return p->set.norm_obs ? fminf(p->byte_scale, NORM_LIMIT / 255.0f) : 1.0f;
}

/* The weights of the first n columns. */
static void fold_columns(const struct kern_tensor *tensor, size_t n, float factor, float *params)
{
    for (size_t i = 0; i < tensor->rows * tensor->cols; i++)
        if (i % tensor->cols < n)
            params[tensor->offset + i] *= factor;
}

/* Observations that are bytes go into the policy as numbers of that size: what the first layers, of the grid and of the
 * list, do to them lies in their weights, but for what the normalising does. */
static void fold_byte_scale(const struct policy *p, float *params)
{
    const struct kern_tensor *first = &p->tensors[0];
    size_t n = n_bytes(p), list = 2 * p->n_convs + 2;

    if (n == 0)
        return;
    fold_columns(first, p->n_convs > 0 ? first->cols : n, p->byte_scale / shrink(p), params);
    if (p->n_convs > 0 && p->n_encoder_tensors > list)
        fold_columns(&p->tensors[list], n - p->grid_size, p->byte_scale / shrink(p), params);
}

/* Mean and 1 / deviation of every number; bytes are divided alone. */
static enum status get_scale(struct trainer *t, float *scale, struct error *err)
{
    size_t n = t->norm_of.n_numbers, n_other = t->policy.frame_size - n;
    MEM_LOCAL float *numbers = mem_array(2 * n, sizeof *numbers);
    enum status rc = kern_download(t->kern, numbers, t->norm_of.obs_scale, 2 * n * sizeof *numbers, err);

    for (size_t j = 0; j < t->policy.frame_size; j++)
        for (size_t f = 0; f < t->policy.n_frames; f++) {
            float *at = scale + 2 * frames_place(t, j, f);
            at[0] = j < n_other ? 0.0f : numbers[2 * (j - n_other)];
            at[1] = j < n_other ? shrink(&t->policy) : numbers[2 * (j - n_other) + 1];
        }
    return rc;
}

enum status trainer_export(struct trainer *t, enum policy_form form, const char *name, struct strbuf *out,
                           struct error *err)
{
    const struct policy *p = &t->policy;
    struct env_shape seen = t->shape;
    struct exported e = {.policy = p, .shape = &seen, .env = t->def->name};

    seen.channels *= (int)p->n_frames;
    e.params = mem_array(p->n_params, sizeof *e.params);
    if (p->set.norm_obs)
        e.scale = mem_array(2 * p->obs_size, sizeof *e.scale);
    enum status rc = trainer_get_params(t, e.params, err);
    fold_byte_scale(p, e.params);
    if (rc == ST_OK && e.scale != NULL)
        rc = get_scale(t, e.scale, err);
    if (rc == ST_OK && form == POLICY_ONNX)
        onnx_write(&e, out);
    else if (rc == ST_OK && form == POLICY_SAFETENSORS)
        safetensors_write(&e, out);
    else if (rc == ST_OK)
        header_write(&e, name, out);
    mem_free(e.scale);
    mem_free(e.params);
    return rc == ST_OK ? strbuf_status(out, "the policy", err) : rc;
}
