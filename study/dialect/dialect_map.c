/* dialect_map.c - the part of PufferLib's dialect that needs more than a row: agents, memory, seeds, batches, sweeps.
 * Each function sees the entries under PufferLib's names, with the version's defaults among them. */
#include "study/dialect/dialect.h"

#include <strings.h>

#define TEXT_BYTES 64
#define WHOLE_MAX 2147483647.0 /* two of them have a product */

static void remove_all(struct config *config, const char *key)
{
    for (size_t i = config_n_items(config); i-- > 0;)
        if (config_item(config, i).value != NULL && strcmp(config_item(config, i).key, key) == 0)
            config_remove(config, i);
}

/* A whole number under PufferLib's name; false: it is not set, or no whole number. */
static bool get_whole(const struct config *config, const char *key, int64_t *ret_number)
{
    const char *text = dialect_get(config, key);
    double number;

    if (text == NULL || !num_parse_f64(text, &number) || !(number >= 0 && number <= WHOLE_MAX))
        return false;
    *ret_number = (int64_t)number;
    return true;
}

static void refuse(struct dialect *dialect, const struct config *config, const char *key, const char *why)
{
    size_t i = dialect_find(config, key);

    if (i != DIALECT_NOT_SET) {
        struct config_item item = config_item(config, i);
        dialect_refuse(dialect, &item, why);
    }
}

static bool is_none(const char *text)
{
    return text == NULL || text[0] == '\0' || strcasecmp(text, "None") == 0;
}

/* Of all their names of the number of agents, the one that counts. 3.0: processes x games in each; 4.0: one number. */
static enum status map_agents(struct dialect *dialect, struct config *config, struct error *err)
{
    static const char *const parts[] = {"vec.num_envs", "env.num_envs"};
    bool has_total = dialect_is_set(config, "vec.total_agents") || dialect_is_set(config, "train.total_agents");
    bool is_own = config_find_opt(config, parts[1]) != NULL; /* a game of one's own has an option of that name */
    bool is_given = dialect_is_set(config, parts[0]) || (!is_own && dialect_is_set(config, parts[1]));
    int64_t n_vec = 1, n_env = 1;
    char text[TEXT_BYTES];

    if (dialect->version == DIALECT_4 || has_total) {
        for (size_t k = 0; k < 2; k++)
            if (dialect_is_set(config, parts[k]) && (k == 0 || !is_own))
                dialect_note(&dialect->changed, "%s is left out (agents are vec.total_agents)", parts[k]);
    } else if (dialect->version == DIALECT_3 || is_given) {
        for (size_t k = 0; k < 2; k++)
            if (dialect_get(config, parts[k]) != NULL && (k == 0 || !is_own) &&
                !get_whole(config, parts[k], k == 0 ? &n_vec : &n_env))
                refuse(dialect, config, parts[k], "a whole number is needed, at most 2147483647");
        snprintf(text, sizeof text, "%lld", (long long)(n_vec * n_env));
        if (is_given)
            dialect_note(&dialect->mapped, "vec.num_envs x env.num_envs -> train.total_agents = %s", text);
        TRY(dialect_default(dialect, config, "train.total_agents", text, err));
    }
    remove_all(config, parts[0]);
    if (!is_own)
        remove_all(config, parts[1]);
    return ST_OK;
}

/* The network between encoder and heads. 3.0 derives use_rnn from it, and a file may contradict it; 4.0 never reads
 * use_rnn, and some of its configs have a 0 beside its MinGRU. */
static enum status map_core(struct dialect *dialect, struct config *config, struct error *err)
{
    static const char hint[] = "there is no such network here; policy.core has none, mlp, mingru and lstm";
    const char *rnn = dialect_get(config, "base.rnn_name"), *net = dialect_get(config, "torch.network");
    const char *use_rnn = dialect_get(config, "train.use_rnn"), *core = NULL, *trained, *from = NULL;

