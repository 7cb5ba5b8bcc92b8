/* failures.c - reasons of failed trials, counted without the numbers in them, and rules: of the trials whose value of
 * one parameter lies beyond a bound, nearly all failed, and chance does not explain it (hypergeometric tail). A rule
 * that is found takes its trials out, and the next is sought in the rest. */
#include "study/findings/failures.h"

#include "study/view/study_view.h"

#include <gsl/gsl_cdf.h>

#include <ctype.h>

#define LEAST_FAILED 3
#define LEAST_SHARE 0.8 /* of the trials beyond the bound */
#define CHANCE 0.05 /* that any of the bounds looks like a rule by chance */

/* ---- reasons ---- */

/* "NaN after 1203 steps" and "NaN after 88 steps" are one reason, whatever lines follow. */
static bool same_reason(const char *a, const char *b)
{
    while (*a != '\0' && *a != '\n' && *b != '\0') {
        bool number = isdigit((unsigned char)*a) && isdigit((unsigned char)*b);
        if (!number && *a != *b)
            return false;
        a += number ? strspn(a, "0123456789.") : 1;
        b += number ? strspn(b, "0123456789.") : 1;
    }
    return (*a == '\0' || *a == '\n') && *b == '\0';
}

static int by_count(const void *pa, const void *pb)
{
    const struct failure_reason *a = pa, *b = pb;

    return a->n != b->n ? (a->n < b->n) - (a->n > b->n) : (a->first > b->first) - (a->first < b->first);
}

static bool is_failure(const struct trial *t)
{
    return (t->state == TRIAL_FAILED || t->state == TRIAL_LOST) && t->dropped == NULL;
}

static void find_reasons(const struct study_view *v, struct failures *f)
{
    MEM_LOCAL struct failure_reason *all = NULL;
    size_t n = 0, cap = 0;

    for (size_t i = 0; i < v->n; i++) {
        const char *text = v->trials[i].reason != NULL ? v->trials[i].reason : "no reason known";
        size_t k = 0;
        if (!is_failure(&v->trials[i]))
            continue;
        while (k < n && !same_reason(text, all[k].text))
            k++;
        if (k == n) {
            MEM_ROOM(all, n, cap);
            all[n] = (struct failure_reason){.text = mem_strdup(text), .first = i};
            all[n].text[strcspn(text, "\n")] = '\0';
            n++;
        }
        all[k].n++;
        f->n++;
    }
    if (n > 1)
        qsort(all, n, sizeof *all, by_count);
    for (size_t k = 0; k < n; k++)
        if (k < FAILURE_REASONS) {
            f->reasons[f->n_reasons++] = all[k];
        } else {
            f->n_other += all[k].n;
            mem_free(all[k].text);
        }
}

/* ---- rules ---- */

struct outcome {
    double value;
    bool failed;
};

struct rule_search {
    const struct study_view *view;
    bool *out; /* (n) of no interest any more */
    struct outcome *rows; /* (n) of one parameter, work */
    size_t *n_failed; /* (n + 1) of the rows before, work */
    double n_tests; /* bounds that are looked at */
    struct failure_rule best;
    double least; /* the best one's probability by chance */
};

static int by_value(const void *pa, const void *pb)
{
    const struct outcome *a = pa, *b = pb;

    return (a->value > b->value) - (a->value < b->value);
}

/* Trials of which the value counts: ended, and not by a lack of a client or by people. */
static bool counts(const struct rule_search *s, size_t i, size_t k)
{
    enum trial_state state = s->view->trials[i].state;

    return !s->out[i] && s->view->trials[i].dropped == NULL &&
           (state == TRIAL_DONE || state == TRIAL_STOPPED || state == TRIAL_FAILED) &&
           space_is_active(&s->view->search.space, k, s->view->x[i]);
}

/* Is [from, to) of the sorted rows a place at which trials fail? */
static void judge(struct rule_search *s, size_t n, size_t from, size_t to, struct failure_rule rule)
{
    size_t failed = s->n_failed[n], failed_in = s->n_failed[to] - s->n_failed[from], tried = to - from;

    s->n_tests++;
    if (failed_in < LEAST_FAILED || (double)failed_in < LEAST_SHARE * (double)tried || tried == n)
        return;
    double chance =
        gsl_cdf_hypergeometric_Q((unsigned)failed_in - 1, (unsigned)failed, (unsigned)(n - failed), (unsigned)tried);
    if (!(chance < s->least))
        return;
    s->least = chance;
    s->best = rule;
    s->best.bound = NAN;
    s->best.n_failed = failed_in;
    s->best.n_tried = tried;
    for (size_t i = 0; i < n; i++) /* the nearest good value outside; rows rise */
        if (!s->rows[i].failed && ((rule.side > 0 && s->rows[i].value < rule.from) ||
                                   (rule.side < 0 && s->rows[i].value > rule.from && isnan(s->best.bound))))
            s->best.bound = s->rows[i].value;
}

static void judge_bounds(struct rule_search *s, size_t n, size_t k)
{
    for (size_t i = 1; i < n; i++) {
        if (s->rows[i].value <= s->rows[i - 1].value)
            continue;
        judge(s, n, i, n, (struct failure_rule){.param = k, .side = 1, .from = s->rows[i].value});
        judge(s, n, 0, i, (struct failure_rule){.param = k, .side = -1, .from = s->rows[i - 1].value});
    }
}

