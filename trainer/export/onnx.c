/* onnx.c - a policy as an ONNX graph of one decision, of operators of opset 13 alone.
 * Inputs: obs (batch, D); state (L, batch, S) of a recurrent core, zeros at an episode's start; mask (batch, A) bool
 * where the game has one. Outputs: action (batch, heads), the likeliest (int64; f32 as soon as one is a number); of
 * head j logits_j (masked), or mean_j and log_std_j; value (batch); next_state. Names of ONNX' messages stand beside
 * field numbers (onnx.proto). */
#include "trainer/export/export_priv.h"

#include "base/text/protobuf.h"

#define ONNX_IR_VERSION 8
#define ONNX_OPSET 13
#define NAME_MAX_BYTES 40

enum onnx_type { ONNX_FLOAT = 1, ONNX_INT64 = 7, ONNX_BOOL = 9 };

struct onnx {
    const struct exported *of;
    struct strbuf graph; /* GraphProto */
    size_t max;
    int n_names; /* of values between */
};

struct name {
    char text[NAME_MAX_BYTES];
};

/* ---- pieces of a graph ---- */

static struct name new_name(struct onnx *g)
{
    struct name name;
    snprintf(name.text, sizeof name.text, "v%d", g->n_names++);
    return name;
}

/* An initializer: TensorProto of n bytes. */
static void add_tensor(struct onnx *g, const char *name, enum onnx_type type, const int64_t *dims, int n_dims,
                       const void *bytes, size_t n)
{
    struct strbuf tensor;

    strbuf_init(&tensor, g->max);
    for (int i = 0; i < n_dims; i++)
        pb_int(&tensor, 1, dims[i]); /* dims */
    pb_int(&tensor, 2, type); /* data_type */
    pb_text(&tensor, 8, name);
    pb_bytes(&tensor, 9, bytes, n); /* raw_data */
    pb_message(&g->graph, 5, &tensor); /* initializer */
}

static struct name add_ints(struct onnx *g, const int64_t *values, int n)
{
    struct name name = new_name(g);
    int64_t dim = n;
    add_tensor(g, name.text, ONNX_INT64, &dim, 1, values, (size_t)n * sizeof *values);
    return name;
}

static struct name add_int(struct onnx *g, int64_t value)
{
    return add_ints(g, &value, 1);
}

static struct name add_float(struct onnx *g, float value)
{
    struct name name = new_name(g);
    add_tensor(g, name.text, ONNX_FLOAT, NULL, 0, &value, sizeof value);
    return name;
}

/* A node without its outputs and attributes. */
static struct strbuf begin_node(struct onnx *g, const char *op, const char *a, const char *b, const char *c)
{
    const char *const inputs[] = {a, b, c};
    struct strbuf node;

    strbuf_init(&node, g->max);
    for (int i = 0; i < 3 && inputs[i] != NULL; i++)
        pb_text(&node, 1, inputs[i]); /* input */
    pb_text(&node, 4, op); /* op_type */
    return node;
}

static void add_attribute_ints(struct onnx *g, struct strbuf *node, const char *name, const int64_t *values, int n)
{
    struct strbuf attribute;

    strbuf_init(&attribute, g->max);
    pb_text(&attribute, 1, name);
    for (int i = 0; i < n; i++)
        pb_int(&attribute, 8, values[i]); /* ints */
    pb_int(&attribute, 20, 7); /* type INTS */
    pb_message(node, 5, &attribute);
}

static void add_attribute_int(struct onnx *g, struct strbuf *node, const char *name, int64_t value)
{
    struct strbuf attribute;

    strbuf_init(&attribute, g->max);
    pb_text(&attribute, 1, name);
    pb_int(&attribute, 3, value); /* i */
    pb_int(&attribute, 20, 2); /* type INT */
    pb_message(node, 5, &attribute);
}

static struct name end_node(struct onnx *g, struct strbuf *node, const char *output)
{
    struct name name;

    if (output != NULL)
        snprintf(name.text, sizeof name.text, "%s", output);
    else
        name = new_name(g);
    pb_text(node, 2, name.text); /* output */
    pb_message(&g->graph, 1, node);
    return name;
}

/* A node without attributes; c and b may be NULL. */
static struct name add_node(struct onnx *g, const char *op, const char *a, const char *b, const char *c)
{
    struct strbuf node = begin_node(g, op, a, b, c);
    return end_node(g, &node, NULL);
}

static struct name add_axis_node(struct onnx *g, const char *op, const char *a, const char *b, int64_t axis,
                                 const char *output)
{
    struct strbuf node = begin_node(g, op, a, b, NULL);
    add_attribute_int(g, &node, "axis", axis);
    return end_node(g, &node, output);
}

