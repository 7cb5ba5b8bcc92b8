/* library.c - the libraries that this process has opened, by path and by the file's identity.
 * Invariants: (1) an entry is never changed or freed once it is in the list, so that a table stays valid; (2) a file
 * that was changed is another entry; (3) code of a library runs here only after env_libraries_run. */
#include "envs/plugin/library.h"
#include "base/base.h"

#include "base/hash.h"
#include "envs/envs.h"
#include "envs/gym/gym.h"
#include "envs/plugin/crash.h"
#include "envs/plugin/describe.h"

#include <ctype.h>
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define SETTINGS_MAX (1u << 20)
#define KEY_MAX 63
#define NUMBER_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./"
#define SHAPES_MAX 64 /* of a described game, by settings; asking for one starts a process */

/* What a library shares with the program. A change here is another version of the interface: libraries are then
 * refused, not misread. examples/plugin/lamp.rs has the same structs in Rust. */
#define LAYOUT                                                                                                         \
    (sizeof(struct env_def) + 3 * sizeof(struct opt_def) + 5 * sizeof(struct opt_table) +                              \
     7 * sizeof(struct env_shape) + 11 * sizeof(struct env_io) + 13 * sizeof(struct env_log) +                         \
     17 * sizeof(struct env_step) + 19 * sizeof(struct rng) + 23 * sizeof(struct error) +                              \
     29 * sizeof(struct env_picture) + 31 * sizeof(struct env_about) + 37 * offsetof(struct opt_def, offset) +         \
     41 * offsetof(struct opt_def, help) + 43 * offsetof(struct env_shape, low) + 47 * offsetof(struct env_io, obs) +  \
     53 * offsetof(struct env_def, step_range))
_Static_assert(LAYOUT == 854388 && ENV_API_VERSION == 9,
               "the layout of a library's table has changed: raise ENV_API_VERSION, and state the new layout here");

struct known_shape {
    void *settings;
    struct env_shape shape;
};

struct library {
    struct env_def def; /* first: a table is one of its library; def.source is the library */
    char *path;
    struct stat file;
    char hash[ENV_LIBRARY_HASH_BYTES];
    const void *device;
    bool described;
    struct known_shape shapes[SHAPES_MAX]; /* [0]: of the default settings */
    size_t n_shapes;
    struct library *next;
};

static struct library *libraries; /* newest first */
static bool run_here, leaving;
static const char *loaded_path; /* of the newest that was loaded here */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards libraries and their shapes; held alone */

bool env_is_library(const char *name)
{
    return word_ends_in(name, ".so");
}

bool env_is_outside(const char *name)
{
    return env_is_library(name) || env_is_gym(name);
}

void env_libraries_run(void)
{
    run_here = true;
}

void env_libraries_leave(void)
{
    leaving = true;
}

/* A game that calls exit() must not look like a program that has done its work. Threads that step it call exit() at
 * the same time, and one that finds no handler left ends the process by the game's code: each one comes here. */
static void refuse_exit(void)
{
    static atomic_flag reported = ATOMIC_FLAG_INIT;

    if (leaving)
        return;
    atexit(refuse_exit);
    while (atomic_flag_test_and_set(&reported))
        pause(); /* until the first one ends the process */
    fflush(stdout);
    fprintf(stderr, "trawl: %s: " ENV_LIBRARY_EXITED "\n", loaded_path);
    _exit(1);
}

static const struct library *library_of(const struct env_def *def)
{
    return (const struct library *)def->source;
}

const char *env_library_hash(const struct env_def *def)
{
    return def->source != NULL ? library_of(def)->hash : "";
}

const void *env_library_device(const struct env_def *def)
{
    return def->source != NULL ? library_of(def)->device : NULL;
}

bool env_plays_elsewhere(const struct env_def *def)
{
    return def->source != NULL ? library_of(def)->described : env_is_gym(def->name) && !run_here;
}

static enum status hash_file(const char *path, char ret_hash[ENV_LIBRARY_HASH_BYTES], struct error *err)
{
    uint64_t hash = HASH_START;
    unsigned char buf[65536];
    size_t got;
    FILE *file = fopen(path, "rbe");

