/* optuna.h - a study as a storage of Optuna's, which optuna-dashboard opens. Any thread. */
#pragma once

#include "base/base.h"

struct study_view;

/* Writes a new SQLite file (ST_EXISTS), schema 12 of Optuna's RDB storage, 3.2 to 5.0, with the study under its name:
 * two objectives, score and cost, and the third where there is one, so that its Pareto front is that of single runs;
 * limits are its constraints. Trials that were dropped or have no result are failed ones. */
enum status optuna_write(const struct study_view *view, const char *path, struct error *err) MUST_USE;
