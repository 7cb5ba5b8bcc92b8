/* test_resume.c - same seed, same bytes; saved and loaded, same bytes; damaged and foreign files are refused. */
#include "trainer_test.h"

static const char *ckpt_path;

static void setup_variant(struct setup *s, int variant)
{
    setup_game(s, variant == 6 ? "squared" : variant % 2 == 0 ? "cartpole" : "memory", 2);
    s->policy.core = variant < 2 ? POLICY_CORE_MLP : variant < 4 ? POLICY_CORE_MINGRU : POLICY_CORE_LSTM;
    s->train.optimizer = variant % 2 == 0 ? TRAIN_ADAM : TRAIN_MUON;
    if (variant == 6) {
        s->policy.encoder = POLICY_ENCODER_CONV;
        s->policy.conv_channels = 8;
    }
    if (variant == 3) {
        s->train.prio_alpha = 0.8;
        s->train.vtrace = false;
    }
    if (variant == 5) { /* ratios of a rollout's segments are kept from use to use, and end with it */
        s->train.prio_alpha = 0.5;
        s->train.replay_ratio = 2.5;
    }
}

TEST(same_seed_same_bytes)
{
    for (int variant = 0; variant < 7; variant++) {
        SETUP s, other;
        setup_variant(&s, variant);
        setup_variant(&other, variant);
        TRAINER *a = setup_trainer(&s), *b = setup_trainer(&other);
        iterate(a, 5);
        iterate(b, 5);
        assert_same_weights(a, b);
    }
}

TEST(seeds_differ)
{
    SETUP s;

    setup_game(&s, "cartpole", 2);
    TRAINER *a = setup_trainer(&s);
    s.train.seed++;
    TRAINER *b = setup_trainer(&s);
    iterate(a, 2);
    iterate(b, 2);
    MEM_LOCAL float *x = params_copy(a), *y = params_copy(b);
    assert_memory_not_equal(x, y, trainer_n_params(a) * sizeof *x);
}

TEST(resume_is_exact)
{
    for (int variant = 0; variant < 7; variant++) {
        SETUP s;
        struct train_metrics m, n;
        setup_variant(&s, variant);
        TRAINER *straight = setup_trainer(&s);
        struct trainer *first = setup_trainer(&s);
        iterate(straight, 14);
        iterate(first, 7);
        OK(trainer_save(first, ckpt_path, "[env]\nname = x\n", err));
        iterate(first, 2); /* must not matter to the file */
        trainer_destroy(first);
        TRAINER *second = setup_trainer(&s);
        iterate(second, 3); /* nor must what the new one did before */
        OK(trainer_load(second, ckpt_path, err));
        iterate(second, 7);
        assert_same_weights(straight, second);
        trainer_get_metrics(straight, &m);
        trainer_get_metrics(second, &n);
        assert_int_equal(m.env_steps, n.env_steps);
        assert_int_equal(m.updates, n.updates);
        assert_true(m.episodes == n.episodes && m.episodes > 0.0);
        assert_true(m.score == n.score);
        assert_true(m.entropy == n.entropy);
        assert_memory_equal(&straight->window, &second->window, sizeof straight->window);
    }
}

TEST(holds_shorter_runs)
{
    for (int variant = 0; variant < 7; variant++) {
        SETUP s;
        setup_variant(&s, variant);
        check_holds_shorter(&s);
    }
}

TEST(which_runs_hold_shorter_ones)
{
    SETUP s;

    setup_game(&s, "cartpole", 1);
    assert_false(train_holds_shorter(&s.train)); /* a cosine over the run */
    s.train.decay_share = 0;
    assert_true(train_holds_shorter(&s.train));
    s.train.decay_share = 0.1;
    assert_false(train_holds_shorter(&s.train));
    s.train.anneal_lr = false;
    assert_true(train_holds_shorter(&s.train));
    s.train.prio_alpha = 0.5; /* its exponent anneals over the run */
    assert_false(train_holds_shorter(&s.train));
    s.train.decay_steps = 1000;
    assert_true(train_holds_shorter(&s.train));
    s.train.max_seconds = 10;
    assert_false(train_holds_shorter(&s.train));
}

TEST(config_text)
{
    SETUP s;
    MEM_LOCAL char *text = NULL;

    setup_game(&s, "cartpole", 1);
    TRAINER *t = setup_trainer(&s);
    OK(trainer_save(t, ckpt_path, "[train]\nseed = 4\n", err));
    OK(checkpoint_read_config(ckpt_path, &text, err));
    assert_string_equal(text, "[train]\nseed = 4\n");
}