    if (rnn != NULL || (dialect->has_defaults && dialect->version == DIALECT_3)) {
        core = is_none(rnn) ? "none" : dialect_same_value(rnn, "Recurrent|LSTMWrapper|LSTM") ? "lstm" : NULL;
        from = "base.rnn_name";
    } else if (net != NULL || (dialect->has_defaults && dialect->version == DIALECT_4)) {
        core = net == NULL || strcasecmp(net, "MinGRU") == 0 ? "mingru"
               : strcasecmp(net, "LSTM") == 0                ? "lstm"
               : strcasecmp(net, "MLP") == 0                 ? "mlp"
                                                             : NULL;
        from = "torch.network";
    } else if (use_rnn != NULL && dialect_same_value(use_rnn, "True|1")) { /* which one is not given */
        core = dialect->version == DIALECT_3 ? "lstm" : "mingru";
        from = "train.use_rnn";
    }
    if (from != NULL && core == NULL)
        refuse(dialect, config, from, hint);
    if (core != NULL) {
        TRY(dialect_default(dialect, config, "policy.core", core, err));
        if (dialect_is_set(config, from))
            dialect_note(&dialect->mapped, "%s -> policy.core = %s", from, core);
    }
    trained = config_peek(config, "policy.core");
    bool has_memory = trained != NULL && (strcasecmp(trained, "mingru") == 0 || strcasecmp(trained, "lstm") == 0);
    if (use_rnn == NULL || trained == NULL || dialect_same_value(use_rnn, "True|1") == has_memory)
        return ST_OK;
    if (dialect->version == DIALECT_4)
        dialect_note(&dialect->changed, "train.use_rnn = %s is left out (4.0 does not read it; policy.core = %s)",
                     use_rnn, trained);
    else
        refuse(dialect, config, "train.use_rnn",
               has_memory
                   ? "the network of this config has memory; remove the line, or set policy.core = none"
                   : "the network of this config has no memory; set policy.core = lstm or mingru, or remove the line");
    return ST_OK;
}

/* 4.0 reads base.seed and never train.seed. Where the game is under our name, train.seed is ours too. */
static void map_seed(struct dialect *dialect, struct config *config)
{
    bool counts = dialect->has_env_name || dialect_is_set(config, "base.seed"), gone = false;

    if (dialect->version != DIALECT_4 || !counts)
        return;
    for (size_t i = config_n_items(config); i-- > 0;) {
        struct config_item item = config_item(config, i);
        if (item.text == 0 || item.value == NULL || strcmp(item.key, "train.seed") != 0)
            continue;
        config_remove(config, i);
        gone = true;
    }
    if (gone)
        dialect_note(&dialect->changed, "train.seed is left out (4.0 takes base.seed = %s)",
                     dialect_get(config, "base.seed"));
}

/* 3.0: a rollout of batch_size steps, in segments of bptt_horizon, either of which may be auto. */
static enum status map_batch(struct dialect *dialect, struct config *config, struct error *err)
{
    size_t at = dialect_find(config, "train.bptt_horizon");
    const char *size = dialect_get(config, "train.batch_size");
    int64_t agents = 1, horizon = 0, batch = 0, minibatch = 0, most = 0;
    bool is_auto = at != DIALECT_NOT_SET && strcasecmp(config_item(config, at).value, "auto") == 0;
    char text[TEXT_BYTES];

    if (!get_whole(config, "train.total_agents", &agents))
        (void)get_whole(config, "vec.total_agents", &agents);
    if (!get_whole(config, "train.bptt_horizon", &horizon))
        (void)get_whole(config, "train.horizon", &horizon);
    if (get_whole(config, "train.batch_size", &batch)) {
        if (is_auto && agents > 0 && batch % agents == 0) {
            snprintf(text, sizeof text, "%lld", (long long)(batch / agents));
            TRY(config_edit(config, at, "train.horizon", text, err));
            dialect_note(&dialect->mapped, "train.batch_size / agents -> train.horizon = %s", text);
        } else if (is_auto || batch != agents * horizon) {
            snprintf(text, sizeof text, "%lld", (long long)(agents * horizon));
            refuse(dialect, config, "train.batch_size",
                   "a rollout is agents x horizon steps here; write auto, or change vec.num_envs or bptt_horizon");
        }
    } else if (size != NULL && strcasecmp(size, "auto") != 0 && !is_none(size)) {
        refuse(dialect, config, "train.batch_size", "a whole number is needed, at most 2147483647, or auto");
    } else if (is_auto) {
        refuse(dialect, config, "train.bptt_horizon", "with batch_size = auto a number is needed");
    }
    if (get_whole(config, "train.minibatch_size", &minibatch) && get_whole(config, "train.max_minibatch_size", &most) &&
        minibatch > most)
        dialect_note(&dialect->changed, "a minibatch of %lld is taken whole, not in pieces of %lld",
                     (long long)minibatch, (long long)most);
    return ST_OK;
}

/* A grid of size x size cells is one of 2n + 1. */
static enum status map_squared(struct dialect *dialect, struct config *config, struct error *err)
{
    for (size_t i = 0; i < config_n_items(config); i++) {
        struct config_item item = config_item(config, i);
        char text[TEXT_BYTES];
        double size;
        if (strcmp(item.key, "sweep.env.size") == 0)
            dialect_refuse(dialect, &item, "it cannot be swept under this name; write [sweep.env.n], size = 2n + 1");
        if (item.value == NULL || strcmp(item.key, "env.size") != 0)
            continue;
        if (!num_parse_f64(item.value, &size) || !(size >= 3 && size < 1e6) || (int64_t)size % 2 == 0) {
            dialect_refuse(dialect, &item, "a grid has 2n + 1 cells a side here: an odd number from 3 is needed");
            continue;
        }
        snprintf(text, sizeof text, "%lld", (long long)(((int64_t)size - 1) / 2));
        TRY(config_edit(config, i, "env.n", text, err));
        dialect_note(&dialect->mapped, "env.size -> env.n = %s", text);
    }
    return ST_OK;
}

