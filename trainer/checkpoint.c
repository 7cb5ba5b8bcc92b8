/* checkpoint.c - the whole state of a run in one file: saved and loaded, the run continues with the same bytes.
 *
 *   header    struct ckpt_header: magic, version, byte order, length of the file, number of sections, CRC-32 of the
 *             header before it and of all that follows the header
 *   sections  struct ckpt_entry (name, length), then the bytes, padded to 16
 * Invariants: (1) a file is written whole or not at all (file_write_all); (2) a load checks the whole file and every
 * section against the trainer before it changes anything. */
#include "trainer/trainer_priv.h"

#include "base/config/config.h"
#include "base/os/file.h"

#include <inttypes.h>
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
    size_t bytes; /* of this rank */
    size_t n_blocks; /* each holds rows of agents, of which this rank has its part; 0: all ranks have the same */
};

struct ckpt_list {
    struct ckpt_section sections[CKPT_MAX_SECTIONS];
    size_t n;
};

static void ckpt_list_add(struct ckpt_list *list, const char *name, enum ckpt_place place, void *at, size_t bytes)
{
    list->sections[list->n++] = (struct ckpt_section){.name = name, .place = place, .at = at, .bytes = bytes};
}

/* The same of a section of which each rank has a part: in the file those of all lie as one device would have them. */
static void ckpt_list_add_part(struct ckpt_list *list, const char *name, enum ckpt_place place, void *at, size_t bytes,
                               size_t n_blocks)
{
    ckpt_list_add(list, name, place, at, bytes);
    list->sections[list->n - 1].n_blocks = n_blocks;
}

static bool section_is_part(const struct trainer *t, const struct ckpt_section *s)
{
    return s->n_blocks > 0 && t->n_ranks > 1;
}

static size_t section_file_bytes(const struct trainer *t, const struct ckpt_section *s)
{
    return section_is_part(t, s) ? s->bytes * t->n_ranks : s->bytes;
}

/* Between a rank's bytes of a section that it has a part of and those of all ranks, as the file has them. Of the games
 * two blocks of unlike size: states, then logs. */
static void section_move(const struct trainer *t, const struct ckpt_section *s, size_t rank, char *file, char *own,
                         bool to_file)
{
    size_t logs = t->n_envs * sizeof(struct env_log);

    for (size_t b = 0, at = 0; b < s->n_blocks; b++) {
        size_t bytes = s->place != CKPT_ENV ? s->bytes / s->n_blocks : b == 0 ? s->bytes - logs : logs;
        char *there = file + at * t->n_ranks + rank * bytes;
        memcpy(to_file ? there : own + at, to_file ? own + at : there, bytes);
        at += bytes;
    }
}

/* (N, D): what comes before the next decision. */
static void *last_obs(const struct trainer *t)
{
    return policy_obs_at(&t->policy, t->roll.obs, t->horizon * t->n_agents);
}