    if (file == NULL)
        return FAIL(err, ST_IO, "%s: the game's library cannot be read: %s", path, strerror(errno));
    while ((got = fread(buf, 1, sizeof buf, file)) > 0)
        hash = hash_bytes(hash, buf, got);
    fclose(file);
    snprintf(ret_hash, ENV_LIBRARY_HASH_BYTES, "%016llx", (unsigned long long)hash);
    return ST_OK;
}

bool env_library_has_changed(const struct env_def *def)
{
    char hash[ENV_LIBRARY_HASH_BYTES];

    return def->source != NULL &&
           (hash_file(library_of(def)->path, hash, NULL) != ST_OK || strcmp(hash, library_of(def)->hash) != 0);
}

/* ---- the file ---- */

static const char *machine_name(unsigned machine, char buf[32])
{
    static const struct {
        unsigned machine;
        const char *name;
    } names[] = {{EM_X86_64, "x86-64"}, {EM_386, "x86"},     {EM_AARCH64, "aarch64"},
                 {EM_ARM, "arm"},       {EM_RISCV, "riscv"}, {EM_PPC64, "ppc64"}};

    for (size_t i = 0; i < COUNT(names); i++)
        if (names[i].machine == machine)
            return names[i].name;
    snprintf(buf, 32, "machine %u", machine);
    return buf;
}

/* What dlopen does not say: a file for another CPU is "No such file", and one that is cut off kills the process. */
static enum status check_elf(const char *path, struct error *err)
{
    ElfW(Ehdr) own, head = {0};
    ElfW(Phdr) part;
    char a[32], b[32];
    enum status rc = ST_OK;
    uint64_t size = 0, needs = 0;
    FILE *file = fopen(path, "rbe"), *self = fopen("/proc/self/exe", "rbe");

    if (file == NULL || self == NULL || fread(&own, sizeof own, 1, self) != 1)
        goto done; /* dlopen will say what is wrong */
    if (fread(&head, 1, sizeof head, file) < EI_NIDENT + 4 || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_type != ET_DYN) {
        rc = FAIL(err, ST_CONFIG, "%s: it is not a shared library; `trawl env build` makes one of a game", path);
        goto done;
    }
    if (head.e_ident[EI_CLASS] != own.e_ident[EI_CLASS] || head.e_machine != own.e_machine) {
        rc = FAIL(err, ST_CONFIG,
                  "%s: it is a library for %s, %d bits, and this program is for %s, %d bits; build it on this machine: "
                  "`trawl env build`",
                  path, machine_name(head.e_machine, a), head.e_ident[EI_CLASS] == ELFCLASS32 ? 32 : 64,
                  machine_name(own.e_machine, b), own.e_ident[EI_CLASS] == ELFCLASS32 ? 32 : 64);
        goto done;
    }
    for (unsigned i = 0; i < head.e_phnum; i++)
        if (fseeko(file, (off_t)(head.e_phoff + i * sizeof part), SEEK_SET) == 0 &&
            fread(&part, sizeof part, 1, file) == 1 && part.p_type == PT_LOAD && needs < part.p_offset + part.p_filesz)
            needs = part.p_offset + part.p_filesz;
    if (fseeko(file, 0, SEEK_END) == 0)
        size = (uint64_t)ftello(file);
    if (size < needs || needs == 0)
        rc = FAIL(
            err, ST_CONFIG,
            "%s: it is cut off: %llu bytes of at least %llu; was it copied whole? `trawl env build` makes it again",
            path, (unsigned long long)size, (unsigned long long)needs);
done:
    if (file != NULL)
        fclose(file);
    if (self != NULL)
        fclose(self);
    return rc;
}

/* ---- what a library gives ---- */

static enum status check_name(const char *path, const char *name, struct error *err)
{
    size_t n = name != NULL ? strlen(name) : 0;

    for (size_t i = 0; i < n; i++)
        if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
            n = 0;
    if (n == 0 || n > ENV_LIBRARY_NAME_MAX)
        return FAIL(err, ST_CONFIG, "%s: its game is named '%.40s'; a name is 1 to %d of a-z 0-9 _ -", path,
                    name != NULL ? name : "", ENV_LIBRARY_NAME_MAX);
    return ST_OK;
}

