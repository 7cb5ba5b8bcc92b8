/* mhd.h - the functions of libmicrohttpd, which is opened when a server starts. */
#pragma once

#include "base/os/late.h"

#include <microhttpd.h>

#define MHD_EACH(F)                                                                                                    \
    F(MHD_, add_response_header)                                                                                       \
    F(MHD_, create_response_from_buffer)                                                                               \
    F(MHD_, create_response_from_buffer_with_free_callback_cls)                                                        \
    F(MHD_, create_response_from_callback)                                                                             \
    F(MHD_, destroy_response)                                                                                          \
    F(MHD_, get_connection_info)                                                                                       \
    F(MHD_, lookup_connection_value)                                                                                   \
    F(MHD_, queue_response)                                                                                            \
    F(MHD_, resume_connection)                                                                                         \
    F(MHD_, start_daemon)                                                                                              \
    F(MHD_, stop_daemon)                                                                                               \
    F(MHD_, suspend_connection)
struct mhd_calls {
    MHD_EACH(LATE_CALL)
};

extern struct mhd_calls mhd;
enum status mhd_open(struct error *err) MUST_USE; /* before any call */
