/* test_two_networks.c - policy.value_net separate: what the value learns from never reaches the policy, nor the other
 * way round; weights between the two stay 0 whatever trains them; and the last, shorter rollout of shuffled steps. */
#include "trainer_test.h"

/* cartpole has one head of 2 choices. */
static struct trainer *open_trainer(struct setup *s, int core, int value_net, int optimizer)
{
    setup_game(s, "cartpole", 2);
    s->policy.core = core;
    s->policy.value_net = value_net;
    s->train.optimizer = optimizer;
    s->train.weight_decay = 0.01;
    return setup_trainer(s);
}

/* Weights of the matrix that join the halves, and the others that are not 0. rows_first: rows of the first half, 0:
 * half of each group of rows that is as wide as the matrix, as gates are. */
static void count_joining(const struct kern_tensor *m, const float *w, size_t rows_first, size_t *ret_joining,
                          size_t *ret_others)
{
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) {
            bool first = rows_first > 0 ? i < rows_first : i % m->cols < m->cols / 2;
            bool is_zero = w[m->offset + i * m->cols + j] == 0.0f;
            if (first != (j < m->cols / 2))
                *ret_joining += !is_zero;
            else
                *ret_others += !is_zero;
        }
}

TEST(weights_between_stay_zero)
{
    for (int i_case = 0; i_case < 8; i_case++) {
        SETUP s;
        int core = POLICY_CORE_NONE + i_case % 4;
        TRAINER *t = open_trainer(&s, core, POLICY_VALUE_SEPARATE, i_case < 4 ? TRAIN_ADAM : TRAIN_MUON);
        size_t joining = 0, others = 0, n = t->policy.n_tensors, n_core = 0;
        iterate(t, 6);
        float *params = params_copy(t);
        assert_int_equal(t->policy.width, 32);
        for (size_t i = 0; i < n; i++)
            if (t->policy.tensors[i].is_matrix && strncmp(t->policy.names[i], "core", 4) == 0) {
                count_joining(&t->policy.tensors[i], params, 0, &joining, &others);
                n_core += t->policy.tensors[i].rows * 16;
            }
        count_joining(&t->policy.tensors[n - 2], params, 2, &joining, &others);
        assert_int_equal(joining, 0);
        assert_int_equal(others, n_core + 3 * 16); /* all of both networks are there */
        free(params);
    }
}

/* Of the first minibatch of a fresh trainer; the encoder's matrix is *ret_encoder of it. */
static void gradient_of(int value_net, double vf_coef, float **ret_grads, struct kern_tensor *ret_encoder)
{
    int32_t idx[] = {1, 2, 5, 8};
    SETUP s;
    TRAINER *t = open_trainer(&s, POLICY_CORE_MLP, value_net, TRAIN_ADAM);

    t->host_hyper.vf_coef = (float)vf_coef;
    OK(kern_upload(t->kern, t->hyper, &t->host_hyper, sizeof t->host_hyper, err));
    OK(rollout_run(t, err));
    update_advantage(t);
    update_forward(t, idx);
    update_backward(t, idx, NULL, false);
    *ret_grads = calloc(trainer_n_params(t), sizeof **ret_grads);
    OK(kern_download(t->kern, *ret_grads, t->grads, trainer_n_params(t) * sizeof **ret_grads, err));
    *ret_encoder = t->policy.tensors[0];
}

/* The value loss moves the shared encoder, and of two networks the value's alone. */
TEST(value_loss_moves_its_own)
{
    for (int net = POLICY_VALUE_SHARED; net <= POLICY_VALUE_SEPARATE; net++) {
        struct kern_tensor encoder;
        float *without, *with;
        size_t first = 0, second = 0, half;
        gradient_of(net, 0.0, &without, &encoder);
        gradient_of(net, 3.0, &with, &encoder);
        half = encoder.rows * encoder.cols / 2;
        for (size_t i = 0; i < 2 * half; i++) {
            size_t *n = i < half ? &first : &second;
            *n += without[i] != with[i];
            if (net == POLICY_VALUE_SEPARATE && i >= half)
                assert_true(without[i] == 0.0f);
        }
        assert_true(net == POLICY_VALUE_SEPARATE ? first == 0 : first > half / 2);
        assert_true(second > half / 2);
        free(without);
        free(with);
    }
}

/* Two rollouts of 12 x 8 steps and a last one of 12 x 2, which is less than a minibatch of 32. */
TEST(last_rollout_is_shorter)
{
    struct train_result r, q;
    SETUP s;

    setup_game(&s, "cartpole", 1);
    s.train.shuffle = TRAIN_SHUFFLE_STEPS;
    s.train.replay_ratio = 4.0;
    s.train.total_timesteps = 12 * (8 + 8 + 2);
    TRAINER *t = setup_trainer(&s), *again = setup_trainer(&s);
    OK(trainer_run(t, NULL, &r, err));
    OK(trainer_run(again, NULL, &q, err));
    assert_int_equal(r.env_steps, s.train.total_timesteps);
    assert_int_equal(t->count.updates, 12 + 12 + 3); /* 4 times 96 and 24 steps by 32 */
    assert_int_equal(t->n_segments, 32);
    assert_same_weights(t, again);
}

TEST_PROGRAM("two_networks")
