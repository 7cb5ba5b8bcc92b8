/* expr.c - what an expression means: its names, its truth, the interval in which it holds. */
#include "base/config/expr_priv.h"

#include <strings.h>

void expr_free(struct expr *e)
{
    if (e == NULL)
        return;
    mem_free(e->text);
    mem_free(e->origin);
    mem_free(e);
}

size_t expr_n_names(const struct expr *e)
{
    return e->n_names;
}

const char *expr_name(const struct expr *e, size_t i)
{
    return e->names[i];
}

/* Is node i a name that is not a variable? */
static bool is_word(const struct expr *e, const enum expr_kind *kinds, size_t i)
{
    return e->nodes[i].op == OP_NAME && kinds[e->nodes[i].a] == EXPR_WORD;
}

static bool is_variable_node(const struct expr *e, const enum expr_kind *kinds, size_t i)
{
    return e->nodes[i].op == OP_NAME && kinds[e->nodes[i].a] != EXPR_WORD;
}

/* Node i stands where a truth is needed. */
static enum status check_truth(const struct expr *e, const enum expr_kind *kinds, size_t i, struct error *err)
{
    if (e->nodes[i].op != OP_NAME || kinds[e->nodes[i].a] == EXPR_TRUTH)
        return ST_OK;
    return FAIL(err, ST_CONFIG,
                kinds[e->nodes[i].a] == EXPR_WORD
                    ? "%s: \"%.80s\": %s is neither an option nor a parameter"
                    : "%s: \"%.80s\": %s is neither true nor false; compare it with something",
                e->origin, e->text, e->names[e->nodes[i].a]);
}

/* Node i is an operand of the comparison or sum in node `of`, whose other operand is other. */
static enum status check_operand(const struct expr *e, const enum expr_kind *kinds, size_t i, size_t of, size_t other,
                                 struct error *err)
{
    enum expr_op op = e->nodes[of].op;

    if (!is_word(e, kinds, i) || ((op == OP_EQ || op == OP_NE) && is_variable_node(e, kinds, other)))
        return ST_OK;
    return FAIL(err, ST_CONFIG, "%s: \"%.80s\": %s is neither an option nor a parameter", e->origin, e->text,
                e->names[e->nodes[i].a]);
}

enum status expr_check(const struct expr *e, const enum expr_kind *kinds, struct error *err)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct expr_node *node = &e->nodes[i];
        bool two = node->op != OP_NEGATE && node->op != OP_NOT;
        if (node->op <= OP_NAME)
            continue;
        TRY(node->op >= OP_AND ? check_truth(e, kinds, node->a, err)
                               : check_operand(e, kinds, node->a, i, two ? node->b : node->a, err));
        if (two)
            TRY(node->op >= OP_AND ? check_truth(e, kinds, node->b, err)
                                   : check_operand(e, kinds, node->b, i, node->a, err));
    }
    return check_truth(e, kinds, e->n - 1, err);
}

bool expr_word(const struct expr *e, const enum expr_kind *kinds, size_t k, size_t *ret_variable, size_t *ret_word)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct expr_node *node = &e->nodes[i];
        if ((node->op != OP_EQ && node->op != OP_NE) || is_word(e, kinds, node->a) == is_word(e, kinds, node->b) ||
            k-- > 0)
            continue;
        bool swapped = is_word(e, kinds, node->a);
        *ret_word = e->nodes[swapped ? node->a : node->b].a;
        *ret_variable = e->nodes[swapped ? node->b : node->a].a;
        return true;
    }
    return false;
}

static bool is_true(struct expr_value v)
{
    return v.text != NULL ? strcasecmp(v.text, "true") == 0 || (isfinite(v.number) && v.number != 0.0)
                          : !isnan(v.number) && v.number != 0.0;
}

static bool is_nothing(struct expr_value v)
{
    return v.text == NULL && isnan(v.number);
}

static bool equal(struct expr_value a, struct expr_value b)
{
    if (isfinite(a.number) && isfinite(b.number))
        return a.number == b.number;
    return a.text != NULL && b.text != NULL && strcasecmp(a.text, b.text) == 0;
}

