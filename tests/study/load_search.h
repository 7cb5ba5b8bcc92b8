/* load_search.h - a config's text as a finished setup and its search, for the tests of study/. */
#pragma once

#include "base/config/config.h"
#include "tests/study/setup_test.h"

/* On failure *ret_setup is NULL; otherwise setup_destroy and search_free are the caller's. */
static enum status load(const char *text, struct setup **ret_setup, struct search *ret_search, struct error *err)
{
    *ret_setup = NULL;
    memset(ret_search, 0, sizeof *ret_search);
    TRY(setup_create(ret_setup, err));
    (*ret_setup)->searches = true;
    enum status rc = config_load_text((*ret_setup)->config, "t.ini", text, err);
    if (rc == ST_OK)
        rc = setup_finish(*ret_setup, err);
    if (rc == ST_OK)
        rc = search_from_setup(*ret_setup, ret_search, err);
    if (rc != ST_OK) {
        setup_destroy(*ret_setup);
        *ret_setup = NULL;
    }
    return rc;
}