/* Columns [from, to) of x (batch, ..). */
static struct name add_columns(struct onnx *g, const char *x, size_t from, size_t to, const char *output)
{
    struct name a = add_int(g, (int64_t)from), b = add_int(g, (int64_t)to), axes = add_int(g, 1);

    struct strbuf node = begin_node(g, "Slice", x, a.text, b.text);
    pb_text(&node, 1, axes.text);
    return end_node(g, &node, output);
}

static struct name add_activation(struct onnx *g, enum kern_act act, struct name x)
{
    if (act == KERN_ACT_NONE)
        return x;
    return add_node(g, act == KERN_ACT_RELU ? "Relu" : "Tanh", x.text, NULL, NULL);
}

/* The policy's tensor i as an initializer of its own name. */
static void add_params(struct onnx *g, size_t i)
{
    const struct policy *p = g->of->policy;
    const struct kern_tensor *t = &p->tensors[i];
    const int64_t dims[] = {(int64_t)t->rows, (int64_t)t->cols};

    add_tensor(g, p->names[i], ONNX_FLOAT, dims, t->is_matrix ? 2 : 1, g->of->params + t->offset,
               t->rows * t->cols * sizeof(float));
}

/* x w^T + b, w being tensor i, b tensor `bias` (0: none). */
static struct name add_linear(struct onnx *g, struct name x, size_t i, size_t bias)
{
    const struct policy *p = g->of->policy;

    add_params(g, i);
    if (bias > 0)
        add_params(g, bias);
    struct strbuf node = begin_node(g, "Gemm", x.text, p->names[i], bias > 0 ? p->names[bias] : NULL);
    add_attribute_int(g, &node, "transB", 1);
    return end_node(g, &node, NULL);
}

/* ---- the encoder ---- */

static struct name add_scaled(struct onnx *g, struct name x)
{
    size_t n = g->of->policy->obs_size;
    int64_t dim = (int64_t)n;
    MEM_LOCAL float *column = mem_array(n, sizeof *column);
    struct name low = add_float(g, -10.0f), high = add_float(g, 10.0f);

    for (int k = 0; k < 2; k++) {
        struct name name = new_name(g);
        for (size_t i = 0; i < n; i++)
            column[i] = g->of->scale[2 * i + (size_t)k];
        add_tensor(g, name.text, ONNX_FLOAT, &dim, 1, column, n * sizeof *column);
        x = add_node(g, k == 0 ? "Sub" : "Mul", x.text, name.text, NULL);
    }
    return add_node(g, "Clip", x.text, low.text, high.text);
}

static struct name add_transpose(struct onnx *g, struct name x, const int64_t order[4])
{
    struct strbuf node = begin_node(g, "Transpose", x.text, NULL, NULL);
    add_attribute_ints(g, &node, "perm", order, 4);
    return end_node(g, &node, NULL);
}

/* Convolution i of x (batch, in, height, width), its filters turned from channels last to channels first. */
static struct name add_conv(struct onnx *g, struct name x, size_t i)
{
    const struct policy *p = g->of->policy;
    const struct kern_conv *c = &p->convs[i];
    size_t area = c->kernel * c->kernel, n = c->out * area * c->in;
    const float *w = g->of->params + p->tensors[2 * i].offset;
    const int64_t k = (int64_t)c->kernel, pad = (int64_t)c->pad, stride = (int64_t)c->stride;
    const int64_t dims[] = {(int64_t)c->out, (int64_t)c->in, k, k};
    MEM_LOCAL float *turned = mem_array(n, sizeof *turned);

    for (size_t f = 0; f < c->out; f++)
        for (size_t at = 0; at < area; at++)
            for (size_t ch = 0; ch < c->in; ch++)
                turned[(f * c->in + ch) * area + at] = w[(f * area + at) * c->in + ch];
    add_tensor(g, p->names[2 * i], ONNX_FLOAT, dims, 4, turned, n * sizeof *turned);
    add_params(g, 2 * i + 1);
    struct strbuf node = begin_node(g, "Conv", x.text, p->names[2 * i], p->names[2 * i + 1]);
    add_attribute_ints(g, &node, "kernel_shape", (const int64_t[]){k, k}, 2);
    add_attribute_ints(g, &node, "strides", (const int64_t[]){stride, stride}, 2);
    add_attribute_ints(g, &node, "pads", (const int64_t[]){pad, pad, pad, pad}, 4);
    return add_activation(g, p->act, end_node(g, &node, NULL));
}

