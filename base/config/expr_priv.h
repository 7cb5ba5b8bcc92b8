/* expr_priv.h - an expression as its parser makes it and as it is evaluated: an array of nodes, operands before the
 * node that uses them. */
#pragma once

#include "base/config/expr.h"

#define EXPR_NODES_MAX 256
#define EXPR_NAME_BYTES 96

enum expr_op {
    OP_NUMBER,
    OP_NAME,
    OP_NEGATE,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
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

struct expr_node {
    enum expr_op op;
    double number; /* OP_NUMBER */
    size_t a, b; /* operands; OP_NAME: a is the name */
};

struct expr {
    struct expr_node nodes[EXPR_NODES_MAX]; /* (n) the last is the whole */
    size_t n;
    char names[EXPR_MAX_NAMES][EXPR_NAME_BYTES]; /* (n_names) */
    size_t n_names;
    char *text, *origin; /* owned */
};