static size_t field_bytes(enum opt_type type)
{
    switch (type) {
    case OPT_BOOL:
        return sizeof(bool);
    case OPT_INT:
        return sizeof(int64_t);
    case OPT_FLOAT:
        return sizeof(double);
    case OPT_STR:
        return OPT_STR_MAX;
    case OPT_ENUM:
        return sizeof(int);
    }
    return SIZE_MAX / 2;
}

/* A key is a word that a config and a command line can hold, and stands once. */
static enum status check_key(const char *path, const struct opt_table *options, size_t at, struct error *err)
{
    const char *key = options->defs[at].key;
    size_t n = 0;

    while (isalnum((unsigned char)key[n]) || key[n] == '_' || key[n] == '-')
        n++;
    if (n == 0 || key[n] != '\0' || n > KEY_MAX)
        return FAIL(err, ST_CONFIG, "%s: option %zu is named '%.80s'; a name is 1 to %d letters, digits, _ and -", path,
                    at, key, KEY_MAX);
    if (strcmp(key, "name") == 0 || strcmp(key, "hash") == 0)
        return FAIL(err, ST_CONFIG, "%s: an option is named '%s', which is the program's; rename it", path, key);
    for (size_t i = 0; i < at; i++)
        if (strcmp(options->defs[i].key, key) == 0)
            return FAIL(err, ST_CONFIG, "%s: two options are named '%s'", path, key);
    return ST_OK;
}

static bool range_is_sane(const struct opt_def *o)
{
    double low = o->scale == OPT_LOG || o->scale == OPT_LOGIT ? 0.0 : -INFINITY;
    bool none = o->scale == OPT_FIXED || o->scale == OPT_CATEGORICAL || (o->sweep_min == 0 && o->sweep_max == 0);

    return o->min <= o->max &&
           (none || (o->sweep_min < o->sweep_max && o->sweep_min >= o->min && o->sweep_max <= o->max &&
                     o->sweep_min > low && (o->scale != OPT_LOGIT || o->sweep_max < 1.0)));
}

static enum status check_rows(const char *path, const struct opt_table *options, struct error *err)
{
    if (options->section == NULL || strcmp(options->section, "env") != 0)
        return FAIL(err, ST_CONFIG, "%s: its options are of section '%.40s'; a game's section is 'env'", path,
                    options->section != NULL ? options->section : "");
    if (options->settings_size > SETTINGS_MAX)
        return FAIL(err, ST_CONFIG, "%s: its settings have %zu bytes; at most %u", path, options->settings_size,
                    SETTINGS_MAX);
    for (size_t i = 0; i < options->n_defs; i++) {
        const struct opt_def *o = &options->defs[i];
        if (o->key == NULL || o->def == NULL || o->help == NULL || o->unit == NULL ||
            (o->type == OPT_ENUM && o->choices == NULL))
            return FAIL(err, ST_CONFIG, "%s: option %zu (%.40s) lacks a key, default, unit, help or its choices", path,
                        i, o->key != NULL ? o->key : "?");
        TRY(check_key(path, options, i, err));
        if ((unsigned)o->type > OPT_ENUM || (unsigned)o->scale > OPT_CATEGORICAL)
            return FAIL(err, ST_CONFIG, "%s: option %s has type %d and scale %d; one of them does not exist", path,
                        o->key, (int)o->type, (int)o->scale);
        if ((o->type == OPT_INT || o->type == OPT_FLOAT) && !range_is_sane(o))
            return FAIL(err, ST_CONFIG,
                        "%s: option %s is allowed from %g to %g and swept from %g to %g; a range begins below its end, "
                        "and a sweep's lies within the allowed one (OPT_LOG: above 0, OPT_LOGIT: in (0, 1))",
                        path, o->key, o->min, o->max, o->sweep_min, o->sweep_max);
        if (o->offset > options->settings_size || options->settings_size - o->offset < field_bytes(o->type))
            return FAIL(err, ST_CONFIG, "%s: option %s lies at %zu, beyond the settings of %zu bytes", path, o->key,
                        o->offset, options->settings_size);
    }
    return ST_OK;
}

