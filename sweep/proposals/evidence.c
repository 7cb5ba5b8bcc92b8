/* evidence.c - what each proposal had seen, as differences from the proposal before: a result is named once in a study,
 * so that this takes some bytes a trial, with any number of workers. */
#include "sweep/proposals/evidence.h"

#include "study/view/study_view.h"

static const char *const turn_names[] = {[CONFIRM_NO] = "no",
                                         [CONFIRM_IF_STUCK] = "stuck",
                                         [CONFIRM_FIRST] = "first",
                                         [CONFIRM_END] = "end",
                                         [CONFIRM_LAST] = "last"};
static const char *const target_names[] = {
    [TARGET_FAR] = "far", [TARGET_ADVISE] = "advise", [TARGET_CONFIRM] = "confirm"};
#define N_NAMES(names) (sizeof(names) / sizeof(names)[0])

void evidence_entry_free(struct evidence_entry *entry)
{
    mem_free(entry->space);
    *entry = (struct evidence_entry){0};
}

void evidence_free(struct evidence *e)
{
    mem_free(e->known);
    mem_free(e->asked);
    mem_free(e->text);
    *e = (struct evidence){0};
}

static unsigned char bits_of(const struct trial *t)
{
    return (unsigned char)((t->state >= TRIAL_DONE ? EVIDENCE_ENDED : 0) | (t->dropped != NULL ? EVIDENCE_DROPPED : 0));
}

static void reserve(unsigned char **v, size_t *cap, size_t n)
{
    if (n <= *cap)
        return;
    *v = mem_grow(*v, *cap, 2 * n, 1);
    *cap = 2 * n;
}

static void add_number(cJSON *json, const char *key, size_t i)
{
    cJSON *list = json_get(json, key);

    if (list == NULL)
        list = cJSON_AddArrayToObject(json, key);
    cJSON_AddItemToArray(list, cJSON_CreateNumber((double)i));
}

static void add_plan(cJSON *json, const struct evidence *e, size_t place)
{
    const struct confirm_plan *plan = &e->plan;

    json_add_str(json, "turn", turn_names[plan->turn]);
    json_add_str(json, "target", target_names[plan->target]);
    json_add_i64(json, "seeds", (int64_t)plan->seeds);
    if (isfinite(plan->cost_left))
        json_add_f64(json, "cost_left", plan->cost_left);
    if (e->n_of == 1)
        return;
    json_add_i64(json, "again", (int64_t)plan->again);
    json_add_i64(json, "place", (int64_t)place);
    json_add_i64(json, "of", (int64_t)e->n_of);
}

void evidence_ask(struct evidence *e, const struct study_view *v, const struct confirm_plan *plan, size_t n)
{
    cJSON *space = NULL;
    JSON_LOCAL cJSON *json = cJSON_CreateObject();

    reserve(&e->asked, &e->cap_asked, v->n);
    e->n_asked = v->n;
    json_add_i64(json, "trials", (int64_t)v->n);
    for (size_t i = 0; i < v->n; i++) {
        unsigned char before = i < e->n_known ? e->known[i] : 0, now = bits_of(&v->trials[i]);
        e->asked[i] = now;
        if ((now & EVIDENCE_ENDED) != 0 && (before & EVIDENCE_ENDED) == 0)
            add_number(json, "ended", i);
        if ((now & EVIDENCE_DROPPED) != (before & EVIDENCE_DROPPED))
            add_number(json, (now & EVIDENCE_DROPPED) != 0 ? "dropped" : "counted", i);
    }
    e->plan = *plan;
    e->n_of = n;
    add_plan(json, e, 0);
    e->asked_space = e->new_space;
    if (e->new_space && json_parse(v->study.space, strlen(v->study.space), &space, NULL) == ST_OK)
        json_add(json, "space", space);
    mem_free(e->text);
    e->text = json_print(json, false);
}

char *evidence_text(const struct evidence *e, size_t place)
{
    char *text;

    if (place == 0)
        return mem_strdup(e->text);
    JSON_LOCAL cJSON *json = cJSON_CreateObject();
    json_add_i64(json, "trials", (int64_t)e->n_asked);
    add_plan(json, e, place);
    text = json_print(json, false);
    return text;
}

