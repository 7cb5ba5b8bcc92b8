/* gym_batch.c - n instances of an environment of Gymnasium, stepped by helper processes.
 * Invariants: (1) instance i belongs to helper i modulo their number, so that any range of instances keeps all of them
 * busy; of a vector environment a helper has neighbours, which are one object, and a range has whole objects; (2) the
 * rows of a range are written by us between an answer and the next command, and by a helper between a command and its
 * answer; (3) after the first failure no helper is asked again. */
#include "envs/gym/gym_batch.h"

#include "base/os/machine.h"
#include "envs/envs.h"
#include "envs/gym/gym_helper.h"
#include "envs/gym/gym_settings.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define END_PATIENCE_S 2.0 /* for closing environments */

enum end { NOT_ENDED, TERMINATED, TRUNCATED };

struct gym_batch {
    const struct env_def *def; /* borrowed */
    const struct gym_settings *settings; /* borrowed from the batch */
    size_t n, n_heads, n_bytes, n_floats, n_helpers; /* n_bytes, n_floats: of an observation */
    size_t row_bytes; /* of both */
    size_t n_pixels, n_channels; /* of the image that begins it */
    bool vectors;
    struct gym_helper *helpers; /* (n_helpers) owned */
    struct env_track *tracks; /* (n) owned */
    uint8_t *ends; /* (n) owned: how its last step ended an episode, enum end; used where instances reset late */
    struct error failed;
    size_t n_info, info_at[ENV_MAX_NUMBERS]; /* numbers of an episode's info: which of the table's they are */
    double info_sums[ENV_MAX_NUMBERS], info_episodes; /* of episodes that a log took, since last asked */
    /* Shared with the helpers. */
    int memory_fd;
    char *memory; /* (bytes) */
    size_t bytes;
    int32_t *actions; /* (n, n_heads) */
    float *reals, *rewards; /* (n, n_heads), (n) */
    double *info; /* (n, n_info) of the step that ended an episode */
    char *obs, *final_obs; /* (n) of row_bytes, env_row_bytes */
    uint8_t *terms, *truncs; /* (n) */
    uint64_t *seeds; /* (n) */
    struct gym_line *lines; /* (n_helpers) */
    uint8_t *frame; /* (height, width, 3) of a film */
};

static bool is_pool(const char *name)
{
    return strncmp(name, GYM_POOL_PREFIX, strlen(GYM_POOL_PREFIX)) == 0;
}

size_t gym_processes(const char *name, const struct gym_settings *settings, const struct env_shape *shape)
{
    if (settings->processes > 0)
        return (size_t)settings->processes;
    return !gym_is_vector(name, settings) ? machine_cores() : shape->height > 0 ? 2 : 1;
}

size_t gym_spread(size_t cores, size_t n_envs)
{
    size_t fewer = cores - 1;

    if (fewer == 0 || cores >= n_envs)
        return cores;
    return 4 * ((n_envs + fewer - 1) / fewer) <= 5 * ((n_envs + cores - 1) / cores) ? fewer : cores;
}

static bool is_filmed(const struct env_def *def)
{
    return def->save != NULL;
}

cJSON *gym_task(const struct env_def *def, const struct gym_settings *settings, size_t n)
{
    const char *name = def->name;
    cJSON *task = cJSON_CreateObject();

    json_add_str(task, "id", strchr(name, ':') + 1);
    json_add_str(task, "kind", is_pool(name) ? "envpool" : settings->vector ? "vector" : "gym");
    json_add_str(task, "path", settings->path);
    json_add_str(task, "kwargs", settings->kwargs);
    json_add_str(task, "info", settings->info);
    json_add_f64(task, "byte_scale", settings->byte_scale);
    json_add_i64(task, "n", (int64_t)n);
    json_add_i64(task, "cores", (int64_t)machine_cores());
    json_add_i64(task, "film", is_filmed(def) ? GYM_FRAME_SIDE : 0);
    return task;
}

/* ---- memory ---- */

enum { ACTIONS, REALS, OBS, FINAL_OBS, REWARDS, INFO, TERMS, TRUNCS, SEEDS, LINES, FRAME, N_TENSORS };

