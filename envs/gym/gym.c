/* gym.c - finds environments of Gymnasium by name, and knows their shapes.
 * Invariant: an entry of the list is never changed but for shapes and names of numbers added to it, and never freed. */
#include "envs/gym/gym.h"
#include "base/base.h"

#include "base/os/clock.h"
#include "base/text/json.h"
#include "envs/envs.h"
#include "envs/gym/gym_batch.h"
#include "envs/gym/gym_helper.h"

#define SHAPES_MAX 64 /* by settings; asking for one starts a process */
#define REFUSED_S 10.0 /* a refusal stands for this long: a sweep asks for thousands of points, one after another */
#define DESCRIPTION_BYTES 16384
#define GYM_NUMBER_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./"

static const struct opt_def gym_defs[] = {
    OPT_ROW_STR(struct gym_settings, python, "python3",
                "Names the Python that has gymnasium, like venv/bin/python; a name without a folder is found by PATH."),
    OPT_ROW_STR(struct gym_settings, path, "",
                "Names a folder in which modules are found; by default that of the file that names the environment, or "
                "of the command."),
    OPT_ROW_STR(struct gym_settings, kwargs, "", "Gives the environment keyword arguments, as a JSON object."),
    OPT_ROW_STR(
        struct gym_settings, info, "",
        "Names numbers of an episode's last info that are logged, each as env/NAME, like success,goal.distance."),
    OPT_ROW_BOOL(struct gym_settings, vector, "false",
                 "Steps the instances by the vector environment that a package registers (vector_entry_point), like "
                 "ale_py's; EnvPool's are of that kind anyway."),
    OPT_ROW_INT(struct gym_settings, processes, "0", 0, 1024, OPT_FIXED, 0, 0, "processes",
                "Steps the environments in this many Python processes; 0 is one for each core, or for all but one "
                "where each then steps at most a quarter more instances; of a vector environment one, or two "
                "where it shows images."),
    OPT_ROW_FLOAT(struct gym_settings, timeout_s, "60", 0.01, 1e6, OPT_FIXED, 0, 0, "s",
                  "Ends the training when one environment takes longer than this to be made, reset or stepped."),
    OPT_ROW_FLOAT(
        struct gym_settings, score_min, "0", -1e30, 1e30, OPT_FIXED, 0, 0, "",
        "Is the return of an episode that counts as perf 0; perf is unknown while score_max is not above it."),
    OPT_ROW_FLOAT(struct gym_settings, score_max, "0", -1e30, 1e30, OPT_FIXED, 0, 0, "",
                  "Is the return of an episode that counts as perf 1."),
    OPT_ROW_FLOAT(struct gym_settings, byte_scale, "255", 1e-6, 1e6, OPT_FIXED, 0, 0, "",
                  "Divides observations that are bytes."),
};

/* For a policy that is tuned to nothing: fewer agents than a game in C has, a shorter evaluation, and rewards of any
 * size: with returns in the hundreds a value of the usual loss would drown the policy's gradient. */
static const struct env_default gym_defaults[] = {
    {"train.total_agents", "32"},      {"train.horizon", "64"},       {"train.minibatch_size", "512"},
    {"train.total_timesteps", "500k"}, {"train.eval_episodes", "64"}, {"train.scale_reward", "true"},
};

struct known_shape {
    struct gym_settings settings;
    struct env_shape shape;
};

struct gym_env {
    struct env_def def; /* first: a table is one of its environment */
    struct env_about about;
    const char *names[ENV_MAX_NUMBERS]; /* of numbers, def.n_numbers of them: of all settings that were seen */
    struct known_shape *shapes; /* (SHAPES_MAX) */
    size_t n_shapes;
    struct gym_settings refused; /* the last ones that had no shape, */
    struct error why;
    double refused_until_s; /* by clock_mono_s */
    struct gym_env *next;
};

static struct gym_env *gym_envs; /* newest first */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and the shapes; held alone */

bool env_is_gym(const char *name)
{
    return strncmp(name, GYM_PREFIX, strlen(GYM_PREFIX)) == 0 ||
           strncmp(name, GYM_POOL_PREFIX, strlen(GYM_POOL_PREFIX)) == 0;
}

bool gym_is_vector(const char *name, const struct gym_settings *settings)
{
    return settings->vector || strncmp(name, GYM_POOL_PREFIX, strlen(GYM_POOL_PREFIX)) == 0;
}

bool gym_shares_stream(const struct env_def *def, const void *settings)
{
    return strncmp(def->name, GYM_PREFIX, strlen(GYM_PREFIX)) == 0 && ((const struct gym_settings *)settings)->vector;
}

/* ---- its shape, by a helper ---- */

static enum status shape_of(const char *text, struct env_shape *ret_shape, struct error *err)
{
    const cJSON *item, *grid;
    cJSON *json = NULL;

