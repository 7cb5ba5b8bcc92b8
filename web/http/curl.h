/* curl.h - the functions of libcurl, which is opened by the first request or address. */
#pragma once

#include "base/os/late.h"

#include <curl/curl.h>

#define CURL_EACH(F)                                                                                                   \
    F(curl_, easy_cleanup)                                                                                             \
    F(curl_, easy_getinfo)                                                                                             \
    F(curl_, easy_init)                                                                                                \
    F(curl_, easy_perform)                                                                                             \
    F(curl_, easy_setopt)                                                                                              \
    F(curl_, easy_strerror)                                                                                            \
    F(curl_, free)                                                                                                     \
    F(curl_, getdate)                                                                                                  \
    F(curl_, global_init)                                                                                              \
    F(curl_, slist_append)                                                                                             \
    F(curl_, slist_free_all)                                                                                           \
    F(curl_, url)                                                                                                      \
    F(curl_, url_cleanup)                                                                                              \
    F(curl_, url_get)                                                                                                  \
    F(curl_, url_set)                                                                                                  \
    F(curl_, version)
struct curl_calls {
    CURL_EACH(LATE_CALL)
};

extern struct curl_calls curl;
enum status curl_open(struct error *err) MUST_USE; /* before any call */
