/* resume_command.c - the command that continues a study: the limit that ended it has to be raised. */
#include "study/view/resume_command.h"

#include "study/view/study_view.h"

static void add_time(struct strbuf *out, double seconds)
{
    double whole_s = ceil(seconds), unit_s = fmod(whole_s, 3600) == 0 ? 3600 : fmod(whole_s, 60) == 0 ? 60 : 1;

    strbuf_addf(out, " %.0f%c", whole_s / unit_s, unit_s == 3600 ? 'h' : unit_s == 60 ? 'm' : 's');
}

/* Of a limit that was lowered below what is spent already, twice the limit would end the study at once. */
static double twice(double limit_s, double spent_s)
{
    return 2 * (2 * limit_s > spent_s ? limit_s : spent_s);
}

static void add_limit(const struct study_view *v, struct strbuf *out)
{
    const struct study *s = &v->study;
    int64_t n = (int64_t)study_view_n_runs(v);
    bool full = s->limits.trials_max > 0 && n >= s->limits.trials_max;
    const char *rule = s->state == STUDY_ENDED && s->end_rule != NULL ? s->end_rule : full ? "trials" : "";

    if (strcmp(rule, "trials") == 0)
        strbuf_addf(out, " --trials %lld", (long long)(2 * (n > s->limits.trials_max ? n : s->limits.trials_max)));
    if (strcmp(rule, "budget") == 0) {
        strbuf_add(out, " --budget");
        add_time(out, twice(s->limits.budget_s, study_view_cost(v)));
    }
    if (strcmp(rule, "wall_time") == 0) {
        strbuf_add(out, " --wall-time");
        add_time(out, twice(s->limits.wall_max_s, s->wall_used_s));
    }
    if (strcmp(rule, "device_time") == 0) {
        strbuf_add(out, " CONFIG --sweep.device_time");
        add_time(out, 2 * s->limits.device_max_s);
    }
    if (strcmp(rule, "min_gain") == 0)
        strbuf_addf(out, " CONFIG --sweep.min_gain %.3g", s->limits.gain_min / 2);
    if (strcmp(rule, "target") == 0)
        strbuf_add(out, " --target SCORE");
}

void study_resume_command(const struct study_view *v, const char *store_path, struct strbuf *out)
{
    strbuf_add(out, "trawl sweep --resume ");
    strbuf_add_shell(out, v->study.name);
    if (store_path != NULL) {
        strbuf_add(out, " --store ");
        strbuf_add_shell(out, store_path);
    }
    add_limit(v, out);
}
