/* trial_field.c - see the header; a field's place in struct trial stands in its row. */
#include "web/text/trial_field.h"

#include "base/text/strbuf.h"
#include "store/store.h"
#include "web/text/put.h"

#include <math.h>

#define FIELD(member, kind)                                                                                            \
    {                                                                                                                  \
#member, kind, offsetof(struct trial, member)                                                                  \
    }

const struct trial_field trial_fields[TRIAL_FIELDS] = {
    FIELD(number, FIELD_I64),
    FIELD(score, FIELD_F64),
    FIELD(perf, FIELD_F64),
    FIELD(cost_s, FIELD_F64),
    FIELD(device_s, FIELD_F64),
    FIELD(env_steps, FIELD_I64),
    FIELD(seed, FIELD_I64),
    FIELD(attempt, FIELD_I64),
    FIELD(origin, FIELD_TEXT),
    FIELD(device, FIELD_TEXT),
    FIELD(reason, FIELD_TEXT),
    FIELD(created_ms, FIELD_TIME),
    FIELD(started_ms, FIELD_TIME),
    FIELD(finished_ms, FIELD_TIME),
    FIELD(slot, FIELD_TEXT),
    FIELD(cost_method, FIELD_TEXT),
    FIELD(deaths, FIELD_I64),
    FIELD(losses, FIELD_I64),
    FIELD(score_se, FIELD_F64),
    FIELD(eval_episodes, FIELD_I64),
    FIELD(eval_unfinished, FIELD_I64),
    FIELD(eval_s, FIELD_F64),
    FIELD(start_s, FIELD_F64),
    FIELD(program, FIELD_TEXT),
    {"vector_units", FIELD_TEXT, offsetof(struct trial, kernels)},
    FIELD(dropped, FIELD_TEXT),
    FIELD(note, FIELD_TEXT),
    FIELD(tags, FIELD_TEXT),
};

static const void *place(const struct trial_field *f, const struct trial *t)
{
    return (const char *)t + f->at;
}

const char *trial_field_text(const struct trial_field *f, const struct trial *t)
{
    return *(char *const *)place(f, t);
}

int64_t trial_field_i64(const struct trial_field *f, const struct trial *t)
{
    return *(const int64_t *)place(f, t);
}

double trial_field_number(const struct trial_field *f, const struct trial *t)
{
    if (f->kind == FIELD_F64)
        return *(const double *)place(f, t);
    int64_t value = trial_field_i64(f, t);
    return f->kind == FIELD_TIME && value == 0 ? (double)NAN : (double)value;
}

void put_trial_field(struct strbuf *out, const struct trial_field *f, const struct trial *t)
{
    if (f->kind == FIELD_TEXT)
        put_str(out, trial_field_text(f, t));
    else if (f->kind == FIELD_I64)
        put_json(out, "%lld", (long long)trial_field_i64(f, t));
    else
        put_f64(out, trial_field_number(f, t));
}
