/* lane_program.h - a trial of a lane that another program trains. Called by the lane's thread. */
#pragma once

#include "base/text/json.h"

struct lane;
struct setup;

/* Runs the program of a finished setup, reports on the way, and gives the result to send. message: the trial's
 * "run". */
cJSON *lane_program(struct lane *lane, const struct setup *setup, const cJSON *message);
