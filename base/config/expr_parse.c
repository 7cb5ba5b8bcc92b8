/* expr_parse.c - a text becomes an expression, by recursive descent.
 * Invariants: (1) a node's operands stand before it; (2) texts of any length and depth are refused or parsed, never
 * overflow: nodes, names and nesting are bounded. */
#include "base/config/expr_priv.h"

#include <ctype.h>

#define DEPTH_MAX 64

struct parser {
    struct expr *expr;
    const char *at;
    int depth;
};

#define PARSE_FAIL(p, fmt, ...)                                                                                        \
    FAIL(err, ST_CONFIG, "%s: \"%.80s\": " fmt, (p)->expr->origin, (p)->expr->text, __VA_ARGS__)

static enum status parse_or(struct parser *p, size_t *ret, struct error *err);

static enum status add(struct parser *p, struct expr_node node, size_t *ret, struct error *err)
{
    if (p->expr->n == EXPR_NODES_MAX)
        return PARSE_FAIL(p, "more than %d numbers, names and signs; split it", EXPR_NODES_MAX);
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
    if (n >= EXPR_NAME_BYTES)
        return PARSE_FAIL(p, "the name %.40s... is longer than %d bytes", p->at, EXPR_NAME_BYTES - 1);
    while (i < e->n_names && (strlen(e->names[i]) != n || strncmp(e->names[i], p->at, n) != 0))
        i++;
    if (i == EXPR_MAX_NAMES)
        return PARSE_FAIL(p, "more than %d names; split it", EXPR_MAX_NAMES);
    if (i == e->n_names)
        snprintf(e->names[e->n_names++], EXPR_NAME_BYTES, "%.*s", (int)n, p->at);
    p->at += n;
    return add(p, (struct expr_node){.op = OP_NAME, .a = i}, ret, err);
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
        return PARSE_FAIL(p, "%.30s is not a number", text);
    p->at += n;
    return add(p, (struct expr_node){.op = OP_NUMBER, .number = number}, ret, err);
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
        return add(p, (struct expr_node){.op = OP_NEGATE, .a = a}, ret, err);
    }
    if (isdigit((unsigned char)*p->at) || (*p->at == '.' && isdigit((unsigned char)p->at[1])))
        return parse_number(p, ret, err);
    if (isalpha((unsigned char)*p->at) || *p->at == '_')
        return parse_name(p, ret, err);
    if (*p->at == '\0')
        return PARSE_FAIL(p, "a name or a number is missing at its %s", "end");
    return PARSE_FAIL(p, "a name or a number is needed instead of \"%.20s\"", p->at);
}

struct sign {
    const char *text;
    enum expr_op op;
};
static const struct sign products[] = {{"*", OP_MUL}, {"/", OP_DIV}, {"%", OP_MOD}, {NULL, 0}};
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
        TRY(add(p, (struct expr_node){.op = sign->op, .a = a, .b = b}, &a, err));
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
        TRY(add(p, (struct expr_node){.op = sign->op, .a = a, .b = b}, &a, err));
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
        return add(p, (struct expr_node){.op = OP_NOT, .a = a}, ret, err);
    }
    TRY(parse_sum(p, &a, err));
    if ((sign = take_sign(p, comparisons)) == NULL) {
        skip_blanks(p);
        if (*p->at == '=')
            return PARSE_FAIL(p, "write == for \"is\", instead of \"%.20s\"", p->at);
        *ret = a;
        return ST_OK;
    }
    TRY(parse_sum(p, &b, err));
    TRY(add(p, (struct expr_node){.op = sign->op, .a = a, .b = b}, ret, err));
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
        TRY(add(p, (struct expr_node){.op = OP_AND, .a = a, .b = b}, &a, err));
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
        TRY(add(p, (struct expr_node){.op = OP_OR, .a = a, .b = b}, &a, err));
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
        const struct expr_node *node = &e->nodes[i];
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
                return PARSE_FAIL(p, "a comparison is not a number to %s",
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

    e->text = mem_strdup(text);
    e->origin = mem_strdup(origin);
    enum status rc = parse_or(&p, &root, err);
    skip_blanks(&p);
    if (rc == ST_OK && *p.at != '\0')
        rc = PARSE_FAIL(&p, "\"%.20s\" is left over; and, or or a sign is missing before it", p.at);
    THEN(rc, check_kinds(&p, err));
    if (rc != ST_OK) {
        expr_free(e);
        return rc;
    }
    *ret_expr = e;
    return ST_OK;
}
