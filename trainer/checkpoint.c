/* checkpoint.c - the whole state of a run in one file: saved and loaded, the run continues with the same bytes.
 *
 *   header    struct ckpt_header: magic, version, byte order, length of the file, number of sections, CRC-32 of the
 *             header before it and of all that follows the header
 *   sections  struct ckpt_entry (name, length), then the bytes, padded to 16
 * Invariants: (1) a file is written whole or not at all (file_write_all); (2) a load checks the whole file and every
 * section against the trainer before it changes anything. */
#include "trainer/trainer_priv.h"

#include "base/config/config.h"
#include "base/file.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CKPT_MAGIC "TRAWLCKP"
#define CKPT_VERSION 2 /* of 1 the policy alone can be read */
#define CKPT_BYTE_ORDER 0x01020304u
#define CKPT_MAX_BYTES ((size_t)1 << 36)
#define CKPT_ALIGN 16
#define CKPT_MAX_SECTIONS 24

struct ckpt_header {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t file_bytes;
    uint32_t n_sections, crc; /* crc stays last */
};

struct ckpt_entry {
    char name[24];
    uint64_t bytes;
};

#define CKPT_FIRST_HEADS 8 /* where older files have them */

/* What must agree between a file and a trainer. */
struct ckpt_shape {
    char env[32];
    int64_t obs_size, n_agents, n_heads, head_sizes[CKPT_FIRST_HEADS], state_size;
    int64_t hidden_size, num_layers, core, activation, total_agents, optimizer;
    int64_t encoder, conv_layers, conv_channels, conv_stride; /* not in the oldest files; 0 with a linear encoder */
    int64_t encoder_activation; /* not in older files: it was the activation */
    int64_t action_std, action_bounds; /* not in older files; 0 where every action is a choice */
    int64_t norm_obs; /* not in older files */
    int64_t value_bins, value_max; /* not in older files; 0 where the value is a number */
    int64_t frame_stack; /* not in older files: it was 1 */
    int64_t more_head_sizes[ENV_MAX_HEADS - CKPT_FIRST_HEADS]; /* not in older files: there were none */
    int64_t value_net; /* not in older files: it was shared */
};

enum ckpt_place { CKPT_HOST, CKPT_DEVICE, CKPT_ENV };

struct ckpt_section {
    const char *name;
    enum ckpt_place place;
    void *at;
    size_t bytes;
};

struct ckpt_list {
    struct ckpt_section sections[CKPT_MAX_SECTIONS];
    size_t n;
};

static void ckpt_list_add(struct ckpt_list *list, const char *name, enum ckpt_place place, void *at, size_t bytes)
{
    list->sections[list->n++] = (struct ckpt_section){.name = name, .place = place, .at = at, .bytes = bytes};
}

/* (N, D): what comes before the next decision. */
static void *last_obs(const struct trainer *t)
{
    return policy_obs_at(&t->policy, t->roll.obs, t->horizon * t->n_agents);
}

