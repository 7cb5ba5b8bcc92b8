/* answer_schema.h - what the answers of the API hold, for openapi.json. */
#pragma once

#include "base/text/json.h"

/* The JSON schema of the answer to a path of the table of routes; NULL: it is not JSON, or has none. The caller deletes
 * it. */
cJSON *answer_schema(const char *path);
cJSON *answer_schema_failure(void); /* {"error", "hint"} */
