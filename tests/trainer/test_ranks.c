/* test_ranks.c - several devices (train.devices) on a CPU: they play, learn and report what one device does, within
 * rounding, whatever their number; checkpoints are those of one device; a rank that fails, differs or hangs is
 * named. */
#include "ranks_test.h"

static const char *ckpt_path;

/* ---- the same learning ---- */

TEST(learn_as_one_device)
{
    for (size_t v = 0; v < N_VARIANTS; v++) {
        SETUP s;
        setup_variant(&s, &variants[v]);
        TRAINER *one = ranks_trainer(&s, 1);
        iterate(one, 5);
        for (int64_t devices = 2; devices <= 4; devices *= 2) {
            TRAINER *t = ranks_trainer(&s, devices);
            struct trainer *ranks[KERN_RANKS_MAX];
            iterate(t, 5);
            assert_close_trainers(t, one, 1e-4, variants[v].game);
            OK(ranks_compare(t, err));
            ranks_of(t, ranks);
            for (int64_t r = 1; r < devices; r++) {
                assert_memory_equal(ranks[r]->params, ranks[0]->params, t->policy.n_params * sizeof(float));
                assert_memory_equal(ranks[r]->moment1, ranks[0]->moment1, t->policy.n_params * sizeof(float));
                assert_memory_equal(ranks[r]->stats, ranks[0]->stats, sizeof *t->stats);
                if (variants[v].normed)
                    assert_memory_equal(ranks[r]->norm_of.obs_sums, ranks[0]->norm_of.obs_sums,
                                        t->policy.frame_size * 3 * sizeof(double));
            }
        }
    }
}

/* The same bytes twice: nothing depends on which thread is first. */
TEST(same_bytes_twice)
{
    struct trainer *t[2];
    struct setup s[2];

    for (int i = 0; i < 2; i++) {
        setup_variant(&s[i], &variants[3]);
        s[i].train.minibatch_size = 32;
        s[i].train.prio_alpha = 0.7;
        t[i] = ranks_trainer(&s[i], 4);
        iterate(t[i], 6);
    }
    assert_same_weights(t[0], t[1]);
    for (int i = 0; i < 2; i++) {
        trainer_destroy(t[i]);
        setup_close(&s[i]);
    }
}

/* ---- what each rank plays and takes ---- */

static enum status play_only(void *ctx, struct trainer *t, struct error *err)
{
    (void)ctx;
    return rollout_run(t, err);
}

/* The first rollout, with the same weights: each rank plays its part of what one device plays, to the bit. */
TEST(parts_of_one_rollout)
{
    const size_t devices = 3;
    struct trainer *ranks[KERN_RANKS_MAX];
    SETUP s;

    setup_variant(&s, &variants[0]);
    TRAINER *one = ranks_trainer(&s, 1), *t = ranks_trainer(&s, (int64_t)devices);
    OK(play_only(NULL, one, err));
    OK(ranks_meet(t, play_only, NULL, err));
    ranks_of(t, ranks);
    for (size_t r = 0; r < devices; r++) {
        const struct trainer *own = ranks[r];
        size_t n = own->n_agents, D = own->policy.obs_size;
        assert_int_equal(n * devices, one->n_agents);
        for (size_t step = 0; step < own->horizon; step++) {
            const float *all_obs = (const float *)one->roll.obs + (step * one->n_agents + r * n) * D;
            assert_memory_equal((const float *)own->roll.obs + step * n * D, all_obs, n * D * sizeof(float));
            assert_memory_equal(own->roll.actions + step * n, one->roll.actions + step * one->n_agents + r * n,
                                n * sizeof(int32_t));
        }
        if (r > 0) /* streams of their own */
            assert_memory_not_equal(own->roll.obs, ranks[0]->roll.obs, n * D * sizeof(float));
    }
}

static enum status first_minibatch(void *ctx, struct trainer *t, struct error *err)
{
    (void)ctx;
    TRY(rollout_run(t, err));
    t->ops->zero(t->kern, t->stats, sizeof *t->stats);
    update_advantage(t);
    t->ops->segments_shuffle(t->kern, t->mb.perm, t->rng_segments, t->n_agents);
    update_forward(t, t->mb.perm);
    update_backward(t, t->mb.perm, NULL, false);
    return kern_sync(t->kern, err);
}