/* All sections but the config's text: the first is the shape. */
static void ckpt_list_trainer(struct ckpt_list *list, struct trainer *t, struct ckpt_shape *shape)
{
    size_t n = t->policy.n_params * sizeof(float), N = t->n_agents, last = t->horizon * N;

    list->n = 0;
    ckpt_list_add(list, "shape", CKPT_HOST, shape, sizeof *shape);
    ckpt_list_add(list, "weights", CKPT_DEVICE, t->params, n);
    ckpt_list_add(list, "moment1", CKPT_DEVICE, t->moment1, n);
    if (t->moment2 != NULL)
        ckpt_list_add(list, "moment2", CKPT_DEVICE, t->moment2, n);
    ckpt_list_add(list, "optimiser_step", CKPT_DEVICE, t->opt_step, sizeof *t->opt_step);
    ckpt_list_add(list, "rng_sample", CKPT_DEVICE, t->rng_sample, sizeof *t->rng_sample);
    ckpt_list_add(list, "rng_segments", CKPT_DEVICE, t->rng_segments, sizeof *t->rng_segments);
    ckpt_list_add(list, "counters", CKPT_HOST, &t->count, sizeof t->count);
    ckpt_list_add(list, "window", CKPT_HOST, &t->window, sizeof t->window);
    ckpt_list_add(list, "env", CKPT_ENV, NULL, kern_env_state_bytes(t->env));
    ckpt_list_add(list, "reset", CKPT_DEVICE, t->roll.reset + last, N);
    if (t->policy.recurrent)
        ckpt_list_add(list, "state", CKPT_DEVICE, t->roll.h,
                      t->policy.n_layers * N * t->policy.state_size * sizeof(float));
    if (t->policy.n_frames > 1)
        ckpt_list_add(list, "frames", CKPT_DEVICE, last_obs(t), N * t->policy.row_bytes);
    if (t->policy.set.norm_obs) {
        ckpt_list_add(list, "obs_sums", CKPT_DEVICE, t->norm_of.obs_sums, 3 * t->norm_of.n_numbers * sizeof(double));
        ckpt_list_add(list, "obs_scale", CKPT_DEVICE, t->norm_of.obs_scale, 2 * t->norm_of.n_numbers * sizeof(float));
    }
    if (t->set.e3b_coef > 0.0) {
        const size_t F = KERN_NOVELTY_FEATURES * sizeof(float);
        ckpt_list_add(list, "novelty_features", CKPT_DEVICE, t->novelty.projection, (t->policy.obs_size + 1) * F);
        ckpt_list_add(list, "novelty_known", CKPT_DEVICE, t->novelty.known, N * KERN_NOVELTY_FEATURES * F);
    }
    if (t->set.scale_reward) {
        ckpt_list_add(list, "reward_sums", CKPT_DEVICE, t->norm_of.reward_sums, 3 * sizeof(double));
        ckpt_list_add(list, "reward_carry", CKPT_DEVICE, t->norm_of.carry, N * sizeof(float));
    }
}

static void ckpt_shape_fill(const struct trainer *t, struct ckpt_shape *s)
{
    memset(s, 0, sizeof *s);
    strncpy(s->env, t->def->name, sizeof s->env - 1);
    s->obs_size = t->shape.obs_size;
    s->n_agents = t->shape.n_agents;
    s->n_heads = t->shape.n_heads;
    for (int i = 0; i < t->shape.n_heads; i++)
        *(i < CKPT_FIRST_HEADS ? &s->head_sizes[i] : &s->more_head_sizes[i - CKPT_FIRST_HEADS]) =
            t->shape.head_sizes[i];
    s->state_size = (int64_t)t->def->state_size;
    s->hidden_size = t->policy.set.hidden_size;
    s->value_net = t->policy.set.value_net;
    s->num_layers = (int64_t)t->policy.n_layers;
    s->core = t->policy.n_layers > 0 ? t->policy.set.core : POLICY_CORE_NONE;
    s->activation = t->policy.act;
    s->encoder_activation = (int64_t)t->policy.encoder_act + POLICY_ACTIVATION_NONE;
    if (t->policy.heads.n_reals > 0) {
        s->action_std = t->policy.set.action_std;
        s->action_bounds = t->policy.set.action_bounds;
    }
    s->norm_obs = t->policy.set.norm_obs;
    s->value_bins = t->policy.set.value_bins;
    s->value_max = t->policy.set.value_bins > 0 ? t->policy.set.value_max : 0;
    s->frame_stack = (int64_t)t->policy.n_frames;
    s->total_agents = (int64_t)t->n_agents;
    s->optimizer = t->set.optimizer;
    if (t->policy.n_convs > 0) {
        s->encoder = t->policy.set.encoder;
        s->conv_layers = t->policy.set.conv_layers;
        s->conv_channels = t->policy.set.conv_channels;
        s->conv_stride = t->policy.set.conv_stride;
    }
}

