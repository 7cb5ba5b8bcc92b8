/* store_study.h - the studies of a store as a node knows them: config, space and trackers, without their trials. A list
 * owns what it holds; one thread. */
#pragma once

#include "study/view/study_view.h"
#include "sweep/launch/device_class.h"

struct device_spec;
struct store;
struct track_rows;

#define STORE_STUDIES_MAX 256 /* that run at a time */

struct store_study {
    struct study_view view; /* without trials; with its setup */
    struct track_rows *rows; /* NULL: no trackers */
    char device_class[DEVICE_CLASS_MAX]; /* of its earlier trials; "": not known */
    bool unfit_reported; /* it was logged why a device gets none of its trials */
    double looked_s; /* when that was looked for last */
    int64_t n_running, n_queued; /* at the last store_studies_order */
};
struct store_studies {
    struct store_study **v; /* (n) */
    size_t n, cap;
    int64_t *left; /* (n_left) studies that cannot be used here, like those whose game is of another build */
    size_t n_left, cap_left;
};
void store_studies_leave(struct store_studies *studies, int64_t study_id, const char *name, const char *why);
void store_studies_free(struct store_studies *studies);
/* ST_NOTFOUND: it was removed. */
enum status store_studies_find(struct store_studies *studies, struct store *store, int64_t study_id,
                               struct store_study **ret_study, struct error *err) MUST_USE;
/* Those that run and have a queued trial for a worker of this place whose device is of this kind ("": any), the one
 * with the fewest running trials for its priority first. ret_order: (STORE_STUDIES_MAX), borrowed. */
enum status store_studies_order(struct store_studies *studies, struct store *store, const struct device_spec *spec,
                                const char *device_class, struct store_study **ret_order, size_t *ret_n,
                                struct error *err) MUST_USE;
