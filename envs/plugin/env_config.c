/* env_config.c - env.name becomes a game; a library's path becomes whole, and its hash is kept beside it. */
#include "envs/plugin/env_config.h"

#include "base/config/config.h"
#include "envs/envs.h"
#include "envs/gym/gym.h"
#include "envs/plugin/library.h"

struct game_common {
    char name[OPT_STR_MAX];
};

static const struct opt_def common_defs[] = {
    OPT_ROW_STR(struct game_common, name, "",
                "Names the game to train on; `trawl envs` lists them. A game of your own: the path of its library, "
                "./my_game.so, from the folder of the file that names it; one of Gymnasium: gym:CartPole-v1, or "
                "gym:my_module:MyEnv; of EnvPool: envpool:Pong-v5."),
};
const struct opt_table env_opt_table = {
    .section = "env",
    .title = "Game",
    .defs = common_defs,
    .n_defs = 1,
    .settings_size = sizeof(struct game_common),
};

struct game_library {
    char hash[OPT_STR_MAX];
};

static const struct opt_def library_defs[] = {
    OPT_ROW_STR(
        struct game_library, hash, "",
        "Names the build of the game's library that the config is for; another one is refused. Filled in by the "
        "program."),
};
const struct opt_table env_library_opt_table = {
    .section = "env",
    .title = "Game in a library",
    .defs = library_defs,
    .n_defs = 1,
    .settings_size = sizeof(struct game_library),
};

/* ~/x as a shell has it: in a config there is none. */
static const char *from_home(const char *path, char buf[PATH_MAX])
{
    const char *home = getenv("HOME");

    return strncmp(path, "~/", 2) == 0 && home != NULL && snprintf(buf, PATH_MAX, "%s%s", home, path + 1) < PATH_MAX
               ? buf
               : path;
}

/* path as it is found from the folder of `file` (NULL: from here). */
static enum status whole_path(const char *given, const char *file, char ret_path[PATH_MAX], struct error *err)
{
    char home[PATH_MAX];
    const char *path = from_home(given, home);
    const char *slash = file != NULL && path[0] != '/' ? strrchr(file, '/') : NULL;
    char from[PATH_MAX];
    int n = slash != NULL ? snprintf(from, sizeof from, "%.*s/%s", (int)(slash - file), file, path)
                          : snprintf(from, sizeof from, "%s", path);

    if (n < 0 || (size_t)n >= sizeof from || realpath(from, ret_path) == NULL)
        return FAIL(err, ST_CONFIG, "no library of a game at %s (%s); `trawl env build` makes one", from,
                    strerror(errno));
    if (strlen(ret_path) >= OPT_STR_MAX)
        return FAIL(err, ST_CONFIG, "%s: the path is longer than %d bytes", ret_path, OPT_STR_MAX - 1);
    return ST_OK;
}

enum status env_config_set_library(struct config *config, const char *word, struct error *err)
{
    char path[PATH_MAX];

    TRY(whole_path(word, NULL, path, err));
    return config_set(config, CONFIG_COMMAND, "env.name", path, "command line", err);
}

/* "dir/x.ini:12" -> "dir/x.ini"; NULL when the item stands in no file. */
static const char *file_of(const struct config_item *item, char buf[PATH_MAX])
{
    if (item->layer != CONFIG_FILE || item->text == 0)
        return NULL;
    snprintf(buf, PATH_MAX, "%s", item->origin);
    char *colon = strrchr(buf, ':');
    if (colon != NULL)
        *colon = '\0';
    return buf;
}

/* The item that wins. There is one. */
static size_t item_of(const struct config *config, const char *key)
{
    size_t best = 0;

    for (size_t i = 0; i < config_n_items(config); i++) {
        struct config_item item = config_item(config, i);
        if (item.value != NULL && strcmp(item.key, key) == 0 &&
            (strcmp(config_item(config, best).key, key) != 0 || item.layer >= config_item(config, best).layer))
            best = i;
    }
    return best;
}

static enum status find_library(struct config *config, const struct env_def **ret_env, struct error *err)
{
    size_t at = item_of(config, "env.name");
    struct config_item item = config_item(config, at);
    char path[PATH_MAX], file[PATH_MAX], origin[CONFIG_KEY_MAX + 300];
    struct error why = {0};

