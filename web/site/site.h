/* site.h - `trawl report --site`: studies as a folder of files that any web server, or the disk alone, shows with the
 * pages of `trawl serve`, read-only. The folder needs no server: data are scripts that the pages load, and addresses
 * follow a '#'. */
#pragma once

#include "base/base.h"

struct site_settings {
    const char *store_path, *dir;
    const char *const *studies; /* (n_studies) names */
    size_t n_studies;
    const char *program, *version, *commit;
};
struct site_written {
    size_t n_files, n_bytes, n_games; /* games: trials whose policies play */
};

/* Reads the store once and writes the folder, which is made where it is missing; files that are there already are
 * replaced. ST_EXISTS: the folder holds something else. */
enum status site_write(const struct site_settings *settings, struct site_written *ret_written,
                       struct error *err) MUST_USE;
