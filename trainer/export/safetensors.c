/* safetensors.c - a policy as a file of safetensors: 8 bytes length of a JSON header, the header, the numbers in f32.
 * Invariants: (1) tensors lie in the order that a policy computes with them (obs.scale, then that of policy_init),
 * without gaps, at a multiple of 8 bytes; (2) the header's "layout" is all that trawl_policy.h needs besides. */
#include "trainer/export/export_priv.h"

#include <inttypes.h>

static const char *core_name(const struct policy *p)
{
    static const char *const names[] = {[POLICY_CORE_NONE] = "none",
                                        [POLICY_CORE_MLP] = "mlp",
                                        [POLICY_CORE_MINGRU] = "mingru",
                                        [POLICY_CORE_LSTM] = "lstm"};
    return names[p->n_layers > 0 ? p->set.core : POLICY_CORE_NONE];
}

static const char *act_name(enum kern_act act)
{
    return act == KERN_ACT_RELU ? "relu" : act == KERN_ACT_TANH ? "tanh" : "none";
}

static void add_layout(const struct exported *e, struct strbuf *out)
{
    const struct policy *p = e->policy;
    bool grid = p->n_convs > 0;
    char low[NUM_TEXT_MAX], high[NUM_TEXT_MAX];

    strbuf_addf(out, "\"layout\":\"1 obs %zu grid %d %d %d conv %zu %zu %zu scaled %d width %zu core %s %zu act %s %s",
                p->obs_size, grid ? e->shape->height : 0, grid ? e->shape->width : 0, grid ? e->shape->channels : 0,
                p->n_convs, grid ? p->convs[0].out : 0, grid ? p->convs[0].stride : 1, e->scale != NULL, p->width,
                core_name(p), p->n_layers, act_name(p->encoder_act), act_name(p->act));
    strbuf_addf(out, " value %zu %" PRId64 " bounds %s heads %d", p->n_out - p->n_logits,
                p->heads.n_bins > 0 ? p->set.value_max : 0, p->heads.squash ? "tanh" : "clip", p->heads.n_heads);
    for (int j = 0; j < p->heads.n_heads; j++)
        strbuf_addf(out, " %d %s %s", p->heads.sizes[j], num_format_f64((double)p->heads.low[j], low),
                    num_format_f64((double)p->heads.high[j], high));
    strbuf_add(out, "\"");
}

/* One tensor's entry; *offset moves past it. */
static void add_entry(struct strbuf *out, const char *name, const char *shape, size_t n, size_t *offset)
{
    strbuf_addf(out, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", name, shape, *offset,
                *offset + n * sizeof(float));
    *offset += n * sizeof(float);
}

static void add_entries(const struct exported *e, struct strbuf *out)
{
    const struct policy *p = e->policy;
    size_t offset = 0;
    char shape[80];

    if (e->scale != NULL) {
        snprintf(shape, sizeof shape, "%zu,2", p->obs_size);
        add_entry(out, "obs.scale", shape, 2 * p->obs_size, &offset);
    }
    for (size_t i = 0; i < p->n_tensors; i++) {
        const struct kern_tensor *t = &p->tensors[i];
        if (i < 2 * p->n_convs && t->is_matrix)
            snprintf(shape, sizeof shape, "%zu,%zu,%zu,%zu", t->rows, p->convs[i / 2].kernel, p->convs[i / 2].kernel,
                     p->convs[i / 2].in);
        else if (t->is_matrix)
            snprintf(shape, sizeof shape, "%zu,%zu", t->rows, t->cols);
        else
            snprintf(shape, sizeof shape, "%zu", t->rows);
        add_entry(out, p->names[i], shape, t->rows * t->cols, &offset);
    }
}

void safetensors_write(const struct exported *e, struct strbuf *out)
{
    STRBUF(head, out->max);

    strbuf_addf(&head, "{\"__metadata__\":{\"format\":\"trawl-policy\",\"env\":\"%s\",", e->env);
    add_layout(e, &head);
    strbuf_add(&head, "}");
    add_entries(e, &head);
    strbuf_add(&head, "}");
    while (head.len % 8 != 0)
        strbuf_add(&head, " ");
    uint64_t n = head.len;
    strbuf_add_n(out, (const char *)&n, sizeof n);
    strbuf_add_n(out, head.text, head.len);
    if (e->scale != NULL)
        strbuf_add_n(out, (const char *)e->scale, 2 * e->policy->obs_size * sizeof *e->scale);
    strbuf_add_n(out, (const char *)e->params, e->policy->n_params * sizeof *e->params);
}