static struct name add_encoder(struct onnx *g)
{
    const struct policy *p = g->of->policy;
    const struct env_shape *shape = g->of->shape;
    bool list = p->n_encoder_tensors > 2 * p->n_convs + 2;
    struct name x = {"obs"}, seen;

    if (g->of->scale != NULL)
        x = add_scaled(g, x);
    seen = x;
    if (list)
        x = add_columns(g, seen.text, 0, p->grid_size, NULL);
    if (p->n_convs > 0) {
        struct name grid = add_ints(g, (const int64_t[]){-1, shape->height, shape->width, shape->channels}, 4);
        struct name flat = add_ints(g, (const int64_t[]){-1, (int64_t)p->encoded_size}, 2);
        x = add_node(g, "Reshape", x.text, grid.text, NULL);
        x = add_transpose(g, x, (const int64_t[]){0, 3, 1, 2});
        for (size_t i = 0; i < p->n_convs; i++)
            x = add_conv(g, x, i);
        x = add_transpose(g, x, (const int64_t[]){0, 2, 3, 1});
        x = add_node(g, "Reshape", x.text, flat.text, NULL);
    }
    x = add_linear(g, x, 2 * p->n_convs, 2 * p->n_convs + 1);
    if (list) {
        seen = add_columns(g, seen.text, p->grid_size, p->obs_size, NULL);
        x = add_node(g, "Add", x.text, add_linear(g, seen, 2 * p->n_convs + 2, 0).text, NULL);
    }
    return add_activation(g, p->encoder_act, x);
}

/* ---- the core ---- */

static struct name sigmoid_of(struct onnx *g, struct name x)
{
    return add_node(g, "Sigmoid", x.text, NULL, NULL);
}

static struct name add_op(struct onnx *g, const char *op, struct name a, struct name b)
{
    return add_node(g, op, a.text, b.text, NULL);
}

/* Gate i of gates (batch, gates H). */
static struct name gate(struct onnx *g, struct name gates, size_t i)
{
    size_t H = g->of->policy->width;
    return add_columns(g, gates.text, i * H, (i + 1) * H, NULL);
}

/* y of x; *state (batch, H) moves on. Tensor i is the layer's weight. */
static struct name add_mingru(struct onnx *g, struct name x, struct name *state, size_t i)
{
    struct name gates = add_linear(g, x, i, 0), a = gate(g, gates, 0), z = sigmoid_of(g, gate(g, gates, 1)),
                s = sigmoid_of(g, gate(g, gates, 2));
    struct name positive = add_op(g, "GreaterOrEqual", a, add_float(g, 0.0f)),
                line = add_op(g, "Add", a, add_float(g, 0.5f));
    struct name candidate = add_node(g, "Where", positive.text, line.text, sigmoid_of(g, a).text);

    *state = add_op(g, "Add", *state, add_op(g, "Mul", z, add_op(g, "Sub", candidate, *state)));
    return add_op(g, "Add", x, add_op(g, "Mul", s, add_op(g, "Sub", *state, x)));
}

/* The same of an LSTM, whose state (batch, 2H) is h, then the cell. */
static struct name add_lstm(struct onnx *g, struct name x, struct name *state, size_t i)
{
    struct name h = gate(g, *state, 0), c = gate(g, *state, 1);
    struct name gates = add_op(g, "Add", add_linear(g, x, i, i + 2), add_linear(g, h, i + 1, 0));
    struct name in = sigmoid_of(g, gate(g, gates, 0)), keep = sigmoid_of(g, gate(g, gates, 1)),
                new = add_node(g, "Tanh", gate(g, gates, 2).text, NULL, NULL), show = sigmoid_of(g, gate(g, gates, 3));

    c = add_op(g, "Add", add_op(g, "Mul", keep, c), add_op(g, "Mul", in, new));
    h = add_op(g, "Mul", show, add_node(g, "Tanh", c.text, NULL, NULL));
    *state = add_axis_node(g, "Concat", h.text, c.text, 1, NULL);
    return h;
}

static struct name add_core(struct onnx *g, struct name x)
{
    const struct policy *p = g->of->policy;
    AT_END(strbuf_free) struct strbuf all = begin_node(g, "Concat", NULL, NULL, NULL);
    size_t i = p->n_encoder_tensors;
    struct name axis;

