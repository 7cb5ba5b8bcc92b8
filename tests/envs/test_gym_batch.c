/* test_gym_batch.c - what the program makes of the answers of a process that steps environments. This program is that
 * process too, instead of a Python. */
#include "envs_test.h"

#include "base/text/json.h"
#include "base/os/machine.h"
#include "envs/gym/gym.h"
#include "envs/gym/gym_batch.h"
#include "envs/gym/gym_helper.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define N 5 /* instances */
#define LENGTH 3 /* of an episode */
#define HEIGHT 2
#define WIDTH 3

/* ---- the process: instances that count, in two games. Late: observed are episode and step; in odd instances an episode
 * is cut, in even ones it ends by the rules and is cut too; the next one begins in a step of its own. Planes and a number of
 * channels: an image, each byte its place in memory plus the step, and a number beside it. Others do in their first step
 * what their names say. ---- */

static int channels_of(const char *id)
{
    return id[0] == 'P' ? id[strlen("Planes")] - '0' : 0;
}

static int describe(int channels)
{
    bool planes = channels > 0;

    dprintf(5, "{\"n_bytes\": %d, \"n_floats\": %d, \"heads\": [[2, 0, 0]], \"grid\": [%d, %d, %d], \"left_out\": []}",
            HEIGHT * WIDTH * channels, planes ? 1 : 2, planes ? HEIGHT : 0, planes ? WIDTH : 0, channels);
    return eventfd_write(7, 1);
}

/* False: the program is gone. */
static bool woken(void)
{
    struct pollfd polled[] = {{.fd = 3, .events = POLLIN}, {.fd = 6, .events = POLLIN}};
    eventfd_t one;

    return poll(polled, 2, -1) > 0 && polled[1].revents != 0 && eventfd_read(6, &one) == 0;
}

static void *tensor(const cJSON *task, char *memory, const char *name)
{
    const cJSON *row;

    cJSON_ArrayForEach(row, json_get(task, "tensors")) if (strcmp(cJSON_GetArrayItem(row, 0)->valuestring, name) ==
                                                           0) return memory +
        cJSON_GetArrayItem(row, 2)->valueint;
    return NULL;
}

static void show(int channels, char *obs, size_t i, int episode, int at)
{
    size_t image = (size_t)(HEIGHT * WIDTH * channels), row = channels > 0 ? (image + 3) / 4 * 4 + 4 : 8;
    float numbers[] = {(float)episode, (float)at};

    for (size_t k = 0; k < image; k++)
        obs[i * row + k] = (char)(k + (size_t)at);
    memcpy(obs + (i + 1) * row - (channels > 0 ? 4 : 8), channels > 0 ? numbers + 1 : numbers, channels > 0 ? 4 : 8);
}

static void play(const cJSON *task, char *memory, int channels, bool resets, int episodes[N], int ats[N])
{
    float *rewards = tensor(task, memory, "rewards");
    uint8_t *terms = tensor(task, memory, "terms"), *truncs = tensor(task, memory, "truncs");

    for (size_t i = 0; i < N; i++) {
        bool over = ats[i] == LENGTH;
        episodes[i] = resets ? 0 : episodes[i] + over;
        ats[i] = resets || over ? 0 : ats[i] + 1;
        rewards[i] = ats[i] > 0 ? 1.0f : 0.0f;
        truncs[i] = ats[i] == LENGTH;
        terms[i] = ats[i] == LENGTH && i % 2 == 0;
        show(channels, tensor(task, memory, "obs"), i, episodes[i], ats[i]);
    }
}

/* In a step. */
static void misbehave(const char *id, volatile struct gym_line *line)
{
    if (strcmp(id, "Dies") == 0) {
        if (fork() == 0)
            sleep(300); /* and keeps the socket open */
        raise(SIGKILL);
    }
    if (strcmp(id, "Hangs") == 0 && setpgid(0, getpgid(getppid())) == 0)
        sleep(300);
    for (int i = 0; strcmp(id, "Slow") == 0 && i < 2 * N; i++) {
        usleep(400 * 1000);
        line->now++;
    }
}

static int be_process(const char *text)
{
    struct error err = {0};
    JSON_LOCAL cJSON *task = NULL;
    int episodes[N] = {0}, ats[N] = {0}, channels;
    volatile struct gym_line *line;
    struct stat about;

    if (json_parse(text, strlen(text), &task, &err) != ST_OK)
        return 1;
    const char *id = json_get(task, "id")->valuestring;
    channels = channels_of(id);
    if (json_get(task, "n")->valueint == 0)
        return describe(channels);
    if (fstat(4, &about) != 0 || ftruncate(4, 0) == 0) /* which would kill the program */
        return 1;
    char *memory = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, 4, 0);
    line = tensor(task, memory, "lines");
    line->now = 0;
    line->late = line->planes = 1;
    for (int64_t done = -1; done < 0 || woken(); done++) {
        if (done >= 1)
            misbehave(id, line);
        if (done >= 0)
            play(task, memory, channels, line->commands[done % 2].what == 0, episodes, ats);
        __atomic_store_n(&line->answered, done + 1, __ATOMIC_SEQ_CST);
        (void)eventfd_write(7, 1);
    }
    return 0;
}

/* ---- the program ---- */

struct place {
    const struct env_def *def;
    struct gym_settings settings;
    struct env_batch *batch;
    int32_t actions[N];
    float rewards[N];
    uint8_t terms[N], truncs[N];
    _Alignas(64) char obs[4096], final_obs[4096]; /* of floats or bytes */
    struct env_io io;
};

