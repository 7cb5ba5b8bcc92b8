/* check.h - checks on calls that return a status and fill an error; files of a test's own. */
#pragma once

#include "tests/unit_test.h"

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        struct error err_ = {0};                                                                                       \
        struct error *err = &err_;                                                                                     \
        enum status rc_ = (call);                                                                                      \
        if (rc_ != ST_OK)                                                                                              \
            fail_msg("%s:%d: %s: %s: %s", __FILE__, __LINE__, #call, status_name(rc_), err_.text);                     \
    } while (0)

/* The call must fail with this status, in the error too, and a text that holds `says`. */
#define FAILS(call, status_, says)                                                                                     \
    do {                                                                                                               \
        struct error err_ = {0};                                                                                       \
        struct error *err = &err_;                                                                                     \
        enum status rc_ = (call);                                                                                      \
        if (rc_ != (status_) || err_.status != rc_ || strstr(err_.text, (says)) == NULL)                               \
            fail_msg("%s:%d: %s: %s: \"%s\" is not in \"%s\"", __FILE__, __LINE__, #call, status_name(rc_), (says),    \
                     err_.text);                                                                                       \
    } while (0)

/* The path of a new, empty file, which is removed at the end of the block that declares it. */
#define TEMP_FILE(path)                                                                                                \
    __attribute__((cleanup(temp_file_remove))) char path[] = "/tmp/trawl-test-XXXXXX";                                 \
    close(mkstemp(path))

static inline void temp_file_remove(void *path)
{
    unlink(path);
}

/* A new folder, which is removed with all that it holds: at the end of the block that declares it, or by a fixture. */
#define TEMP_FOLDER(folder)                                                                                            \
    AT_END(temp_folder_remove) char folder[TEMP_FOLDER_MAX];                                                           \
    temp_folder_make(folder)
#define TEMP_FOLDER_MAX 32

static inline void temp_folder_make(char *folder)
{
    strcpy(folder, "/tmp/trawl-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static inline void temp_folder_remove(void *folder)
{
    char command[TEMP_FOLDER_MAX + 8];

    snprintf(command, sizeof command, "rm -rf %s", (const char *)folder);
    assert_int_equal(system(command), 0);
}
