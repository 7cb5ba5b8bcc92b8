/* curl.c - see curl.h. */
#include "web/http/curl.h"

struct curl_calls curl;

enum status curl_open(struct error *err)
{
    static struct late_library libcurl = {"libcurl.so.4", "libcurl4", CURL_EACH(LATE_NAME), &curl, false, NULL};

    return late_open(&libcurl, err);
}
