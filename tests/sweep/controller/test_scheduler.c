/* test_scheduler.c - the scheduler against workers that go wrong in every way: who pays, who runs again, who is left
 * alone. */
#include <sys/resource.h>
#include <sys/wait.h>

#include "sched_test.h"
#include "gp/gp.h"
#include "sweep/controller/trial/flight.h"
#include "sweep/launch/proto.h"
#include "sweep/supervise/worker_process.h"

/* With the healthy workers too: a machine that stands still for less must not cost them, for longer is noticed. */
#define PATIENCE_S 10

/* The controller keeps no texts of what is done, but where it came from; why one failed is reported at the end. */
static void texts_are_forgotten(const struct trial *t)
{
    assert_true(t->params == NULL && t->config == NULL && t->device == NULL && t->slot == NULL);
    assert_true(t->cost_method == NULL && t->log_tail == NULL);
    assert_true((t->reason != NULL) == (t->state == TRIAL_FAILED));
}

/* Every trial but `number` is done, as the store has it too; gives back that one. */
static const struct trial *all_done_but(struct place *p, const struct sched_study *ss, int64_t number, int64_t n)
{
    const struct trial *trials = load_stored(p, ss);

    assert_int_equal(p->n_stored, n);
    for (size_t i = 0; i < p->n_stored; i++) {
        texts_are_forgotten(&ss->view.trials[i]);
        assert_int_equal(trials[i].number, i);
        assert_int_equal(trials[i].state, ss->view.trials[i].state);
        if (trials[i].number != number)
            assert_int_equal(trials[i].state, TRIAL_DONE);
    }
    return number >= 0 ? &trials[number] : NULL;
}