/* A field's number as people write it: a choice by its word. */
static void shape_text(const char *name, int64_t number, char *buf, size_t size)
{
    const struct opt_table *const tables[] = {&policy_opt_table, &train_opt_table};

    snprintf(buf, size, "%" PRId64, number);
    for (size_t t = 0; t < 2; t++) {
        size_t n = strlen(tables[t]->section);
        for (size_t i = 0; strncmp(name, tables[t]->section, n) == 0 && name[n] == '.' && i < tables[t]->n_defs; i++)
            if (strcmp(tables[t]->defs[i].key, name + n + 1) == 0)
                config_format_value(&tables[t]->defs[i], (double)number, buf, size);
    }
}

static enum status ckpt_shape_compare(const char *path, const struct ckpt_shape *file, const struct ckpt_shape *mine,
                                      struct error *err)
{
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {
        {"the game's observation size", offsetof(struct ckpt_shape, obs_size)},
        {"the game's agents per instance", offsetof(struct ckpt_shape, n_agents)},
        {"the game's action heads", offsetof(struct ckpt_shape, n_heads)},
        {"the game's first head size", offsetof(struct ckpt_shape, head_sizes)},
        {"the game's state size", offsetof(struct ckpt_shape, state_size)},
        {"policy.hidden_size", offsetof(struct ckpt_shape, hidden_size)},
        {"policy.num_layers", offsetof(struct ckpt_shape, num_layers)},
        {"policy.core", offsetof(struct ckpt_shape, core)},
        {"policy.activation", offsetof(struct ckpt_shape, activation)},
        {"policy.encoder_activation", offsetof(struct ckpt_shape, encoder_activation)},
        {"train.total_agents", offsetof(struct ckpt_shape, total_agents)},
        {"train.optimizer", offsetof(struct ckpt_shape, optimizer)},
        {"policy.encoder", offsetof(struct ckpt_shape, encoder)},
        {"policy.conv_layers", offsetof(struct ckpt_shape, conv_layers)},
        {"policy.conv_channels", offsetof(struct ckpt_shape, conv_channels)},
        {"policy.conv_stride", offsetof(struct ckpt_shape, conv_stride)},
        {"policy.action_std", offsetof(struct ckpt_shape, action_std)},
        {"policy.action_bounds", offsetof(struct ckpt_shape, action_bounds)},
        {"policy.norm_obs", offsetof(struct ckpt_shape, norm_obs)},
        {"policy.value_net", offsetof(struct ckpt_shape, value_net)},
        {"policy.value_bins", offsetof(struct ckpt_shape, value_bins)},
        {"policy.value_max", offsetof(struct ckpt_shape, value_max)},
        {"env.frame_stack", offsetof(struct ckpt_shape, frame_stack)},
    };

    if (strncmp(file->env, mine->env, sizeof file->env) != 0)
        return FAIL(err, ST_CONFIG, "%s: was made by training %.31s, this run plays %.31s; use its own config", path,
                    file->env, mine->env);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char was[64], is[64];
        int64_t a, b;
        memcpy(&a, (const char *)file + fields[i].offset, sizeof a);
        memcpy(&b, (const char *)mine + fields[i].offset, sizeof b);
        bool is_option = strchr(fields[i].name, '.') != NULL;
        if (a == b)
            continue;
        shape_text(fields[i].name, a, was, sizeof was);
        shape_text(fields[i].name, b, is, sizeof is);
        return FAIL(err, ST_CONFIG, "%s: was made with %s %s, this run has %s; use the checkpoint's own config%s%s%s%s",
                    path, fields[i].name, was, is, is_option ? ", or --" : "", is_option ? fields[i].name : "",
                    is_option ? " " : "", is_option ? was : "");
    }
    if (memcmp(file, mine, sizeof *file) != 0)
        return FAIL(err, ST_CONFIG,
                    "%s: was made with other sizes of the game's action heads; use the checkpoint's own config", path);
    return ST_OK;
}