    TRY(json_parse(text, strlen(text), &json, err));
    *ret_shape = (struct env_shape){.n_agents = 1, .may_truncate = true};
    int64_t n_bytes = json_i64_or(json, "n_bytes", 0);
    int64_t n_floats = json_i64_or(json, "n_floats", 0);
    ret_shape->obs_size = (int)(n_bytes + n_floats);
    ret_shape->u8 = n_bytes > 0;
    ret_shape->n_floats = n_bytes > 0 ? (int)n_floats : 0;
    cJSON_ArrayForEach(item, json_get(json, "heads"))
    {
        if (ret_shape->n_heads < ENV_MAX_HEADS) {
            ret_shape->head_sizes[ret_shape->n_heads] = cJSON_GetArrayItem(item, 0)->valueint;
            ret_shape->low[ret_shape->n_heads] = (float)cJSON_GetArrayItem(item, 1)->valuedouble;
            ret_shape->high[ret_shape->n_heads] = (float)cJSON_GetArrayItem(item, 2)->valuedouble;
        }
        ret_shape->n_heads++;
    }
    grid = json_get(json, "grid");
    ret_shape->height = cJSON_GetArrayItem(grid, 0)->valueint;
    ret_shape->width = cJSON_GetArrayItem(grid, 1)->valueint;
    ret_shape->channels = cJSON_GetArrayItem(grid, 2)->valueint;
    cJSON_ArrayForEach(item, json_get(json, "left_out"))
        log_info("of its observations %s is left out: it is not a fixed list of numbers", item->valuestring);
    cJSON_Delete(json);
    if (ret_shape->n_heads > ENV_MAX_HEADS)
        return FAIL(
            err, ST_CONFIG,
            "its actions have %d components, at most %d can be trained; gymnasium.wrappers.TransformAction makes "
            "fewer of them",
            ret_shape->n_heads, ENV_MAX_HEADS);
    return ST_OK;
}

/* The next name of a list with commas, blanks left out, as env/NAME; false: there is none. */
bool gym_next_number(const char **list, char *name, size_t size)
{
    size_t skipped = strspn(*list, ", "), n = strcspn(*list + skipped, ", ");

    snprintf(name, size, "env/%.*s", (int)n, *list + skipped);
    *list += skipped + n;
    return n > 0;
}

/* Without the lock: a name is there before the number that counts it, and neither is taken back. */
size_t gym_number_at(const struct env_def *def, const char *name)
{
    size_t i = 0, n = __atomic_load_n(&def->n_numbers, __ATOMIC_ACQUIRE);

    while (i < n && strcmp(def->number_names[i], name) != 0)
        i++;
    return i;
}

void gym_name_numbers(const struct env_def *def, const void *settings)
{
    struct gym_env *env = (struct gym_env *)def;
    const char *list = ((const struct gym_settings *)settings)->info;
    char name[GYM_NUMBER_MAX];

    pthread_mutex_lock(&lock);
    while (gym_next_number(&list, name, sizeof name))
        if (gym_number_at(def, name) == def->n_numbers && def->n_numbers < ENV_MAX_NUMBERS) {
            env->names[def->n_numbers] = mem_strdup(name);
            __atomic_store_n(&env->def.n_numbers, def->n_numbers + 1, __ATOMIC_RELEASE);
        }
    pthread_mutex_unlock(&lock);
}

static enum status check_settings(const char *id, const struct gym_settings *s, struct error *err)
{
    const char *list = s->info;
    char name[GYM_NUMBER_MAX];
    int n = 0;

    for (; gym_next_number(&list, name, sizeof name); n++)
        if (strlen(name) + 1 == sizeof name || strspn(name, GYM_NUMBER_LETTERS) != strlen(name))
            return FAIL(err, ST_CONFIG, "env.info has '%s'; a name is letters, digits, _ - . /, at most %d", name + 4,
                        GYM_NUMBER_MAX - 6);
    if (n > ENV_MAX_NUMBERS)
        return FAIL(err, ST_CONFIG, "env.info has %d names, at most %d can be logged", n, ENV_MAX_NUMBERS);
    if (n > 0 && gym_is_vector(id, s))
        return FAIL(err, ST_CONFIG,
                    "env.info is read of single environments; leave it out with env.vector and envpool:");
    if (s->score_max < s->score_min)
        return FAIL(err, ST_CONFIG, "env.score_max is %g, below env.score_min, %g", s->score_max, s->score_min);
    return ST_OK;
}

static enum status ask_shape(const struct env_def *def, const struct gym_settings *s, struct env_shape *ret_shape,
                             struct error *err)
{
    struct gym_helper helper = GYM_HELPER_NONE;
    cJSON *task = gym_task(def, s, 0);
    char *text = json_print(task, false), description[DESCRIPTION_BYTES];
    enum status rc;

    cJSON_Delete(task);
    rc = gym_helper_start(&helper, s->python, text, -1, err);
    mem_free(text);
    THEN(rc, gym_helper_wait(&helper, "while it was asked what the environment is", s->timeout_s, err));
    if (rc == ST_OK) {
        gym_helper_text(&helper, description, sizeof description);
        rc = shape_of(description, ret_shape, err);
    }
    gym_helper_stop(&helper, 1.0);
    return rc;
}