/* A rank's order is the one device's order of its agents, and the gradient is that of the segments of all ranks. */
TEST(gradient_of_a_minibatch)
{
    const size_t devices = 2;
    struct trainer *ranks[KERN_RANKS_MAX];
    SETUP s;

    setup_variant(&s, &variants[1]);
    s.train.minibatch_size = 48;
    s.train.vtrace = false;
    TRAINER *one = ranks_trainer(&s, 1), *t = ranks_trainer(&s, (int64_t)devices);
    OK(ranks_meet(t, first_minibatch, NULL, err));
    ranks_of(t, ranks);
    OK(first_minibatch(NULL, one, err));
    size_t N = one->n_agents, n = N / devices, at[2] = {0, 0}, B = t->n_segments, n_idx = 0;
    int32_t idx[16];
    for (size_t i = 0; i < N; i++) {
        size_t r = (size_t)one->mb.perm[i] / n;
        assert_int_equal(one->mb.perm[i], (int32_t)(r * n) + ranks[r]->mb.perm[at[r]++]);
    }
    for (size_t r = 0; r < devices; r++)
        for (size_t i = 0; i < B; i++)
            idx[n_idx++] = (int32_t)(r * n) + ranks[r]->mb.perm[i];
    assert_int_equal(n_idx, one->n_segments);
    one->ops->zero(one->kern, one->stats, sizeof *one->stats);
    update_forward(one, idx);
    update_backward(one, idx, NULL, false);
    size_t n_params = one->policy.n_params;
    double most = largest(one->grads, NULL, n_params);
    assert_true(most > 0.0);
    for (size_t r = 0; r < devices; r++)
        assert_true(largest(ranks[r]->grads, one->grads, n_params) < 1e-5 * most);
    assert_true(t->stats->n_tokens == one->stats->n_tokens && t->stats->n_tokens == 48.0);
    check_near("norm", t->stats->grad_norm, one->stats->grad_norm, 1e-4);
}

/* ---- checkpoints ---- */

static void read_file(char **ret_bytes, size_t *ret_n)
{
    *ret_bytes = NULL;
    OK(file_read_all(ckpt_path, 1 << 24, ret_bytes, ret_n, err));
}

TEST(resume)
{
    for (size_t v = 0; v < N_VARIANTS; v++) {
        SETUP s, other;
        setup_variant(&s, &variants[v]);
        setup_variant(&other, &variants[v]);
        s.train.minibatch_size = other.train.minibatch_size = 48;
        TRAINER *straight = ranks_trainer(&other, 2);
        struct trainer *first = ranks_trainer(&s, 2);
        iterate(straight, 8);
        iterate(first, 4);
        OK(trainer_save(first, ckpt_path, "", err));
        iterate(first, 1);
        trainer_destroy(first);
        TRAINER *second = ranks_trainer(&s, 2);
        iterate(second, 2);
        OK(trainer_load(second, ckpt_path, err));
        iterate(second, 4);
        assert_same_weights(straight, second);
        OK(ranks_compare(second, err));
    }
}

/* A file of two devices is continued by one and by four, as by two. */
TEST(resume_with_another_number)
{
    for (size_t v = 0; v < N_VARIANTS; v++) {
        SETUP s, other;
        setup_variant(&s, &variants[v]);
        setup_variant(&other, &variants[v]);
        TRAINER *two = ranks_trainer(&other, 2);
        iterate(two, 3);
        OK(trainer_save(two, ckpt_path, "", err));
        iterate(two, 3);
        for (int64_t devices = 1; devices <= 4; devices += 3) {
            TRAINER *t = ranks_trainer(&s, devices);
            OK(trainer_load(t, ckpt_path, err));
            iterate(t, 3);
            assert_close_trainers(t, two, 1e-4, variants[v].game);
        }
    }
}

/* Before anything was added up the file is that of one device, byte for byte. */
TEST(file_of_one_device)
{
    SETUP s;
    MEM_LOCAL char *a = NULL, *b = NULL;
    size_t n, m;

    setup_variant(&s, &variants[2]);
    struct trainer *t = ranks_trainer(&s, 1);
    OK(trainer_save(t, ckpt_path, "x", err));
    read_file(&a, &n);
    trainer_destroy(t);
    t = ranks_trainer(&s, 4);
    OK(trainer_save(t, ckpt_path, "x", err));
    read_file(&b, &m);
    trainer_destroy(t);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
}

/* A file that all refuse costs nothing but the answer. */
TEST(refused_file)
{
    SETUP s;

    setup_variant(&s, &variants[0]);
    OK(file_write_all(ckpt_path, "no checkpoint", 13, err));
    TRAINER *t = ranks_trainer(&s, 2);
    FAILS(trainer_load(t, ckpt_path, err), ST_CORRUPT, "is not a Trawl checkpoint");
    iterate(t, 1);
}

/* ---- a whole run, and what is worth knowing of it ---- */

TEST(run_and_evaluate)
{
    const struct eval_settings e = {.episodes = 16, .max_steps = 64};
    struct eval_result a, b;
    struct train_result r;
    SETUP s;

    setup_variant(&s, &variants[0]);
    s.train.total_timesteps = 12 * 45; /* the last rollout is shorter */
    TRAINER *t = ranks_trainer(&s, 3), *one = ranks_trainer(&s, 1);
    OK(trainer_run(t, NULL, &r, err));
    assert_int_equal(r.env_steps, 12 * 45);
    assert_true(r.window.episodes > 0.0);
    OK(trainer_save(t, ckpt_path, "", err));
    OK(trainer_load_weights(one, ckpt_path, err));
    OK(trainer_eval(t, &e, &a, err));
    OK(trainer_eval(one, &e, &b, err));
    assert_true(a.score == b.score && a.episodes == b.episodes);
}

