/* setup_test.h - a setup and a search that end with the block that declares them. */
#pragma once

#include "study/space/search.h"
#include "study/setup/setup.h"

#define SETUP __attribute__((cleanup(setup_drop))) struct setup
#define SEARCH __attribute__((cleanup(search_free))) struct search

static inline void setup_drop(struct setup **setup)
{
    setup_destroy(*setup);
}
