/* agent.h - `trawl agent`: asks a study for trials, runs a program for each, sends reports and results. The settings
 * are the caller's until agent_run returns. The programs belong to the calling thread; each slot has one thread more,
 * which talks to the server. */
#pragma once

#include "base/base.h"

struct agent_settings;

/* Until the study has ended (ST_OK), a signal (ST_INTERRUPTED; trials that run are given back), or a refusal that would
 * come again. */
enum status agent_run(const struct agent_settings *settings, struct error *err) MUST_USE;