/* The load fails with this status and text, and leaves the trainer as it was. */
static void expect_refused(struct trainer *t, enum status status, const char *text)
{
    struct error err = {0};
    MEM_LOCAL float *before = params_copy(t), *after = NULL;

    assert_int_equal(trainer_load(t, ckpt_path, &err), status);
    if (strstr(err.text, text) == NULL)
        fail_msg("\"%s\" is not in: %s", text, err.text);
    after = params_copy(t);
    assert_memory_equal(before, after, trainer_n_params(t) * sizeof *before);
}

/* With the checksum that belongs to these bytes: bytes 28 to 31. */
static void write_sealed(char *bytes, size_t n)
{
    uint32_t crc = file_crc32(file_crc32(0, bytes, 28), bytes + 32, n - 32);

    memcpy(bytes + 28, &crc, sizeof crc);
    OK(file_write_all(ckpt_path, bytes, n, err));
}

TEST(bad_files)
{
    SETUP s;
    MEM_LOCAL char *good = NULL;
    size_t n = 0;

    setup_game(&s, "cartpole", 1);
    TRAINER *t = setup_trainer(&s);
    unlink(ckpt_path);
    expect_refused(t, ST_IO, ckpt_path);
    iterate(t, 1);
    OK(trainer_save(t, ckpt_path, "", err));
    OK(file_read_all(ckpt_path, 1 << 24, &good, &n, err));
    MEM_LOCAL char *bad = malloc(n + 1);

    for (size_t cut = 0; cut < n; cut += n / 7 + 1) { /* cut off anywhere */
        OK(file_write_all(ckpt_path, good, cut, err));
        expect_refused(t, ST_CORRUPT, cut < 8 ? "is not a Trawl checkpoint" : "cut off");
    }
    OK(file_write_all(ckpt_path, good, 20, err));
    expect_refused(t, ST_CORRUPT, "within its header");
    memcpy(bad, good, n);
    bad[n] = 'x';
    OK(file_write_all(ckpt_path, bad, n + 1, err));
    expect_refused(t, ST_CORRUPT, "appended");
    for (size_t at = 28; at < n; at += n / 13 + 1) { /* one bit anywhere after the lengths */
        memcpy(bad, good, n);
        bad[at] ^= 4;
        OK(file_write_all(ckpt_path, bad, n, err));
        expect_refused(t, ST_CORRUPT, "checksum");
    }
    memcpy(bad, good, n);
    bad[8] = 1; /* an older version: it has a policy, but no state that this program can resume */
    write_sealed(bad, n);
    expect_refused(t, ST_VERSION, "checkpoint version 1");
    OK(trainer_load_weights(t, ckpt_path, err));
    struct env_def larger = *s.def; /* the game has changed inside since */
    larger.state_size += 16;
    t->def = &larger;
    OK(trainer_load_weights(t, ckpt_path, err));
    t->def = s.def;
    bad[8] = 99;
    OK(file_write_all(ckpt_path, bad, n, err));
    expect_refused(t, ST_VERSION, "version 99");
    memset(bad, 'z', n);
    OK(file_write_all(ckpt_path, bad, n, err));
    expect_refused(t, ST_CORRUPT, "is not a Trawl checkpoint");
    OK(file_write_all(ckpt_path, good, n, err));
    OK(trainer_load(t, ckpt_path, err)); /* the file itself was fine */
}

TEST(other_shapes)
{
    SETUP s;

    setup_game(&s, "cartpole", 1);
    TRAINER *t = setup_trainer(&s);
    OK(trainer_save(t, ckpt_path, "", err));
    for (int i = 0; i < 7; i++) {
        static const char *const texts[] = {"hidden_size 16",
                                            "num_layers 2",
                                            "policy.core",
                                            "total_agents 12",
                                            "optimizer",
                                            "cartpole",
                                            "policy.encoder_activation relu, this run has none"};
        SETUP other;
        setup_game(&other, i == 5 ? "memory" : "cartpole", 1);
        other.policy.hidden_size += i == 0;
        other.policy.num_layers -= i == 1;
        other.policy.core = i == 2 ? POLICY_CORE_MINGRU : other.policy.core;
        other.train.total_agents += i == 3;
        other.train.optimizer = i == 4 ? !other.train.optimizer : other.train.optimizer;
        other.policy.encoder_activation = i == 6 ? POLICY_ACTIVATION_NONE : POLICY_ACTIVATION_AUTO;
        TRAINER *u = setup_trainer(&other);
        expect_refused(u, ST_CONFIG, texts[i]);
    }
}

int main(void)
{
    TEMP_FILE(path);

    ckpt_path = path;
    return run_cases("resume", NULL, NULL);
}
