/* dashboard.c - shows `trawl train` on stderr: a block redrawn in place on a terminal, else a line for each report. */
#include "sweep/show/dashboard.h"

#include "base/text/duration.h"
#include "sweep/term.h"
#include "trainer/trainer.h"

#define BLOCK_MAX 4096

void dashboard_begin(struct dashboard *d, const char *title, const char *device, const struct train_settings *train)
{
    memset(d, 0, sizeof *d);
    d->title = title;
    if (train->devices > 1)
        snprintf(d->device, sizeof d->device, "%lld x %s", (long long)train->devices, device);
    else
        snprintf(d->device, sizeof d->device, "%s", device);
    d->total_steps = train->total_timesteps;
    d->max_seconds = train->max_seconds;
    d->tty = term_begin();
    if (!d->tty)
        fprintf(term_err(), "training %s on %s\n", title, d->device);
}

/* Of the whole run, by whichever limit comes first. */
static double fraction_done(const struct dashboard *d, const struct train_metrics *m)
{
    double by_steps = d->total_steps > 0 ? (double)m->env_steps / (double)d->total_steps : 0;
    double by_clock = d->max_seconds > 0 ? m->wall_s / d->max_seconds : 0;
    double f = by_steps > by_clock ? by_steps : by_clock;
    return f > 1 ? 1 : f;
}

static double seconds_left(const struct train_metrics *m, double fraction)
{
    return fraction > 0 ? m->wall_s * (1 - fraction) / fraction : NAN;
}

/* "0.123" or "-" when unknown. */
static const char *show(double value, char buf[NUM_TEXT_MAX])
{
    if (!isfinite(value))
        snprintf(buf, NUM_TEXT_MAX, "-");
    else if (value == 0 || (fabs(value) >= 1e-3 && fabs(value) < 1e4))
        snprintf(buf, NUM_TEXT_MAX, "%.4g", value);
    else if (fabs(value) >= 1e4)
        num_format_short(value, buf);
    else
        snprintf(buf, NUM_TEXT_MAX, "%.1e", value);
    return buf;
}

static void report_line(const struct dashboard *d, const struct train_metrics *m)
{
    char steps[NUM_TEXT_MAX], rate[NUM_TEXT_MAX], v[6][NUM_TEXT_MAX], left[32];
    double f = fraction_done(d, m);

    fprintf(term_err(), "%3.0f%%  %s steps  %s/s  score %s  perf %s  policy %s  value %s  entropy %s  kl %s  left %s\n",
            100 * f, num_format_short((double)m->env_steps, steps), num_format_short(m->steps_per_s, rate),
            show(m->score, v[0]), show(m->perf, v[1]), show(m->policy_loss, v[2]), show(m->value_loss, v[3]),
            show(m->entropy, v[4]), show(m->approx_kl, v[5]), format_seconds(seconds_left(m, f), left));
}

static void report_block(const struct dashboard *d, const struct train_metrics *m)
{
    char block[BLOCK_MAX], bar[80], a[NUM_TEXT_MAX], b[NUM_TEXT_MAX], c[NUM_TEXT_MAX], e[NUM_TEXT_MAX], t1[32], t2[32];
    double f = fraction_done(d, m), sum = 0;
    size_t n = 0;

#define ADD(...)                                                                                                       \
    do {                                                                                                               \
        int wrote_ = snprintf(block + n, sizeof block - n, __VA_ARGS__);                                               \
        n = wrote_ < 0 || (size_t)wrote_ >= sizeof block - n ? sizeof block - 1 : n + (size_t)wrote_;                  \
    } while (0)
    ADD("%s on %s\n", d->title, d->device);
    ADD("%s %3.0f %%   %s of %s steps   left %s\n", term_bar(f, 30, bar), 100 * f,
        num_format_short((double)m->env_steps, a), num_format_short((double)d->total_steps, b),
        format_seconds(seconds_left(m, f), t1));
    ADD("  speed    %-10s steps/s      elapsed  %-10s  updates  %s\n", num_format_short(m->steps_per_s, a),
        format_seconds(m->wall_s, t2), num_format_short((double)m->updates, b));
    ADD("  score    %-10s perf     %-10s  return   %-10s  length  %s\n", show(m->score, a), show(m->perf, b),
        show(m->ep_return, c), show(m->ep_length, e));
    ADD("  policy   %-10s value    %-10s  entropy  %-10s  kl      %s\n", show(m->policy_loss, a),
        show(m->value_loss, b), show(m->entropy, c), show(m->approx_kl, e));
    ADD("  clipped  %-10s expl.var %-10s  grad     %-10s  lr      %s\n", show(m->clip_fraction, a),
        show(m->explained_variance, b), show(m->grad_norm, c), show(m->lr, e));
    for (int i = 0; i < PHASE_COUNT; i++)
        sum += m->phase_s[i];
    ADD(" ");
    for (int i = 0; i < PHASE_COUNT; i++)
        ADD(" %s %.0f%%", train_phase_name((enum train_phase)i), sum > 0 ? 100 * m->phase_s[i] / sum : 0.0);
    if (isfinite(m->outside))
        ADD("  (of the time in Python %.0f%%)", 100 * m->outside);
    ADD("\n");
#undef ADD
    term_draw(block);
}

void dashboard_report(struct dashboard *d, const struct train_metrics *m)
{
    if (d->tty)
        report_block(d, m);
    else
        report_line(d, m);
}

void dashboard_end(struct dashboard *d)
{
    if (d->tty)
        term_end();
}
