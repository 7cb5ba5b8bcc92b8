/* test_supervise.c - remote workers at given times: which one is pinged, given back, started again, and which waits for
 * another. No process and no clock: workers by hand, of which one is the other end of a socket. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/text/json.h"
#include "sweep/supervise/health.h"
#include "sweep/supervise/supervise.h"
#include "sweep/launch/proto.h"
#include "sweep/supervise/worker_process.h"
#include "sweep/supervise/workers.h"
#include "tests/check.h"

struct place {
    struct workers *s;
    struct proto theirs; /* of worker 0 */
};

static void quiet(void *ctx, enum log_level level, const char *line)
{
    (void)ctx, (void)level, (void)line;
}

/* Three workers of one host. */
static int set_up(void **state)
{
    struct place *p = mem_alloc(sizeof *p);
    struct workers *s = mem_alloc(sizeof *s);

    log_set_sink(quiet, NULL);
    p->s = s;
    s->n = 3;
    s->n_hosts = 1;
    s->lane = -1;
    s->v = mem_array(3, sizeof *s->v);
    s->hosts = mem_array(1, sizeof *s->hosts);
    strcpy(s->hosts[0].name, "node");
    s->now_s = 1000;
    for (int i = 0; i < 3; i++) {
        struct worker *w = &s->v[i];
        w->spec.lanes = 1;
        w->talks_at = w->logs_at = SIZE_MAX;
        w->spec.place = PLACE_SLURM;
        w->slots[0].worker = w;
        w->remote = &s->hosts[0];
        snprintf(w->spec.label, sizeof w->spec.label, "slurm/%d", i);
    }
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    MEM_LOCAL struct place *p = *state;

    proto_destroy(&p->theirs);
    proto_destroy(&p->s->v[0].proto);
    mem_free(p->s->v);
    mem_free(p->s->hosts);
    mem_free(p->s);
    return 0;
}

/* Worker 0 is ready since now, and can be listened to. */
static struct worker *ready(struct place *p)
{
    struct worker *w = &p->s->v[0];
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    proto_create(&w->proto, fds[0], fds[0]);
    proto_create(&p->theirs, fds[1], fds[1]);
    w->state = WORKER_READY;
    w->greeted = true;
    w->started_s = w->heard_s = w->busy_s = p->s->now_s;
    return w;
}

/* The next message that worker 0 got; "" none. */
static const char *heard(struct place *p)
{
    static char type[32];
    JSON_LOCAL cJSON *message = NULL;

    OK(proto_receive(&p->theirs, 0, &message, err));
    snprintf(type, sizeof type, "%s", message != NULL ? json_get_str(message, "type") : "");
    return type;
}

/* Its socket is there and closed at the other end, as that of a dead worker. */
static void ready_to_talk(struct place *p)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    close(fds[1]);
    proto_create(&p->s->v[0].proto, fds[0], fds[0]);
}

#define SUPERVISE_TEST(name) TEST_ON(name, struct place *p, set_up, tear_down)

SUPERVISE_TEST(one_without_work_is_given_back)
{
    struct worker *w = ready(p);

    for (int i = 0; i < 9; i++) {
        p->s->now_s += 6;
        supervise_round(p->s);
        assert_string_equal(heard(p), "ping"); /* it hears from us, every few seconds */
        assert_string_equal(heard(p), "");
    }
    assert_false(w->leaving);
    p->s->now_s += 8; /* 62 s */
    supervise_round(p->s);
    assert_string_equal(heard(p), "ping");
    assert_string_equal(heard(p), "exit");
    assert_true(w->leaving && w->released);
    w->state = WORKER_DOWN;
    supervise_death(p->s, w, "ended with exit code 0");
    assert_int_equal(w->health.deaths + p->s->hosts[0].health.deaths, 0);
    assert_true(supervise_may_start(p->s, w)); /* as soon as there is work */
}

SUPERVISE_TEST(a_host_of_ssh_keeps_its_idle_worker)
{
    struct worker *w = ready(p);

    w->spec.place = PLACE_SSH; /* nobody else waits for it */
    p->s->now_s += 1000;
    supervise_round(p->s);
    assert_string_equal(heard(p), "ping");
    assert_string_equal(heard(p), "");
    assert_false(w->leaving);
}

SUPERVISE_TEST(a_job_may_wait_for_its_turn)
{
    struct worker *w = &p->s->v[1];

    w->state = WORKER_STARTING;
    w->started_s = p->s->now_s;
    p->s->now_s += 86400;
    supervise_round(p->s);
    assert_string_equal(w->why, "");
    w->greeted = true; /* a job that runs has three minutes for its device */
    w->started_s = p->s->now_s - 100;
    supervise_round(p->s);
    assert_string_equal(w->why, "");
}

SUPERVISE_TEST(one_tries_the_way_for_all)
{
    struct worker *w = p->s->v;

    for (int i = 0; i < 3; i++) { /* the network fails for all three */
        w[i].started_s = 900;
        w[i].greeted = w[i].cut = true;
        assert_true(supervise_may_start(p->s, &w[i]));
    }
    for (int i = 0; i < 3; i++)
        supervise_death(p->s, &w[i], "the connection broke");
    assert_int_equal(p->s->hosts[0].health.deaths, 1);
    assert_int_equal(w[0].health.deaths, 0); /* its device has done nothing wrong */
    assert_true(supervise_may_start(p->s, &w[0]));
    w[0].state = WORKER_STARTING;
    w[0].greeted = false;
    assert_false(supervise_may_start(p->s, &w[1]));
    w[0].greeted = true; /* it got through */
    assert_true(supervise_may_start(p->s, &w[1]));
}

