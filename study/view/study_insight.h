/* study_insight.h - importance of the parameters, and bounds at which the front lies. Writes the advice of a view. */
#pragma once

#include "base/base.h"

struct opt_def;
struct space_param;
struct study_view;

/* study_view_advise with importance and edges. Each edge can be followed: its option allows the suggested bound, and
 * trials can run at it. */
enum status study_view_insight(struct study_view *view, struct error *err) MUST_USE;
/* Rounds x, a bound beyond the parameter's on this side (-1, 1), to one that the option allows: whole, a power of two
 * or above 0. False: there is no wider one. */
bool insight_bound(const struct space_param *param, const struct opt_def *opt, int side, double *x);