static struct expr_value evaluate(const struct expr *e, const struct expr_value *values, size_t i)
{
    const struct expr_node *node = &e->nodes[i];
    struct expr_value a, b = {NULL, NAN};
    double x = NAN;

    if (node->op == OP_NUMBER)
        return (struct expr_value){NULL, node->number};
    if (node->op == OP_NAME)
        return values[node->a];
    a = evaluate(e, values, node->a);
    if (node->op != OP_NEGATE && node->op != OP_NOT)
        b = evaluate(e, values, node->b);
    switch (node->op) {
    case OP_NEGATE:
        x = -a.number;
        break;
    case OP_ADD:
        x = a.number + b.number;
        break;
    case OP_SUB:
        x = a.number - b.number;
        break;
    case OP_MUL:
        x = a.number * b.number;
        break;
    case OP_DIV:
        x = b.number != 0.0 ? a.number / b.number : NAN;
        break;
    case OP_MOD:
        x = fmod(a.number, b.number); /* NaN for 0 */
        break;
    case OP_EQ:
        x = equal(a, b);
        break;
    case OP_NE:
        x = !equal(a, b) && !is_nothing(a) && !is_nothing(b);
        break;
    case OP_LT:
        x = a.number < b.number;
        break;
    case OP_LE:
        x = a.number <= b.number;
        break;
    case OP_GT:
        x = a.number > b.number;
        break;
    case OP_GE:
        x = a.number >= b.number;
        break;
    case OP_AND:
        x = is_true(a) && is_true(b);
        break;
    case OP_OR:
        x = is_true(a) || is_true(b);
        break;
    case OP_NOT:
        x = !is_true(a);
        break;
    case OP_NUMBER:
    case OP_NAME:
        break;
    }
    return (struct expr_value){NULL, x};
}

bool expr_holds(const struct expr *e, const struct expr_value *values)
{
    return is_true(evaluate(e, values, e->n - 1));
}

static bool depends_on(const struct expr *e, size_t i, size_t name)
{
    const struct expr_node *node = &e->nodes[i];

    if (node->op <= OP_NAME)
        return node->op == OP_NAME && node->a == name;
    return depends_on(e, node->a, name) ||
           (node->op != OP_NEGATE && node->op != OP_NOT && depends_on(e, node->b, name));
}

/* Narrows min to max by node i. */
static bool narrow(const struct expr *e, const struct expr_value *values, size_t i, size_t name, double *min,
                   double *max)
{
    const struct expr_node *node = &e->nodes[i];
    bool swapped = node->op >= OP_EQ && node->op <= OP_GE && depends_on(e, node->b, name);
    size_t variable = swapped ? node->b : node->a, bound = swapped ? node->a : node->b;
    enum expr_op op = node->op;

    if (op == OP_AND)
        return narrow(e, values, node->a, name, min, max) && narrow(e, values, node->b, name, min, max);
    if (op < OP_EQ || op > OP_GE || op == OP_NE || e->nodes[variable].op != OP_NAME || e->nodes[variable].a != name ||
        depends_on(e, bound, name))
        return false;
    double x = evaluate(e, values, bound).number;
    if (isnan(x))
        return false;
    if (swapped) /* 3 < a is a > 3 */
        op = op == OP_LT ? OP_GT : op == OP_LE ? OP_GE : op == OP_GT ? OP_LT : op == OP_GE ? OP_LE : op;
    if (op == OP_GT || op == OP_GE || op == OP_EQ)
        *min = fmax(*min, op == OP_GT ? nextafter(x, INFINITY) : x);
    if (op == OP_LT || op == OP_LE || op == OP_EQ)
        *max = fmin(*max, op == OP_LT ? nextafter(x, -INFINITY) : x);
    return true;
}

bool expr_interval(const struct expr *e, const struct expr_value *values, size_t i, double *ret_min, double *ret_max)
{
    *ret_min = -INFINITY;
    *ret_max = INFINITY;
    return narrow(e, values, e->n - 1, i, ret_min, ret_max);
}