void evidence_stored(struct evidence *e)
{
    unsigned char *known = e->known;
    size_t cap = e->cap_known;

    e->known = e->asked;
    e->n_known = e->n_asked;
    e->cap_known = e->cap_asked;
    e->asked = known;
    e->cap_asked = cap;
    e->n_asked = e->n_known;
    e->new_space = e->new_space && !e->asked_space;
}

/* The index of a word; N: none of them. */
static size_t find_name(const char *const *names, size_t n, const char *word)
{
    size_t i = 0;

    while (i < n && (word == NULL || strcmp(names[i], word) != 0))
        i++;
    return i;
}

static bool apply(struct evidence *e, const cJSON *json, const char *key, unsigned char set, unsigned char clear)
{
    const cJSON *list = json_get(json, key), *item;

    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < (double)e->n_known))
            return false;
        unsigned char *bits = &e->known[(size_t)item->valuedouble];
        *bits = (unsigned char)((*bits | set) & ~clear);
    }
    return true;
}

static bool read_entry(struct evidence *e, const cJSON *json, struct evidence_entry *ret)
{
    const cJSON *space = json_get(json, "space");
    size_t turn = find_name(turn_names, N_NAMES(turn_names), json_get_str(json, "turn"));
    size_t target = find_name(target_names, N_NAMES(target_names), json_get_str(json, "target"));
    int64_t n = -1, seeds = 1;

    if (!json_get_i64(json, "trials", &n) || n < (int64_t)e->n_known || turn == N_NAMES(turn_names) ||
        target == N_NAMES(target_names) || !json_get_i64(json, "seeds", &seeds) || seeds < 0)
        return false;
    reserve(&e->known, &e->cap_known, (size_t)n);
    if ((size_t)n > e->n_known)
        memset(e->known + e->n_known, 0, (size_t)n - e->n_known);
    e->n_known = (size_t)n;
    *ret = (struct evidence_entry){.n_trials = (size_t)n,
                                   .plan = {.turn = (enum confirm_turn)turn,
                                            .target = (enum confirm_target)target,
                                            .seeds = (size_t)seeds,
                                            .cost_left = INFINITY}};
    (void)json_get_f64(json, "cost_left", &ret->plan.cost_left);
    int64_t again = json_i64_or(json, "again", 1);
    int64_t place = json_i64_or(json, "place", 0);
    int64_t of = json_i64_or(json, "of", 1);
    if (again < 0 || of < 1 || of > SUGGEST_BATCH_MAX || place < 0 || place >= of)
        return false;
    ret->plan.again = (size_t)again;
    ret->place = (size_t)place;
    ret->of = (size_t)of;
    if (space != NULL)
        ret->space = json_print(space, false);
    return apply(e, json, "ended", EVIDENCE_ENDED, 0) && apply(e, json, "dropped", EVIDENCE_DROPPED, 0) &&
           apply(e, json, "counted", 0, EVIDENCE_DROPPED);
}

enum status evidence_read(struct evidence *e, const char *text, struct evidence_entry *ret, struct error *err)
{
    JSON_LOCAL cJSON *json = NULL;

    *ret = (struct evidence_entry){0};
    TRY(json_parse(text, strlen(text), &json, err));
    if (read_entry(e, json, ret))
        return ST_OK;
    evidence_entry_free(ret);
    return FAIL(err, ST_CORRUPT, "what the proposal had seen cannot be read: %.200s", text);
}

enum status evidence_load(struct evidence *e, const struct study_view *v, struct error *err)
{
    char *space = NULL;
    enum status rc = ST_OK;

    evidence_free(e);
    for (size_t i = 0; i < v->n && rc == ST_OK; i++) {
        struct evidence_entry entry = {0};
        if (v->trials[i].seen == NULL)
            continue;
        rc = evidence_read(e, v->trials[i].seen, &entry, err);
        if (entry.space != NULL) {
            mem_free(space);
            space = entry.space;
            entry.space = NULL;
        }
        evidence_entry_free(&entry);
    }
    e->new_space = space == NULL || strcmp(space, v->study.space) != 0;
    mem_free(space);
    return rc;
}