/* From a section of `bytes` bytes, of this version or an older one; false: it is none. */
static bool ckpt_shape_read(struct ckpt_shape *shape, const char *at, size_t bytes)
{
    const size_t with_activation = offsetof(struct ckpt_shape, action_std);
    const size_t with_frames = offsetof(struct ckpt_shape, frame_stack);

    if (at == NULL ||
        (bytes != sizeof *shape && bytes != offsetof(struct ckpt_shape, more_head_sizes) && bytes != with_frames &&
         bytes != offsetof(struct ckpt_shape, value_bins) && bytes != with_activation &&
         bytes != offsetof(struct ckpt_shape, encoder_activation) && bytes != offsetof(struct ckpt_shape, encoder)))
        return false;
    memset(shape, 0, sizeof *shape);
    memcpy(shape, at, bytes);
    if (bytes <= with_frames)
        shape->frame_stack = 1;
    if (bytes < with_activation)
        shape->encoder_activation = shape->activation + POLICY_ACTIVATION_NONE;
    return true;
}

static size_t ckpt_padded(size_t bytes)
{
    return (bytes + CKPT_ALIGN - 1) / CKPT_ALIGN * CKPT_ALIGN;
}

static uint32_t ckpt_crc(const char *bytes, size_t n)
{
    uint32_t crc = file_crc32(0, bytes, offsetof(struct ckpt_header, crc));
    return file_crc32(crc, bytes + sizeof(struct ckpt_header), n - sizeof(struct ckpt_header));
}

/* ---- save ---- */

static enum status ckpt_pack(struct trainer *t, const struct ckpt_list *list, char *bytes, size_t n, struct error *err)
{
    struct ckpt_header header = {.version = CKPT_VERSION, .byte_order = CKPT_BYTE_ORDER, .file_bytes = n};
    char *at = bytes + sizeof header;

    memcpy(header.magic, CKPT_MAGIC, sizeof header.magic);
    header.n_sections = (uint32_t)list->n;
    for (size_t i = 0; i < list->n; i++) {
        const struct ckpt_section *section = &list->sections[i];
        struct ckpt_entry entry = {.bytes = section->bytes};

        strncpy(entry.name, section->name, sizeof entry.name - 1);
        memcpy(at, &entry, sizeof entry);
        at += sizeof entry;
        if (section->place == CKPT_DEVICE)
            TRY(kern_download(t->kern, at, section->at, section->bytes, err));
        else if (section->place == CKPT_ENV)
            TRY(kern_env_save(t->kern, t->env, at, err));
        else
            memcpy(at, section->at, section->bytes);
        at += ckpt_padded(section->bytes);
    }
    memcpy(bytes, &header, sizeof header);
    header.crc = ckpt_crc(bytes, n);
    memcpy(bytes, &header, sizeof header);
    return ST_OK;
}

enum status trainer_save(struct trainer *t, const char *path, const char *config_text, struct error *err)
{
    size_t n = sizeof(struct ckpt_header), text_bytes = strlen(config_text) + 1;
    struct ckpt_shape shape;
    struct ckpt_list list;
    enum status rc;
    char *text, *bytes;

    if (t->failed)
        return FAIL(err, ST_NUMERIC,
                    "%s: not written, training had failed with NaN or Inf; the last checkpoint is kept", path);
    TRY(trainer_sync(t, err));
    if (t->running)
        trainer_tick(t);
    ckpt_shape_fill(t, &shape);
    ckpt_list_trainer(&list, t, &shape);
    text = mem_strdup(config_text);
    ckpt_list_add(&list, "config", CKPT_HOST, text, text_bytes);
    for (size_t i = 0; i < list.n; i++)
        n += sizeof(struct ckpt_entry) + ckpt_padded(list.sections[i].bytes);
    bytes = mem_try_alloc(n);
    rc = bytes != NULL ? ckpt_pack(t, &list, bytes, n, err)
                       : FAIL(err, ST_NOMEM, "%s: no memory for a checkpoint of %zu bytes", path, n);
    if (rc == ST_OK)
        rc = file_write_all(path, bytes, n, err);
    mem_free(bytes);
    mem_free(text);
    trainer_tick_skip(t);
    return rc;
}

/* ---- load ---- */

