/* playing.h - streams in which a trial's policy plays its game, one thread for each.
 * A stream owns its policy and ends with its client, or with plays_end. A missing trial or checkpoint is
 * play_response's status; what fails later ends the stream with a message in it. */
#pragma once

#include "base/base.h"

#include <microhttpd.h>

struct plays;
struct request;
struct serve;

struct plays *plays_create(void);
void plays_end(struct plays *plays); /* every stream ends */
void plays_destroy(struct plays *plays); /* after the last stream is freed */
/* The stream of the route `play`: its trial, checkpoint, seed and choice of actions come from the request. */
enum status play_response(struct serve *s, const struct request *r, struct MHD_Response **ret_response,
                          struct error *err) MUST_USE;
/* What such a stream sends, to be kept, appended: {"begin", "frames"} of the likeliest actions under seed 1; of a game
 * that pages can play (games/NAME.wasm) the policy itself in their place: {"begin", "policy", "settings", "frames": []}
 * by policy_play_export, in base64. ST_NOTFOUND: there is no checkpoint. */
struct strbuf;
enum status play_record(struct serve *s, const char *study, int64_t trial, int n_frames, struct strbuf *out,
                        struct error *err) MUST_USE;