    snprintf(origin, sizeof origin, "%s", item.origin);
    const char *hash = config_peek(config, "env.hash");
    bool made_for_it = hash != NULL && hash[0] != '\0';
    enum status rc = whole_path(item.value, file_of(&item, file), path, &why);
    THEN(rc, env_open(path, ret_env, &why));
    if (rc != ST_OK) /* the config was right when it was made */
        return FAIL(err, rc == ST_CONFIG && made_for_it ? ST_VERSION : rc, "%s: %s", origin, why.text);
    TRY(config_edit(config, at, "env.name", path, err));
    TRY(config_add_table(config, &env_library_opt_table, err));
    if (made_for_it && strcmp(hash, env_library_hash(*ret_env)) != 0) {
        if (!env_plays_elsewhere(*ret_env))
            return FAIL(err, ST_VERSION,
                        "%s: the game %s has changed since the config or study was made: it is build %s now and was "
                        "%s, and their scores cannot be compared. Bring that build back, or start a new training or "
                        "study, with --env.hash '' where a file has a hash",
                        config_origin(config, "env.hash"), path, env_library_hash(*ret_env), hash);
        log_warn("%s has changed since this config was made for it (build %s, now %s)", path, hash,
                 env_library_hash(*ret_env));
        return ST_OK;
    }
    return config_set(config, CONFIG_COMMAND, "env.hash", env_library_hash(*ret_env), "the library's file", err);
}

/* ---- an environment of Gymnasium ---- */

/* The folder of the file that an option stands in, and where it is; the present one for others. */
static enum status folder_of(const struct config *config, const char *key, char ret_folder[PATH_MAX], struct error *err)
{
    struct config_item item = config_item(config, item_of(config, key));
    char file[PATH_MAX], *slash;
    const char *folder = ".";

    if (strcmp(item.key, key) == 0 && file_of(&item, file) != NULL && (slash = strrchr(file, '/')) != NULL) {
        slash[slash == file] = '\0';
        folder = file;
    }
    if (realpath(folder, ret_folder) == NULL)
        return FAIL(err, ST_CONFIG, "%s: no folder %s: %s", config_origin(config, key), folder, strerror(errno));
    return ST_OK;
}

/* A program's name becomes its path by PATH; it stays as it is where there is none. */
static const char *by_path(const char *name, char buf[PATH_MAX])
{
    const char *folders = getenv("PATH");

    for (size_t n; folders != NULL && *folders != '\0'; folders += n + (folders[n] == ':')) {
        n = strcspn(folders, ":");
        if (folders[0] == '/' && snprintf(buf, PATH_MAX, "%.*s/%s", (int)n, folders, name) < PATH_MAX &&
            access(buf, X_OK) == 0)
            return buf;
    }
    return name;
}

/* Makes an option a whole path, so that a worker finds it wherever it was started. A program's last link is kept: it is
 * what makes a Python one of a virtual environment. */
static enum status make_whole(struct config *config, const char *key, const char *given, bool is_program,
                              struct error *err)
{
    bool is_set = config_peek(config, key) != NULL && config_peek(config, key)[0] != '\0';
    char folder[PATH_MAX], path[2 * PATH_MAX], found[PATH_MAX], home[PATH_MAX];
    const char *value = from_home(is_set ? config_peek(config, key) : given, home);

    if (is_program && strchr(value, '/') == NULL) {
        snprintf(path, sizeof path, "%s", by_path(value, found));
    } else {
        TRY(folder_of(config, is_set ? key : "env.name", folder, err));
        snprintf(path, sizeof path, value[0] == '/' ? "%.0s%s" : value[0] == '\0' ? "%s" : "%s/%s", folder, value);
    }
    if (strlen(path) >= OPT_STR_MAX)
        return FAIL(err, ST_CONFIG, "%s: the path %.80s... is longer than %d bytes", key, path, OPT_STR_MAX - 1);
    if (is_set)
        return config_edit(config, item_of(config, key), key, path, err);
    return config_set(config, CONFIG_ENV, key, path, is_program ? "PATH" : "where env.name stands", err);
}

enum status env_config_add(struct config *config, const struct env_def **ret_env, struct error *err)
{
    const char *name = config_peek(config, "env.name");
    const struct env_def *env;
    char origin[64];

    if (name == NULL || name[0] == '\0')
        return FAIL(err, ST_CONFIG,
                    "no game is named; put 'name = breakout' under [env], or give --env.name; `trawl envs` lists them");
    if (env_is_library(name)) { /* name becomes a whole path: it is not looked at again */
        TRY(find_library(config, &env, err));
    } else {
        if (env_open(name, &env, err) != ST_OK)
            return error_prefix(err, "%s", config_origin(config, "env.name"));
        if (env_is_gym(name)) {
            TRY(make_whole(config, "env.python", "python3", true, err));
            TRY(make_whole(config, "env.path", "", false, err));
        }
    }
    snprintf(origin, sizeof origin, "%.40s's default", env->name);
    if (config_add_table(config, &env->options, err) != ST_OK)
        return error_prefix(err, "game %s", env->name);
    for (size_t i = 0; i < env->about->n_defaults; i++)
        TRY(config_set(config, CONFIG_ENV, env->about->defaults[i].key, env->about->defaults[i].value, origin, err));
    *ret_env = env;
    return ST_OK;
}
