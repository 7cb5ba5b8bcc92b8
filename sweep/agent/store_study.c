/* store_study.c - the studies of a store as a node knows them. */
#include "sweep/agent/store_study.h"

#include "store/store.h"
#include "study/space/search.h"
#include "study/setup/setup.h"
#include "sweep/controller/trial/track_rows.h"
#include "sweep/launch/devices.h"

#define LOOK_S 5 /* at which kind of device a study's trials ran on, while that is not known */

static void free_study(struct store_study *s)
{
    (void)track_rows_close(s->rows, NULL, NULL, 0);
    study_view_free(&s->view);
    mem_free(s);
}

void store_studies_free(struct store_studies *studies)
{
    for (size_t i = 0; i < studies->n; i++)
        free_study(studies->v[i]);
    mem_free(studies->v);
    mem_free(studies->left);
    *studies = (struct store_studies){0};
}

/* Takes study. ST_CONFIG: it cannot be used here (its game is gone, it needs another version); the store can. */
static enum status add(struct store_studies *studies, struct store *store, struct study *study,
                       struct store_study **ret, struct error *err)
{
    struct store_study *s = mem_alloc(sizeof *s);
    struct setup *setup = NULL;
    struct error why = {0};
    enum status rc = study_view_begin(study, store_path(store), &s->view, &why);

    THEN(rc, study_view_setup(&s->view, &setup, &why));
    THEN(rc, search_bind(&s->view.search, setup, &why));
    THEN(rc, track_rows_open_quiet(&s->rows, store, &s->view.study, setup, &why));
    if (rc != ST_OK) {
        free_study(s);
        return FAIL(err, rc == ST_VERSION ? ST_CONFIG : rc, "%s", why.text);
    }
    MEM_ROOM(studies->v, studies->n, studies->cap);
    *ret = studies->v[studies->n++] = s;
    return ST_OK;
}

static struct store_study *known(const struct store_studies *studies, int64_t id)
{
    for (size_t i = 0; i < studies->n; i++)
        if (studies->v[i]->view.study.id == id)
            return studies->v[i];
    return NULL;
}

static bool is_left(const struct store_studies *studies, int64_t id)
{
    for (size_t i = 0; i < studies->n_left; i++)
        if (studies->left[i] == id)
            return true;
    return false;
}

void store_studies_leave(struct store_studies *studies, int64_t id, const char *name, const char *why)
{
    if (is_left(studies, id))
        return;
    log_warn("%s: %s; this slot takes none of its trials until the node starts or connects to the store again", name,
             why);
    MEM_ROOM(studies->left, studies->n_left, studies->cap_left);
    studies->left[studies->n_left++] = id;
}

enum status store_studies_find(struct store_studies *studies, struct store *store, int64_t id, struct store_study **ret,
                               struct error *err)
{
    struct study *list = NULL;
    size_t n = 0, i = 0;

    *ret = known(studies, id);
    if (*ret != NULL)
        return ST_OK;
    TRY(store_study_list(store, &list, &n, err));
    while (i < n && list[i].id != id)
        i++;
    enum status rc = i < n ? add(studies, store, &list[i], ret, err)
                           : FAIL(err, ST_NOTFOUND, "%s: the study of this trial was removed", store_path(store));
    study_list_free(list, n);
    return rc;
}

/* The kind of device of the last trial that is done. */
static enum status find_class(struct store_study *s, struct store *store, struct error *err)
{
    struct trial *trials = NULL;
    size_t n = 0;

    if (s->device_class[0] != '\0' || (s->looked_s > 0 && clock_mono_s() - s->looked_s < LOOK_S))
        return ST_OK;
    s->looked_s = clock_mono_s();
    TRY(store_trial_list_from(store, s->view.study.id, 0, &trials, &n, err));
    for (size_t i = 0; i < n; i++)
        if (trials[i].state == TRIAL_DONE && trials[i].device != NULL && trials[i].slot != NULL)
            device_class_of(trials[i].device, s->device_class);
    trial_list_free(trials, n);
    return ST_OK;
}