SUPERVISE_TEST(a_host_that_keeps_failing_is_left_alone_with_all_its_workers)
{
    struct worker *w = p->s->v;

    for (int i = 0; i < HEALTH_MAX_DEATHS; i++) {
        w[0].started_s = p->s->now_s;
        w[0].greeted = false;
        p->s->now_s += 10;
        supervise_death(p->s, &w[0], "ssh cannot connect");
    }
    for (int i = 0; i < 3; i++) {
        assert_true(supervise_is_quarantined(&w[i]));
        assert_false(supervise_may_start(p->s, &w[i]));
    }
    assert_true(supervise_all_quarantined(p->s));
    p->s->now_s += HEALTH_QUARANTINE_S + 1;
    assert_true(supervise_may_start(p->s, &w[2]));
    supervise_started(&w[2]);
    assert_false(supervise_all_quarantined(p->s));
    supervise_success(&w[2]);
    assert_int_equal(p->s->hosts[0].health.deaths, 0);
}

SUPERVISE_TEST(one_that_was_sent_away_is_not_to_blame)
{
    struct worker *w = p->s->v;

    for (int i = 0; i < 2 * HEALTH_MAX_DEATHS; i++) {
        w[0].leaving = w[0].greeted = true;
        supervise_death(p->s, &w[0], "ended with exit code 0");
    }
    assert_true(supervise_may_start(p->s, &w[0])); /* a job queues at once */
    w[0].spec.place = PLACE_SSH;
    supervise_death(p->s, &w[0], "ended with exit code 0");
    assert_false(supervise_may_start(p->s, &w[0])); /* a host rests */
    p->s->now_s += 31;
    assert_true(supervise_may_start(p->s, &w[0]));
    assert_int_equal(w[0].health.deaths + p->s->hosts[0].health.deaths, 0);
}

SUPERVISE_TEST(a_program_that_stood_still_judges_nobody)
{
    struct worker *w = ready(p);
    struct slot *slot = &w->slots[0];

    slot->worker = w;
    slot->runs = true;
    slot->progress_s = p->s->now_s;
    assert_true(workers_begin(p->s, NULL, p->s->now_s + 3600) == 3600);
    assert_true(slot->slept); /* what it has cost by the clock is not an overrun */
    assert_true(slot->progress_s == p->s->now_s && slot->asked_s == 0); /* nor does it hang */
    assert_true(w->heard_s == p->s->now_s);
    slot->runs = false;
    supervise_round(p->s); /* nor had it nothing to do */
    assert_int_equal(w->state, WORKER_READY);
    assert_false(w->leaving);
    assert_true(workers_begin(p->s, NULL, p->s->now_s + 1) == 0);
}

/* Dies with two trials: which of them pays. */
SUPERVISE_TEST(a_death_is_paid_for_by_the_guilty_trial)
{
    static const struct {
        int culprit; /* lane; -1: unknown */
        bool outside, leaving, alone;
        enum slot_guilt guilt[2];
    } cases[] = {
        {-1, false, false, true, {SLOT_GUILTY}},
        {-1, false, false, false, {SLOT_SUSPECT, SLOT_SUSPECT}},
        {0, false, false, false, {SLOT_GUILTY, SLOT_INNOCENT}},
        {1, true, false, false, {SLOT_INNOCENT, SLOT_GUILTY}},
        {-1, true, false, false, {SLOT_OUTSIDE, SLOT_OUTSIDE}},
        {-1, false, true, false, {SLOT_INNOCENT, SLOT_INNOCENT}},
    };
    struct worker *w = &p->s->v[0];

    for (size_t k = 0; k < COUNT(cases); k++) {
        struct workers_event e;
        int n = cases[k].alone ? 1 : 2;
        w->spec.lanes = 2;
        w->spec.place = PLACE_HERE;
        w->remote = NULL;
        w->pid = fork();
        if (w->pid == 0)
            _exit(3);
        assert_true(w->pid > 0);
        w->state = WORKER_DYING;
        w->log_fd = -1;
        w->outside = cases[k].outside;
        w->leaving = cases[k].leaving;
        w->culprit = cases[k].culprit >= 0 ? &w->slots[cases[k].culprit] : NULL;
        for (int lane = 0; lane < n; lane++)
            w->slots[lane] = (struct slot){.worker = w, .lane = lane, .runs = true};
        siginfo_t info;
        assert_int_equal(waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOWAIT), 0); /* it is dead, and not reaped */
        w->talks_at = w->logs_at = SIZE_MAX;
        ready_to_talk(p);
        (void)workers_begin(p->s, NULL, p->s->now_s + 1);
        for (int lane = 0; lane < n; lane++) {
            assert_true(workers_next(p->s, &e));
            assert_int_equal(e.type, WORKERS_TRIAL_DIED);
            assert_ptr_equal(e.slot, &w->slots[lane]);
            assert_int_equal(e.guilt, cases[k].guilt[lane]);
            assert_string_equal(e.how, "ended with exit code 3");
            slot_free(e.slot, p->s->now_s); /* which forgets the culprit, and not for the trials that follow */
        }
        assert_false(workers_next(p->s, &e));
        assert_int_equal(w->state, WORKER_DOWN);
    }
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as in the program */
    return run_cases("sweep/supervise", NULL, NULL);
}