static void failed_because(const struct trial *t, const char *says)
{
    assert_int_equal(t->state, TRIAL_FAILED);
    if (t->reason == NULL || strstr(t->reason, says) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", says, t->reason != NULL ? t->reason : "");
}

SCHED_TEST(each_trial_runs_once)
{
    int64_t used[4] = {0};

    for (int i = 0; i < 4; i++)
        add_device(p, "ok", 1);
    const struct sched_study *ss = run_sobol(p, "a", 200); /* 4 s of one worker, for the others to begin */
    (void)all_done_but(p, ss, -1, 200);
    for (size_t i = 0; i < 200; i++) {
        const struct trial *t = &p->stored[i];
        assert_int_equal(t->attempt, 1);
        assert_int_equal(t->deaths, 0);
        assert_string_equal(t->cost_method, "calibrated");
        assert_in_range(t->slot[1], '0', '3');
        used[t->slot[1] - '0']++;
    }
    assert_true((used[0] > 0) + (used[1] > 0) + (used[2] > 0) + (used[3] > 0) > 1);
    assert_string_equal(ss->end.rule, "trials");
    assert_int_equal(ss->state, SCHED_STUDY_ENDED);
}

/* After the config itself one question fills all other lanes. */
static void filled_together(struct place *p, const struct sched_study *ss)
{
    (void)all_done_but(p, ss, -1, 60);
    for (size_t i = 1; i < 32; i++) {
        cJSON *seen = cJSON_Parse(p->stored[i].seen);
        int64_t place = json_i64_or(seen, "place", -1);
        int64_t of = json_i64_or(seen, "of", -1);
        cJSON_Delete(seen);
        assert_int_equal(place, i - 1);
        assert_int_equal(of, 31);
    }
}

SCHED_TEST(idle_lanes_get_their_trials_together)
{
    add_device(p, "ok", 32);
    filled_together(p, run_sobol(p, "a", 60));
}

/* A study on devices of another kind wants none of these lanes. */
SCHED_TEST(studies_on_other_devices_take_no_part_of_the_lanes)
{
    static const char *const names[] = {"a", "b"}, *const devices[] = {"gpu", "gpu@1"};

    for (size_t i = 0; i < 2; i++) {
        add_device(p, devices[i], i == 0 ? 32 : 1);
        create_study(p, names[i], "sobol", 60, 1);
    }
    for (size_t i = 0; i < 2; i++) {
        struct sched_study *ss = serve(p, names[i]);
        snprintf(ss->device_class, sizeof ss->device_class, "%s", devices[i]);
        ss->class_settled = true;
    }
    OK(scheduler_run(p->sched, err));
    filled_together(p, p->runs[0]);
}

static void note_queue(void *ctx, const struct flight *flight)
{
    struct place *p = ctx;

    (void)flight;
    for (size_t i = 0; i < p->n_runs; i++)
        if (sched_study_wants_slots(p->runs[i]) == 0)
            return; /* at the end: a busy machine does not bring all studies there together, and the others get its lanes */
    for (size_t i = 0; i < p->n_runs; i++)
        if (p->runs[i]->n_queued > p->most_queued)
            p->most_queued = p->runs[i]->n_queued;
}

/* Of 64 lanes each of four studies gets 16. */
SCHED_TEST(nothing_is_proposed_for_lanes_that_others_get)
{
    static const char *const names[] = {"a", "b", "c", "d"};

    add_device(p, "ok", 64);
    for (size_t i = 0; i < 4; i++) {
        create_study(p, names[i], "sobol", 150, 1);
        (void)serve(p, names[i]);
    }
    p->sched->listener.on_trial_start = note_queue;
    OK(scheduler_run(p->sched, err));
    for (size_t i = 0; i < 4; i++)
        (void)all_done_but(p, p->runs[i], -1, 150);
    assert_in_range(p->most_queued, 1,
                    16 + 16 / 4 + 4); /* what it lacks, what waits ahead, and one of a batch's least */
}

/* Whether they were proposed before the device was known or later, and whoever added them. */
SCHED_TEST(configs_name_the_gpu_that_they_run_on)
{
    AT_END(study_free) struct study study = {0};
    struct setup *setup = NULL;

    add_device(p, "gpu", 4);
    create_study(p, "a", "sobol", 20, 1);
    OK(store_study_find(p->store, "a", &study, err));
    assert_null(strstr(study.config, "device = cuda"));
    struct trial first = {.study_id = study.id,
                          .params = (char *)"{\"train.learning_rate\": 0.01, \"train.gamma\": 0.9}",
                          .config = study.config,
                          .origin = (char *)"enqueued"};
    OK(store_trial_create(p->store, &first, err));
    const struct sched_study *ss = serve(p, "a");
    OK(scheduler_run(p->sched, err));
    (void)all_done_but(p, ss, -1, 20);
    for (size_t i = 0; i < 20; i++) {
        const struct trial *t = &p->stored[i];
        OK(setup_from_text(&setup, "trial", t->config, err));
        assert_int_equal(setup->train.device, KERN_CUDA);
        setup_destroy(setup);
    }
}

/* What is done between its creation and its first round may take minutes, and is not a standstill. */
SCHED_TEST(a_late_start_is_no_standstill)
{
    add_device(p, "ok", 1);
    create_study(p, "a", "sobol", 1, 1);
    (void)serve(p, "a");
    p->sched->workers.now_s -= 3600;
    OK(scheduler_run(p->sched, err));
    for (size_t i = 0; i < p->sched->workers.events.n; i++)
        assert_null(strstr(p->sched->workers.events.v[i].text, "stood still for 36"));
}

SCHED_TEST(a_crash_costs_its_trial)
{
    add_device(p, "crash@3", 1);
    add_device(p, "crash@3", 1);
    const struct sched_study *ss = run_sobol(p, "a", 12);
    const struct trial *t = all_done_but(p, ss, 3, 12);
    failed_because(t, "signal 6");
    assert_int_equal(t->attempt, 1);
    assert_non_null(strstr(t->log_tail, "last words of trial 3"));
    for (size_t i = 0; i < 12; i++)
        assert_int_equal(ss->view.trials[i].attempt, 1); /* nobody else paid */
}

SCHED_TEST(among_lanes_the_guilty_is_found)
{
    add_device(p, "crash@3", 4);
    const struct sched_study *ss = run_sobol(p, "a", 16);
    const struct trial *t = all_done_but(p, ss, 3, 16);
    failed_because(t, "signal 6");
    assert_true(t->attempt > 1 && t->attempt <= 3);
}

SCHED_TEST(a_hang_is_seen_by_its_progress)
{
    add_device(p, "hang@2", 3);
    create_study(p, "a", "sobol", 9, 1);
    const struct sched_study *ss = serve(p, "a");
    p->sched->hang_timeout_s = PATIENCE_S;
    OK(scheduler_run(p->sched, err));
    failed_because(all_done_but(p, ss, 2, 9), "no progress");
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(ss->view.trials[i].deaths, 0); /* it is known who hung */
}

SCHED_TEST(a_worker_that_falls_silent_is_replaced)
{
    add_device(p, "mute@1", 1);
    create_study(p, "a", "sobol", 4, 1);
    const struct sched_study *ss = serve(p, "a");
    p->sched->workers.silence_timeout_s = PATIENCE_S;
    OK(scheduler_run(p->sched, err));
    (void)all_done_but(p, ss, -1, 4); /* it was frozen from outside, and its trial runs again */
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(p->stored[i].attempt, i == 1 ? 2 : 1);
        assert_int_equal(p->stored[i].losses, i == 1 ? 1 : 0);
        assert_int_equal(p->stored[i].deaths, 0);
    }
}

