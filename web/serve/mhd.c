/* mhd.c - see mhd.h. */
#include "web/serve/mhd.h"

struct mhd_calls mhd;

enum status mhd_open(struct error *err)
{
    static struct late_library library = {
        "libmicrohttpd.so.12", "libmicrohttpd12", MHD_EACH(LATE_NAME), &mhd, false, NULL};

    return late_open(&library, err);
}
