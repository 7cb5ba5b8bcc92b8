/* sleeping_nodes.c - N nodes in one process that sleep for the cost of their trials, straight in a store: what a
 * controller and its database cost with many of them.
 *
 * usage: sleeping_nodes STORE N TRIAL_S SECONDS: each trial sleeps between half and one and a half TRIAL_S and reports
 * 24 points of 12 numbers on its way. Prints results and the rate, by the last two thirds of the time. */
#include "base/os/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define REPORTS 24
#define LEASE_MS 60000
#define WAIT_S 0.3

struct sleeper {
    struct lease lease; /* id 0: none */
    double begun_s, cost_s, due_s;
    int reports;
};

static struct store *store;
static int64_t study_id, n_results, n_empty, n_tokens;
static struct rng rng;

static void check(enum status rc, const struct error *err)
{
    if (rc == ST_OK)
        return;
    fprintf(stderr, "sleeping_nodes: %s\n", err->text);
    exit(1);
}

static void report(struct sleeper *s, double now_s)
{
    static const char *const names[] = {"perf", "loss", "entropy", "a", "b", "c", "d", "e", "f", "g", "h", "i"};
    struct metric_point points[12];
    struct metric_report r = {.trial_id = s->lease.trial_id, .points = points, .n = 12};
    char stop[ERROR_TEXT_MAX];
    struct error err = {0};

    s->reports++;
    for (int i = 0; i < 12; i++)
        points[i] = (struct metric_point){
            .env_steps = 1000 * s->reports, .wall_s = now_s - s->begun_s, .name = names[i], .value = i};
    enum status rc = store_lease_keep(store, s->lease.id, LEASE_MS, &r, stop, &err);
    if (rc != ST_EXISTS)
        check(rc, &err);
}

static void finish(struct sleeper *s)
{
    struct error err = {0};
    struct trial_result result = {.state = TRIAL_DONE,
                                  .score = rng_f64(&rng),
                                  .perf = 0,
                                  .cost_s = s->cost_s,
                                  .device_s = s->cost_s,
                                  .env_steps = 24000,
                                  .device = "sleeping",
                                  .cost_method = "wall"};
    enum status rc = store_lease_finish(store, s->lease.id, &result, "{}", NULL, &err);

    if (rc != ST_EXISTS)
        check(rc, &err);
    n_results++;
    s->lease = (struct lease){0};
}

/* False: no trial is queued. */
static bool claim(struct sleeper *s, double now_s, double trial_s)
{
    struct error err = {0};

    s->lease = (struct lease){0};
    snprintf(s->lease.client, sizeof s->lease.client, "sleeping");
    snprintf(s->lease.token, sizeof s->lease.token, NODE_TOKEN "%d-%lld", (int)getpid(), (long long)n_tokens++);
    enum status rc = store_lease_claim(store, study_id, LEASE_MS, &s->lease, &err);
    if (rc == ST_NOTFOUND) {
        s->lease = (struct lease){0};
        n_empty++;
        return false;
    }
    check(rc, &err);
    s->begun_s = now_s;
    s->cost_s = trial_s * (0.5 + rng_f64(&rng));
    s->reports = 0;
    s->due_s = now_s + s->cost_s / (REPORTS + 1);
    return true;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    struct study *studies = NULL;
    size_t n_studies = 0;
    int64_t n = argc > 4 ? atoll(argv[2]) : 0, early = 0;
    double trial_s = argc > 4 ? atof(argv[3]) : 0, seconds = argc > 4 ? atof(argv[4]) : 0, beat_s = 0, busy = 0,
           looks = 0;
    struct node node = {.host = "here", .slots = n};

    if (n < 1)
        return fprintf(stderr, "usage: sleeping_nodes STORE N TRIAL_S SECONDS\n"), 2;
    snprintf(node.name, sizeof node.name, "sleeping-%d", (int)getpid());
    check(store_open_second(&store, argv[1], &err), &err);
    check(store_study_list(store, &studies, &n_studies, &err), &err);
    study_id = studies[0].id;
    rng = rng_seed((uint64_t)getpid());
    struct sleeper *v = mem_array((size_t)n, sizeof *v);
    double from_s = clock_mono_s(), now_s = from_s;
    while ((now_s = clock_mono_s()) - from_s < seconds) {
        bool queued = true;
        if (now_s - beat_s > 5) {
            check(store_node_beat(store, &node, &err), &err);
            beat_s = now_s;
        }
        for (int64_t i = 0; i < n; i++) {
            struct sleeper *s = &v[i];
            if (now_s - from_s > seconds / 3) {
                busy += s->lease.id != 0;
                looks++;
            } else {
                early = n_results;
            }
            if (s->lease.id == 0) {
                queued = queued && now_s >= s->due_s && claim(s, now_s, trial_s);
            } else if (now_s >= s->due_s && s->reports < REPORTS) {
                report(s, now_s);
                s->due_s = s->begun_s + s->cost_s * (s->reports + 1) / (REPORTS + 1);
            } else if (now_s >= s->due_s) {
                finish(s);
                queued = queued && claim(s, now_s, trial_s);
            }
        }
        usleep(queued ? 2000 : (useconds_t)(WAIT_S * 1e6 / 4));
    }
    printf("results %lld, %.2f a second, %.1f %% of the slots busy\n", (long long)n_results,
           (double)(n_results - early) / (seconds * 2 / 3), 100 * busy / looks);
    check(store_node_forget(store, node.name, &err), &err);
    store_close(store);
    return 0;
}
