/* test_clients.c - trials of clients outside, in a scheduler that has workers too: what their configs name. */
#include "sched_test.h"
#include "sweep/controller/leases.h"

/* A client gets a trial that was proposed for the GPU and gives it back, trains the next one, and adds one that was
 * trained elsewhere. */
static void on_client(void *ctx, short revents)
{
    struct place *p = ctx;
    struct sched_study *ss = p->runs[0];
    const struct trial_result result = {.state = TRIAL_DONE, .score = 1, .perf = NAN, .cost_s = 1, .device_s = NAN};
    const double x[] = {0.02, 0.95};
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
    OK(leases_give(p->sched, ss, "client", &held, &again, err));
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
    OK(scheduler_watch(p->sched, p->pipe[0], POLLIN, on_client, p, err));
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

SCHED_PROGRAM("sweep clients")