static void place_open(struct place *p, const char *name, double timeout_s)
{
    struct error err = {0};

    assert_int_equal(gym_open(name, &p->def, &err), ST_OK);
    p->settings = (struct gym_settings){.timeout_s = timeout_s, .byte_scale = 255.0, .vector = true, .processes = 1};
    snprintf(p->settings.python, sizeof p->settings.python, "/proc/self/exe");
    assert_int_equal(env_batch_create(&p->batch, p->def, &p->settings, N, rng_seed(1), &err), ST_OK);
    p->io = (struct env_io){.actions = p->actions,
                            .rewards = p->rewards,
                            .terms = p->terms,
                            .truncs = p->truncs,
                            .obs = (float *)(void *)p->obs,
                            .final_obs = (float *)(void *)p->final_obs};
    env_batch_reset(p->batch, NULL, p->io.obs, NULL);
}

static void step(struct place *p)
{
    struct error err = {0};

    env_batch_step(p->batch, NULL, &p->io);
    assert_int_equal(env_batch_failed(p->batch, &err), ST_OK);
}

/* The step that only resets ends like the episode before it, and counts in no log. */
TEST(late_resets)
{
    struct place p = {0};
    struct env_log log;

    place_open(&p, "gym:Late", 60.0);
    for (int t = 1; t <= 3 * (LENGTH + 1); t++) {
        int at = t % (LENGTH + 1);
        bool ends = at == LENGTH || at == 0;
        step(&p);
        for (size_t i = 0; i < N; i++) {
            const float *obs = (const float *)(void *)p.obs + 2 * i, *last = (const float *)(void *)p.final_obs + 2 * i;
            assert_int_equal(p.terms[i], ends && i % 2 == 0);
            assert_int_equal(p.truncs[i], ends && i % 2 == 1);
            assert_int_equal((int)obs[0], t / (LENGTH + 1));
            assert_int_equal((int)obs[1], at);
            if (p.truncs[i] != 0) {
                assert_int_equal((int)last[0], (t - 1) / (LENGTH + 1));
                assert_int_equal((int)last[1], LENGTH);
            }
        }
    }
    env_batch_take_log(p.batch, &log);
    assert_int_equal((int)log.episodes, 3 * N);
    assert_int_equal((int)log.ep_length, 3 * N * LENGTH);
    assert_int_equal((int)log.score, 3 * N * LENGTH);
    env_batch_destroy(p.batch);
}

static void check_image(const char *row, int channels, int at)
{
    for (int pixel = 0; pixel < HEIGHT * WIDTH; pixel++)
        for (int c = 0; c < channels; c++)
            assert_int_equal(row[pixel * channels + c], c * HEIGHT * WIDTH + pixel + at);
}

/* Images come with their channels first, and leave with their channels last. */
TEST(channels)
{
    for (int channels = 1; channels <= 5; channels++) {
        struct place p = {0};
        size_t row = (size_t)(HEIGHT * WIDTH * channels + 3) / 4 * 4 + 4;
        char name[32];
        snprintf(name, sizeof name, "gym:Planes%d", channels);
        place_open(&p, name, 60.0);
        for (size_t i = 0; i < N; i++)
            check_image(p.obs + i * row, channels, 0);
        for (int t = 1; t <= LENGTH; t++)
            step(&p);
        for (size_t i = 0; i < N; i++) {
            float number;
            check_image(p.obs + i * row, channels, LENGTH);
            memcpy(&number, p.obs + (i + 1) * row - 4, 4);
            assert_int_equal((int)number, LENGTH);
            if (i % 2 == 1)
                check_image(p.final_obs + i * row, channels, LENGTH);
        }
        env_batch_destroy(p.batch);
    }
}

/* A vector environment has a process, and images two. */
TEST(processes)
{
    struct gym_settings settings = {.vector = true};
    struct env_shape numbers = {0}, image = {.height = HEIGHT, .width = WIDTH, .channels = 1};

    assert_int_equal(gym_processes("gym:X", &settings, &numbers), 1);
    assert_int_equal(gym_processes("gym:X", &settings, &image), 2);
    settings.vector = false;
    assert_int_equal(gym_processes("envpool:X", &settings, &image), 2);
    assert_int_equal(gym_processes("gym:X", &settings, &image), machine_cores());
    settings.processes = 3;
    assert_int_equal(gym_processes("envpool:X", &settings, &image), 3);
    assert_int_equal(gym_spread(8, 32), 7); /* 5 instances for 4 */
    assert_int_equal(gym_spread(8, 24), 8); /* 4 for 3 */
    assert_int_equal(gym_spread(8, 8), 8);
    assert_int_equal(gym_spread(2, 128), 2);
    assert_int_equal(gym_spread(1, 5), 1);
}

static void fails(const char *name, double timeout_s, const char *how)
{
    struct place p = {0};
    struct error err = {0};

    place_open(&p, name, timeout_s);
    env_batch_step(p.batch, NULL, &p.io);
    assert_int_not_equal(env_batch_failed(p.batch, &err), ST_OK);
    if (strstr(err.text, how) == NULL)
        fail_msg("%s", err.text);
    env_batch_destroy(p.batch);
}

/* Its end is seen although a child of it has its socket, and it ends although it has left its group. */
TEST(ends)
{
    fails("gym:Dies", 1e5, "was killed by signal 9");
    fails("gym:Hangs", 10.0, "no answer within 10 s in the step of instance 0");
}

/* The limit is that of one instance. */
TEST(slow_instances)
{
    struct place p = {0};

    place_open(&p, "gym:Slow", 3.0);
    step(&p);
    env_batch_destroy(p.batch);
}

int main(int argc, char **argv)
{
    return argc == 4 && strcmp(argv[1], "-c") == 0 ? be_process(argv[3]) : run_cases("gym_batch", NULL, NULL);
}
