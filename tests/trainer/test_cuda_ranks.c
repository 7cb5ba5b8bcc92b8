/* test_cuda_ranks.c - several GPUs (train.devices, NCCL): they learn what one does, recorded or not, the same bytes
 * each time; their checkpoints are those of one; a rank that hangs is named. Needs two GPUs, and four for a part of it;
 * reports it and skips where there are fewer. */
#include "ranks_test.h"

static char ckpt_path[4096];
static int n_gpus;

/* Larger than on a CPU, so that every kernel has more than one block; all segments in every minibatch. */
static void setup_gpu(struct setup *s, const struct variant *v, int precision)
{
    struct kern_settings cuda = {.kind = KERN_CUDA};

    setup_variant(s, v);
    kern_close(s->kern);
    OK(kern_open(&s->kern, &cuda, err));
    s->policy.hidden_size = 32;
    s->train.precision = precision;
    s->train.total_agents = 256;
    s->train.horizon = 16;
    s->train.minibatch_size = 256 * 16;
    s->train.total_timesteps = 256 * 16 * 100;
}

static const int counts[] = {2, 4};

/* The first iteration is plain, the second recorded, later ones are replayed. */
TEST(learn_as_one_gpu)
{
    for (size_t v = 0; v < N_VARIANTS; v++)
        for (size_t c = 0; c < COUNT(counts) && counts[c] <= n_gpus; c++) {
            struct trainer *ranks[KERN_RANKS_MAX];
            SETUP s;
            setup_gpu(&s, &variants[v], TRAIN_F32);
            TRAINER *one = ranks_trainer(&s, 1), *t = ranks_trainer(&s, counts[c]);
            iterate(one, 4);
            iterate(t, 4);
            assert_close_trainers(t, one, 1e-3, variants[v].game);
            OK(ranks_compare(t, err));
            ranks_of(t, ranks);
            assert_non_null(ranks[counts[c] - 1]->recordings[0].graph); /* exchanges were recorded */
        }
}

/* In bf16, with minibatches that take a share of the segments and with priorities: recorded or not, and again. */
TEST(same_bytes)
{
    for (size_t v = 0; v < 4; v++) {
        struct trainer *t[3];
        struct setup s[3];
        for (int i = 0; i < 3; i++) {
            setup_gpu(&s[i], &variants[v], TRAIN_BF16);
            s[i].train.minibatch_size /= 4;
            s[i].train.prio_alpha = v == 1 ? 0.6 : 0.0;
            s[i].train.graphs = i < 2;
            t[i] = ranks_trainer(&s[i], 2);
            iterate(t[i], 8);
            OK(trainer_sync(t[i], err));
            OK(ranks_compare(t[i], err));
        }
        assert_same_weights(t[0], t[1]);
        assert_same_weights(t[0], t[2]);
        for (int i = 0; i < 3; i++) {
            trainer_destroy(t[i]);
            setup_close(&s[i]);
        }
    }
}

/* A file of two GPUs is continued by two with the same bytes, and by one. */
TEST(resume)
{
    for (size_t v = 0; v < N_VARIANTS; v++) {
        SETUP s, other;
        setup_gpu(&s, &variants[v], TRAIN_F32);
        setup_gpu(&other, &variants[v], TRAIN_F32);
        TRAINER *straight = ranks_trainer(&other, 2), *t = ranks_trainer(&s, 2);
        iterate(straight, 6);
        iterate(t, 3);
        OK(trainer_save(t, ckpt_path, "", err));
        trainer_destroy(t);
        t = ranks_trainer(&s, 2);
        OK(trainer_load(t, ckpt_path, err));
        iterate(t, 3);
        assert_same_weights(straight, t);
        trainer_destroy(t);
        t = ranks_trainer(&s, 1);
        OK(trainer_load(t, ckpt_path, err));
        iterate(t, 3);
        assert_close_trainers(t, straight, 1e-3, variants[v].game);
    }
}

TEST(more_than_there_are)
{
    struct error why = {0};
    struct trainer *t;
    SETUP s;

    setup_gpu(&s, &variants[0], TRAIN_F32);
    s.train.devices = 64;
    s.train.total_agents = 64 * 64;
    s.train.minibatch_size = 64 * 64 * 16;
    assert_int_equal(trainer_create(&t, s.kern, s.def, s.env, &s.policy, &s.train, &why), ST_CONFIG);
    assert_non_null(strstr(why.text, "train.devices is 64"));
}

static struct setup hung; /* stays: its thread and its devices may use it as long as the process lives */

/* The last test: nothing of the process can use the GPUs after it. */
TEST(a_rank_that_hangs_is_named)
{
    struct trainer *ranks[KERN_RANKS_MAX];
    struct kern_settings cuda = {.kind = KERN_CUDA};
    struct error why = {0};
    struct train_result r;

    setup_open(&hung, &stuck_def, 1);
    kern_close(hung.kern);
    OK(kern_open(&hung.kern, &cuda, err));
    hung.train.minibatch_size = 96;
    hung.train.rank_timeout_s = 3.0;
    TRAINER *t = ranks_trainer(&hung, 2);
    ranks_of(t, ranks);
    stuck.hangs = stuck_key(ranks[1]);
    assert_int_equal(trainer_run(t, NULL, &r, &why), ST_DEVICE);
    assert_non_null(strstr(why.text, "train.rank_timeout_s"));
    assert_true(kern_is_lost(hung.kern));
}

int main(void)
{
    char reason[256];

    if (!kern_cuda_available(reason, sizeof reason))
        return test_no_gpu(reason);
    n_gpus = kern_cuda_count();
    if (n_gpus < 2) {
        printf("1..0 # SKIP one GPU: nothing of train.devices was tested on GPUs, which needs two or four\n");
        return 0;
    }
    if (n_gpus < 4)
        printf("# of %d GPUs: what needs four is left out\n", n_gpus);
    snprintf(ckpt_path, sizeof ckpt_path, "%s/trawl-cuda-ranks-%d.ckpt",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp", (int)getpid());
    int rc = run_cases("cuda_ranks", NULL, NULL);
    unlink(ckpt_path);
    fflush(NULL);
    _exit(rc); /* the hung rank's thread and its device do not end */
}
