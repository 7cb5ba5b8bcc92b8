/* test_clients.c - trials of clients outside, in a scheduler that has workers too: what their configs name, and a
 * program that stands still meanwhile. */
#include "sched_test.h"

#include "store/store_priv.h"
#include "sweep/controller/leases.h"
#include "sweep/proposals/proposer.h"

/* What clients report, and a point of the study's space. */
static const struct trial_result result = {.state = TRIAL_DONE, .score = 1, .perf = NAN, .cost_s = 1, .device_s = NAN};
static const double x[] = {0.02, 0.95};

/* A client gets a trial that was proposed for the GPU and gives it back, trains the next one, and adds one that was
 * trained elsewhere. */
static void on_client(void *ctx, short revents)
{
    struct place *p = ctx;
    struct sched_study *ss = p->runs[0];
    struct held *held = NULL;
    bool again;
    char byte;

    (void)revents;
    assert_int_equal(read(p->pipe[0], &byte, 1), 1);
    if (byte == 'a') {
        OK(sched_study_add(ss, x, 0, "added", 7, &result, "client", "key", "{}", err));
        return;
    }
    OK(sched_study_queue(ss, x, "enqueued", NAN, err));
    assert_non_null(strstr(ss->view.trials[ss->view.n - 1].config, "device = cuda"));
    OK(leases_give(ss, "client", &held, &again, err));
    assert_non_null(strstr(ss->view.trials[held->i].config, "device = cpu"));
    if (byte == 'r')
        OK(leases_end(p->sched, ss, held, LEASE_RETURNED, err));
    else
        OK(leases_finish(p->sched, ss, held, &result, "{}", err));
}

static void ask_after_trial(void *ctx, const struct sched_study *ss, const struct trial *trial)
{
    struct place *p = ctx;

    (void)ss, (void)trial;
    p->n_ended++;
    if (p->says[p->said] != '\0' && p->n_ended > 10 * (p->said + 1))
        assert_int_equal(write(p->pipe[1], &p->says[p->said++], 1), 1);
}

/* The study's own device is the CPU; so it stays where nobody knows better. */
SCHED_TEST(what_clients_train_does_not_name_the_gpu_here)
{
    size_t n_here = 0, n_elsewhere = 0;
    struct setup *setup = NULL;

    add_device(p, "gpu", 4);
    create_study(p, "a", "sobol", 60, 1);
    struct sched_study *ss = serve(p, "a");
    assert_int_equal(pipe(p->pipe), 0);
    OK(scheduler_watch(p->sched, p->pipe[0], on_client, p, err));
    p->sched->listener.on_trial_end = ask_after_trial;
    p->says = "rta";
    OK(scheduler_run(p->sched, err));
    (void)load_stored(p, ss);
    for (size_t i = 0; i < p->n_stored; i++) {
        const struct trial *t = &p->stored[i];
        bool here = t->slot != NULL && t->slot[0] == 'd'; /* "d0/3" */
        assert_int_equal(t->state, TRIAL_DONE);
        OK(setup_from_text(&setup, "trial", t->config, err));
        assert_int_equal(setup->train.device, here ? KERN_CUDA : KERN_CPU);
        setup_destroy(setup);
        n_here += here && strcmp(t->origin, "enqueued") == 0;
        n_elsewhere += !here;
    }
    assert_int_equal(n_here, 1); /* what was given back */
    assert_int_equal(n_elsewhere, 2);
}

/* A client gets a trial, the program stands still while a proposal is made, the client returns its result. */
static void stand_still(void *ctx, short revents)
{
    struct place *p = ctx;
    struct sched_study *ss = p->runs[0];
    struct held *held = NULL;
    bool again;
    char byte;

    (void)revents;
    if (p->said == 2 && p->slept_at == 0 && !proposer_is_busy(ss->proposer))
        return; /* it is called again */
    assert_int_equal(read(p->pipe[0], &byte, 1), 1);
    if (byte == 'g') {
        OK(sched_study_queue(ss, x, "enqueued", NAN, err));
        OK(leases_give(ss, "client", &held, &again, err));
        assert_non_null(held);
    } else if (byte == 's') {
        p->slept_at = ss->view.n;
        p->sched->workers.now_s -= 3600;
        ss->leases.v[0].until_s -= 1800; /* it ends in the middle of that hour */
    } else {
        assert_int_equal(ss->leases.n, 1);
        OK(leases_finish(p->sched, ss, &ss->leases.v[0], &result, "{}", err));
    }
}

SCHED_TEST(a_standstill_is_no_silence_and_no_time_of_a_proposal)
{
    size_t n_known = 0;

    add_device(p, "ok", 1);
    create_study(p, "a", "sobol", 50, 1);
    struct sched_study *ss = serve(p, "a");
    assert_int_equal(pipe(p->pipe), 0);
    OK(scheduler_watch(p->sched, p->pipe[0], stand_still, p, err));
    p->sched->listener.on_trial_end = ask_after_trial;
    p->says = "gst";
    OK(scheduler_run(p->sched, err));
    (void)load_stored(p, ss);
    for (size_t i = 0; i < p->n_stored; i++)
        n_known += p->stored[i].seen != NULL && isfinite(p->stored[i].propose_s);
    assert_true(n_known > 0); /* a busy machine may stand still in fact, now and then */
    assert_non_null(p->stored[p->slept_at].seen); /* it was proposed */
    assert_true(isnan(p->stored[p->slept_at].propose_s));
}

/* A node falls silent while the program stands still; then it has time to report before it loses its trial. */
static void wake_beside_a_node(void *ctx, short revents)
{
    struct place *p = ctx;
    struct sched_study *ss = p->runs[0];
    struct lease lease = {.client = "n/cpu", .token = NODE_TOKEN "1"};
    struct store *store = p->sched->store;

    (void)revents;
    if (p->step > 1 && p->sched->nodes.looked_s <= p->looked_s)
        return; /* it is called again */
    if (p->step == 1) {
        OK(sched_study_queue(ss, x, "enqueued", NAN, err));
        OK(store_lease_claim(store, ss->view.study.id, -1, &lease, err));
        store->looked_s = clock_boot_s() - 3600;
    } else {
        OK(store_lease_find(p->store, NODE_TOKEN "1", &lease, err));
        bool open = lease.state == LEASE_OPEN;
        lease_free(&lease);
        assert_true(open || p->step > 3);
        if (!open)
            scheduler_stop(p->sched);
        if (p->step >= 3) /* two looks at the store have left it alone; in fact a busy machine may stand still again */
            store->spared_s = 0;
    }
    p->looked_s = p->sched->nodes.looked_s;
    p->step++;
}

SCHED_TEST(a_node_that_stood_still_too_may_report_first)
{
    add_device(p, "ok", 1);
    create_study(p, "a", "sobol", 100000, 1);
    (void)serve(p, "a");
    assert_int_equal(pipe(p->pipe), 0);
    OK(scheduler_watch(p->sched, p->pipe[0], wake_beside_a_node, p, err));
    p->step = 1;
    assert_int_equal(write(p->pipe[1], "w", 1), 1); /* it is never read */
    assert_int_equal(scheduler_run(p->sched, NULL), ST_INTERRUPTED); /* it has lost it in the end */
}

SCHED_PROGRAM("sweep clients")