/* Only these settings change what Python describes; the others may be searched, at no process for each point. */
static bool same_shape(const struct gym_settings *a, const struct gym_settings *b)
{
    return a->vector == b->vector && strcmp(a->python, b->python) == 0 && strcmp(a->path, b->path) == 0 &&
           strcmp(a->kwargs, b->kwargs) == 0;
}

static enum status gym_shape(const struct env_def *def, const void *settings, struct env_shape *ret_shape,
                             struct error *err)
{
    struct gym_env *env = (struct gym_env *)def;
    const struct gym_settings *s = settings;
    enum status rc;
    size_t i = 0;
    bool refused;

    if (check_settings(def->name, s, err) != ST_OK)
        return error_prefix(err, "%s", def->name);
    gym_name_numbers(def, settings);
    pthread_mutex_lock(&lock);
    while (i < env->n_shapes && !same_shape(&env->shapes[i].settings, s))
        i++;
    refused = i == env->n_shapes && clock_mono_s() < env->refused_until_s && same_shape(&env->refused, s);
    if (i < env->n_shapes) {
        *ret_shape = env->shapes[i].shape;
    } else if (!refused) {
        env->why = (struct error){0};
        refused = ask_shape(def, s, ret_shape, &env->why) != ST_OK;
        if (refused) {
            env->refused = *s;
            env->refused_until_s = clock_mono_s() + REFUSED_S;
        } else if (env->n_shapes < SHAPES_MAX) {
            env->shapes[env->n_shapes++] = (struct known_shape){.settings = *s, .shape = *ret_shape};
        }
    }
    rc = refused ? FAIL(err, env->why.status, "%s: %s", def->name, env->why.text) : ST_OK;
    pthread_mutex_unlock(&lock);
    ret_shape->byte_scale = (float)s->byte_scale;
    /* An even number of processes steps each half of the instances, one or an odd number only all of them. */
    ret_shape->undivided = gym_is_vector(def->name, s) && gym_processes(def->name, s, ret_shape) % 2 == 1;
    return rc;
}

/* ---- by name ---- */

static struct gym_env *make(const char *name, bool film)
{
    struct gym_env *env = mem_alloc(sizeof *env);
    size_t size = strlen(name) + 40;
    char *summary = mem_alloc(size);

    snprintf(summary, size, "%s's %s, stepped by Python", name[0] == 'e' ? "EnvPool" : "Gymnasium",
             strchr(name, ':') + 1);
    env->about = (struct env_about){summary, gym_defaults, COUNT(gym_defaults)};
    env->shapes = mem_array(SHAPES_MAX, sizeof *env->shapes);
    env->def = (struct env_def){
        .api_version = ENV_API_VERSION,
        .def_bytes = sizeof(struct env_def),
        .name = mem_strdup(name),
        .about = &env->about,
        .options = {.section = "env",
                    .title = "Environment of Gymnasium",
                    .defs = gym_defs,
                    .n_defs = COUNT(gym_defs),
                    .settings_size = sizeof(struct gym_settings)},
        .shape = gym_shape,
        .reset_range = gym_batch_reset,
        .observe_range = gym_batch_observe,
        .begin_range = gym_batch_begin,
        .step_range = gym_batch_step,
        .open = gym_batch_open,
        .close = gym_batch_close,
        .failed = gym_batch_failed,
        .outside_s = gym_batch_outside_s,
        .number_names = env->names,
        .take_numbers = gym_batch_take_numbers,
    };
    if (film) { /* nothing loads it */
        env->def.saved_bytes = gym_batch_film_bytes;
        env->def.save = gym_batch_film_save;
    }
    return env;
}

static const struct env_def *find(const char *name, bool film)
{
    struct gym_env *env;

    pthread_mutex_lock(&lock);
    for (env = gym_envs; env != NULL && (strcmp(env->def.name, name) != 0 || (env->def.save != NULL) != film);)
        env = env->next;
    if (env == NULL) {
        env = make(name, film);
        env->next = gym_envs;
        gym_envs = env;
    }
    pthread_mutex_unlock(&lock);
    return &env->def;
}

enum status gym_film(const char *name, const void *settings, const struct env_def **ret_def, struct error *err)
{
    struct env_shape shape = {0};

    if (strncmp(name, GYM_POOL_PREFIX, strlen(GYM_POOL_PREFIX)) == 0)
        return FAIL(err, ST_CONFIG, "%s: EnvPool gives no frames; a video shows a single environment of Gymnasium",
                    name);
    if (gym_is_vector(name, settings))
        return FAIL(err, ST_CONFIG,
                    "%s: a video shows a single environment, which env.vector does not step; --env.vector false does, "
                    "where its observations are the same",
                    name);
    *ret_def = find(name, true);
    return env_def_check(*ret_def, settings, 1, &shape, err);
}

enum status gym_open(const char *name, const struct env_def **ret_def, struct error *err)
{
    if (strchr(name, ':')[1] == '\0')
        return FAIL(err, ST_CONFIG,
                    "'%s' names no environment; an id of Gymnasium follows, like gym:CartPole-v1, or "
                    "gym:my_module:MyEnv for one of your own",
                    name);
    *ret_def = find(name, false);
    return ST_OK;
}
