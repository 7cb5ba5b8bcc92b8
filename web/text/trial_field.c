/* trial_field.c - see the header; a field's place in struct trial stands in its row. */
#include "web/text/trial_field.h"

#include "store/store.h"
#include "web/text/put.h"

/* The kind follows from the member's type, so that none is read as another. */
#define KIND(member)                                                                                                   \
    _Generic(((struct trial *)NULL)->member, char * : FIELD_TEXT, double : FIELD_F64, int64_t : FIELD_I64)
#define FIELD(member) #member, KIND(member), offsetof(struct trial, member)
#define TIME(member) #member, FIELD_TIME, offsetof(struct trial, member)

const struct trial_field trial_fields[TRIAL_FIELDS] = {
    {FIELD(number)},
    {FIELD(score)},
    {FIELD(perf)},
    {FIELD(cost_s)},
    {FIELD(device_s)},
    {FIELD(env_steps)},
    {FIELD(seed)},
    {FIELD(attempt)},
    {FIELD(origin)},
    {FIELD(device)},
    {FIELD(reason)},
    {TIME(created_ms)},
    {TIME(started_ms)},
    {TIME(finished_ms)},
    {FIELD(slot)},
    {FIELD(cost_method)},
    {FIELD(deaths)},
    {FIELD(losses)},
    {FIELD(score_se)},
    {FIELD(eval_episodes)},
    {FIELD(eval_unfinished)},
    {FIELD(eval_s)},
    {FIELD(start_s)},
    {FIELD(program)},
    {"vector_units", KIND(kernels), offsetof(struct trial, kernels)},
    {FIELD(dropped)},
    {FIELD(note)},
    {FIELD(tags)},
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
