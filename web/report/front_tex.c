/* front_tex.c - two tables of LaTeX: the front with its parameters, and the search: space, compute, seeds.
 * Needs the packages booktabs and graphicx. Whatever came from a study is escaped. */
#include "web/report/report_priv.h"

#include "base/text/duration.h"
#include "base/text/num.h"
#include "study/view/promise.h"
#include "study/view/study_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tex_text(struct strbuf *out, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        const char *name = *at == '\\'   ? "\\textbackslash{}"
                           : *at == '~'  ? "\\textasciitilde{}"
                           : *at == '^'  ? "\\textasciicircum{}"
                           : *at == '\n' ? " "
                                         : NULL;
        if (name != NULL) {
            strbuf_add(out, name);
            continue;
        }
        if (strchr("#$%&_{}", *at) != NULL)
            strbuf_add(out, "\\");
        strbuf_add_n(out, at, 1);
    }
}

static void tex_number(struct strbuf *out, double value)
{
    char buf[HUMAN_TEXT_MAX];
    size_t n;

    if (!isfinite(value)) {
        strbuf_add(out, "--");
        return;
    }
    n = strspn(text_number(value, buf), "-0123456789.");
    if (buf[n] != 'e')
        strbuf_addf(out, "$%.*s$%s", (int)n, buf, buf + n); /* "4.1M": the suffix is no variable */
    else if (strncmp(buf, "1e", 2) == 0)
        strbuf_addf(out, "$10^{%d}$", atoi(buf + n + 1));
    else
        strbuf_addf(out, "$%.*s \\times 10^{%d}$", (int)n, buf, atoi(buf + n + 1));
}

static void tex_value(struct strbuf *out, const char *text)
{
    double value;

    if (num_parse_f64(text, &value))
        tex_number(out, value);
    else if (strcmp(text, "-") == 0)
        strbuf_add(out, "--");
    else
        tex_text(out, text);
}

static void front_head(struct strbuf *out, const struct report *report)
{
    const struct study_view *v = report->view;

    strbuf_add(out, "\\begin{table}\n  \\centering\\small\n  \\caption{Front of cost against ");
    tex_text(out, v->study.metric);
    strbuf_addf(out, " (%s is better) of ", v->study.maximize ? "higher" : "lower");
    tex_text(out, v->study.name);
    if (report_has_beliefs(v))
        strbuf_addf(
            out,
            ". The score is the estimate of a model of all trials; with 95\\,\\%% the mean of %d runs under fresh "
            "seeds lies in the interval. Seeds: runs of the config.}\n",
            GP_PROMISE_SEEDS);
    else
        strbuf_add(out, ". The score is that of the config's own run. Seeds: runs of the config.}\n");
    strbuf_add(out,
               "  \\label{tab:front}\n  \\setlength{\\tabcolsep}{3pt}\n"
               "  \\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{% no wider than the column\n"
               "  \\begin{tabular}{rrrrr");
    for (size_t k = 0; k < v->search.space.dim + study_view_has_third(v); k++)
        strbuf_add(out, "r");
    strbuf_add(out, "}\n    \\toprule\n    Trial & Cost");
    strbuf_add(out, study_cost_is_time(v->search.cost)    ? " (s)"
                    : v->search.cost == SEARCH_COST_STEPS ? " (steps)"
                                                          : "");
    strbuf_add(out, " & ");
    tex_text(out, v->study.metric);
    strbuf_add(out, " & 95\\,\\% & Seeds");
    if (study_view_has_third(v)) {
        strbuf_add(out, " & ");
        tex_text(out, v->search.outcomes.third);
    }
    for (size_t k = 0; k < v->search.space.dim; k++) {
        strbuf_add(out, " & \\rotatebox{90}{");
        tex_text(out, v->search.space.params[k].key);
        strbuf_add(out, "}");
    }
    strbuf_add(out, " \\\\\n    \\midrule\n");
}

