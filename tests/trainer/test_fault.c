/* test_fault.c - every allocation and every write that fails becomes an error, leaks nothing and spoils no file. */
#include "base/fault.h"

#include "trainer_test.h"

#define EACH_FAULT(kind, call)                                                                                         \
    for (int nth = 1, fired = 1; fired; nth++) {                                                                       \
        fault_arm((kind), nth);                                                                                        \
        enum status rc_ = (call);                                                                                      \
        fired = fault_disarm(kind);                                                                                    \
        assert_int_equal(fired, rc_ != ST_OK);                                                                         \
        assert_true(nth < 10000);                                                                                      \
    }

static enum status create_and_destroy(struct setup *s, struct error *err)
{
    struct trainer *t = NULL;
    enum status rc = trainer_create(&t, s->kern, s->def, s->env, &s->policy, &s->train, err);

    assert_int_equal(t == NULL, rc != ST_OK);
    trainer_destroy(t);
    return rc;
}

TEST(create)
{
    for (int variant = 0; variant < 2; variant++) {
        SETUP s;
        setup_game(&s, "memory", 1);
        s.policy.core = variant == 0 ? POLICY_CORE_MINGRU : POLICY_CORE_NONE;
        s.train.optimizer = variant == 0 ? TRAIN_MUON : TRAIN_ADAM;
        EACH_FAULT(FAULT_TRY_MALLOC, create_and_destroy(&s, NULL));
    }
}

TEST(message)
{
    SETUP s;
    struct error err = {0};

    setup_game(&s, "memory", 1);
    fault_arm(FAULT_TRY_MALLOC, 10);
    assert_int_equal(create_and_destroy(&s, &err), ST_NOMEM);
    assert_true(fault_disarm(FAULT_TRY_MALLOC));
    assert_true(strlen(err.text) > 10);
}

TEST(iterate_never_allocates)
{
    SETUP s;

    setup_game(&s, "cartpole", 2);
    s.policy.core = POLICY_CORE_MINGRU;
    TRAINER *t = setup_trainer(&s);
    iterate(t, 1);
    fault_arm(FAULT_MALLOC, 1);
    fault_arm(FAULT_TRY_MALLOC, 1);
    iterate(t, 3);
    assert_false(fault_disarm(FAULT_MALLOC));
    assert_false(fault_disarm(FAULT_TRY_MALLOC));
}

TEST(eval)
{
    SETUP s;
    struct eval_settings settings = {.episodes = 6, .agents = 3, .seed = 1, .max_steps = 200};
    struct eval_result result;

    setup_game(&s, "memory", 1);
    TRAINER *t = setup_trainer(&s);
    EACH_FAULT(FAULT_TRY_MALLOC, trainer_eval(t, &settings, &result, NULL));
}

/* The copy has that text, and the run of the first file: saved again under the first one's text, the same bytes. */
static void copied_with(struct trainer *t, const char *path, const char *copy, const char *text)
{
    char *was, *first, *again;
    size_t n_first, n_again;

    OK(checkpoint_copy(path, copy, text, err));
    OK(checkpoint_read_config(copy, &was, err));
    assert_string_equal(was, text);
    mem_free(was);
    OK(trainer_load(t, copy, err));
    OK(checkpoint_read_config(path, &was, err));
    OK(trainer_save(t, copy, was, err));
    OK(file_read_all(path, 1 << 24, &first, &n_first, err));
    OK(file_read_all(copy, 1 << 24, &again, &n_again, err));
    assert_int_equal(n_first, n_again);
    assert_memory_equal(first, again, n_first);
    mem_free(was);
    mem_free(first);
    mem_free(again);
}

TEST(checkpoint)
{
    TEMP_FOLDER(dir);
    char path[64], copy[64], *now = NULL;
    MEM_LOCAL char *old = NULL;
    size_t n_old, n_now;
    SETUP s;

    snprintf(path, sizeof path, "%s/a.ckpt", dir);
    snprintf(copy, sizeof copy, "%s/b.ckpt", dir);
    setup_game(&s, "cartpole", 1);
    TRAINER *t = setup_trainer(&s);
    OK(trainer_save(t, path, "old", err));
    OK(file_read_all(path, 1 << 24, &old, &n_old, err));
    iterate(t, 1);
    for (int kind = FAULT_TRY_MALLOC; kind <= FAULT_FSYNC; kind++) {
        fault_arm((enum fault_kind)kind, 1);
        assert_int_not_equal(trainer_save(t, path, "new", NULL), ST_OK);
        assert_true(fault_disarm((enum fault_kind)kind));
        OK(file_read_all(path, 1 << 24, &now, &n_now, err)); /* the good file is untouched */
        assert_int_equal(n_now, n_old);
        assert_memory_equal(now, old, n_old);
        mem_free(now);
    }
    EACH_FAULT(FAULT_TRY_MALLOC, trainer_save(t, path, "new", NULL));
    EACH_FAULT(FAULT_TRY_MALLOC, trainer_load(t, path, NULL));
    for (int kind = FAULT_WRITE; kind <= FAULT_FSYNC; kind++) {
        fault_arm((enum fault_kind)kind, 1);
        assert_int_not_equal(checkpoint_copy(path, copy, "shorter", NULL), ST_OK);
        assert_true(fault_disarm((enum fault_kind)kind));
        assert_int_not_equal(access(copy, F_OK), 0);
    }
    copied_with(t, path, copy,
                "a text that is longer than the one before it was, by more than a line of sixteen bytes");
    copied_with(t, path, copy, "");
}

TEST_PROGRAM("fault")
