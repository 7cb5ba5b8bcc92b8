/* fuzz_config.c - any text as a config: it must be refused with a message, or survive being written and read again.
 *   CC=clang meson setup build-fuzz -Dfuzz=true -Dsanitize=address -Dcuda=disabled && ninja -C build-fuzz
 *   build-fuzz/tests/fuzz/fuzz_config -max_total_time=60 */

#include "base/config/config.h"
#include "trainer/trainer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static struct config *load(const char *text)
{
    struct config *config = config_create();
    struct error err = {0};
    enum status rc = config_add_table(config, &policy_opt_table, &err);

    if (rc == ST_OK)
        rc = config_add_table(config, &train_opt_table, &err);
    if (rc == ST_OK)
        rc = config_load_text(config, "fuzz", text, &err);
    if (rc == ST_OK)
        rc = config_resolve(config, &err);
    if (rc == ST_OK)
        return config;
    if (err.text[0] == '\0')
        abort(); /* refused without a word */
    config_destroy(config);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    MEM_LOCAL char *text = mem_alloc(n + 1);

    memcpy(text, bytes, n);
    struct config *config = load(text);
    STRBUF(out, CONFIG_FILE_MAX_BYTES);
    if (config != NULL && config_write_ini(config, false, true, &out, NULL) == ST_OK) {
        struct config *again = load(out.text);
        if (again == NULL)
            abort(); /* what we write must load */
        config_destroy(again);
    }
    config_destroy(config);
    return 0;
}
