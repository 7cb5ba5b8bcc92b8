/* expr.c - expressions about the values of a trial: a recursive descent into an array of nodes, and its evaluation.
 * Invariants: (1) a node's operands stand before it; (2) texts of any length and depth are refused or parsed, never
 * overflow: nodes, names and nesting are bounded. */
#include "base/config/expr.h"

#include "base/mem.h"
#include "base/num.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NODES_MAX 256
#define DEPTH_MAX 64
#define NAME_BYTES 96

enum op {
    OP_NUMBER,
    OP_NAME,
    OP_NEGATE,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_AND,
    OP_OR,
    OP_NOT
};

struct node {
    enum op op;
    double number; /* OP_NUMBER */
    size_t a, b; /* operands; OP_NAME: a is the name */
};

struct expr {
    struct node nodes[NODES_MAX]; /* (n) the last is the whole */
    size_t n;
    char names[EXPR_MAX_NAMES][NAME_BYTES]; /* (n_names) */
    size_t n_names;
    char *text, *origin; /* owned */
};

struct parser {
    struct expr *expr;
    const char *at;
    int depth;
};

#define PARSE_FAIL(p, fmt, ...)                                                                                        \
    FAIL(err, ST_CONFIG, "%s: \"%.80s\": " fmt, (p)->expr->origin, (p)->expr->text, __VA_ARGS__)

static enum status parse_or(struct parser *p, size_t *ret, struct error *err);

static enum status add(struct parser *p, struct node node, size_t *ret, struct error *err)
{
    if (p->expr->n == NODES_MAX)
        return PARSE_FAIL(p, "more than %d numbers, names and signs; split it", NODES_MAX);
    *ret = p->expr->n++;
    p->expr->nodes[*ret] = node;
    return ST_OK;
}

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static bool take(struct parser *p, const char *sign)
{
    size_t n = strlen(sign);

    skip_blanks(p);
    if (strncmp(p->at, sign, n) != 0 || (isalpha((unsigned char)sign[0]) && is_name_byte(p->at[n])))
        return false;
    p->at += n;
    return true;
}

static enum status parse_name(struct parser *p, size_t *ret, struct error *err)
{
    struct expr *e = p->expr;
    size_t n = 0, i = 0;

    while (is_name_byte(p->at[n]))
        n++;
    if (n >= NAME_BYTES)
        return PARSE_FAIL(p, "the name %.40s... is longer than %d bytes", p->at, NAME_BYTES - 1);
    while (i < e->n_names && (strlen(e->names[i]) != n || strncmp(e->names[i], p->at, n) != 0))
        i++;
    if (i == EXPR_MAX_NAMES)
        return PARSE_FAIL(p, "more than %d names; split it", EXPR_MAX_NAMES);
    if (i == e->n_names)
        snprintf(e->names[e->n_names++], NAME_BYTES, "%.*s", (int)n, p->at);
    p->at += n;
    return add(p, (struct node){.op = OP_NAME, .a = i}, ret, err);
}

static enum status parse_number(struct parser *p, size_t *ret, struct error *err)
{
    char text[NUM_TEXT_MAX];
    size_t n = 0;
    double number;

    while (is_name_byte(p->at[n]) || ((p->at[n] == '-' || p->at[n] == '+') && n > 0 && tolower(p->at[n - 1]) == 'e'))
        n++;
    snprintf(text, sizeof text, "%.*s", (int)n, p->at);
    if (n >= sizeof text || !num_parse_f64(text, &number))
        return PARSE_FAIL(p, "%.30s is no number", text);
    p->at += n;
    return add(p, (struct node){.op = OP_NUMBER, .number = number}, ret, err);
}

static enum status parse_operand(struct parser *p, size_t *ret, struct error *err)
{
    size_t a;

    skip_blanks(p);
    if (take(p, "(")) {
        TRY(parse_or(p, ret, err));
        return take(p, ")") ? ST_OK : PARSE_FAIL(p, "a ')' is missing before \"%.20s\"", p->at);
    }
    if (take(p, "-")) {
        if (++p->depth > DEPTH_MAX)
            return PARSE_FAIL(p, "more than %d brackets and signs inside one another", DEPTH_MAX);
        TRY(parse_operand(p, &a, err));
        p->depth--;
        return add(p, (struct node){.op = OP_NEGATE, .a = a}, ret, err);
    }
    if (isdigit((unsigned char)*p->at) || (*p->at == '.' && isdigit((unsigned char)p->at[1])))
        return parse_number(p, ret, err);
    if (isalpha((unsigned char)*p->at) || *p->at == '_')
        return parse_name(p, ret, err);
    if (*p->at == '\0')
        return PARSE_FAIL(p, "a name or a number is missing at its %s", "end");
    return PARSE_FAIL(p, "a name or a number is needed in place of \"%.20s\"", p->at);
}