/* As device_class_fits, for a node, which does not know what else may come. */
static enum status check_fit(const struct store_study *s, const struct device_spec *spec, const char *class,
                             struct error *err)
{
    const char *costs = s->view.setup->sweep.device_costs;
    bool alike = strcmp(costs, DEVICE_COSTS_ALIKE) == 0;

    if (setup_is_program(s->view.setup))
        return ST_OK;
    TRY(devices_check_width(spec, &s->view.search, s->view.setup->train.devices, err));
    if (class[0] == '\0' || strcmp(costs, DEVICE_COSTS_ANY) == 0 || s->view.search.cost == SEARCH_COST_STEPS)
        return ST_OK;
    if (alike ? s->device_class[0] == '\0' || strcmp(s->device_class, class) == 0
              : !isnan(device_costs_factor(costs, class)))
        return ST_OK;
    return FAIL(err, ST_DEVICE, DEVICE_UNLIKE, spec->label, class, alike ? s->device_class : DEVICE_COSTS_NAMED);
}

static bool fits(struct store_study *s, const struct device_spec *spec, const char *class)
{
    struct error why = {0};

    if (check_fit(s, spec, class, &why) == ST_OK)
        return true;
    if (!s->unfit_reported)
        log_warn("%s: %s; it gets none of this study's trials, continuing", s->view.study.name, why.text);
    s->unfit_reported = true;
    return false;
}

static enum status count(struct store_study *s, struct store *store, struct error *err)
{
    struct trial_head *heads = NULL;
    size_t n = 0;

    s->n_running = s->n_queued = 0;
    TRY(store_trial_heads(store, s->view.study.id, &heads, &n, err));
    for (size_t i = 0; i < n; i++) {
        s->n_running += heads[i].running;
        s->n_queued += !heads[i].running;
    }
    mem_free(heads);
    return ST_OK;
}

static bool comes_before(const struct store_study *a, const struct store_study *b)
{
    return (double)a->n_running / (double)a->view.study.limits.priority <
           (double)b->n_running / (double)b->view.study.limits.priority;
}

/* Takes study. NULL: it cannot be used here. */
static enum status try_add(struct store_studies *studies, struct store *store, struct study *study,
                           struct store_study **ret, struct error *err)
{
    MEM_LOCAL char *name = mem_strdup(study->name);
    int64_t id = study->id;
    struct error why = {0};
    enum status rc = add(studies, store, study, ret, &why);

    if (rc == ST_CONFIG) {
        store_studies_leave(studies, id, name, why.text);
        return ST_OK;
    }
    return rc == ST_OK ? rc : FAIL(err, rc, "%s", why.text);
}

static enum status take(struct store_studies *studies, struct store *store, struct study *study,
                        const struct device_spec *spec, const char *class, struct store_study **order, size_t *n,
                        struct error *err)
{
    struct store_study *s = known(studies, study->id);
    size_t at = *n;

    if (study->state != STUDY_RUNNING || *n == STORE_STUDIES_MAX || is_left(studies, study->id))
        return ST_OK;
    int64_t priority = study->limits.priority > 0 ? study->limits.priority : 1;
    if (s == NULL)
        TRY(try_add(studies, store, study, &s, err));
    if (s == NULL)
        return ST_OK;
    s->view.study.limits.priority = priority; /* people change it */
    if (setup_is_program(s->view.setup) && program_is_outside(s->view.setup->config))
        return ST_OK;
    TRY(count(s, store, err));
    if (s->n_queued == 0)
        return ST_OK;
    TRY(find_class(s, store, err));
    if (!fits(s, spec, class))
        return ST_OK;
    for (; at > 0 && comes_before(s, order[at - 1]); at--)
        order[at] = order[at - 1];
    order[at] = s;
    (*n)++;
    return ST_OK;
}

enum status store_studies_order(struct store_studies *studies, struct store *store, const struct device_spec *spec,
                                const char *class, struct store_study **ret_order, size_t *ret_n, struct error *err)
{
    struct study *list = NULL;
    size_t n = 0;

    *ret_n = 0;
    TRY(store_study_list(store, &list, &n, err));
    enum status rc = ST_OK;
    for (size_t i = 0; i < n && rc == ST_OK; i++)
        rc = take(studies, store, &list[i], spec, class, ret_order, ret_n, err);
    study_list_free(list, n);
    return rc;
}