static enum status check_numbers(const char *path, const struct env_def *def, struct error *err)
{
    if (def->n_numbers > ENV_MAX_NUMBERS || (def->n_numbers > 0) != (def->take_numbers != NULL) ||
        (def->n_numbers > 0 && (def->number_names == NULL || def->open == NULL)))
        return FAIL(err, ST_CONFIG,
                    "%s: it has %zu named numbers; a game with memory of its own has at most %d, with their names and "
                    "take_numbers",
                    path, def->n_numbers, ENV_MAX_NUMBERS);
    for (size_t i = 0; i < def->n_numbers; i++) {
        const char *name = def->number_names[i];
        size_t n = name != NULL ? strlen(name) : 0;
        if (n < 5 || n > KEY_MAX || strncmp(name, "env/", 4) != 0 || strspn(name, NUMBER_LETTERS) != n)
            return FAIL(err, ST_CONFIG,
                        "%s: its number %zu is named '%.80s'; a name is env/ and letters, digits, _ - . /, at most %d",
                        path, i, name != NULL ? name : "", KEY_MAX);
    }
    return ST_OK;
}

static enum status check_table(const char *path, const struct env_def *def, struct error *err)
{
    if (def->api_version != ENV_API_VERSION)
        return FAIL(err, ST_VERSION,
                    "%s: it is built for version %u of the interface, this program has %d; build it again with this "
                    "program: trawl env build",
                    path, (unsigned)def->api_version, ENV_API_VERSION);
    if (def->def_bytes != sizeof *def)
        return FAIL(err, ST_VERSION, "%s: its table has %u bytes, version %d has %zu; build it again", path,
                    (unsigned)def->def_bytes, ENV_API_VERSION, sizeof *def);
    TRY(check_name(path, def->name, err));
    if (def->about == NULL || def->about->summary == NULL || def->shape == NULL || def->reset_range == NULL ||
        def->observe_range == NULL || def->step_range == NULL)
        return FAIL(err, ST_CONFIG, "%s: its table lacks about, shape, reset_range, observe_range or step_range", path);
    if ((def->open == NULL) != (def->close == NULL) || (def->open == NULL && def->state_size == 0))
        return FAIL(err, ST_CONFIG, "%s: it needs a state_size, or both open and close", path);
    if (def->open != NULL && def->track_at != 0)
        return FAIL(err, ST_CONFIG, "%s: track_at is for states of plain bytes, and it has open", path);
    if (def->track_at != 0 &&
        (def->track_at > def->state_size || def->state_size - def->track_at < sizeof(struct env_track)))
        return FAIL(err, ST_CONFIG, "%s: its track lies at %zu, beyond the state of %zu bytes", path, def->track_at,
                    def->state_size);
    if ((def->save == NULL) != (def->load == NULL) || (def->save == NULL) != (def->saved_bytes == NULL))
        return FAIL(err, ST_CONFIG, "%s: saved_bytes, save and load come together", path);
    TRY(check_numbers(path, def, err));
    return check_rows(path, &def->options, err);
}

static enum status load(struct library *library, struct error *err)
{
    const struct env_def *(*give)(void);

    if (loaded_path == NULL && (atexit(refuse_exit) != 0 || atexit(refuse_exit) != 0))
        return FAIL(err, ST_IO, "%s: no handler for the end of the process", library->path);
    TRY(check_elf(library->path, err));
    loaded_path = mem_strdup(library->path);
    crash_begin(loaded_path);
    void *handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *why = dlerror();
        return FAIL(err, ST_CONFIG, "a game cannot be loaded: %s; %s", why,
                    strstr(why, "undefined symbol") != NULL
                        ? "that is a function that it calls and no file of it defines, or one of raylib that is "
                          "unknown here"
                        : "`trawl env build` makes a library of a game");
    }
    crash_opened(loaded_path, handle);
    void *symbol = dlsym(handle, "trawl_env");
    if (symbol == NULL) {
        dlclose(handle);
        return FAIL(err, ST_CONFIG, "%s: it has no symbol trawl_env; trawl_env.h has TRAWL_ENV(def) for that",
                    library->path);
    }
    memcpy(&give, &symbol, sizeof give); /* an object pointer is not a function pointer in ISO C */
    const struct env_def *def = give();
    if (def == NULL)
        return FAIL(err, ST_CONFIG, "%s: trawl_env() gives no table", library->path);
    TRY(check_table(library->path, def, err));
    library->def = *def;
    symbol = dlsym(handle, "trawl_env_device");
    if (symbol != NULL) {
        const void *(*give_device)(void);
        memcpy(&give_device, &symbol, sizeof give_device);
        library->device = give_device();
    }
    return ST_OK;
}