    if (p->recurrent)
        axis = add_int(g, 0);
    for (size_t l = 0; l < p->n_layers; l++) {
        if (!p->recurrent) {
            x = add_activation(g, p->act, add_linear(g, x, i, i + 1));
            i += 2;
            continue;
        }
        struct name index = new_name(g);
        add_tensor(g, index.text, ONNX_INT64, NULL, 0, &(int64_t){(int64_t)l}, sizeof(int64_t));
        struct name state = add_axis_node(g, "Gather", "state", index.text, 0, NULL);
        x = p->set.core == POLICY_CORE_LSTM ? add_lstm(g, x, &state, i) : add_mingru(g, x, &state, i);
        i += p->set.core == POLICY_CORE_LSTM ? 3 : 1;
        state = add_node(g, "Unsqueeze", state.text, axis.text, NULL);
        pb_text(&all, 1, state.text);
    }
    if (p->recurrent) {
        add_attribute_int(g, &all, "axis", 0);
        (void)end_node(g, &all, "next_state");
    }
    return x;
}

/* ---- inputs, outputs, heads ---- */

/* ValueInfoProto as field `field` of the graph; a dimension of 0 is the batch. */
static void add_value(struct onnx *g, unsigned field, const char *name, enum onnx_type type, const int64_t *dims,
                      int n_dims)
{
    struct strbuf value, kind, tensor, shape, dim;

    strbuf_init(&value, g->max), strbuf_init(&kind, g->max), strbuf_init(&tensor, g->max), strbuf_init(&shape, g->max);
    pb_text(&value, 1, name);
    pb_int(&tensor, 1, type); /* elem_type */
    for (int i = 0; i < n_dims; i++) {
        strbuf_init(&dim, g->max);
        if (dims[i] > 0)
            pb_int(&dim, 1, dims[i]);
        else
            pb_text(&dim, 2, "batch");
        pb_message(&shape, 1, &dim);
    }
    pb_message(&tensor, 2, &shape);
    pb_message(&kind, 1, &tensor); /* tensor_type */
    pb_message(&value, 2, &kind);
    pb_message(&g->graph, field, &value);
}

static void add_input(struct onnx *g, const char *name, enum onnx_type type, const int64_t *dims, int n_dims)
{
    add_value(g, 11, name, type, dims, n_dims);
}

static void add_output(struct onnx *g, const char *name, enum onnx_type type, const int64_t *dims, int n_dims)
{
    add_value(g, 12, name, type, dims, n_dims);
}

/* Logits (batch, n) of the choices that the mask allows; where it allows nothing, of all. */
static struct name add_masked(struct onnx *g, struct name logits, size_t at, size_t n)
{
    struct name allowed = add_columns(g, "mask", at, at + n, NULL), number, any, free_head;
    struct strbuf node = begin_node(g, "Cast", allowed.text, NULL, NULL);

    add_attribute_int(g, &node, "to", ONNX_FLOAT);
    number = end_node(g, &node, NULL);
    node = begin_node(g, "ReduceMax", number.text, NULL, NULL);
    add_attribute_ints(g, &node, "axes", (const int64_t[]){1}, 1);
    any = end_node(g, &node, NULL);
    free_head = add_op(g, "Less", any, add_float(g, 0.5f));
    allowed = add_op(g, "Or", allowed, free_head);
    return add_node(g, "Where", allowed.text, logits.text, add_float(g, -__builtin_inff()).text);
}

static struct name add_identity(struct onnx *g, struct name x, const char *kind, int head)
{
    struct strbuf node = begin_node(g, "Identity", x.text, NULL, NULL);
    char name[NAME_MAX_BYTES];

    snprintf(name, sizeof name, "%s_%d", kind, head);
    return end_node(g, &node, name);
}

/* The likeliest choice of head j, whose columns begin at `at`; as a float where other heads are numbers. */
static struct name add_choice(struct onnx *g, const char *columns, int j, size_t at)
{
    const struct kern_heads *heads = &g->of->policy->heads;
    size_t n = (size_t)heads->sizes[j];
    struct name logits = add_columns(g, columns, at, at + n, NULL), best;

    if (g->of->shape->has_mask)
        logits = add_masked(g, logits, at, n);
    logits = add_identity(g, logits, "logits", j);
    add_output(g, logits.text, ONNX_FLOAT, (const int64_t[]){0, (int64_t)n}, 2);
    best = add_axis_node(g, "ArgMax", logits.text, NULL, 1, NULL);
    if (heads->n_reals == 0)
        return best;
    struct strbuf node = begin_node(g, "Cast", best.text, NULL, NULL);
    add_attribute_int(g, &node, "to", ONNX_FLOAT);
    return end_node(g, &node, NULL);
}