SCHED_TEST(killed_from_outside_it_runs_again_twice)
{
    for (int lanes = 1; lanes <= 3; lanes += 2) { /* alone and beside others, who are not to pay for it */
        const char *name = lanes == 1 ? "a" : "b";
        p->devices->n = 0;
        add_device(p, "killed@2", lanes);
        const struct sched_study *ss = run_sobol(p, name, 9);
        const struct trial *t = all_done_but(p, ss, 2, 9);
        failed_because(t, "ended from outside 3 times, the last time: killed by signal 9");
        assert_non_null(strstr(t->reason, "trawl retry"));
        assert_int_equal(t->attempt, 3);
        assert_int_equal(t->losses, 2);
        let_go(p);
    }
}

/* A trial that no message can hold: it fails at once, and its worker continues. */
SCHED_TEST(a_trial_that_cannot_be_told_fails)
{
    struct study study = {0};
    size_t n = PROTO_MAX_BYTES;
    MEM_LOCAL char *config = mem_alloc(n + 1);

    assert_non_null(config);
    memset(config, '#', n);
    add_device(p, "ok", 1);
    create_study(p, "a", "sobol", 4, 1);
    OK(store_study_find(p->store, "a", &study, err));
    struct trial first = {.study_id = study.id,
                          .params = (char *)"{\"train.learning_rate\": 0.01, \"train.gamma\": 0.9}",
                          .config = config,
                          .origin = (char *)"default"};
    OK(store_trial_create(p->store, &first, err));
    study_free(&study);
    const struct sched_study *ss = serve(p, "a");
    OK(scheduler_run(p->sched, err));
    failed_because(all_done_but(p, ss, 0, 4), "too long");
    assert_int_equal(p->stored[0].attempt, 1);
}

/* In a process of its own: a hard limit cannot be raised again. */
SCHED_TEST(without_descriptors_there_is_no_scheduler)
{
    int wait_status;

    add_device(p, "ok", 1);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = {.rlim_cur = 8, .rlim_max = 8};
        struct error why = {0};
        bool refused = setrlimit(RLIMIT_NOFILE, &none) == 0 &&
                       scheduler_create(&p->sched, p->devices, &why) == ST_LIMIT && p->sched == NULL &&
                       strstr(why.text, "1 workers need") != NULL && strstr(why.text, "8 are allowed") != NULL;
        _exit(refused ? 0 : 1);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    assert_true(WIFEXITED(wait_status));
    assert_int_equal(WEXITSTATUS(wait_status), 0);
}

SCHED_TEST(a_lost_device_costs_who_lost_it)
{
    add_device(p, "lost@2", 3);
    const struct sched_study *ss = run_sobol(p, "a", 9);
    const struct trial *t = all_done_but(p, ss, 2, 9);
    failed_because(t, "illegal access");
    assert_int_equal(t->attempt, 1);
}