/* All sections but the config's text, or those of the policy alone: the first is the shape. */
static void ckpt_list_trainer(struct ckpt_list *list, struct trainer *t, struct ckpt_shape *shape, bool policy)
{
    size_t n = t->policy.n_params * sizeof(float), N = t->n_agents, last = t->horizon * N;

    list->n = 0;
    ckpt_list_add(list, "shape", CKPT_HOST, shape, sizeof *shape);
    ckpt_list_add(list, "weights", CKPT_DEVICE, t->params, n);
    if (t->policy.set.norm_obs) {
        ckpt_list_add(list, "obs_sums", CKPT_DEVICE, t->norm_of.obs_sums, 3 * t->norm_of.n_numbers * sizeof(double));
        ckpt_list_add(list, "obs_scale", CKPT_DEVICE, t->norm_of.obs_scale, 2 * t->norm_of.n_numbers * sizeof(float));
    }
    if (policy)
        return;
    ckpt_list_add(list, "moment1", CKPT_DEVICE, t->moment1, n);
    if (t->moment2 != NULL)
        ckpt_list_add(list, "moment2", CKPT_DEVICE, t->moment2, n);
    ckpt_list_add(list, "optimiser_step", CKPT_DEVICE, t->opt_step, sizeof *t->opt_step);
    ckpt_list_add(list, "rng_sample", CKPT_DEVICE, t->rng_sample, sizeof *t->rng_sample);
    ckpt_list_add(list, "rng_segments", CKPT_DEVICE, t->rng_segments, sizeof *t->rng_segments);
    ckpt_list_add(list, "counters", CKPT_HOST, &t->count, sizeof t->count);
    ckpt_list_add(list, "window", CKPT_HOST, &t->window, sizeof t->window);
    ckpt_list_add_part(list, "env", CKPT_ENV, NULL, kern_env_state_bytes(t->env), 2);
    ckpt_list_add_part(list, "reset", CKPT_DEVICE, t->roll.reset + last, N, 1);
    if (t->policy.recurrent)
        ckpt_list_add_part(list, "state", CKPT_DEVICE, t->roll.h,
                           t->policy.n_layers * N * t->policy.state_size * sizeof(float), t->policy.n_layers);
    if (t->policy.n_frames > 1)
        ckpt_list_add_part(list, "frames", CKPT_DEVICE, last_obs(t), N * t->policy.row_bytes, 1);
    if (t->set.e3b_coef > 0.0) {
        const size_t F = KERN_NOVELTY_FEATURES * sizeof(float);
        ckpt_list_add(list, "novelty_features", CKPT_DEVICE, t->novelty.projection, (t->policy.obs_size + 1) * F);
        ckpt_list_add_part(list, "novelty_known", CKPT_DEVICE, t->novelty.known, N * KERN_NOVELTY_FEATURES * F, 1);
    }
    if (t->set.scale_reward) {
        ckpt_list_add(list, "reward_sums", CKPT_DEVICE, t->norm_of.reward_sums, 3 * sizeof(double));
        ckpt_list_add_part(list, "reward_carry", CKPT_DEVICE, t->norm_of.carry, N * sizeof(float), 1);
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
    s->total_agents = t->set.total_agents;
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
    for (size_t i = 0; i < COUNT(fields); i++) {
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

/* This rank's bytes of a section; `own` (bytes). */
static enum status section_take(struct trainer *t, const struct ckpt_section *s, char *own, struct error *err)
{
    if (s->place == CKPT_DEVICE)
        return kern_download(t->kern, own, s->at, s->bytes, err);
    if (s->place == CKPT_ENV)
        return kern_env_save(t->kern, t->env, own, err);
    memcpy(own, s->at, s->bytes);
    return ST_OK;
}

/* Where the sections of a file lie, without its header. text: the last one's. */
struct ckpt_file {
    char *bytes;
    size_t n;
    char *text;
    size_t text_bytes;
    bool policy; /* it has the policy alone */
};

static size_t ckpt_bytes(struct trainer *t, const struct ckpt_file *file)
{
    size_t n = sizeof(struct ckpt_header) + sizeof(struct ckpt_entry) + ckpt_padded(file->text_bytes);
    struct ckpt_shape shape;
    struct ckpt_list list;

    ckpt_list_trainer(&list, t, &shape, file->policy);
    for (size_t i = 0; i < list.n; i++)
        n += sizeof(struct ckpt_entry) + ckpt_padded(section_file_bytes(t, &list.sections[i]));
    return n;
}

/* Bytes of a rank's parts. */
static size_t parts_bytes(struct trainer *t)
{
    struct ckpt_shape shape;
    struct ckpt_list list;
    size_t n = 0;

    ckpt_list_trainer(&list, t, &shape, false);
    for (size_t i = 0; i < list.n; i++)
        n += section_is_part(t, &list.sections[i]) ? list.sections[i].bytes : 0;
    return n;
}

enum status rank_pack(void *ctx, struct trainer *t, struct error *err)
{
    const struct rank_args *args = (const struct rank_args *)ctx;
    char *own = rank_out(args, t);
    struct ckpt_shape shape;
    struct ckpt_list list;

    if (parts_bytes(t) != args->out_bytes)
        return FAIL(
            err, ST_CONFIG,
            "env %s saves another number of bytes here than on rank 0; train.devices needs one that saves the same "
            "number for each instance",
            t->def->name);
    ckpt_list_trainer(&list, t, &shape, false);
    for (size_t i = 0; i < list.n; i++)
        if (section_is_part(t, &list.sections[i])) {
            TRY(section_take(t, &list.sections[i], own, err));
            own += list.sections[i].bytes;
        }
    return ST_OK;
}

/* All sections, with their entries; parts: those of all ranks, as rank_pack gives them. */
static enum status ckpt_fill(struct trainer *t, const struct ckpt_file *file, char *parts, size_t bytes_each,
                             struct error *err)
{
    char *at = file->bytes + sizeof(struct ckpt_header);
    struct ckpt_shape shape;
    struct ckpt_list list;
    size_t taken = 0;

    ckpt_shape_fill(t, &shape);
    ckpt_list_trainer(&list, t, &shape, file->policy);
    ckpt_list_add(&list, "config", CKPT_HOST, file->text, file->text_bytes);
    for (size_t i = 0; i < list.n; i++) {
        const struct ckpt_section *section = &list.sections[i];
        struct ckpt_entry entry = {.bytes = section_file_bytes(t, section)};

        strncpy(entry.name, section->name, sizeof entry.name - 1);
        memcpy(at, &entry, sizeof entry);
        at += sizeof entry;
        if (!section_is_part(t, section)) {
            TRY(section_take(t, section, at, err));
        } else {
            for (size_t r = 0; r < t->n_ranks; r++)
                section_move(t, section, r, at, parts + r * bytes_each + taken, true);
            taken += section->bytes;
        }
        at += ckpt_padded(entry.bytes);
    }
    return ST_OK;
}

static enum status ckpt_pack(struct trainer *t, struct ckpt_file *file, struct error *err)
{
    struct ckpt_header header = {.version = CKPT_VERSION, .byte_order = CKPT_BYTE_ORDER, .file_bytes = file->n};
    struct ckpt_shape shape;
    struct ckpt_list list;
    MEM_LOCAL char *parts = NULL;

    memcpy(header.magic, CKPT_MAGIC, sizeof header.magic);
    ckpt_list_trainer(&list, t, &shape, file->policy);
    header.n_sections = (uint32_t)list.n + 1; /* and the config */
    size_t bytes_each = file->policy ? 0 : parts_bytes(t);
    if (bytes_each > 0) {
        parts = mem_try_array(t->n_ranks, bytes_each);
        if (parts == NULL)
            return FAIL(err, ST_NOMEM, "no memory for %zu bytes of a checkpoint", t->n_ranks * bytes_each);
        TRY(ranks_call(t, RANK_PACK, &(struct rank_args){.out = parts, .out_bytes = bytes_each}, err));
    }
    TRY(ckpt_fill(t, file, parts, bytes_each, err));
    memcpy(file->bytes, &header, sizeof header);
    header.crc = ckpt_crc(file->bytes, file->n);
    memcpy(file->bytes, &header, sizeof header);
    return ST_OK;
}

static enum status ckpt_write(struct trainer *t, bool policy, const char *path, const char *config_text,
                              struct error *err)
{
    struct ckpt_file file = {.text_bytes = strlen(config_text) + 1, .policy = policy};

    file.n = ckpt_bytes(t, &file);
    file.text = mem_strdup(config_text);
    file.bytes = mem_try_alloc(file.n);
    enum status rc = file.bytes != NULL
                         ? ckpt_pack(t, &file, err)
                         : FAIL(err, ST_NOMEM, "%s: no memory for a checkpoint of %zu bytes", path, file.n);
    THEN(rc, file_write_all(path, file.bytes, file.n, err));
    mem_free(file.bytes);
    mem_free(file.text);
    return rc;
}

enum status rank_join_sums(void *ctx, struct trainer *t, struct error *err)
{
    (void)ctx;
    normalise_join(t); /* the file has the sums of all */
    return kern_sync(t->kern, err);
}

enum status trainer_save(struct trainer *t, const char *path, const char *config_text, struct error *err)
{
    if (t->failed)
        return FAIL(err, ST_NUMERIC, "%s: not written, training had failed before; the last checkpoint is kept", path);
    TRY(trainer_sync(t, err));
    if (t->team != NULL) {
        TRY(ranks_compare(t, err));
        TRY(ranks_call(t, RANK_JOIN_SUMS, &(struct rank_args){0}, err));
    }
    if (t->running)
        trainer_tick(t);
    enum status rc = ckpt_write(t, false, path, config_text, err);
    trainer_tick_skip(t);
    return rc;
}

enum status trainer_save_policy(struct trainer *t, const char *path, const char *config_text, struct error *err)
{
    TRY(kern_use(t->kern, err));
    return ckpt_write(t, true, path, config_text, err);
}

/* ---- load ---- */

/* Reads and checks everything but what the sections mean. */
static enum status ckpt_read(const char *path, char **ret_bytes, size_t *ret_n, struct error *err)
{
    struct ckpt_header header;
    MEM_LOCAL char *bytes = NULL;
    size_t n;

    TRY(file_read_regular(path, CKPT_MAX_BYTES, &bytes, &n, err));
    if (n < sizeof header.magic || memcmp(bytes, CKPT_MAGIC, sizeof header.magic) != 0)
        return FAIL(
            err, ST_CORRUPT,
            "%s is not a Trawl checkpoint (its first 8 bytes are not %s); give a .ckpt file that `trawl train` wrote",
            path, CKPT_MAGIC);
    if (n < sizeof header)
        return FAIL(err, ST_CORRUPT, "%s: is cut off after %zu bytes, within its header; use an earlier checkpoint",
                    path, n);
    memcpy(&header, bytes, sizeof header);
    if (header.byte_order != CKPT_BYTE_ORDER)
        return FAIL(err, ST_VERSION, "%s: was written on a machine of the other byte order; load it there", path);
    if (header.version > CKPT_VERSION)
        return FAIL(err, ST_VERSION,
                    "%s: has checkpoint version %" PRIu32 ", this program reads up to %d; use a newer trawl", path,
                    header.version, CKPT_VERSION);
    if (header.file_bytes != n)
        return FAIL(err, ST_CORRUPT, "%s: is %zu bytes, its header says %" PRIu64 ": %s; use an earlier checkpoint",
                    path, n, header.file_bytes, n < header.file_bytes ? "cut off" : "something was appended");
    if (header.crc != ckpt_crc(bytes, n))
        return FAIL(err, ST_CORRUPT, "%s: its checksum does not match, the file is damaged; use an earlier checkpoint",
                    path);
    *ret_bytes = bytes;
    *ret_n = n;
    bytes = NULL;
    return ST_OK;
}

/* The bytes of a section, NULL if the file has none of that name. Lengths are checked although the CRC agreed. */
static const char *ckpt_find(const char *bytes, size_t n, const char *name, size_t *ret_bytes)
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

/* The observations (of several frames: the newest frames) before the next decision as the games give them, normalised
 * by the scale of now. */
static void observe_again(struct trainer *t)
{
    size_t last = t->horizon * t->n_agents;
    void *obs = t->roll.frame != NULL ? t->roll.frame : last_obs(t);

    t->ops->env_observe(t->kern, t->env, obs, t->roll.mask != NULL ? t->roll.mask + last * t->policy.n_logits : NULL);
    normalise_apply(t, obs, t->n_agents);
}

/* own (bytes) has to stay until the next kern_sync. */
static enum status section_give(struct trainer *t, const struct ckpt_section *s, const char *own, struct error *err)
{
    if (s->place == CKPT_DEVICE)
        return kern_upload(t->kern, s->at, own, s->bytes, err);
    if (s->place == CKPT_ENV)
        return kern_env_load(t->kern, t->env, own, err);
    memcpy(s->at, own, s->bytes);
    return ST_OK;
}

/* This rank's part of the section that lies at `file`. */
static enum status section_give_part(struct trainer *t, const struct ckpt_section *s, const char *file,
                                     struct error *err)
{
    MEM_LOCAL char *own = mem_try_alloc(s->bytes);

    if (own == NULL)
        return FAIL(err, ST_NOMEM, "no memory for %zu bytes of a checkpoint", s->bytes);
    section_move(t, s, t->rank, (char *)(uintptr_t)file, own, false); /* which reads it */
    TRY(section_give(t, s, own, err));
    return kern_sync(t->kern, err);
}

static enum status ckpt_unpack(struct trainer *t, const char *path, const char *bytes, size_t n, struct error *err)
{
    size_t got;
    struct ckpt_header header;
    struct ckpt_shape shape, mine;
    struct ckpt_list list;

    memcpy(&header, bytes, sizeof header);
    if (header.version < CKPT_VERSION)
        return FAIL(err, ST_VERSION,
                    "%s: is of an older Trawl (checkpoint version %" PRIu32 ", this program resumes %d): `trawl eval` "
                    "plays its policy; train again, or resume it with the older program",
                    path, header.version, CKPT_VERSION);
    ckpt_shape_fill(t, &mine);
    ckpt_list_trainer(&list, t, &shape, false);
    const char *at = ckpt_find(bytes, n, "shape", &got);
    if (!ckpt_shape_read(&shape, at, got))
        return FAIL(err, ST_CORRUPT, "%s: has no valid section \"shape\"; use another checkpoint", path);
    TRY(ckpt_shape_compare(path, &shape, &mine, err));
    if (ckpt_find(bytes, n, "moment1", &got) == NULL)
        return FAIL(
            err, ST_CONFIG,
            "%s: holds a policy alone, of a training that could not be saved whole; begin another training from "
            "it with --from-policy",
            path);
    for (size_t i = 1; i < list.n; i++) { /* first look at everything; the shape was looked at */
        at = ckpt_find(bytes, n, list.sections[i].name, &got);
        if (at == NULL || got != section_file_bytes(t, &list.sections[i]))
            return FAIL(err, ST_CORRUPT, "%s: section \"%s\" is %s, %zu bytes were expected; use another checkpoint",
                        path, list.sections[i].name, at == NULL ? "missing" : "of another length",
                        section_file_bytes(t, &list.sections[i]));
    }
    for (size_t i = 1; i < list.n; i++) {
        at = ckpt_find(bytes, n, list.sections[i].name, &got);
        TRY(section_is_part(t, &list.sections[i]) ? section_give_part(t, &list.sections[i], at, err)
                                                  : section_give(t, &list.sections[i], at, err));
    }
    if (t->first_segment > 0)
        t->ops->rng_advance(t->kern, t->rng_segments, t->first_segment); /* the file has rank 0's */
    normalise_forget(t);
    t->failed = false;
    t->settled_wall_s = t->begun_wall_s = t->count.wall_s;
    trainer_weights_cast(t);
    observe_again(t);
    if (t->def->open != NULL && t->def->saved_bytes == NULL) /* new episodes: the file's frames are of others */
        frames_stack(t, last_obs(t), NULL, t->roll.frame, NULL, NULL, t->n_agents);
    return kern_sync(t->kern, err); /* uploads may still read from bytes */
}

enum status rank_load(void *ctx, struct trainer *t, struct error *err)
{
    const struct rank_args *args = (const struct rank_args *)ctx;

    t->n_collected = t->n_issued; /* what was issued before counts no more */
    solo_forget(t);
    t->unsettled_n = 0;
    return ckpt_unpack(t, args->text, args->in, args->in_bytes, err);
}

/* Every rank takes its own of a file, which is read once, here. */
static enum status load_file(struct trainer *t, enum rank_call call, const char *path, struct error *err)
{
    struct rank_args args = {.text = path};
    MEM_LOCAL char *bytes = NULL;

    TRY(ckpt_read(path, &bytes, &args.in_bytes, err));
    args.in = bytes;
    return ranks_call(t, call, &args, err);
}

enum status trainer_load(struct trainer *t, const char *path, struct error *err)
{
    return load_file(t, RANK_LOAD, path, err);
}

/* A section for the device that must be of `want` bytes. */
static enum status ckpt_upload(struct trainer *t, const char *path, const char *bytes, size_t n, const char *name,
                               void *to, size_t want, struct error *err)
{
    size_t got = 0;
    const char *at = ckpt_find(bytes, n, name, &got);

    if (at == NULL || got != want)
        return FAIL(err, ST_CORRUPT, "%s: section \"%s\" is not of %zu bytes; use another checkpoint", path, name,
                    want);
    return kern_upload(t->kern, to, at, want, err);
}

/* The policy of a file, which must be of the trainer's shape. begin: for a training, maybe of another game. */
static enum status ckpt_load_policy(struct trainer *t, const char *path, const char *bytes, size_t n, bool begin,
                                    struct error *err)
{
    size_t got = 0, D = t->norm_of.n_numbers;
    struct ckpt_shape shape, mine;
    const char *at = ckpt_find(bytes, n, "shape", &got);

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
    normalise_forget(t);
    TRY(kern_sync(t->kern, err)); /* the uploads may still read from bytes */
    trainer_weights_cast(t);
    return ST_OK;
}

static enum status rank_load_policy(struct trainer *t, const struct rank_args *args, bool begin, struct error *err)
{
    TRY(rank_sync(t, err));
    TRY(ckpt_load_policy(t, args->text, args->in, args->in_bytes, begin, err));
    if (begin && t->policy.set.norm_obs) {
        observe_again(t);
        frames_stack(t, last_obs(t), NULL, t->roll.frame, NULL, NULL, t->n_agents);
    }
    return ST_OK;
}

enum status rank_load_weights(void *ctx, struct trainer *t, struct error *err)
{
    return rank_load_policy(t, (const struct rank_args *)ctx, false, err);
}

enum status rank_begin_from(void *ctx, struct trainer *t, struct error *err)
{
    return rank_load_policy(t, (const struct rank_args *)ctx, true, err);
}

enum status trainer_load_weights(struct trainer *t, const char *path, struct error *err)
{
    return load_file(t, RANK_LOAD_WEIGHTS, path, err);
}

enum status trainer_begin_from(struct trainer *t, const char *path, struct error *err)
{
    if (load_file(t, RANK_BEGIN_FROM, path, err) != ST_OK)
        return error_prefix(err, "train.from_policy");
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
    MEM_LOCAL char *bytes = NULL;
    size_t n = 0, got = 0;

    TRY(ckpt_read(path, &bytes, &n, err));
    const char *text = ckpt_find(bytes, n, "config", &got);
    if (text == NULL || got == 0 || text[got - 1] != '\0')
        return FAIL(err, ST_CORRUPT, "%s: has no valid section \"config\"; use another checkpoint", path);
    *ret_text = mem_strdup(text);
    return ST_OK;
}

enum status checkpoint_copy(const char *from, const char *to, const char *config_text, struct error *err)
{
    size_t text_bytes = strlen(config_text) + 1, padded = ckpt_padded(text_bytes), n = 0, got = 0, at;
    struct ckpt_header header;
    struct ckpt_entry entry;
    char *bytes = NULL;

    TRY(ckpt_read(from, &bytes, &n, err));
    const char *text = ckpt_find(bytes, n, "config", &got);
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
    enum status rc = file_write_all(to, bytes, at + padded, err);
    mem_free(bytes);
    return rc;
}
