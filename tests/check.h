/* check.h - checks on calls that return a status and fill an error. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        struct error err_ = {0};                                                                                       \
        struct error *err = &err_;                                                                                     \
        if ((call) != ST_OK)                                                                                           \
            fail_msg("%s: %s", #call, err_.text);                                                                      \
    } while (0)

/* The call must fail with this status and a text that holds `says`. */
#define FAILS(call, status, says)                                                                                      \
    do {                                                                                                               \
        struct error err_ = {0};                                                                                       \
        struct error *err = &err_;                                                                                     \
        assert_int_equal((call), (status));                                                                            \
        if (strstr(err_.text, (says)) == NULL)                                                                         \
            fail_msg("\"%s\" is not in \"%s\"", (says), err_.text);                                                    \
    } while (0)

#endif