struct sign {
    const char *text;
    enum op op;
};
static const struct sign products[] = {{"*", OP_MUL}, {"/", OP_DIV}, {NULL, 0}};
static const struct sign sums[] = {{"+", OP_ADD}, {"-", OP_SUB}, {NULL, 0}};
static const struct sign comparisons[] = {{"==", OP_EQ}, {"!=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE},
                                          {"<", OP_LT},  {">", OP_GT},  {NULL, 0}};

static const struct sign *take_sign(struct parser *p, const struct sign *signs)
{
    for (; signs->text != NULL; signs++)
        if (take(p, signs->text))
            return signs;
    return NULL;
}

static enum status parse_product(struct parser *p, size_t *ret, struct error *err)
{
    const struct sign *sign;
    size_t a, b;

    TRY(parse_operand(p, &a, err));
    while ((sign = take_sign(p, products)) != NULL) {
        TRY(parse_operand(p, &b, err));
        TRY(add(p, (struct node){.op = sign->op, .a = a, .b = b}, &a, err));
    }
    *ret = a;
    return ST_OK;
}

static enum status parse_sum(struct parser *p, size_t *ret, struct error *err)
{
    const struct sign *sign;
    size_t a, b;

    TRY(parse_product(p, &a, err));
    while ((sign = take_sign(p, sums)) != NULL) {
        TRY(parse_product(p, &b, err));
        TRY(add(p, (struct node){.op = sign->op, .a = a, .b = b}, &a, err));
    }
    *ret = a;
    return ST_OK;
}

static enum status parse_comparison(struct parser *p, size_t *ret, struct error *err)
{
    const struct sign *sign;
    size_t a, b;

    if (take(p, "not")) {
        if (++p->depth > DEPTH_MAX)
            return PARSE_FAIL(p, "more than %d brackets and signs inside one another", DEPTH_MAX);
        TRY(parse_comparison(p, &a, err));
        p->depth--;
        return add(p, (struct node){.op = OP_NOT, .a = a}, ret, err);
    }
    TRY(parse_sum(p, &a, err));
    if ((sign = take_sign(p, comparisons)) == NULL) {
        skip_blanks(p);
        if (*p->at == '=')
            return PARSE_FAIL(p, "write == for \"is\", in place of \"%.20s\"", p->at);
        *ret = a;
        return ST_OK;
    }
    TRY(parse_sum(p, &b, err));
    TRY(add(p, (struct node){.op = sign->op, .a = a, .b = b}, ret, err));
    if (take_sign(p, comparisons) != NULL)
        return PARSE_FAIL(p, "one comparison follows another before \"%.20s\"; join them with and", p->at);
    return ST_OK;
}

static enum status parse_and(struct parser *p, size_t *ret, struct error *err)
{
    size_t a, b;

    TRY(parse_comparison(p, &a, err));
    while (take(p, "and")) {
        TRY(parse_comparison(p, &b, err));
        TRY(add(p, (struct node){.op = OP_AND, .a = a, .b = b}, &a, err));
    }
    *ret = a;
    return ST_OK;
}

static enum status parse_or(struct parser *p, size_t *ret, struct error *err)
{
    size_t a, b;

    if (++p->depth > DEPTH_MAX)
        return PARSE_FAIL(p, "more than %d brackets and signs inside one another", DEPTH_MAX);
    TRY(parse_and(p, &a, err));
    while (take(p, "or")) {
        TRY(parse_and(p, &b, err));
        TRY(add(p, (struct node){.op = OP_OR, .a = a, .b = b}, &a, err));
    }
    p->depth--;
    *ret = a;
    return ST_OK;
}

static bool is_truth(const struct expr *e, size_t i)
{
    return e->nodes[i].op >= OP_EQ;
}

/* A truth where a number is needed ("(a < b) + 1"), or the other way round ("a and 3"). */
static enum status check_kinds(struct parser *p, struct error *err)
{
    const struct expr *e = p->expr;

    for (size_t i = 0; i < e->n; i++) {
        const struct node *node = &e->nodes[i];
        bool wants_truth = node->op >= OP_AND, two = node->op != OP_NEGATE && node->op != OP_NOT;
        if (node->op <= OP_NAME)
            continue;
        for (size_t k = 0; k < (two ? 2u : 1u); k++) {
            size_t of = k == 0 ? node->a : node->b;
            bool is_name = e->nodes[of].op == OP_NAME; /* of a bool: its truth */
            if (wants_truth && !is_truth(e, of) && !is_name)
                return PARSE_FAIL(p, "%s needs a comparison, like a <= b, on both sides",
                                  node->op == OP_NOT   ? "not"
                                  : node->op == OP_AND ? "and"
                                                       : "or");
            if (!wants_truth && is_truth(e, of))
                return PARSE_FAIL(p, "a comparison is no number to %s",
                                  node->op >= OP_EQ ? "compare" : "calculate with");
        }
    }
    if (!is_truth(e, e->n - 1) && e->nodes[e->n - 1].op != OP_NAME)
        return PARSE_FAIL(p, "it compares nothing; write %s", "a comparison like a <= b");
    return ST_OK;
}

enum status expr_parse(struct expr **ret_expr, const char *text, const char *origin, struct error *err)
{
    struct expr *e = mem_alloc(sizeof *e);
    struct parser p = {.expr = e, .at = text};
    size_t root = 0;
    enum status rc;

    e->text = mem_strdup(text);
    e->origin = mem_strdup(origin);
    rc = parse_or(&p, &root, err);
    skip_blanks(&p);
    if (rc == ST_OK && *p.at != '\0')
        rc = PARSE_FAIL(&p, "\"%.20s\" is left over; and, or or a sign is missing before it", p.at);
    if (rc == ST_OK)
        rc = check_kinds(&p, err);
    if (rc != ST_OK) {
        expr_free(e);
        return rc;
    }
    *ret_expr = e;
    return ST_OK;
}

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

/* Is node i a name that is no variable? */
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
                    ? "%s: \"%.80s\": %s is no option and no parameter"
                    : "%s: \"%.80s\": %s is neither true nor false; compare it with something",
                e->origin, e->text, e->names[e->nodes[i].a]);
}

