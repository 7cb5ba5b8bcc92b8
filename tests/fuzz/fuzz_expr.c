/* fuzz_expr.c - any text as an expression: refused with words, or true or false for any values.
 *   CC=clang meson setup build-fuzz -Dfuzz=true -Dsanitize=address -Dcuda=disabled && ninja -C build-fuzz
 *   build-fuzz/tests/fuzz/fuzz_expr -max_total_time=60 */

#include "base/config/expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct expr_value values[EXPR_MAX_NAMES];
    enum expr_kind kinds[EXPR_MAX_NAMES];
    MEM_LOCAL char *text = mem_alloc(n + 1);
    struct expr *expr = NULL;
    struct error err = {0};
    double min, max;

    memcpy(text, bytes, n);
    if (expr_parse(&expr, text, "fuzz", &err) != ST_OK && err.text[0] == '\0')
        abort(); /* refused without a word */
    for (size_t i = 0; expr != NULL && i < expr_n_names(expr); i++) {
        values[i] = i % 3 == 0 ? (struct expr_value){NULL, (double)i} : (struct expr_value){expr_name(expr, i), NAN};
        kinds[i] = (enum expr_kind)(i % 3);
    }
    if (expr != NULL) {
        (void)!expr_check(expr, kinds, NULL);
        (void)expr_holds(expr, values);
        for (size_t i = 0; i < expr_n_names(expr); i++)
            (void)expr_interval(expr, values, i, &min, &max);
    }
    expr_free(expr);
    return 0;
}