SCHED_TEST(what_is_no_message_costs_the_worker)
{
    add_device(p, "garbage@1", 1);
    const struct sched_study *ss = run_sobol(p, "a", 4);
    failed_because(all_done_but(p, ss, 1, 4), "JSON");
}

SCHED_TEST(a_device_that_keeps_failing_is_left_alone)
{
    add_device(p, "quit", 1);
    add_device(p, "ok", 1);
    create_study(p, "a", "sobol", 3000, 1); /* a minute of trials and more: the back-off takes 3.5 s */
    const struct sched_study *ss = serve(p, "a");
    p->stop_quarantined = true;
    assert_int_equal(scheduler_run(p->sched, NULL), ST_INTERRUPTED);
    assert_true(p->sched->workers.v[0].health.quarantined);
    assert_false(p->sched->workers.v[1].health.quarantined);
    assert_int_equal(study_view_count(&ss->view, TRIAL_FAILED), 0);
    assert_true(study_view_count(&ss->view, TRIAL_DONE) > 0);
}

SCHED_TEST(without_devices_the_sweep_ends)
{
    add_device(p, "quit", 1);
    create_study(p, "a", "sobol", 4, 1);
    (void)serve(p, "a");
    FAILS(scheduler_run(p->sched, err), ST_DEVICE, "5 worker processes died in a row");
    let_go(p);
    p->devices->n = 0;
    add_device(p, "refuse", 1);
    (void)serve(p, "a");
    FAILS(scheduler_run(p->sched, err), ST_DEVICE, "it is made of wood");
}

static void on_pipe(void *ctx, short revents)
{
    struct place *p = ctx;
    char byte;

    (void)revents;
    assert_int_equal(read(p->pipe[0], &byte, 1), 1);
    p->woken++;
    if (byte == 'p')
        scheduler_pause(p->sched, p->runs[0], true);
    else if (byte == 'b')
        (void)serve(p, "b");
    else if (byte == 'e')
        scheduler_end(p->sched, p->runs[1], "somebody said so");
    else
        scheduler_pause(p->sched, p->runs[0], false);
}

/* ---- shares, by the history of who began ---- */

#define STARTS 90 /* in each part of the history */
#define ASIDE 10 /* of them, at the beginning of a part, in which others' trials may still be under way */

static void note_start(void *ctx, const struct flight *flight)
{
    struct place *p = ctx;

    assert_true(p->n_starts < COUNT(p->starts));
    p->starts[p->n_starts++] = flight->ss == p->runs[0] ? 'a' : 'b';
}

/* a alone; with b, which comes; b alone, a being paused; both again. */
static void move_on(void *ctx, const struct sched_study *ss, const struct trial *trial)
{
    static const char says[] = "bpc";
    struct place *p = ctx;

    (void)ss, (void)trial;
    if (p->n_starts < STARTS * ((size_t)p->said + 1))
        return;
    if (says[p->said] == '\0') {
        scheduler_stop(p->sched);
        return;
    }
    p->part_at[p->said] = p->n_starts;
    assert_int_equal(write(p->pipe[1], &says[p->said++], 1), 1);
}

static size_t n_of(const struct place *p, int part, char who)
{
    size_t n = 0;

    for (size_t i = 0; i < STARTS - 2 * ASIDE; i++)
        n += p->starts[p->part_at[part] + ASIDE + i] == who;
    return n;
}

SCHED_TEST(devices_get_their_share)
{
    const size_t n = STARTS - 2 * ASIDE;

    add_device(p, "ok", 2);
    create_study(p, "a", "sobol", 1000, 1);
    create_study(p, "b", "sobol", 1000, 1);
    (void)serve(p, "a");
    assert_int_equal(pipe(p->pipe), 0);
    OK(scheduler_watch(p->sched, p->pipe[0], on_pipe, p, err));
    p->sched->listener.on_trial_start = note_start;
    p->sched->listener.on_trial_end = move_on;
    assert_int_equal(scheduler_run(p->sched, NULL), ST_INTERRUPTED);
    assert_int_equal(p->said, 3);
    /* Trials of equal length, on a machine that may hold any of them up: a quarter at least, where half is due. To make
     * up for the time before, one of them would have them all. */
    assert_true(n_of(p, 0, 'a') >= n / 4 && n_of(p, 0, 'b') >= n / 4);
    assert_int_equal(n_of(p, 1, 'a'), 0);
    assert_true(n_of(p, 2, 'a') >= n / 4 && n_of(p, 2, 'b') >= n / 4);
}

