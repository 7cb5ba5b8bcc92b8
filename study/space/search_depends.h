/* search_depends.h - parameters that have an effect only while another option has certain values. Changes the search it
 * is given; one thread. */
#pragma once

#include "base/base.h"

struct search;
struct setup;
struct strbuf;

/* In a bound search: removes parameters whose option depends on a value that the config does not have, and lists them
 * in inert; parameters that depend on another one of the space become conditional. */
enum status search_find_dependent(struct search *search, const struct setup *setup, struct strbuf *inert,
                                  struct error *err) MUST_USE;
