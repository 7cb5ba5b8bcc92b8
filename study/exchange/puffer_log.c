/* puffer_log.c - reads the logs of PufferLib's runs.
 * {"train": {"learning_rate": 0.01, ...}, "vec": {...}, ..., "env_name": "breakout", "metrics": {"agent_steps": [...],
 * "uptime": [...], "env/score": [...], ...}}; while the run lasts "metrics" is empty or missing. */
#include "study/exchange/puffer_log.h"
#include "study/dialect/dialect.h"

#include <strings.h>

#define METRICS "metrics"

/* Python writes words for numbers that are not finite, which JSON does not have. */
static size_t odd_number(const char *at)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};

    for (size_t i = 0; i < COUNT(words); i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0)
            return strlen(words[i]);
    return 0;
}

enum status puffer_log_parse(const char *text, size_t n, cJSON **ret_log, struct error *err)
{
    bool quoted = false;
    STRBUF(clean, JSON_MAX_BYTES);

    for (size_t i = 0; i < n;) {
        size_t odd = quoted ? 0 : odd_number(text + i), step = odd > 0 ? odd : 1;
        if (quoted && text[i] == '\\' && i + 1 < n)
            step = 2;
        else if (text[i] == '"')
            quoted = !quoted;
        if (odd > 0)
            strbuf_add(&clean, "null");
        else
            strbuf_add_n(&clean, text + i, step);
        i += step;
    }
    TRY(strbuf_status(&clean, "the log", err));
    return json_parse(clean.text, clean.len, ret_log, err);
}

bool puffer_is_log(const cJSON *json)
{
    return cJSON_IsObject(json_get(json, METRICS)) ||
           (cJSON_IsObject(json_get(json, "train")) && cJSON_IsString(json_get(json, "env_name")));
}

const char *puffer_name(const char *key, size_t k)
{
    for (size_t i = 0; i < dialect_n_rows; i++)
        if (dialect_rows[i].how == DIALECT_AS && strcmp(dialect_rows[i].to, key) == 0 && k-- == 0)
            return dialect_rows[i].key;
    return NULL;
}

static bool is_scalar(const cJSON *value)
{
    return cJSON_IsNumber(value) || cJSON_IsString(value) || cJSON_IsBool(value);
}

static void add_option(cJSON *row, const char *section, const cJSON *value)
{
    char name[200];

    if (!is_scalar(value))
        return;
    snprintf(name, sizeof name, "%.90s.%.100s", section, value->string);
    json_add(row, name, cJSON_Duplicate(value, true));
}

/* What its files write in another way than one name for another (study/dialect/dialect_map.c). */
static void add_derived(cJSON *row)
{
    const char *network = json_get_str(row, "torch.network"), *rnn = json_get_str(row, "base.rnn_name");
    double n_vec, n_env = 1;

    if (json_get(row, "vec.total_agents") == NULL && json_get_f64(row, "vec.num_envs", &n_vec)) {
        (void)json_get_f64(row, "env.num_envs", &n_env);
        json_add_f64(row, "train.total_agents", n_vec * n_env);
    }
    if (network != NULL)
        json_add_str(row, "policy.core",
                     strcasecmp(network, "MinGRU") == 0 ? "mingru"
                     : strcasecmp(network, "LSTM") == 0 ? "lstm"
                                                        : "mlp");
    else if (rnn != NULL)
        json_add_str(row, "policy.core", strcasecmp(rnn, "None") == 0 ? "none" : "lstm");
}

cJSON *puffer_log_row(const cJSON *log)
{
    const cJSON *metrics = json_get(log, METRICS), *item;
    cJSON *row = cJSON_CreateObject();

    json_add_str(row, "state", metrics != NULL && metrics->child != NULL ? "done" : "running");
    cJSON_ArrayForEach(item, log)
    {
        const cJSON *value;
        if (item == metrics || strcmp(item->string, "sweep") == 0)
            continue;
        cJSON_ArrayForEach(value, item) add_option(row, item->string, value);
        add_option(row, "base", item);
    }
    add_derived(row);
    cJSON_ArrayForEach(item, metrics)
    {
        const cJSON *last =
            cJSON_IsArray(item) && item->child != NULL ? cJSON_GetArrayItem(item, cJSON_GetArraySize(item) - 1) : item;
        if (cJSON_IsNumber(last) || cJSON_IsNull(last))
            json_add_f64_any(row, item->string, cJSON_IsNumber(last) ? last->valuedouble : (double)NAN);
    }
    return row;
}
