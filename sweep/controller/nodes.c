/* nodes.c - brings the served studies up to what nodes have written into the store.
 * Invariants: (1) the store is compared with the view, and not a record of changes read: a look that was missed costs
 * nothing; (2) an end is taken into the view as one of the controller's own flights would be, and by that into the next
 * proposal. */
#include "sweep/controller/nodes.h"

#include "base/text/json.h"
#include "study/setup/setup.h"
#include "sweep/launch/device_class.h"
#include "sweep/controller/trial/course.h"
#include "sweep/controller/sched_study.h"
#include "sweep/launch/slurm_nodes.h"

#define LOOK_S 1.0 /* at a store that seems unchanged */
#define LEAST_S 0.1 /* between two looks */

bool nodes_took(struct sched_study *ss, size_t i)
{
    struct trial *t = &ss->view.trials[i], now = {0};
    bool took = store_trial_find(ss->store, t->study_id, t->number, &now, NULL) == ST_OK && now.state != TRIAL_QUEUED;

    trial_free(&now);
    if (!took || t->state != TRIAL_QUEUED)
        return took;
    t->state = TRIAL_RUNNING;
    ss->lease_unseen = true;
    ss->n_queued--;
    return true;
}

/* The shorter runs of a node's attempt of trial i. Each is added once, however often it comes by. */
static enum status take_branches(struct sched_study *ss, size_t i, const char *text, struct error *err)
{
    cJSON *branches = NULL, *branch;
    struct error wrong = {0};
    enum status rc = ST_OK;

    if (text == NULL || json_parse(text, strlen(text), &branches, &wrong) != ST_OK)
        return ST_OK;
    cJSON_ArrayForEach(branch, branches)
    {
        char class[DEVICE_CLASS_MAX];
        const char *device = json_get_str(branch, "device");
        device_class_of(device != NULL ? device : "", class);
        THEN(rc, course_take_branch(ss, i, branch, device_costs_scale(ss->setup->sweep.device_costs, class), err));
    }
    cJSON_Delete(branches);
    return rc;
}

static enum status read_texts(struct sched_study *ss, size_t i, struct error *err)
{
    struct trial now = {0};

    TRY(store_trial_find(ss->store, ss->view.study.id, (int64_t)i, &now, err));
    now.state = ss->view.trials[i].state; /* what else the store has of it now, reload finds and counts */
    now.attempt = ss->view.trials[i].attempt;
    return study_view_put(&ss->view, i, &now, err);
}

/* has_texts: those of the trial were not freed yet, as they are when its end is taken in. */
static enum status take_branches_of(struct sched_study *ss, size_t i, bool has_texts, struct error *err)
{
    struct lease *leases = NULL;
    size_t n = 0;

    if (ss->setup->sweep.branches == 0)
        return ST_OK;
    TRY(store_lease_list(ss->store, ss->view.trials[i].id, &leases, &n, err));
    enum status rc = ST_OK;
    for (size_t k = 0; k < n && rc == ST_OK; k++) {
        if (leases[k].branches == NULL)
            continue;
        if (!has_texts)
            rc = read_texts(ss, i, err);
        has_texts = true;
        THEN(rc, take_branches(ss, i, leases[k].branches, err));
    }
    lease_list_free(leases, n);
    return rc;
}

/* Trial i becomes what the store has. */
static enum status reload(struct scheduler *s, struct sched_study *ss, size_t i, struct error *err)
{
    enum trial_state before = ss->view.trials[i].state;
    struct trial now = {0};

    TRY(store_trial_find(ss->store, ss->view.study.id, (int64_t)i, &now, err));
    ss->n_queued += (now.state == TRIAL_QUEUED) - (before == TRIAL_QUEUED);
    enum trial_state after = now.state;
    TRY(study_view_put(&ss->view, i, &now, err));
    if (after == TRIAL_QUEUED || after == TRIAL_RUNNING) {
        study_view_update(&ss->view, i);
        if (before == TRIAL_RUNNING)
            TRY(take_branches_of(ss, i, true, err)); /* that attempt has no result, and what it had on its way counts */
        if (after == TRIAL_QUEUED && before == TRIAL_RUNNING)
            sched_study_report_end(ss, s, i);
        return ST_OK;
    }
    TRY(take_branches_of(ss, i, true, err));
    TRY(sched_study_recorded(ss, i, err));
    sched_study_report_end(ss, s, i);
    return ST_OK;
}

