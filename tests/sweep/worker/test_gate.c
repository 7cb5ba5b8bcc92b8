/* test_gate.c - lanes behind the gate: alone means alone, makers of trainers come one at a time, nobody is passed
 * over. */
#include "sweep/worker/gate.h"

#include <sched.h>

#include "tests/unit_test.h"

#define THREADS 6
#define TURNS 3000

struct crowd {
    struct gate gate;
    atomic_int inside, alone, opening, wrong;
};

struct person {
    struct crowd *crowd;
    pthread_t thread;
    unsigned seed;
    int n_alone;
};

static void look(struct crowd *c, bool alone, bool opening)
{
    int inside = atomic_fetch_add(&c->inside, 1) + 1;

    atomic_fetch_add(&c->alone, alone);
    if (atomic_fetch_add(&c->opening, opening) + opening > 1 || (alone && inside > 1) ||
        (!alone && atomic_load(&c->alone) > 0))
        atomic_fetch_add(&c->wrong, 1);
    if (inside % 3 == 0)
        sched_yield();
    if (alone && atomic_load(&c->inside) != 1)
        atomic_fetch_add(&c->wrong, 1);
    atomic_fetch_sub(&c->opening, opening);
    atomic_fetch_sub(&c->alone, alone);
    atomic_fetch_sub(&c->inside, 1);
}

static void *live(void *arg)
{
    struct person *p = arg;
    struct crowd *c = p->crowd;

    for (int i = 0; i < TURNS; i++) {
        int what = rand_r(&p->seed) % 8;
        if (what == 0) {
            gate_enter_open(&c->gate);
            look(c, false, true);
            gate_leave_open(&c->gate);
        } else {
            bool alone = what < 3;
            gate_enter(&c->gate, alone);
            look(c, alone, false);
            p->n_alone += alone;
            gate_leave(&c->gate);
        }
    }
    return NULL;
}

static void open_gate(struct crowd *c)
{
    gate_create(&c->gate);
}

TEST(crowd)
{
    struct crowd c = {0};
    struct person people[THREADS];

    open_gate(&c);
    for (unsigned i = 0; i < THREADS; i++) {
        people[i] = (struct person){.crowd = &c, .seed = i + 1};
        assert_int_equal(pthread_create(&people[i].thread, NULL, live, &people[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(people[i].thread, NULL);
        assert_true(people[i].n_alone > 0);
    }
    assert_int_equal(atomic_load(&c.wrong), 0);
    assert_false(gate_wanted(&c.gate));
    assert_int_equal(c.gate.next, c.gate.now);
    gate_destroy(&c.gate);
}

/* Two that would be inside all the time leave when they are asked, and the third comes in: nobody is kept out for
 * ever. */
static void *stay(void *arg)
{
    struct crowd *c = ((struct person *)arg)->crowd;

    for (int left = 0; left < 50;) {
        gate_enter(&c->gate, false);
        while (!gate_wanted(&c->gate) && atomic_load(&c->opening) == 0)
            sched_yield();
        left++;
        gate_leave(&c->gate);
        if (atomic_load(&c->opening) != 0)
            break;
    }
    return NULL;
}

TEST(who_is_asked_leaves)
{
    struct crowd c = {0};
    struct person people[2] = {{.crowd = &c}, {.crowd = &c}};

    open_gate(&c);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&people[i].thread, NULL, stay, &people[i]), 0);
    for (int i = 0; i < 20; i++) {
        gate_enter(&c.gate, true);
        assert_int_equal(c.gate.n_inside, 1);
        gate_leave(&c.gate);
    }
    atomic_store(&c.opening, 1); /* the end, for both */
    for (int i = 0; i < 2; i++)
        pthread_join(people[i].thread, NULL);
    gate_destroy(&c.gate);
}

TEST_PROGRAM("gate")
