/* train_program.h - `trawl train` of a config whose trainer is another program. */
#pragma once

#include "base/base.h"

struct setup;

/* Runs it once, in the folder NAME.run (name: the config's, without .ini), and prints what it reported last. A program
 * that fails is ST_LIMIT. */
enum status train_program(const struct setup *setup, const char *name, bool json, bool quiet,
                          struct error *err) MUST_USE;