/* Reads and checks everything but what the sections mean. */
static enum status ckpt_read(const char *path, char **ret_bytes, size_t *ret_n, struct error *err)
{
    struct ckpt_header header;
    enum status rc = ST_OK;
    char *bytes = NULL;
    size_t n;

    TRY(file_read_regular(path, CKPT_MAX_BYTES, &bytes, &n, err));
    if (n < sizeof header.magic || memcmp(bytes, CKPT_MAGIC, sizeof header.magic) != 0) {
        rc = FAIL(
            err, ST_CORRUPT,
            "%s: is not a Trawl checkpoint (its first 8 bytes are not %s); give a .ckpt file that `trawl train` wrote",
            path, CKPT_MAGIC);
        goto fail;
    }
    if (n < sizeof header) {
        rc = FAIL(err, ST_CORRUPT, "%s: is cut off after %zu bytes, within its header; use an earlier checkpoint", path,
                  n);
        goto fail;
    }
    memcpy(&header, bytes, sizeof header);
    if (header.byte_order != CKPT_BYTE_ORDER)
        rc = FAIL(err, ST_VERSION, "%s: was written on a machine of the other byte order; load it there", path);
    else if (header.version > CKPT_VERSION)
        rc = FAIL(err, ST_VERSION,
                  "%s: has checkpoint version %" PRIu32 ", this program reads up to %d; use a newer trawl", path,
                  header.version, CKPT_VERSION);
    else if (header.file_bytes != n)
        rc = FAIL(err, ST_CORRUPT, "%s: is %zu bytes, its header says %" PRIu64 ": %s; use an earlier checkpoint", path,
                  n, header.file_bytes, n < header.file_bytes ? "cut off" : "something was appended");
    else if (header.crc != ckpt_crc(bytes, n))
        rc = FAIL(err, ST_CORRUPT, "%s: its checksum does not match, the file is damaged; use an earlier checkpoint",
                  path);
    if (rc != ST_OK)
        goto fail;
    *ret_bytes = bytes;
    *ret_n = n;
    return ST_OK;
fail:
    mem_free(bytes);
    return rc;
}

/* The bytes of a section, NULL if the file has none of that name. Lengths are checked although the CRC agreed. */
static char *ckpt_find(char *bytes, size_t n, const char *name, size_t *ret_bytes)
{
    size_t at = sizeof(struct ckpt_header);

    while (n - at >= sizeof(struct ckpt_entry)) {
        struct ckpt_entry entry;
        memcpy(&entry, bytes + at, sizeof entry);
        at += sizeof entry;
        if (entry.bytes > n - at || ckpt_padded(entry.bytes) > n - at)
            return NULL;
        if (strncmp(entry.name, name, sizeof entry.name) == 0) {
            *ret_bytes = entry.bytes;
            return bytes + at;
        }
        at += ckpt_padded(entry.bytes);
    }
    return NULL;
}

/* The observations (of several frames: the newest frames) before the next decision as the games give them, normalised by
 * the scale of now. */
static void observe_again(struct trainer *t)
{
    size_t last = t->horizon * t->n_agents;
    void *obs = t->roll.frame != NULL ? t->roll.frame : last_obs(t);

    t->ops->env_observe(t->kern, t->env, obs, t->roll.mask != NULL ? t->roll.mask + last * t->policy.n_logits : NULL);
    normalise_apply(t, obs, t->n_agents);
}

static enum status ckpt_unpack(struct trainer *t, const char *path, char *bytes, size_t n, struct error *err)
{
    size_t got;
    struct ckpt_header header;
    struct ckpt_shape shape, mine;
    struct ckpt_list list;
    char *at;