/* Says p, b, e, c in turn over the pipe, as a control socket would. */
static void command_after_trial(void *ctx, const struct sched_study *ss, const struct trial *trial)
{
    struct place *p = ctx;
    const char *say = NULL;

    (void)trial;
    if (p->said == 0 && ss == p->runs[0] && ss->view.n >= 5)
        say = "pb";
    else if (p->said == 1 && ss == p->runs[1] && study_view_count(&ss->view, TRIAL_DONE) >= 5)
        say = "ec";
    if (say == NULL)
        return;
    p->said++;
    assert_int_equal(write(p->pipe[1], say, 2), 2);
}

SCHED_TEST(a_study_may_come_pause_and_end_on_the_way)
{
    add_device(p, "ok", 1);
    create_study(p, "a", "sobol", 20, 1);
    create_study(p, "b", "sobol", 1000, 1);
    const struct sched_study *a = serve(p, "a");
    assert_int_equal(pipe(p->pipe), 0);
    OK(scheduler_watch(p->sched, p->pipe[0], on_pipe, p, err));
    p->sched->listener.on_trial_end = command_after_trial;
    OK(scheduler_run(p->sched, err));
    assert_int_equal(p->woken, 4);
    (void)all_done_but(p, a, -1, 20);
    const struct sched_study *b = p->runs[1];
    assert_ptr_equal(scheduler_find(p->sched, "b"), b);
    assert_string_equal(b->end.rule, "user");
    assert_int_equal(study_view_count(&b->view, TRIAL_RUNNING), 0);
    assert_true(study_view_count(&b->view, TRIAL_DONE) >= 5 && b->view.n < 10);
}

SCHED_TEST(stopped_means_queued_again)
{
    add_device(p, "ok", 1);
    add_device(p, "long", 2);
    create_study(p, "a", "sobol", 200, 1); /* 4 s of trials and more, for the second worker to begin */
    const struct sched_study *ss = serve(p, "a");
    p->stop_at = 5;
    p->stop_beside = true;
    assert_int_equal(scheduler_run(p->sched, NULL), ST_INTERRUPTED);
    assert_int_equal(study_view_count(&ss->view, TRIAL_RUNNING), 0);
    assert_true(study_view_count(&ss->view, TRIAL_QUEUED) > 0);
    let_go(p);
    p->stop_at = 0;
    p->devices->n = 1;
    ss = serve(p, "a");
    OK(scheduler_run(p->sched, err));
    (void)all_done_but(p, ss, -1, 200);
}

/* Parameters of the first n trials, one line each. */
static void params_of(struct place *p, const struct sched_study *ss, size_t n, char *buf, size_t size)
{
    const struct trial *trials = load_stored(p, ss);
    size_t used = 0;

    for (size_t i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s %s %lld\n", trials[i].origin, trials[i].params,
                                 (long long)trials[i].seed);
    assert_true(used < size);
}

/* The study run to its end in five parts, and the parameters of its 18 trials. */
static void run_in_parts(struct place *p, const char *name, char *buf, size_t size)
{
    for (int stop = 0; stop < 5; stop++) {
        p->n_ended = 0;
        p->stop_at = stop < 4 ? 3 : 0;
        const struct sched_study *ss = serve(p, name);
        assert_int_equal(scheduler_run(p->sched, NULL), stop < 4 ? ST_INTERRUPTED : ST_OK);
        if (stop == 4)
            params_of(p, ss, 18, buf, size);
        let_go(p);
    }
}

