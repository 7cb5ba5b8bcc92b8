/* trial_field.h - what the store keeps of every trial, by name: one table for lists, reports and their CSV. */
#pragma once

#include "base/base.h"

struct strbuf;
struct trial;

enum trial_field_kind { FIELD_TEXT, FIELD_F64, FIELD_I64, FIELD_TIME /* UTC milliseconds; 0: not yet */ };
struct trial_field {
    const char *name;
    enum trial_field_kind kind;
    size_t at; /* in struct trial */
};
#define TRIAL_FIELDS 28
#define TRIAL_FIELDS_OF_CSV 14 /* the first */
extern const struct trial_field trial_fields[TRIAL_FIELDS];

const char *trial_field_text(const struct trial_field *field, const struct trial *trial); /* of FIELD_TEXT */
int64_t trial_field_i64(const struct trial_field *field, const struct trial *trial); /* of FIELD_I64 and FIELD_TIME */
double trial_field_number(const struct trial_field *field,
                          const struct trial *trial); /* of all but texts; NaN: unknown */
/* As JSON; null where it is not known. */
void put_trial_field(struct strbuf *out, const struct trial_field *field, const struct trial *trial);
