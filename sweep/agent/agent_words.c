/* agent_words.c - {argv} and {NAME} in the words of a command. The shell has cut the words already, so nothing is quoted or
 * cut here. */
#include "sweep/agent/agent_words.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/strbuf.h"
#include "base/words.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX_BYTES (1u << 20)
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

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
                             const struct agent_place *place, struct error *err)
{
    const cJSON *param = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(answer, "config"), "param");
    const cJSON *value = find(cJSON_GetObjectItemCaseSensitive(answer, "params"), name, n);

    if (words_same_name("config", name, n))
        strbuf_add(out, place->config);
    else if (words_same_name("dir", name, n))
        strbuf_add(out, place->dir);
    else if (words_same_name("study", name, n))
        strbuf_add(out, place->study);
    else if (words_same_name("trial", name, n) || words_same_name("seed", name, n))
        add_value(out, find(answer, name, n));
    else if (value != NULL || (value = find(param, name, n)) != NULL)
        add_value(out, value);
    else
        return FAIL(err, ST_USAGE,
                    "agent: {%.*s} in the command is no parameter of the study; there are {argv}, {config}, {dir}, "
                    "{study}, {trial}, {seed} and one for each parameter; {{%.*s}} is the plain text",
                    (int)n, name, (int)n, name);
    return ST_OK;
}

static enum status fill_word(struct strbuf *out, const char *at, const cJSON *answer, const struct agent_place *place,
                             struct error *err)
{
    while (*at != '\0') {
        size_t n = *at == '{' ? strspn(at + 1, NAME_CHARS) : 0;
        size_t plain = strncmp(at, "{{", 2) == 0 ? strspn(at + 2, NAME_CHARS) : 0;
        if (plain > 0 && strncmp(at + 2 + plain, "}}", 2) == 0) {
            strbuf_add_n(out, at + 1, plain + 2);
            at += plain + 4;
        } else if (n > 0 && at[1 + n] == '}' && !isdigit((unsigned char)at[1])) {
            TRY(fill_name(out, at + 1, n, answer, place, err));
            at += n + 2;
        } else {
            strbuf_add_n(out, at++, 1);
        }
    }
    return strbuf_status(out, "a word of the command", err);
}

static enum status fill(struct argv *argv, const char *word, const cJSON *answer, const struct agent_place *place,
                        struct error *err)
{
    const cJSON *item;
    struct strbuf out;
    enum status rc;

    if (strcmp(word, "{argv}") == 0) {
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(answer, "argv"))
        {
            if (cJSON_IsString(item))
                add(argv, mem_strdup(item->valuestring));
        }
        return ST_OK;
    }
    if (strstr(word, "{argv}") != NULL && strstr(word, "{{argv}}") == NULL)
        return FAIL(err, ST_USAGE, "agent: {argv} stands for several words and must stand alone, not in '%.80s'", word);
    strbuf_init(&out, WORD_MAX_BYTES);
    strbuf_add(&out, "");
    rc = fill_word(&out, word, answer, place, err);
    if (rc == ST_OK)
        add(argv, strbuf_take(&out));
    strbuf_free(&out);
    return rc;
}

enum status agent_words(const char *const *words, size_t n, const cJSON *answer, const struct agent_place *place,
                        char ***ret_argv, struct error *err)
{
    struct argv argv = {0};
    enum status rc = ST_OK;

    for (size_t i = 0; rc == ST_OK && i < n; i++)
        rc = fill(&argv, words[i], answer, place, err);
    add(&argv, NULL);
    if (rc != ST_OK) {
        agent_words_free(argv.v);
        return rc;
    }
    *ret_argv = argv.v;
    return ST_OK;
}

void agent_words_free(char **argv)
{
    for (size_t i = 0; argv != NULL && argv[i] != NULL; i++)
        mem_free(argv[i]);
    mem_free(argv);
}