/* Of trials whose result came while no controller looked. */
static enum status take_missed_branches(struct sched_study *ss, struct error *err)
{
    size_t n = ss->view.n;

    for (size_t i = 0; i < n && ss->setup->sweep.branches > 0; i++)
        if (ss->view.trials[i].attempt > 0 && !trial_is_branch(&ss->view.trials[i], NULL))
            TRY(take_branches_of(ss, i, false, err));
    return ST_OK;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = ((const struct lease *)a)->id, y = ((const struct lease *)b)->id;

    return x < y ? -1 : x > y;
}

static struct lease *find(struct lease *leases, size_t n, int64_t id)
{
    const struct lease key = {.id = id};

    return n > 0 ? bsearch(&key, leases, n, sizeof *leases, compare_ids) : NULL;
}

/* A lease that was kept, as the store has it now. */
static enum status take_open(struct sched_study *ss, struct held *h, struct lease *now, struct error *err)
{
    char *known = h->lease.branches;

    h->lease.until_ms = now->until_ms;
    if (now->branches == NULL || (known != NULL && strcmp(known, now->branches) == 0))
        return ST_OK;
    h->lease.branches = now->branches;
    now->branches = known;
    return take_branches(ss, h->i, h->lease.branches, err);
}

/* Leases that have ended, or were kept. */
static enum status take_ends(struct scheduler *s, struct sched_study *ss, struct lease *open, size_t n,
                             struct error *err)
{
    for (size_t k = ss->leases.n; k-- > 0;) {
        struct held *h = &ss->leases.v[k];
        struct lease *now = find(open, n, h->lease.id);
        size_t i = h->i;
        if (!lease_is_of_node(&h->lease))
            continue;
        if (now != NULL) {
            TRY(take_open(ss, h, now, err));
            continue;
        }
        leases_forget(ss, h);
        ss->risk_moved = true;
        TRY(reload(s, ss, i, err));
    }
    return ST_OK;
}

static enum status take_claims(struct scheduler *s, struct sched_study *ss, struct lease *open, size_t n,
                               struct error *err)
{
    size_t n_held = ss->view.n;
    MEM_LOCAL bool *held = mem_array(n_held, sizeof *held); /* trials whose leases are known */
    enum status rc = ST_OK;

    for (size_t k = 0; k < ss->leases.n; k++)
        held[ss->leases.v[k].i] = true;
    for (size_t k = 0; k < n && rc == ST_OK; k++) {
        size_t i = (size_t)open[k].number;
        if (!lease_is_of_node(&open[k]) || (i < n_held && held[i]))
            continue;
        if (i >= ss->view.n)
            rc = sched_study_adopt(ss, err);
        THEN(rc, reload(s, ss, i, err));
        if (rc != ST_OK)
            break;
        ss->n_started++;
        if (ss->view.trials[i].state != TRIAL_RUNNING) /* it has ended since the leases were read: all of it is taken */
            continue;
        leases_append(ss, &open[k], i);
        rc = take_branches(ss, i, open[k].branches, err);
        open[k].result = open[k].branches = NULL; /* the study's now */
    }
    return rc;
}

/* Trials that were claimed and ended between two looks. */
static enum status take_rest(struct scheduler *s, struct sched_study *ss, struct error *err)
{
    MEM_LOCAL struct trial_head *heads = NULL;
    size_t n = 0, k = 0;
    enum status rc = store_trial_heads(ss->store, ss->view.study.id, &heads, &n, err);

    for (size_t i = 0; i < ss->view.n && rc == ST_OK; i++) {
        enum trial_state state = ss->view.trials[i].state;
        while (k < n && heads[k].number < (int64_t)i)
            k++;
        bool pending = k < n && heads[k].number == (int64_t)i;
        if ((state == TRIAL_QUEUED || state == TRIAL_RUNNING) && !pending)
            rc = reload(s, ss, i, err);
        else if (state == TRIAL_QUEUED && heads[k].attempt != ss->view.trials[i].attempt)
            rc = reload(s, ss, i, err); /* it was given back, or claimed after the leases were read */
        ss->lease_unseen = ss->lease_unseen || (state == TRIAL_QUEUED && ss->view.trials[i].state == TRIAL_RUNNING);
    }
    return rc;
}

static enum status look_at(struct scheduler *s, struct sched_study *ss, struct error *err)
{
    struct lease *open = NULL;
    size_t n = 0;