/* ---- a game that is only described ---- */

static enum status described_shape(const struct env_def *def, const void *settings, struct env_shape *ret_shape,
                                   struct error *err)
{
    struct library *library = (struct library *)def->source;
    size_t size = def->options.settings_size;
    enum status rc = ST_OK;
    cJSON *json = NULL;

    pthread_mutex_lock(&lock);
    *ret_shape = library->shapes[0].shape; /* past SHAPES_MAX a guess: the worker checks again */
    for (size_t i = 0; i < library->n_shapes; i++)
        if (memcmp(library->shapes[i].settings, settings, size) == 0) {
            *ret_shape = library->shapes[i].shape;
            goto done;
        }
    if (library->n_shapes == SHAPES_MAX)
        goto done;
    rc = env_describe_in_child(library->path, settings, size, &json, err);
    if (rc == ST_OK) {
        struct known_shape *known = &library->shapes[library->n_shapes++];
        env_described_shape(json, ret_shape);
        known->shape = *ret_shape;
        known->settings = mem_alloc(size);
        memcpy(known->settings, settings, size);
        cJSON_Delete(json);
    }
done:
    pthread_mutex_unlock(&lock);
    return rc;
}

static enum status refuse_open(const struct env_def *def, const void *settings, size_t n_envs, void **ret_states,
                               struct error *err)
{
    (void)def, (void)settings, (void)n_envs, (void)ret_states;
    return FAIL(err, ST_USAGE,
                "a game of a library is played by workers, `trawl train`, `trawl eval` and `trawl rerun` "
                "alone: what it breaks must cost no more than that");
}

static enum status describe(struct library *library, struct error *err)
{
    JSON_LOCAL cJSON *json = NULL;

    TRY(env_describe_in_child(library->path, NULL, 0, &json, err));
    TRY(env_described(json, &library->def, &library->shapes[0].shape, err));
    TRY(check_name(library->path, library->def.name, err)); /* the child is the library's too: it is not believed */
    TRY(check_rows(library->path, &library->def.options, err));
    library->described = true;
    library->def.shape = described_shape;
    library->def.open = refuse_open;
    TRY(env_default_settings(&library->def, &library->shapes[0].settings, err));
    library->n_shapes = 1;
    return ST_OK;
}

/* ---- opening ---- */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static enum status open_library(const char *name, const struct env_def **ret_def, struct error *err)
{
    char path[PATH_MAX]; /* whole: dlopen would look for a bare name in the system's folders */
    struct library *library;
    struct stat file;

    if (realpath(name, path) == NULL || stat(path, &file) != 0)
        return FAIL(err, ST_CONFIG, "%s: no such library of a game (%s); `trawl env build` makes one", name,
                    strerror(errno));
    if (!S_ISREG(file.st_mode)) /* to read a pipe would take for ever */
        return FAIL(err, ST_CONFIG, "%s: it is not a file; `trawl env build` makes a library", path);
    for (const struct library *l = libraries; l != NULL; l = l->next)
        if (strcmp(l->path, path) == 0 && same_file(&l->file, &file)) {
            *ret_def = &l->def;
            return ST_OK;
        }
    library = mem_alloc(sizeof *library);
    library->path = mem_strdup(path);
    library->file = file;
    enum status rc = hash_file(path, library->hash, err);
    THEN(rc, run_here ? load(library, err) : describe(library, err));
    if (rc != ST_OK) {
        mem_free(library->path);
        mem_free(library);
        return rc;
    }
    library->def.source = library;
    library->next = libraries;
    libraries = library;
    *ret_def = &library->def;
    log_debug("opened %s: game %s, hash %s", path, library->def.name, library->hash);
    return ST_OK;
}

enum status env_open(const char *name, const struct env_def **ret_def, struct error *err)
{
    char hint[ENV_HINT_MAX];

    *ret_def = env_find(name);
    if (*ret_def != NULL)
        return ST_OK;
    if (env_is_gym(name))
        return gym_open(name, ret_def, err);
    if (!env_is_library(name))
        return FAIL(err, ST_CONFIG, "no game '%s'%s", name, env_hint(name, hint));
    pthread_mutex_lock(&lock);
    enum status rc = open_library(name, ret_def, err);
    pthread_mutex_unlock(&lock);
    return rc;
}
