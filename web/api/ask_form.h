/* ask_form.h - what the requests of ask/tell hold and what is answered, in one table: the controller checks requests by
 * it and /api/v1/openapi.json is written from it. Constant; any thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

enum ask_type {
    ASK_STR,
    ASK_NUM,
    ASK_INT, /* >= 0 */
    ASK_BOOL,
    ASK_NUMS, /* an object of numbers: metrics by name */
    ASK_OBJECT,
    ASK_STRS /* a list of texts; of answers alone */
};

struct ask_field {
    const char *name;
    enum ask_type type;
    bool required; /* of an answer: never null */
    const char *text;
};

enum ask_verb { ASK_ASK, ASK_REPORT, ASK_TELL, ASK_ENQUEUE, ASK_ADD, ASK_VERBS };

#define ASK_FIELDS_MAX 20
struct ask_form {
    const char *verb; /* "ask", as in trials:ask */
    bool of_trial; /* trials/N:VERB */
    const char *summary;
    struct ask_field body[ASK_FIELDS_MAX], answer[ASK_FIELDS_MAX]; /* up to the first without a name */
};
extern const struct ask_form ask_forms[ASK_VERBS];

/* ASK_VERBS: there is no such verb. */
enum ask_verb ask_verb_find(const char *verb);
/* ST_USAGE names the field that is missing, unknown or of another type. null counts as absent. */
enum status ask_body_check(enum ask_verb verb, const cJSON *body, struct error *err) MUST_USE;