    if (!ss->branches_looked)
        TRY(take_missed_branches(ss, err));
    ss->branches_looked = true;
    TRY(store_lease_list_open(ss->store, ss->view.study.id, &open, &n, err));
    ss->lease_unseen = false;
    if (n > 0)
        qsort(open, n, sizeof *open, compare_ids);
    enum status rc = take_ends(s, ss, open, n, err);
    THEN(rc, take_claims(s, ss, open, n, err));
    THEN(rc, take_rest(s, ss, err));
    lease_list_free(open, n);
    return rc;
}

/* Of a node that is there: one that is gone keeps its lease until that expires, but no place of another. */
static bool holds_slot(const struct lease *lease, const struct node *nodes, size_t n)
{
    const char *slash = strrchr(lease->client, '/'); /* NODE/DEVICE */

    for (size_t k = 0; lease_is_of_node(lease) && slash != NULL && k < n; k++)
        if (strlen(nodes[k].name) == (size_t)(slash - lease->client) &&
            strncmp(lease->client, nodes[k].name, (size_t)(slash - lease->client)) == 0)
            return true;
    return false;
}

static enum status count(struct scheduler *s, struct error *err)
{
    struct node *nodes = NULL;
    size_t n = 0;
    int64_t busy = 0;

    TRY(store_node_list(s->store, 0, &nodes, &n, err));
    if ((int64_t)n != s->nodes.n)
        log_info("nodes that take trials of the store: %zu", n);
    s->nodes.n = (int64_t)n;
    s->nodes.slots = 0;
    for (size_t k = 0; k < n; k++)
        s->nodes.slots += nodes[k].slots;
    for (size_t i = 0; i < s->n_studies; i++) {
        for (size_t k = 0; k < s->studies[i]->leases.n; k++)
            busy += holds_slot(&s->studies[i]->leases.v[k].lease, nodes, n);
    }
    mem_free(nodes);
    s->nodes.waiting = s->nodes.slots > busy ? s->nodes.slots - busy : 0;
    return ST_OK;
}

/* Trials that run on nodes or could. */
static int64_t n_trials(const struct scheduler *s)
{
    int64_t sum = 0;

    for (size_t i = 0; i < s->n_studies && !s->stopping; i++) {
        const struct sched_study *ss = s->studies[i];
        int64_t wants = sched_study_wants(ss);
        sum = wants > INT64_MAX - sum ? INT64_MAX : sum + wants;
        for (size_t k = 0; k < ss->leases.n && sum < INT64_MAX; k++)
            sum += lease_is_of_node(&ss->leases.v[k].lease);
    }
    return sum;
}

static enum status look(struct scheduler *s, struct error *err)
{
    int64_t n_expired = 0;
    enum status rc = ST_OK;

    STORE_INSIST(rc, s->store, err, store_leases_expire(s->store, &n_expired, err));
    TRY(rc);
    if (n_expired > 0)
        log_info("%lld trial%s of nodes that fell silent: queued again, or given up as lost", (long long)n_expired,
                 PLURAL(n_expired));
    for (size_t i = 0; i < s->n_studies; i++)
        if (s->studies[i]->state != SCHED_STUDY_ENDED)
            TRY(look_at(s, s->studies[i], err));
    return count(s, err);
}

enum status nodes_round(struct scheduler *s, struct error *err)
{
    double since_s = s->now_s - s->nodes.looked_s;
    struct error why = {0};
    int64_t version = 0;

    if (s->store == NULL || since_s < LEAST_S)
        return ST_OK;
    bool hints = store_hint_fd(s->store) >= 0;
    enum status rc = hints ? ST_OK : store_data_version(s->store, &version, &why);
    if (rc == ST_OK && since_s < LOOK_S &&
        !(hints ? store_hint_take(s->store, STORE_HINT_RESULTS) : version != s->nodes.version))
        return ST_OK;
    s->nodes.looked_s = s->now_s;
    THEN(rc, look(s, &why));
    if (rc == ST_OK)
        s->nodes.version = version;
    else if (rc == ST_BUSY) /* another controller may have it now */
        return FAIL(err, rc, "%s", why.text);
    else
        log_debug("what nodes did cannot be read: %s; at the next look", why.text);
    slurm_nodes_round(s->launcher, n_trials(s), s->now_s);
    return ST_OK;
}