struct tensor {
    const char *name, *dtype;
    size_t size, rows, columns; /* columns 0: a vector */
};

/* Makes the memory, and adds its tensors to the task. */
static enum status make_memory(struct gym_batch *b, cJSON *task, struct error *err)
{
    const char *number = b->n_bytes > 0 ? "u1" : "<f4";
    const size_t size = b->n_bytes > 0 ? 1 : sizeof(float);
    const struct tensor tensors[N_TENSORS] = {
        [ACTIONS] = {"actions", "<i4", 4, b->n, b->n_heads},
        [REALS] = {"reals", "<f4", 4, b->n, b->n_heads},
        [OBS] = {"obs", number, size, b->n, b->row_bytes / size},
        [FINAL_OBS] = {"final_obs", number, size, b->n, b->row_bytes / size},
        [REWARDS] = {"rewards", "<f4", 4, b->n, 0},
        [INFO] = {"info", "<f8", 8, b->n, b->n_info > 0 ? b->n_info : 1},
        [TERMS] = {"terms", "u1", 1, b->n, 0},
        [TRUNCS] = {"truncs", "u1", 1, b->n, 0},
        [SEEDS] = {"seeds", "<u8", 8, b->n, 0},
        [LINES] = {"lines", "<i8", 8, b->n_helpers, sizeof *b->lines / 8},
        [FRAME] = {"frame", "u1", 1, 3 * GYM_FRAME_SIDE * GYM_FRAME_SIDE, 0}, /* of a film */
    };
    cJSON *list = cJSON_AddArrayToObject(task, "tensors");
    size_t at[N_TENSORS] = {0};