static void front_row(struct strbuf *out, const struct report *report, size_t i)
{
    const struct study_view *v = report->view;
    const struct promise *p = &report->promises[i];
    char text[128];

    strbuf_addf(out, "    %lld%s & ", (long long)v->trials[i].number,
                i == report->best && i == report->knee ? " (best, knee)"
                : i == report->best                    ? " (best)"
                : i == report->knee                    ? " (knee)"
                                                       : "");
    tex_number(out, p->cost);
    strbuf_add(out, " & ");
    tex_number(out, p->score);
    strbuf_add(out, " & ");
    if (isfinite(p->lo) && isfinite(p->hi)) {
        tex_number(out, p->lo);
        strbuf_add(out, " to ");
        tex_number(out, p->hi);
    } else {
        strbuf_add(out, "--");
    }
    strbuf_addf(out, " & %zu", p->n_seeds);
    if (study_view_has_third(v)) {
        strbuf_add(out, " & ");
        tex_number(out, study_view_expected_third(v, i));
    }
    for (size_t k = 0; k < v->search.space.dim; k++) {
        strbuf_add(out, " & ");
        study_view_param_text(v, i, k, text, sizeof text);
        tex_value(out, text);
    }
    strbuf_add(out, " \\\\\n");
}

static void add_n(struct strbuf *out, size_t n, const char *word)
{
    if (n > 0)
        strbuf_addf(out, ", %zu %s", n, word);
}

static void search_caption(struct strbuf *out, const struct report *report)
{
    const struct study_view *v = report->view;
    char buf[HUMAN_TEXT_MAX];
    size_t n_configs = 0, n_seeds = 0;

    for (size_t i = 0; i < v->n; i++) {
        size_t k = 0;
        while (k < i && v->trials[k].seed != v->trials[i].seed)
            k++;
        n_seeds += k == i;
        n_configs += study_view_first_run(v, v->trials[i].number) == i;
    }
    strbuf_add(out, "  \\caption{Search of ");
    tex_text(out, v->study.name);
    strbuf_add(out, " by ");
    tex_text(out, v->study.method);
    strbuf_addf(out, ", seed %lld: %zu trials of %zu configs under %zu training seeds (%zu done",
                (long long)v->study.seed, v->n, n_configs, n_seeds, report->n_state[TRIAL_DONE]);
    add_n(out, report->n_state[TRIAL_STOPPED], "stopped early");
    add_n(out, report->n_state[TRIAL_FAILED] + report->n_state[TRIAL_LOST], "failed or lost");
    add_n(out, report->n_state[TRIAL_RUNNING] + report->n_state[TRIAL_QUEUED], "not finished");
    strbuf_add(out, "). Training of all trials took ");
    tex_text(out, format_seconds(report->total_cost_s, buf));
    for (size_t i = 0, n_devices = 0; i < v->n && n_devices < 4; i++) { /* each device by its name, once */
        bool is_new = v->trials[i].device != NULL;
        for (size_t k = 0; k < i && is_new; k++)
            is_new = v->trials[k].device == NULL || strcmp(v->trials[k].device, v->trials[i].device) != 0;
        if (!is_new)
            continue;
        strbuf_add(out, n_devices++ == 0 ? " on " : ", ");
        tex_text(out, v->trials[i].device);
    }
    strbuf_add(out, ". ");
    tex_text(out, v->study.program);
    strbuf_add(out, ".}\n");
}

static void space_row(struct strbuf *out, const struct search *search, size_t k)
{
    static const char *const scales[] = {"linear", "log", "logit", "powers of two", "choices"};
    const struct space_param *p = &search->space.params[k];

    strbuf_add(out, "    ");
    tex_text(out, p->key);
    strbuf_addf(out, " & %s & ", scales[p->scale]);
    if (p->scale != SPACE_CATEGORICAL) {
        tex_number(out, p->min);
        strbuf_add(out, " & ");
        tex_number(out, p->max);
    } else {
        strbuf_add(out, "\\multicolumn{2}{l}{");
        for (size_t c = 0; c < p->n_choices; c++) {
            strbuf_add(out, c == 0 ? "" : ", ");
            tex_value(out, search->choices[k][c]);
        }
        strbuf_add(out, "}");
    }
    strbuf_add(out, " \\\\\n");
}

void report_write_tex(struct strbuf *out, const struct report *report)
{
    const struct study_view *v = report->view;

    strbuf_add(out, "% needs \\usepackage{booktabs} and \\usepackage{graphicx}\n");
    front_head(out, report);
    for (size_t i = 0; i < report->n_front; i++)
        front_row(out, report, report->front[i]);
    strbuf_add(out, "    \\bottomrule\n  \\end{tabular}}\n\\end{table}\n\n\\begin{table}\n  \\centering\\small\n");
    search_caption(out, report);
    strbuf_add(out, "  \\label{tab:search}\n  \\begin{tabular}{llrr}\n    \\toprule\n    Parameter & Scale & From & To "
                    "\\\\\n    \\midrule\n");
    for (size_t k = 0; k < v->search.space.dim; k++)
        space_row(out, &v->search, k);
    strbuf_add(out, "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n");
}