    memcpy(&header, bytes, sizeof header);
    if (header.version < CKPT_VERSION)
        return FAIL(err, ST_VERSION,
                    "%s: is of an older Trawl (checkpoint version %" PRIu32 ", this program resumes %d): `trawl eval` "
                    "plays its policy; train again, or resume it with the older program",
                    path, header.version, CKPT_VERSION);
    ckpt_shape_fill(t, &mine);
    ckpt_list_trainer(&list, t, &shape);
    at = ckpt_find(bytes, n, "shape", &got);
    if (!ckpt_shape_read(&shape, at, got))
        return FAIL(err, ST_CORRUPT, "%s: has no valid section \"shape\"; use another checkpoint", path);
    TRY(ckpt_shape_compare(path, &shape, &mine, err));
    for (size_t i = 1; i < list.n; i++) { /* first look at everything; the shape was looked at */
        at = ckpt_find(bytes, n, list.sections[i].name, &got);
        if (at == NULL || got != list.sections[i].bytes)
            return FAIL(err, ST_CORRUPT, "%s: section \"%s\" is %s, %zu bytes were expected; use another checkpoint",
                        path, list.sections[i].name, at == NULL ? "missing" : "of another length",
                        list.sections[i].bytes);
    }
    for (size_t i = 1; i < list.n; i++) {
        const struct ckpt_section *section = &list.sections[i];
        at = ckpt_find(bytes, n, section->name, &got);
        if (section->place == CKPT_DEVICE)
            TRY(kern_upload(t->kern, section->at, at, section->bytes, err));
        else if (section->place == CKPT_ENV)
            TRY(kern_env_load(t->kern, t->env, at, err));
        else
            memcpy(section->at, at, section->bytes);
    }
    t->failed = false;
    t->settled_wall_s = t->begun_wall_s = t->count.wall_s;
    trainer_weights_cast(t);
    observe_again(t);
    if (t->def->open != NULL && t->def->saved_bytes == NULL) /* new episodes: the file's frames are of others */
        frames_stack(t, last_obs(t), NULL, t->roll.frame, NULL, NULL, t->n_agents);
    return kern_sync(t->kern, err); /* uploads may still read from bytes */
}

enum status trainer_load(struct trainer *t, const char *path, struct error *err)
{
    enum status rc;
    char *bytes = NULL;
    size_t n = 0;

    TRY(ckpt_read(path, &bytes, &n, err));
    t->n_collected = t->n_issued; /* what was issued before counts no more */
    t->unsettled_n = 0;
    rc = ckpt_unpack(t, path, bytes, n, err);
    mem_free(bytes);
    return rc;
}

/* A section for the device that must be of `want` bytes. */
static enum status ckpt_upload(struct trainer *t, const char *path, char *bytes, size_t n, const char *name, void *to,
                               size_t want, struct error *err)
{
    size_t got = 0;
    const char *at = ckpt_find(bytes, n, name, &got);

    if (at == NULL || got != want)
        return FAIL(err, ST_CORRUPT, "%s: section \"%s\" is not of %zu bytes; use another checkpoint", path, name,
                    want);
    return kern_upload(t->kern, to, at, want, err);
}

/* The policy of a file, which must be of the trainer's shape. begin: for a training, maybe of another game. */
static enum status ckpt_load_policy(struct trainer *t, const char *path, char *bytes, size_t n, bool begin,
                                    struct error *err)
{
    size_t got = 0, D = t->norm_of.n_numbers;
    struct ckpt_shape shape, mine;
    char *at = ckpt_find(bytes, n, "shape", &got);

    ckpt_shape_fill(t, &mine);
    if (!ckpt_shape_read(&shape, at, got))
        return FAIL(err, ST_CORRUPT, "%s: has no valid section \"shape\"; use another checkpoint", path);
    shape.total_agents = mine.total_agents; /* of the training, not of the policy */
    shape.state_size = mine.state_size;
    shape.optimizer = mine.optimizer;
    if (begin) {
        memcpy(shape.env, mine.env, sizeof shape.env);
        shape.n_agents = mine.n_agents;
    }
    TRY(ckpt_shape_compare(path, &shape, &mine, err));
    TRY(ckpt_upload(t, path, bytes, n, "weights", t->params, t->policy.n_params * sizeof(float), err));
    if (t->policy.set.norm_obs)
        TRY(ckpt_upload(t, path, bytes, n, "obs_scale", t->norm_of.obs_scale, 2 * D * sizeof(float), err));
    if (t->policy.set.norm_obs && begin)
        TRY(ckpt_upload(t, path, bytes, n, "obs_sums", t->norm_of.obs_sums, 3 * D * sizeof(double), err));
    TRY(kern_sync(t->kern, err)); /* the uploads may still read from bytes */
    trainer_weights_cast(t);
    return ST_OK;
}