TEST(uneven_shares_are_refused)
{
    SETUP s;

    setup_variant(&s, &variants[0]);
    s.train.devices = 5;
    FAILS(trainer_check(s.def, s.env, &s.policy, &s.train, err), ST_CONFIG,
          "train.devices 5 cannot share evenly; try total_agents 15");
    s.train.devices = 4;
    s.train.minibatch_size = 16;
    FAILS(trainer_check(s.def, s.env, &s.policy, &s.train, err), ST_CONFIG,
          "train.devices 4 cannot share evenly; try minibatch_size 32");
}

TEST(one_training_of_a_device)
{
    struct error why = {0};
    struct trainer *second;
    SETUP s;

    setup_variant(&s, &variants[0]);
    TRAINER *t = ranks_trainer(&s, 2);
    assert_int_equal(trainer_create(&second, s.kern, s.def, s.env, &s.policy, &s.train, &why), ST_BUSY);
    iterate(t, 1);
}

/* ---- faults ---- */

/* A game from outside, which may know nothing of parts of a batch, has streams of each rank's own all the same. */
TEST(streams_of_games_from_outside)
{
    struct trainer *ranks[KERN_RANKS_MAX];
    SETUP s;

    setup_open(&s, &stuck_def, 1);
    s.train.minibatch_size = 96;
    TRAINER *t = ranks_trainer(&s, 3);
    ranks_of(t, ranks);
    assert_true(stuck_key(ranks[0]) != stuck_key(ranks[1]) && stuck_key(ranks[1]) != stuck_key(ranks[2]) &&
                stuck_key(ranks[0]) != stuck_key(ranks[2]));
}

static struct setup hung; /* stays: its thread may use it as long as the process lives */

TEST(a_rank_that_hangs_is_named)
{
    struct trainer *ranks[KERN_RANKS_MAX];
    struct train_result r;

    setup_open(&hung, &stuck_def, 1);
    hung.train.minibatch_size = 96;
    hung.train.rank_timeout_s = 10.0; /* the other ranks are to be there by then */
    struct trainer *t = ranks_trainer(&hung, 3);
    ranks_of(t, ranks);
    stuck.hangs = stuck_key(ranks[1]);
    FAILS(trainer_run(t, NULL, &r, err), ST_DEVICE, "rank 1 has not come back for 10 s");
    assert_true(kern_is_lost(hung.kern));
    FAILS(trainer_iterate(t, err), ST_DEVICE, "training had ended: rank 1 has");
    trainer_destroy(t);
    kern_close(hung.kern);
    pthread_mutex_lock(&stuck.lock);
    stuck.released = true; /* the thread continues, into memory that is still there */
    pthread_cond_broadcast(&stuck.changed);
    pthread_mutex_unlock(&stuck.lock);
}

static enum status fail_one(void *ctx, struct trainer *t, struct error *err)
{
    (void)ctx;
    if (t->rank == 1)
        return FAIL(err, ST_IO, "the disk is full");
    return rank_iterate(t, t->horizon_full, err); /* waits for rank 1 */
}

TEST(a_rank_that_fails_is_named)
{
    struct error why = {0};
    SETUP s;

    setup_variant(&s, &variants[0]);
    TRAINER *t = ranks_trainer(&s, 3);
    iterate(t, 1);
    assert_int_equal(ranks_meet(t, fail_one, NULL, &why), ST_IO);
    assert_string_equal(why.text, "rank 1 of 3: the disk is full");
    error_clear(&why);
    assert_int_equal(trainer_iterate(t, &why), ST_IO);
    assert_false(kern_is_lost(s.kern));
}

TEST(weights_that_differ_are_an_error)
{
    struct trainer *ranks[KERN_RANKS_MAX];
    struct error why = {0};
    struct train_result r;
    SETUP s;

    setup_variant(&s, &variants[0]);
    TRAINER *t = ranks_trainer(&s, 2);
    iterate(t, 1);
    ranks_of(t, ranks);
    ranks[1]->params[7] += 1e-3f;
    FAILS(trainer_run(t, NULL, &r, err), ST_DEVICE, "rank 1 has weight");
    assert_int_equal(trainer_save(t, ckpt_path, "", &why), ST_NUMERIC);
}

/* All ranks meet a number that is not finite; the one that has it says where it came from. */
TEST(numeric_failure_names_its_rank)
{
    struct trainer *ranks[KERN_RANKS_MAX];
    SETUP s;

    setup_variant(&s, &variants[0]);
    TRAINER *t = ranks_trainer(&s, 2);
    iterate(t, 1);
    ranks_of(t, ranks);
    ((float *)ranks[1]->roll.obs)[t->horizon * ranks[1]->n_agents * t->policy.obs_size] = NAN;
    FAILS(trainer_iterate(t, err), ST_NUMERIC, "rank 1 of 2: training broke down at env step");
}

int main(void)
{
    TEMP_FILE(path);

    ckpt_path = path;
    return run_cases("ranks", NULL, NULL);
}
