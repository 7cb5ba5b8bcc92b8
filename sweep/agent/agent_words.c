/* agent_words.c - {argv} and {NAME} in the words of a command. The shell has cut the words already, so nothing is
 * quoted or cut here. */
#include "sweep/agent/agent_words.h"

#include "study/program/program_command.h"
#include "study/program/program_settings.h"

#define WORD_MAX_BYTES (1u << 20)

struct argv {
    char **v; /* (n) and a NULL */
    size_t n, cap;
};

static void add(struct argv *a, char *word)
{
    MEM_ROOM(a->v, a->n, a->cap);
    a->v[a->n++] = word;
}

static const cJSON *find(const cJSON *object, const char *name, size_t n)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, object)
    {
        if (item->string != NULL && words_same_name(item->string, name, n))
            return item;
    }
    return NULL;
}

static void add_value(struct strbuf *out, const cJSON *value)
{
    char number[NUM_TEXT_MAX];

    if (cJSON_IsString(value))
        strbuf_add(out, value->valuestring);
    else if (cJSON_IsNumber(value) && value->valuedouble == rint(value->valuedouble) &&
             fabs(value->valuedouble) < 0x1p53)
        strbuf_addf(out, "%.0f", value->valuedouble); /* 1000000 and not 1e+06 */
    else if (cJSON_IsNumber(value))
        strbuf_add(out, num_format_f64(value->valuedouble, number));
    else if (cJSON_IsBool(value))
        strbuf_add(out, cJSON_IsTrue(value) ? "true" : "false");
}

static enum status fill_name(struct strbuf *out, const char *name, size_t n, const cJSON *answer,
                             const struct program_place *place, struct error *err)
{
    const cJSON *config = json_get(answer, "config"), *value;

    if (program_place_add(place, name, n, out))
        return ST_OK;
    value = find(json_get(answer, "params"), name, n);
    if (value == NULL)
        value = find(json_get(config, PROGRAM_SECTION), name, n);
    if (value == NULL)
        return FAIL(err, ST_USAGE,
                    "agent: {%.*s} in the command is not a parameter of the study; there are {argv}, {config}, {dir}, "
                    "{study}, {trial}, {seed}, {env} (of a study with sweep.envs) and one for each parameter; {{%.*s}} "
                    "is the plain text",
                    (int)n, name, (int)n, name);
    add_value(out, value);
    return ST_OK;
}

static enum status fill_word(struct strbuf *out, const char *at, const cJSON *answer, const struct program_place *place,
                             struct error *err)
{
    while (*at != '\0') {
        size_t n;
        switch (command_brace(at, &n)) {
        case COMMAND_ESCAPED:
            strbuf_add_n(out, at + 1, n + 2);
            at += n + 4;
            break;
        case COMMAND_NAME:
            TRY(fill_name(out, at + 1, n, answer, place, err));
            at += n + 2;
            break;
        case COMMAND_TEXT:
            strbuf_add_n(out, at++, 1);
        }
    }
    return strbuf_status(out, "a word of the command", err);
}

static enum status fill(struct argv *argv, const char *word, const cJSON *answer, const struct program_place *place,
                        struct error *err)
{
    const cJSON *item;

    if (strcmp(word, "{argv}") == 0) {
        cJSON_ArrayForEach(item, json_get(answer, "argv"))
        {
            if (cJSON_IsString(item))
                add(argv, mem_strdup(item->valuestring));
        }
        return ST_OK;
    }
    if (strstr(word, "{argv}") != NULL && strstr(word, "{{argv}}") == NULL)
        return FAIL(err, ST_USAGE, "agent: {argv} stands for several words and must stand alone, not in '%.80s'", word);
    STRBUF(out, WORD_MAX_BYTES);
    strbuf_add(&out, "");
    TRY(fill_word(&out, word, answer, place, err));
    add(argv, strbuf_take(&out));
    return ST_OK;
}

enum status agent_words(const char *const *words, size_t n, const cJSON *answer, const struct program_place *place,
                        char ***ret_argv, struct error *err)
{
    struct argv argv = {0};
    enum status rc = ST_OK;

    for (size_t i = 0; rc == ST_OK && i < n; i++)
        rc = fill(&argv, words[i], answer, place, err);
    add(&argv, NULL);
    if (rc != ST_OK) {
        program_argv_free(argv.v);
        return rc;
    }
    *ret_argv = argv.v;
    return ST_OK;
}