static void judge_choices(struct rule_search *s, size_t n, size_t k)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && s->rows[end].value <= s->rows[i].value;)
            end++;
        judge(s, n, i, end, (struct failure_rule){.param = k, .from = s->rows[i].value});
    }
}

static void search_param(struct rule_search *s, size_t k)
{
    size_t n = 0;

    for (size_t i = 0; i < s->view->n; i++)
        if (counts(s, i, k))
            s->rows[n++] = (struct outcome){s->view->x[i][k], s->view->trials[i].state == TRIAL_FAILED};
    if (n < 2)
        return;
    qsort(s->rows, n, sizeof *s->rows, by_value);
    for (size_t i = 0; i < n; i++)
        s->n_failed[i + 1] = s->n_failed[i] + s->rows[i].failed;
    if (s->view->search.space.params[k].scale == SPACE_CATEGORICAL)
        judge_choices(s, n, k);
    else
        judge_bounds(s, n, k);
}

static bool lies_in(const struct failure_rule *rule, double x)
{
    return rule->side > 0 ? x >= rule->from : rule->side < 0 ? x <= rule->from : x == rule->from;
}

static void find_rules(const struct study_view *v, struct failures *f)
{
    struct rule_search s = {.view = v};

    s.out = mem_array(v->n, sizeof *s.out);
    s.rows = mem_array(v->n, sizeof *s.rows);
    s.n_failed = mem_array(v->n + 1, sizeof *s.n_failed);
    while (f->n_rules < FAILURE_RULES) {
        s.n_tests = 0;
        s.least = CHANCE;
        s.best = (struct failure_rule){0};
        for (size_t k = 0; k < v->search.space.dim; k++)
            search_param(&s, k);
        if (s.best.n_failed == 0 || s.least * s.n_tests >= CHANCE)
            break;
        f->rules[f->n_rules++] = s.best;
        for (size_t i = 0; i < v->n; i++)
            s.out[i] = s.out[i] || (counts(&s, i, s.best.param) && lies_in(&s.best, v->x[i][s.best.param]));
    }
    mem_free(s.out);
    mem_free(s.rows);
    mem_free(s.n_failed);
}

void failures_find(const struct study_view *v, struct failures *ret)
{
    *ret = (struct failures){0};
    find_reasons(v, ret);
    if (ret->n >= LEAST_FAILED && study_view_check_points(v, NULL) == ST_OK)
        find_rules(v, ret);
}

void failures_free(struct failures *f)
{
    for (size_t k = 0; k < f->n_reasons; k++)
        mem_free(f->reasons[k].text);
    *f = (struct failures){0};
}

/* ---- texts ---- */

void failure_rule_text(const struct study_view *v, const struct failure_rule *rule, struct strbuf *out)
{
    char value[64];

    search_show(&v->search, rule->param, rule->from, value, sizeof value);
    strbuf_addf(out, "%s %s %s failed %zu of %zu", v->search.space.params[rule->param].key,
                rule->side > 0   ? ">="
                : rule->side < 0 ? "<="
                                 : "=",
                value, rule->n_failed, rule->n_tried);
}

/* A program's parameters have no section in the file. */
static void section_of(const char *key, struct strbuf *out)
{
    strbuf_addf(out, "[sweep.%s]\n", search_param_name(key));
}

static void choices_ini(const struct study_view *v, const struct failures *f, size_t k, struct strbuf *out)
{
    size_t n = 0;

    for (int print = 0; print < 2; print++) {
        for (size_t c = 0; c < v->search.space.params[k].n_choices; c++) {
            bool bad = false;
            for (size_t i = 0; i < f->n_rules; i++)
                bad = bad || (f->rules[i].param == k && f->rules[i].side == 0 && f->rules[i].from == (double)c);
            if (print && !bad)
                strbuf_addf(out, "%s%s", n++ > 0 ? ", " : "", v->search.choices[k][c]);
            n += !print && !bad;
        }
        if (print || n < 2)
            break;
        section_of(v->search.space.params[k].key, out);
        strbuf_add(out, "values = ");
        n = 0;
    }
    strbuf_add(out, n > 0 && out->len > 0 && out->text[out->len - 1] != '\n' ? "\n" : "");
}

void failures_ini(const struct study_view *v, const struct failures *f, struct strbuf *out)
{
    for (size_t k = 0; k < v->search.space.dim; k++) {
        const struct space_param *p = &v->search.space.params[k];
        const struct failure_rule *low = NULL, *high = NULL;
        bool choice = false;
        char text[NUM_TEXT_MAX];
        for (size_t i = 0; i < f->n_rules; i++) {
            const struct failure_rule *r = &f->rules[i];
            if (r->param != k)
                continue;
            strbuf_add(out, "# ");
            failure_rule_text(v, r, out);
            strbuf_add(out, "\n");
            low = r->side < 0 ? r : low;
            high = r->side > 0 ? r : high;
            choice = choice || r->side == 0;
        }
        if (choice)
            choices_ini(v, f, k, out);
        double min = low != NULL ? low->bound : p->min, max = high != NULL ? high->bound : p->max;
        if (choice || (low == NULL && high == NULL) ||
            !(min < max)) /* also where no good value lies on the other side */
            continue;
        section_of(p->key, out);
        if (low != NULL)
            strbuf_addf(out, "min = %s\n", num_format_f64(min, text));
        if (high != NULL)
            strbuf_addf(out, "max = %s\n", num_format_f64(max, text));
    }
}
