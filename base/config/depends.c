/* depends.c - conditions under which an option has an effect: parsing them from the option's row, and checking them
 * against a value or a config. */
#include "base/config/config_priv.h"

#define AND " and "
#define OR " or "

bool config_depends_on_any(const struct opt_def *opt)
{
    return opt->depends != NULL && strstr(opt->depends, OR) != NULL;
}

bool config_has_effect(const struct config *config, const struct opt_def *opt)
{
    bool any = config_depends_on_any(opt);
    const char *at = opt->depends;
    struct config_condition c;

    while (config_condition_next(&at, &c)) {
        const struct opt_def *parent = config_find_opt(config, c.key);
        if (parent != NULL && config_condition_holds(&c, parent, config_peek(config, c.key)) == any)
            return any;
    }
    return !any;
}

bool config_condition_next(const char **at, struct config_condition *ret)
{
    char number[NUM_TEXT_MAX];

    if (*at == NULL || **at == '\0')
        return false;
    const char *end = strstr(*at, AND);
    size_t between = end != NULL ? strlen(AND) : 0;
    if (end == NULL && (end = strstr(*at, OR)) != NULL)
        between = strlen(OR);
    ret->text = *at;
    ret->len = end != NULL ? (size_t)(end - *at) : strlen(*at);
    const char *op = *at + strcspn(*at, " ");
    snprintf(ret->key, sizeof ret->key, "%.*s", (int)(op - *at), *at);
    ret->is_above = strncmp(op, " > ", 3) == 0;
    ret->values = op + 3;
    ret->values_len = ret->len - (size_t)(ret->values - ret->text);
    snprintf(number, sizeof number, "%.*s", (int)ret->values_len, ret->values);
    if (!ret->is_above || !num_parse_f64(number, &ret->above))
        ret->above = 0.0;
    *at += ret->len + between;
    return true;
}

bool config_condition_holds(const struct config_condition *condition, const struct opt_def *opt, const char *value)
{
    double x, y;

    if (config_parse_value(opt, value, &x, NULL) != ST_OK)
        return false;
    if (condition->is_above)
        return x > condition->above;
    for (size_t i = 0, len; i < condition->values_len; i += len + 1) {
        char one[OPT_STR_MAX];
        len = strcspn(condition->values + i, "| ");
        if (i + len > condition->values_len)
            len = condition->values_len - i;
        snprintf(one, sizeof one, "%.*s", (int)len, condition->values + i);
        if (config_parse_value(opt, one, &y, NULL) == ST_OK && x == y)
            return true;
    }
    return false;
}
