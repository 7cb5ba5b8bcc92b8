/* promise.c - what fresh runs of a trial's config are expected to give: the score that the models expect from all
 * trials, the interval of fresh runs, and the number of runs that it rests on. Every reader takes its numbers and words
 * from here. */
#include "study/view/promise.h"

#include "base/text/duration.h"
#include "base/text/human.h"
#include "gp/gp.h"
#include "store/store.h"

void promise_make(const struct gp_belief *belief, const struct gp_trial *row, const struct trial *trial, bool maximize,
                  struct promise *ret)
{
    double sign = maximize ? 1.0 : -1.0;

    *ret = (struct promise){.score = sign * row->score,
                            .lo = NAN,
                            .hi = NAN,
                            .noise_sd = NAN,
                            .mean = sign * row->score,
                            .cost = row->cost,
                            .cost_lo = NAN,
                            .cost_hi = NAN,
                            .start_s = trial->start_s > 0 ? trial->start_s : NAN,
                            .n_seeds = row->state == GP_TRIAL_DONE};
    if (belief == NULL)
        return;
    ret->is_known = true;
    ret->score = sign * belief->score;
    ret->lo = maximize ? belief->lo : -belief->hi;
    ret->hi = maximize ? belief->hi : -belief->lo;
    ret->noise_sd = belief->noise_sd;
    ret->mean = sign * belief->mean;
    ret->n_seeds = belief->n_seeds;
    ret->cost = exp(belief->log_cost);
    ret->cost_lo = exp(belief->log_cost - GP_SD_95 * belief->log_cost_sd);
    ret->cost_hi = exp(belief->log_cost + GP_SD_95 * belief->log_cost_sd);
}

const char *promise_seeds_text(const struct promise *p, char *buf)
{
    char mean[HUMAN_TEXT_MAX];

    if (p->n_seeds > 1)
        snprintf(buf, PROMISE_TEXT_MAX, "%zu seeds, mean %s", p->n_seeds, text_number(p->mean, mean));
    else
        snprintf(buf, PROMISE_TEXT_MAX, p->n_seeds == 1 ? "seen once" : "not seen yet");
    return buf;
}

const char *promise_interval_text(const struct promise *p, char *buf)
{
    char lo[HUMAN_TEXT_MAX], hi[HUMAN_TEXT_MAX];

    snprintf(buf, PROMISE_TEXT_MAX, "%s to %s", text_number(p->lo, lo), text_number(p->hi, hi));
    return buf;
}

const char *promise_text(const struct promise *p, char *buf)
{
    char score[HUMAN_TEXT_MAX], interval[PROMISE_TEXT_MAX], seeds[PROMISE_TEXT_MAX];

    text_number(p->score, score);
    promise_seeds_text(p, seeds);
    if (p->is_known)
        snprintf(buf, PROMISE_TEXT_MAX, "%.30s, 95 %% %.70s (%.60s)", score, promise_interval_text(p, interval), seeds);
    else
        snprintf(buf, PROMISE_TEXT_MAX, "%.30s (%.60s)", score, seeds);
    return buf;
}

const char *promise_cost_text(const struct promise *p, enum search_cost kind, char *buf)
{
    char warm[HUMAN_TEXT_MAX], cold[HUMAN_TEXT_MAX];

    if (kind == SEARCH_COST_STEPS) {
        snprintf(buf, PROMISE_TEXT_MAX, "%s steps", text_number(p->cost, warm));
    } else if (kind == SEARCH_COST_OWN) {
        snprintf(buf, PROMISE_TEXT_MAX, "%s", text_number(p->cost, warm));
    } else {
        format_seconds(p->cost, warm);
        format_seconds(p->cost + p->start_s, cold);
        bool differ = kind == SEARCH_COST_WALL && isfinite(p->start_s) && strcmp(warm, cold) != 0;
        snprintf(buf, PROMISE_TEXT_MAX, differ ? "%.40s in a warm worker, %.40s from process start" : "%.40s", warm,
                 cold);
    }
    return buf;
}