/* 3.0 trains on cuda by default; here the default is the device that exists. */
static enum status map_device(struct dialect *dialect, struct config *config, struct error *err)
{
    for (size_t i = 0; dialect->version == DIALECT_3 && i < config_n_items(config); i++) {
        struct config_item item = config_item(config, i);
        if (item.text == 0 || item.value == NULL || strcmp(item.key, "train.device") != 0 ||
            strcasecmp(item.value, "cuda") != 0)
            continue;
        TRY(config_edit(config, i, NULL, "auto", err));
        dialect_note(&dialect->changed, "train.device = cuda is read as auto");
    }
    return ST_OK;
}

/* Is a word of the list part of the parameter's name? So PufferLib compares: eps also means total_timesteps. */
static bool is_listed(const char *param, const char *list)
{
    const char *name = strrchr(param, '.') != NULL ? strrchr(param, '.') + 1 : param;

    while (*list != '\0') {
        char word[CONFIG_KEY_MAX];
        list += strspn(list, ", \t");
        size_t n = strcspn(list, ", \t");
        snprintf(word, sizeof word, "%.*s", (int)n, list);
        if (word[0] != '\0' && strstr(name, word) != NULL)
            return true;
        list += n;
    }
    return false;
}

static enum status map_sweep_only(struct dialect *dialect, struct config *config, struct error *err)
{
    const char *only = dialect_get(config, "sweep.sweep_only");
    char list[OPT_STR_MAX];

    if (is_none(only))
        return ST_OK;
    snprintf(list, sizeof list, "%s", only);
    for (size_t i = 0; i < dialect_n_sweeps && !dialect_has_default_ini(config);
         i++) /* default.ini has a section for each */
        if ((dialect_sweeps[i].of & dialect->version) != 0 && is_listed(dialect_sweeps[i].key, list))
            TRY(dialect_default_sweep(dialect, config, &dialect_sweeps[i], err));
    for (size_t i = config_n_items(config); i-- > 0;) {
        struct config_item item = config_item(config, i);
        char param[CONFIG_KEY_MAX];
        const char *field;
        if (config_split_sweep(item.key, item.value != NULL, param, &field) && !is_listed(param, list))
            config_remove(config, i);
    }
    dialect_note(&dialect->mapped, "sweep.sweep_only: only %s are swept", list);
    return ST_OK;
}

/* [sweep.parameters.train.parameters.gamma] is the form of its versions before 3.0, which neither reads. */
static void drop_old_sweeps(struct dialect *dialect, struct config *config)
{
    bool is_given = false;

    for (size_t i = config_n_items(config); dialect->version != DIALECT_NONE && i-- > 0;)
        if (strncmp(config_item(config, i).key, "sweep.parameters.", 17) == 0) {
            config_remove(config, i);
            is_given = true;
        }
    if (is_given)
        dialect_note(&dialect->changed, "sweep.parameters is left out (the form of a sweep before 3.0)");
}

/* 4.0 does not read the numbers of games, so sweeping them has no effect there. */
static void drop_sweeps_of_games(const struct dialect *dialect, struct config *config)
{
    for (size_t i = config_n_items(config); dialect->version == DIALECT_4 && i-- > 0;) {
        const char *key = config_item(config, i).key;
        if (strncmp(key, "sweep.vec.num_envs", 18) == 0 ||
            (strncmp(key, "sweep.env.num_envs", 18) == 0 && config_find_opt(config, "env.num_envs") == NULL))
            config_remove(config, i);
    }
}

/* Its search begins with the config's own values and reads no mean. */
static void drop_means(struct dialect *dialect, struct config *config)
{
    bool is_given = false;

    for (size_t i = config_n_items(config); dialect->has_defaults && i-- > 0;) {
        char param[CONFIG_KEY_MAX];
        const char *field;
        if (!config_split_sweep(config_item(config, i).key, true, param, &field) || strcmp(field, "mean") != 0)
            continue;
        config_remove(config, i);
        is_given = true;
    }
    if (is_given)
        dialect_note(&dialect->changed, "mean of a sweep is left out (its first trial is the config itself)");
}

enum status dialect_map(struct dialect *dialect, struct config *config, const char *game, struct error *err)
{
    TRY(map_sweep_only(dialect, config, err));
    drop_old_sweeps(dialect, config);
    drop_sweeps_of_games(dialect, config);
    drop_means(dialect, config);
    map_seed(dialect, config);
    TRY(map_agents(dialect, config, err));
    TRY(map_core(dialect, config, err));
    TRY(map_batch(dialect, config, err));
    if (strcmp(game, "squared") == 0)
        TRY(map_squared(dialect, config, err));
    return map_device(dialect, config, err);
}