    for (int i = 0; i < N_TENSORS - !is_filmed(b->def); i++) {
        const struct tensor *t = &tensors[i];
        cJSON *row = cJSON_CreateArray();
        size_t columns = t->columns > 0 ? t->columns : 1;
        at[i] = b->bytes;
        b->bytes += (t->rows * columns * t->size + MEM_ALIGN - 1) / MEM_ALIGN * MEM_ALIGN;
        cJSON_AddItemToArray(row, cJSON_CreateString(t->name));
        cJSON_AddItemToArray(row, cJSON_CreateString(t->dtype));
        cJSON_AddItemToArray(row, cJSON_CreateNumber((double)at[i]));
        cJSON_AddItemToArray(row, cJSON_CreateNumber((double)t->rows));
        cJSON_AddItemToArray(row, cJSON_CreateNumber((double)t->columns));
        cJSON_AddItemToArray(list, row);
    }
    b->memory_fd = gym_fd_above(memfd_create("trawl-gym", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (b->memory_fd < 0 || ftruncate(b->memory_fd, (off_t)b->bytes) != 0 ||
        fcntl(b->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) /* shrunk, it would be a bus error of ours */
        goto fail;
    b->memory = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->memory_fd, 0);
    if (b->memory == MAP_FAILED)
        goto fail;
    b->actions = (int32_t *)(b->memory + at[ACTIONS]);
    b->reals = (float *)(b->memory + at[REALS]);
    b->obs = b->memory + at[OBS];
    b->final_obs = b->memory + at[FINAL_OBS];
    b->rewards = (float *)(b->memory + at[REWARDS]);
    b->info = (double *)(b->memory + at[INFO]);
    b->terms = (uint8_t *)(b->memory + at[TERMS]);
    b->truncs = (uint8_t *)(b->memory + at[TRUNCS]);
    b->seeds = (uint64_t *)(b->memory + at[SEEDS]);
    b->lines = (struct gym_line *)(b->memory + at[LINES]);
    b->frame = (uint8_t *)(b->memory + at[FRAME]);
    return ST_OK;
fail:
    b->memory = NULL;
    return FAIL(err, ST_NOMEM, "%.1f MB of memory to share with Python do not fit (%s); lower train.total_agents",
                (double)b->bytes / 1e6, strerror(errno));
}

/* ---- life ---- */

static enum status start_helpers(struct gym_batch *b, cJSON *task, struct error *err)
{
    json_add_i64(task, "processes", (int64_t)b->n_helpers);
    json_add_i64(task, "spin_ns", gym_helper_spin_ns());
    for (size_t h = 0; h < b->n_helpers; h++) {
        cJSON_DeleteItemFromObject(task, "process");
        json_add_i64(task, "process", (int64_t)h);
        char *text = json_print(task, false);
        b->lines[h] = (struct gym_line){.now = -1, .awaited = 1, .asleep = 1};
        b->helpers[h].line = &b->lines[h];
        /* A vector environment's steps are longer. Processes for all cores would lose one to a longer look. */
        b->helpers[h].spin_ns = (b->vectors ? 2 : 1) * gym_helper_spin_ns();
        enum status rc = gym_helper_start(&b->helpers[h], b->settings->python, text, b->memory_fd, err);
        mem_free(text);
        TRY(rc);
    }
    for (size_t h = 0; h < b->n_helpers; h++)
        TRY(gym_helper_wait(&b->helpers[h], "while it made", b->settings->timeout_s, err));
    return ST_OK;
}

enum status gym_batch_open(const struct env_def *def, const void *settings, size_t n_envs, void **ret_states,
                           struct error *err)
{
    struct gym_batch *b = mem_alloc(sizeof *b);
    struct env_shape shape = {0};
    char name[GYM_NUMBER_MAX];

    b->def = def;
    b->settings = settings;
    b->memory_fd = -1;
    b->n = n_envs;
    *ret_states = b;
    enum status rc = def->shape(def, settings, &shape, err);
    b->n_heads = (size_t)shape.n_heads;
    b->n_floats = (size_t)(shape.u8 ? shape.n_floats : shape.obs_size);
    b->n_bytes = (size_t)shape.obs_size - b->n_floats;
    b->row_bytes = env_row_bytes(&shape);
    b->n_pixels = (size_t)shape.height * (size_t)shape.width;
    b->n_channels = (size_t)shape.channels;
    for (const char *list = b->settings->info;
         b->n_info < ENV_MAX_NUMBERS && gym_next_number(&list, name, sizeof name);)
        b->info_at[b->n_info++] = gym_number_at(def, name);
    b->vectors = gym_is_vector(def->name, settings);
    b->n_helpers = gym_processes(def->name, settings, &shape);
    if (!b->vectors && b->settings->processes == 0)
        b->n_helpers = gym_spread(b->n_helpers, n_envs);
    b->n_helpers = b->n_helpers < n_envs ? b->n_helpers : n_envs;
    b->helpers = mem_array(b->n_helpers, sizeof *b->helpers);
    for (size_t h = 0; h < b->n_helpers; h++)
        b->helpers[h] = GYM_HELPER_NONE;
    b->tracks = mem_array(n_envs, sizeof *b->tracks);
    b->ends = mem_array(n_envs, 1);
    cJSON *task = gym_task(def, settings, n_envs);
    json_add_i64(task, "n_bytes", (int64_t)b->n_bytes);
    json_add_i64(task, "n_floats", (int64_t)b->n_floats);
    THEN(rc, make_memory(b, task, err));
    THEN(rc, start_helpers(b, task, err));
    cJSON_Delete(task);
    if (rc == ST_OK)
        return ST_OK;
    b->failed.status = rc;
    gym_batch_close(settings, b, n_envs);
    *ret_states = NULL;
    return error_prefix(err, "%s", def->name);
}

void gym_batch_close(const void *settings, void *states, size_t n_envs)
{
    struct gym_batch *b = states;

    (void)settings, (void)n_envs;
    for (size_t h = 0; h < b->n_helpers; h++)
        if (b->helpers[h].socket_fd >= 0)
            (void)shutdown(b->helpers[h].socket_fd, SHUT_WR);
    for (size_t h = 0; h < b->n_helpers; h++)
        gym_helper_stop(&b->helpers[h], b->failed.status == ST_OK ? END_PATIENCE_S : 0.0);
    if (b->memory != NULL)
        (void)munmap(b->memory, b->bytes);
    if (b->memory_fd >= 0)
        close(b->memory_fd);
    mem_free(b->helpers);
    mem_free(b->tracks);
    mem_free(b->ends);
    mem_free(b);
}

enum status gym_batch_failed(const void *states, struct error *err)
{
    const struct gym_batch *b = states;

    return b->failed.status == ST_OK ? ST_OK : FAIL(err, b->failed.status, "%s", b->failed.text);
}

/* ---- playing ---- */

double gym_batch_outside_s(const void *states)
{
    const struct gym_batch *b = states;
    int64_t longest = 0;

    for (size_t h = 0; h < b->n_helpers; h++)
        longest = b->lines[h].busy_ns > longest ? b->lines[h].busy_ns : longest;
    return 1e-9 * (double)longest;
}

static bool has_instances(const struct gym_batch *b, size_t helper, size_t from, size_t to)
{
    if (b->vectors) {
        size_t first = b->n * helper / b->n_helpers, end = b->n * (helper + 1) / b->n_helpers;
        return (first > from ? first : from) < (end < to ? end : to);
    }
    return from + (helper + b->n_helpers - from % b->n_helpers) % b->n_helpers < to;
}

/* All helpers with instances in [from, to) do it at the same time. */
static enum status ask_all(struct gym_batch *b, char what, size_t from, size_t to, struct error *err)
{
    for (size_t h = 0; h < b->n_helpers; h++)
        if (has_instances(b, h, from, to))
            TRY(gym_helper_send(&b->helpers[h], (struct gym_command){what == 's', (int64_t)from, (int64_t)to}, err));
    return ST_OK;
}

static enum status wait_all(struct gym_batch *b, char what, size_t from, size_t to, struct error *err)
{
    for (size_t h = 0; h < b->n_helpers; h++)
        if (has_instances(b, h, from, to))
            TRY(gym_helper_wait(&b->helpers[h], what == 'r' ? "in the reset of" : "in the step of",
                                b->settings->timeout_s, err));
    return ST_OK;
}

/* Where instances reset late, the last observation of an episode is acted on once more, for nothing; that is an episode
 * of one step of the same end. One that resets otherwise and does not say so would lose the first steps of its
 * episodes. */
static enum status note_ends(struct gym_batch *b, size_t from, size_t to, struct error *err)
{
    for (size_t i = from; i < to; i++) {
        bool over = b->ends[i] != NOT_ENDED;
        if (over && (b->rewards[i] != 0.0f || b->terms[i] != 0 || b->truncs[i] != 0))
            return FAIL(err, ST_CONFIG,
                        "instance %zu has a reward or an end in the step after one that ended an episode, which only "
                        "resets in the mode next-step; metadata[\"autoreset_mode\"] names another mode",
                        i);
        uint8_t end = over ? b->ends[i] : b->terms[i] != 0 ? TERMINATED : b->truncs[i] != 0 ? TRUNCATED : NOT_ENDED;
        b->terms[i] = end == TERMINATED;
        b->truncs[i] = end == TRUNCATED;
        b->ends[i] = over ? NOT_ENDED : end;
        if (b->ends[i] == TRUNCATED)
            memcpy(b->final_obs + i * b->row_bytes, b->obs + i * b->row_bytes, b->row_bytes);
    }
    return ST_OK;
}

/* Did the step that was just answered only reset instance i? */
static bool only_reset(const struct gym_batch *b, size_t i)
{
    return b->lines[0].late != 0 && b->ends[i] == NOT_ENDED && (b->terms[i] != 0 || b->truncs[i] != 0);
}

static enum status refuse_info(const struct gym_batch *b, size_t i, size_t k, struct error *err)
{
    const char *list = b->settings->info;
    char name[GYM_NUMBER_MAX];

    for (size_t at = 0; gym_next_number(&list, name, sizeof name) && at < k;)
        at++;
    return FAIL(err, ST_NUMERIC, "'%s' of env.info is %g in the info of instance %zu", name + strlen("env/"),
                b->info[i * b->n_info + k], i);
}

static enum status check_numbers(const struct gym_batch *b, size_t from, size_t to, bool stepped, struct error *err)
{
    for (size_t i = from; i < to; i++) {
        size_t floats = (i + 1) * b->row_bytes - b->n_floats * sizeof(float);
        const float *obs = (const float *)(b->obs + floats), *last = (const float *)(b->final_obs + floats);
        bool cut = stepped && b->truncs[i] != 0;
        for (size_t k = 0; k < b->n_floats; k++)
            if (!isfinite(obs[k]) || (cut && !isfinite(last[k])))
                return FAIL(
                    err, ST_NUMERIC,
                    "number %zu of an observation of instance %zu is %g; 32-bit numbers are needed, none of them "
                    "infinite, NaN or None",
                    b->n_bytes + k, i, (double)(isfinite(obs[k]) ? last[k] : obs[k]));
        for (size_t k = 0; stepped && (cut || b->terms[i] != 0) && k < b->n_info; k++)
            if (!isfinite(b->info[i * b->n_info + k]))
                return refuse_info(b, i, k, err);
        if (stepped && !isfinite(b->rewards[i]))
            return FAIL(err, ST_NUMERIC, "a reward of instance %zu is %g; a finite number is needed", i,
                        (double)b->rewards[i]);
    }
    return ST_OK;
}

static void ask(struct gym_batch *b, char what, size_t from, size_t to)
{
    if (b->failed.status == ST_OK && ask_all(b, what, from, to, &b->failed) != ST_OK)
        (void)error_prefix(&b->failed, "%s", b->def->name);
}

/* False: it failed, now or before. */
static bool answered(struct gym_batch *b, char what, size_t from, size_t to)
{
    if (b->failed.status != ST_OK)
        return false;
    if (wait_all(b, what, from, to, &b->failed) == ST_OK &&
        (what != 's' || b->lines[0].late == 0 || note_ends(b, from, to, &b->failed) == ST_OK) &&
        check_numbers(b, from, to, what == 's', &b->failed) == ST_OK)
        return true;
    (void)error_prefix(&b->failed, "%s", b->def->name);
    return false;
}

void gym_batch_reset(const void *settings, void *states, struct rng root, size_t from, size_t to)
{
    struct gym_batch *b = states;

    (void)settings;
    for (size_t i = from; i < to; i++) {
        b->seeds[i] = rng_split(root, i).key & INT32_MAX; /* some environments take no larger one */
        b->tracks[i] = (struct env_track){0};
        b->ends[i] = NOT_ENDED;
    }
    for (size_t h = 0; h < b->n_helpers; h++)
        b->lines[h].busy_ns = 0;
    ask(b, 'r', from, to);
    (void)answered(b, 'r', from, to);
}

#define CHANNELS_LAST(TYPE, N)                                                                                         \
    for (size_t pixel = 0; pixel < n_pixels; pixel++)                                                                  \
        for (size_t channel = 0; channel < (N); channel++)                                                             \
    ((TYPE *)to)[pixel * (N) + channel] = ((const TYPE *)from)[channel * n_pixels + pixel]

/* An image whose channels lie one after another; common numbers of them are constants, with which
 * compilers vectorise it. */
static void channels_last(void *restrict to, const void *restrict from, size_t n_pixels, size_t n_channels, bool bytes)
{
    if (!bytes)
        CHANNELS_LAST(float, n_channels);
    else if (n_channels == 4)
        CHANNELS_LAST(uint8_t, 4);
    else if (n_channels == 3)
        CHANNELS_LAST(uint8_t, 3);
    else if (n_channels == 2)
        CHANNELS_LAST(uint8_t, 2);
    else
        CHANNELS_LAST(uint8_t, n_channels);
}

/* Rows [from, to), as the game's shape says. */
static void copy_rows(const struct gym_batch *b, char *to_rows, const char *from_rows, size_t from, size_t to)
{
    size_t row = b->row_bytes, image = b->n_pixels * b->n_channels * (b->n_bytes > 0 ? 1 : sizeof(float));

    if (b->lines[0].planes == 0 || b->n_channels == 1) {
        memcpy(to_rows + from * row, from_rows + from * row, (to - from) * row);
        return;
    }
    for (size_t i = from; i < to; i++) {
        channels_last(to_rows + i * row, from_rows + i * row, b->n_pixels, b->n_channels, b->n_bytes > 0);
        memcpy(to_rows + i * row + image, from_rows + i * row + image, row - image);
    }
}

void gym_batch_observe(const void *settings, const void *states, float *obs, uint8_t *mask, size_t from, size_t to)
{
    const struct gym_batch *b = states;

    (void)settings, (void)mask;
    copy_rows(b, (char *)obs, b->obs, from, to);
}

static float perf_of(const struct gym_settings *s, double score)
{
    if (!gym_has_range(s))
        return NAN;
    return (float)fmin(fmax((score - s->score_min) / (s->score_max - s->score_min), 0.0), 1.0);
}

static void keep_log(struct gym_batch *b, struct env_log *logs, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        struct env_track *track = &b->tracks[i];
        if (only_reset(b, i))
            continue;
        track->ep_return += (double)b->rewards[i];
        track->ep_length += 1.0;
        if (b->terms[i] == 0 && b->truncs[i] == 0)
            continue;
        if (!(logs[i].limit > 0.0) || logs[i].episodes < logs[i].limit) {
            for (size_t k = 0; k < b->n_info; k++)
                b->info_sums[k] += b->info[i * b->n_info + k];
            b->info_episodes += 1.0;
        }
        env_log_add(&logs[i], track, (float)track->ep_return, perf_of(b->settings, track->ep_return));
        *track = (struct env_track){0};
    }
}

double gym_batch_take_numbers(void *states, size_t n_envs, double *ret_sums)
{
    struct gym_batch *b = states;
    double episodes = b->info_episodes;

    (void)n_envs;
    for (size_t i = 0; i < b->def->n_numbers && i < ENV_MAX_NUMBERS; i++)
        ret_sums[i] = NAN; /* of other settings */
    for (size_t k = 0; k < b->n_info; k++)
        if (b->info_at[k] < ENV_MAX_NUMBERS)
            ret_sums[b->info_at[k]] = b->info_sums[k];
    memset(b->info_sums, 0, sizeof b->info_sums);
    b->info_episodes = 0.0;
    return episodes;
}

void gym_batch_begin(const void *settings, void *states, const struct env_io *io, size_t from, size_t to)
{
    struct gym_batch *b = states;
    size_t n = to - from, heads = from * b->n_heads;

    (void)settings;
    memcpy(b->actions + heads, io->actions + heads, n * b->n_heads * sizeof *b->actions);
    if (io->reals != NULL)
        memcpy(b->reals + heads, io->reals + heads, n * b->n_heads * sizeof *b->reals);
    ask(b, 's', from, to);
}

void gym_batch_step(const void *settings, void *states, struct env_log *logs, const struct env_io *io, size_t from,
                    size_t to)
{
    struct gym_batch *b = states;
    size_t n = to - from;

    if (!answered(b, 's', from, to))
        return;
    memcpy(io->rewards + from, b->rewards + from, n * sizeof *io->rewards);
    memcpy(io->terms + from, b->terms + from, n);
    memcpy(io->truncs + from, b->truncs + from, n);
    gym_batch_observe(settings, b, io->obs, NULL, from, to);
    for (size_t i = from; i < to && io->final_obs != NULL; i++)
        if (b->truncs[i] != 0)
            copy_rows(b, (char *)io->final_obs, b->final_obs, i, i + 1);
    keep_log(b, logs, from, to);
}

size_t gym_batch_film_bytes(const void *states, size_t n_envs)
{
    (void)states, (void)n_envs;
    return sizeof(struct gym_frame);
}

/* Its process is the user's. */
static int32_t side_of(int64_t written)
{
    return (int32_t)(written < 0 ? 0 : written > GYM_FRAME_SIDE ? GYM_FRAME_SIDE : written);
}

void gym_batch_film_save(const void *states, size_t n_envs, void *bytes)
{
    const struct gym_batch *b = states;
    struct gym_frame *frame = bytes;

    (void)n_envs;
    frame->height = side_of(b->lines[0].height);
    frame->width = side_of(b->lines[0].width);
    for (int i = 0; i < frame->height * frame->width; i++)
        frame->pixels[i] =
            (uint32_t)b->frame[3 * i] << 16 | (uint32_t)b->frame[3 * i + 1] << 8 | (uint32_t)b->frame[3 * i + 2];
}
