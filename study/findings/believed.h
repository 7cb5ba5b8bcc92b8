/* believed.h - the beliefs about a study as rows: one for each config, at its expected score and cost, so that a lucky
 * run makes no front and no hypervolume; without a belief, its run. Pure; any thread. */
#pragma once

#include "gp/gp.h"

struct study_view;

#define BELIEVED_NOW INT64_MAX
/* (view->n) rows; a row that stands for no config, or for one without a result until then (UTC ms), is pending. */
void believed_rows(const struct study_view *view, int64_t until_ms, struct gp_trial *ret_rows);
double believed_volume(const struct study_view *view, const struct pareto_ref *ref, int64_t until_ms);
/* The config that is best by what is known now, of those with a result until then; view->n: none. */
size_t believed_best(const struct study_view *view, int64_t until_ms);
