/* trial_config.h - a trial's config, value by value. Pure. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct trial;

/* [{"key", "value", "default", "origin", "differs", "against"?}]; against: may be NULL. Trials with their configs; the
 * caller deletes. */
enum status trial_config_rows(const struct trial *trial, const struct trial *against, cJSON **ret_rows,
                              struct error *err) MUST_USE;