static enum status ckpt_read_policy(struct trainer *t, const char *path, bool begin, struct error *err)
{
    char *bytes = NULL;
    size_t n = 0;
    enum status rc;

    TRY(trainer_sync(t, err));
    TRY(ckpt_read(path, &bytes, &n, err));
    rc = ckpt_load_policy(t, path, bytes, n, begin, err);
    mem_free(bytes);
    return rc;
}

enum status trainer_load_weights(struct trainer *t, const char *path, struct error *err)
{
    return ckpt_read_policy(t, path, false, err);
}

enum status trainer_begin_from(struct trainer *t, const char *path, struct error *err)
{
    if (ckpt_read_policy(t, path, true, err) != ST_OK)
        return error_prefix(err, "train.from_policy");
    if (t->policy.set.norm_obs) {
        observe_again(t);
        frames_stack(t, last_obs(t), NULL, t->roll.frame, NULL, NULL, t->n_agents);
    }
    return ST_OK;
}

bool checkpoint_is_one(const char *path)
{
    char magic[sizeof CKPT_MAGIC] = "";
    struct stat info;
    FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
    bool is_one = file != NULL && fread(magic, 1, sizeof CKPT_MAGIC - 1, file) == sizeof CKPT_MAGIC - 1 &&
                  memcmp(magic, CKPT_MAGIC, sizeof CKPT_MAGIC - 1) == 0;

    if (file != NULL)
        fclose(file);
    return is_one;
}

enum status checkpoint_read_config(const char *path, char **ret_text, struct error *err)
{
    enum status rc = ST_OK;
    char *bytes = NULL, *text;
    size_t n = 0, got = 0;

    TRY(ckpt_read(path, &bytes, &n, err));
    text = ckpt_find(bytes, n, "config", &got);
    if (text == NULL || got == 0 || text[got - 1] != '\0')
        rc = FAIL(err, ST_CORRUPT, "%s: has no valid section \"config\"; use another checkpoint", path);
    else
        *ret_text = mem_strdup(text);
    mem_free(bytes);
    return rc;
}

enum status checkpoint_copy(const char *from, const char *to, const char *config_text, struct error *err)
{
    size_t text_bytes = strlen(config_text) + 1, padded = ckpt_padded(text_bytes), n = 0, got = 0, at;
    struct ckpt_header header;
    struct ckpt_entry entry;
    char *bytes = NULL, *text;
    enum status rc;

    TRY(ckpt_read(from, &bytes, &n, err));
    text = ckpt_find(bytes, n, "config", &got);
    memcpy(&header, bytes, sizeof header);
    if (text == NULL || (size_t)(text - bytes) + ckpt_padded(got) != n || header.version != CKPT_VERSION) {
        mem_free(bytes);
        return FAIL(err, ST_VERSION, "%s: was written by another version, and cannot be continued", from);
    }
    at = (size_t)(text - bytes);
    bytes = mem_grow(bytes, n, at + padded, 1);
    memset(bytes + at, 0, padded);
    memcpy(bytes + at, config_text, text_bytes);
    memcpy(&entry, bytes + at - sizeof entry, sizeof entry);
    entry.bytes = text_bytes;
    memcpy(bytes + at - sizeof entry, &entry, sizeof entry);
    header.file_bytes = at + padded;
    memcpy(bytes, &header, sizeof header);
    header.crc = ckpt_crc(bytes, at + padded);
    memcpy(bytes, &header, sizeof header);
    rc = file_write_all(to, bytes, at + padded, err);
    mem_free(bytes);
    return rc;
}