/* A fifth of the trials runs a config of before under another seed. */
static void a_share_confirms(const struct place *p)
{
    size_t n_confirm = 0, n = p->n_stored;

    for (size_t i = 0; i < n; i++) {
        const struct trial *t = &p->stored[i];
        size_t k = 0;
        if (strcmp(t->origin, "confirm") != 0)
            continue;
        while (k < i && strcmp(p->stored[k].params, t->params) != 0)
            k++;
        assert_true(k < i && p->stored[k].seed != t->seed);
        n_confirm++;
    }
    assert_int_equal(n_confirm, n / 5);
}

SCHED_TEST(a_resumed_study_proposes_as_if_never_stopped)
{
    static const char *const kinds[] = {"expensive", "cheap"}; /* with cheap trials proposals are made ahead */
    static char whole[16384], parts[16384];

    for (int k = 0; k < 2; k++) {
        char name[2][8];
        for (int part = 0; part < 2; part++)
            snprintf(name[part], sizeof name[part], "%s%d", part == 0 ? "w" : "p", k);
        p->devices->n = 0;
        add_device(p, kinds[k], 1);
        create_study(p, name[0], "pareto", 18, 1);
        const struct sched_study *ss = serve(p, name[0]);
        OK(scheduler_run(p->sched, err));
        params_of(p, ss, 18, whole, sizeof whole);
        assert_string_equal(p->stored[17].origin, "confirm"); /* what is found last could not be confirmed */
        a_share_confirms(p);
        let_go(p);
        create_study(p, name[1], "pareto", 18, 1);
        run_in_parts(p, name[1], parts, sizeof parts);
        assert_string_equal(whole, parts);
    }
}

/* A config has three runs under as many seeds, unless it is beaten; also when the program ends now and then. */
SCHED_TEST(configs_have_several_seeds)
{
    static char whole[16384], parts[16384];
    size_t n_seeds = 0, most = 0;

    add_device(p, "expensive", 1);
    create_study_with(p, "whole", "sobol", 18, 1, "seeds = 3\nconfirm = 0\n");
    const struct sched_study *ss = serve(p, "whole");
    OK(scheduler_run(p->sched, err));
    params_of(p, ss, 18, whole, sizeof whole);
    for (size_t i = 0; i < 18; i++) {
        size_t n = 0;
        for (size_t k = 0; k < 18; k++) {
            bool same = strcmp(p->stored[k].params, p->stored[i].params) == 0;
            n += same;
            if (same && k != i)
                assert_true(p->stored[k].seed != p->stored[i].seed);
            if (same && k < i)
                assert_string_equal(p->stored[i].origin, "seed");
        }
        assert_true(n <= 3);
        most = n > most ? n : most;
        n_seeds += strcmp(p->stored[i].origin, "seed") == 0;
    }
    assert_int_equal(most, 3);
    assert_int_equal(n_seeds, 2); /* the worker's scores fall: the first config beats all others */
    let_go(p);
    create_study_with(p, "parts", "sobol", 18, 1, "seeds = 3\nconfirm = 0\n");
    run_in_parts(p, "parts", parts, sizeof parts);
    assert_string_equal(whole, parts);
}

/* An even sequence stays even where most trials take no point of it. */
SCHED_TEST(seeds_take_no_points_of_the_design)
{
    size_t n = 0;
    char alone[8][128];

    add_device(p, "ok", 1);
    create_study(p, "alone", "sobol", 8, 1);
    const struct sched_study *ss = serve(p, "alone");
    ss->setup->sweep.confirm = 0;
    OK(scheduler_run(p->sched, err));
    const struct trial *trials = load_stored(p, ss);
    for (size_t i = 0; i < 8; i++)
        snprintf(alone[i], sizeof alone[i], "%s", trials[i].params);
    let_go(p);
    create_study_with(p, "twice", "sobol", 16, 1, "seeds = 2\nconfirm = 0\n");
    ss = serve(p, "twice");
    OK(scheduler_run(p->sched, err));
    trials = load_stored(p, ss);
    for (size_t i = 0; i < 16 && n < 8; i++)
        if (strcmp(trials[i].origin, "seed") != 0)
            assert_string_equal(trials[i].params, alone[n++]);
    assert_in_range(n, 8, 8);
}

SCHED_PROGRAM("sweep scheduler")
