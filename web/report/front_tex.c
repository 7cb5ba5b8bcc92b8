/* front_tex.c - two tables of LaTeX: the front with its parameters, and the search: space, compute, seeds.
 * Needs the packages booktabs and graphicx. Whatever came from a study is escaped. */
#include "web/report/report_priv.h"

#include "base/text/duration.h"
#include "study/view/study_view.h"

static void tex_value(struct strbuf *out, const char *text)
{
    double value = NAN;

    if (num_parse_f64(text, &value) || strcmp(text, "-") == 0)
        put_tex(out, "%e", value);
    else
        put_tex(out, "%s", text);
}

static void front_head(struct strbuf *out, const struct report *report)
{
    const struct study_view *v = report->view;

    put_tex(out, "\\begin{table}\n  \\centering\\small\n  \\caption{Front of cost against %s (%s is better) of %s",
            v->study.metric, v->study.maximize ? "higher" : "lower", v->study.name);
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
    put_tex(out, " & %s & 95\\,\\%% & Seeds", v->study.metric);
    if (study_view_has_third(v))
        put_tex(out, " & %s", v->search.outcomes.third);
    for (size_t k = 0; k < v->search.space.dim; k++)
        put_tex(out, " & \\rotatebox{90}{%s}", search_param_name(v->search.space.params[k].key));
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
    put_tex(out, "%e & %e & ", p->cost, p->score);
    if (isfinite(p->lo) && isfinite(p->hi))
        put_tex(out, "%e to %e", p->lo, p->hi);
    else
        strbuf_add(out, "--");
    strbuf_addf(out, " & %zu", p->n_seeds);
    if (study_view_has_third(v))
        put_tex(out, " & %e", study_view_expected_third(v, i));
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
    put_tex(out,
            "  \\caption{Search of %s by %s, seed %lld: %zu trials of %zu configs under %zu training seeds (%zu done",
            v->study.name, v->study.method, (long long)v->study.seed, v->n, n_configs, n_seeds,
            report->n_state[TRIAL_DONE]);
    add_n(out, report->n_state[TRIAL_STOPPED], "stopped early");
    add_n(out, report->n_state[TRIAL_FAILED] + report->n_state[TRIAL_LOST], "failed or lost");
    add_n(out, report->n_state[TRIAL_RUNNING] + report->n_state[TRIAL_QUEUED], "not finished");
    put_tex(out, "). Training of all trials took %s", format_seconds(report->total_cost_s, buf));
    for (size_t i = 0, n_devices = 0; i < v->n && n_devices < 4; i++) { /* each device by its name, once */
        bool is_new = v->trials[i].device != NULL;
        for (size_t k = 0; k < i && is_new; k++)
            is_new = v->trials[k].device == NULL || strcmp(v->trials[k].device, v->trials[i].device) != 0;
        if (!is_new)
            continue;
        put_tex(out, n_devices++ == 0 ? " on %s" : ", %s", v->trials[i].device);
    }
    put_tex(out, ". %s.}\n", v->study.program);
}

static void space_row(struct strbuf *out, const struct search *search, size_t k)
{
    static const char *const scales[] = {"linear", "log", "logit", "powers of two", "choices"};
    const struct space_param *p = &search->space.params[k];

    put_tex(out, "    %s & %s & ", search_param_name(p->key), scales[p->scale]);
    if (p->scale != SPACE_CATEGORICAL) {
        put_tex(out, "%e & %e", p->min, p->max);
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