/* The mean of head j, a number, moved to its range. */
static struct name add_number(struct onnx *g, const char *columns, int j, size_t at, size_t at_std)
{
    const struct kern_heads *heads = &g->of->policy->heads;
    float middle = 0.5f * (heads->low[j] + heads->high[j]), half = 0.5f * (heads->high[j] - heads->low[j]);
    struct name mean = add_identity(g, add_columns(g, columns, at, at + 1, NULL), "mean", j);
    struct name raw = add_columns(g, columns, at_std, at_std + 1, NULL), x, std;

    x = add_node(g, "Clip", raw.text, add_float(g, KERN_LOG_STD_MIN).text, add_float(g, KERN_LOG_STD_MAX).text);
    std = add_identity(g, x, "log_std", j);
    add_output(g, mean.text, ONNX_FLOAT, (const int64_t[]){0, 1}, 2);
    add_output(g, std.text, ONNX_FLOAT, (const int64_t[]){0, 1}, 2);
    x = heads->squash ? add_node(g, "Tanh", mean.text, NULL, NULL)
                      : add_node(g, "Clip", mean.text, add_float(g, -1.0f).text, add_float(g, 1.0f).text);
    return add_op(g, "Add", add_op(g, "Mul", x, add_float(g, half)), add_float(g, middle));
}

/* (batch, 1): the mean of the distribution of columns (batch, bins). */
static struct name add_mean_of_bins(struct onnx *g, struct name columns)
{
    const struct kern_heads *heads = &g->of->policy->heads;
    const int64_t dims[] = {heads->n_bins, 1};
    struct name centres = new_name(g), p = add_axis_node(g, "Softmax", columns.text, NULL, 1, NULL);
    float values[KERN_MAX_BINS];

    exported_centres(g->of, values);
    add_tensor(g, centres.text, ONNX_FLOAT, dims, 2, values, (size_t)heads->n_bins * sizeof *values);
    return add_op(g, "MatMul", p, centres);
}

static void add_heads(struct onnx *g, struct name x)
{
    const struct policy *p = g->of->policy;
    const struct kern_heads *heads = &p->heads;
    struct name out = add_linear(g, x, p->n_tensors - 2, p->n_tensors - 1);
    struct strbuf all = begin_node(g, "Concat", NULL, NULL, NULL);
    size_t at = 0, at_std = p->n_logits - (size_t)heads->n_reals;
    enum onnx_type type = heads->n_reals > 0 ? ONNX_FLOAT : ONNX_INT64;

    for (int j = 0; j < heads->n_heads; j++) {
        bool number = heads->sizes[j] == 0;
        struct name action = number ? add_number(g, out.text, j, at, at_std++) : add_choice(g, out.text, j, at);
        at += number ? 1 : (size_t)heads->sizes[j];
        pb_text(&all, 1, action.text);
    }
    add_attribute_int(g, &all, "axis", 1);
    (void)end_node(g, &all, "action");
    add_output(g, "action", type, (const int64_t[]){0, heads->n_heads}, 2);
    x = add_columns(g, out.text, p->n_logits, p->n_out, NULL);
    if (heads->n_bins > 0)
        x = add_mean_of_bins(g, x);
    struct strbuf node = begin_node(g, "Squeeze", x.text, add_int(g, 1).text, NULL);
    (void)end_node(g, &node, "value");
    add_output(g, "value", ONNX_FLOAT, (const int64_t[]){0}, 1);
}

void onnx_write(const struct exported *e, struct strbuf *out)
{
    const struct policy *p = e->policy;
    struct onnx g = {.of = e, .max = out->max};
    const int64_t state[] = {(int64_t)p->n_layers, 0, (int64_t)p->state_size};
    struct strbuf opset;

    strbuf_init(&g.graph, g.max);
    add_input(&g, "obs", ONNX_FLOAT, (const int64_t[]){0, (int64_t)p->obs_size}, 2);
    if (p->recurrent) {
        add_input(&g, "state", ONNX_FLOAT, state, 3);
        add_output(&g, "next_state", ONNX_FLOAT, state, 3);
    }
    if (e->shape->has_mask)
        add_input(&g, "mask", ONNX_BOOL, (const int64_t[]){0, (int64_t)p->n_logits}, 2);
    add_heads(&g, add_core(&g, add_encoder(&g)));
    pb_text(&g.graph, 2, e->env); /* name */
    pb_int(out, 1, ONNX_IR_VERSION);
    pb_text(out, 2, "trawl"); /* producer_name */
    pb_message(out, 7, &g.graph);
    strbuf_init(&opset, g.max);
    pb_text(&opset, 1, ""); /* domain */
    pb_int(&opset, 2, ONNX_OPSET);
    pb_message(out, 8, &opset);
}