/* Node i is an operand of the comparison or sum in node `of`, whose other operand is other. */
static enum status check_operand(const struct expr *e, const enum expr_kind *kinds, size_t i, size_t of, size_t other,
                                 struct error *err)
{
    enum op op = e->nodes[of].op;

    if (!is_word(e, kinds, i) || ((op == OP_EQ || op == OP_NE) && is_variable_node(e, kinds, other)))
        return ST_OK;
    return FAIL(err, ST_CONFIG, "%s: \"%.80s\": %s is no option and no parameter", e->origin, e->text,
                e->names[e->nodes[i].a]);
}

enum status expr_check(const struct expr *e, const enum expr_kind *kinds, struct error *err)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct node *node = &e->nodes[i];
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
        const struct node *node = &e->nodes[i];
        bool swapped;
        if ((node->op != OP_EQ && node->op != OP_NE) || is_word(e, kinds, node->a) == is_word(e, kinds, node->b) ||
            k-- > 0)
            continue;
        swapped = is_word(e, kinds, node->a);
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
    const struct node *node = &e->nodes[i];
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
    const struct node *node = &e->nodes[i];

    if (node->op <= OP_NAME)
        return node->op == OP_NAME && node->a == name;
    return depends_on(e, node->a, name) ||
           (node->op != OP_NEGATE && node->op != OP_NOT && depends_on(e, node->b, name));
}

/* Narrows min to max by node i. */
static bool narrow(const struct expr *e, const struct expr_value *values, size_t i, size_t name, double *min,
                   double *max)
{
    const struct node *node = &e->nodes[i];
    bool swapped = node->op >= OP_EQ && node->op <= OP_GE && depends_on(e, node->b, name);
    size_t variable = swapped ? node->b : node->a, bound = swapped ? node->a : node->b;
    enum op op = node->op;
    double x;

    if (op == OP_AND)
        return narrow(e, values, node->a, name, min, max) && narrow(e, values, node->b, name, min, max);
    if (op < OP_EQ || op > OP_GE || op == OP_NE || e->nodes[variable].op != OP_NAME || e->nodes[variable].a != name ||
        depends_on(e, bound, name))
        return false;
    x = evaluate(e, values, bound).number;
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
