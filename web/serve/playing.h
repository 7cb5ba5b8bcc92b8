/* playing.h - policies that play. */
#ifndef WEB_SERVE_PLAYING_H
#define WEB_SERVE_PLAYING_H

#include <microhttpd.h>

#include "base/status.h"

struct plays;
struct serve;

enum status plays_create(struct plays **ret_plays, struct serve *s, struct error *err) MUST_USE;
void plays_end(struct plays *plays); /* every stream ends */
void plays_destroy(struct plays *plays); /* after the last stream is freed */
struct request;
enum status play_response(struct serve *s, const struct request *r, struct MHD_Response **ret_response,
                          struct error *err) MUST_USE;

#endif
