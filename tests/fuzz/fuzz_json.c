/* fuzz_json.c - any bytes as JSON: refused with a message, or printed to something that parses to the same text.
 * Built and run like fuzz_config.c. */

#include "base/base.h"
#include "base/text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    cJSON *json = NULL;
    JSON_LOCAL cJSON *again = NULL;
    struct error err = {0};

    if (json_parse((const char *)bytes, n, &json, &err) != ST_OK) {
        if (err.text[0] == '\0')
            abort();
        return 0;
    }
    MEM_LOCAL char *text_again = NULL, *text = json_print(json, false);
    if (text == NULL || json_parse(text, strlen(text), &again, NULL) != ST_OK)
        abort();
    text_again = json_print(again, false);
    if (strcmp(text, text_again) != 0)
        abort();
    cJSON_Delete(json);
    return 0;
}
