/* policy_play.h - a trial's policy playing its game, drawn. A play owns all it needs; one thread at a time. */
#pragma once

#include "trainer/trainer.h"

struct strbuf;
struct trial;

struct policy_play;
/* The first state is drawn. trial must have its config. stop_fd: where another thread may end the play, which then waits
 * for no child any more, while it is readable; -1: none. Borrowed. */
enum status policy_play_open(struct policy_play **ret_play, const struct trial *trial, const char *checkpoint,
                             int64_t seed, bool greedy, int stop_fd, struct error *err) MUST_USE;
void policy_play_close(struct policy_play *play); /* NULL is fine */
const char *policy_play_env(const struct policy_play *play); /* the game's name; the play's */
void policy_play_size(const struct policy_play *play, double *ret_width, double *ret_height); /* of the picture */
/* One decision; adds the drawing commands of docs/http-api.md as one JSON array. */
enum status policy_play_step(struct policy_play *play, struct strbuf *draw, struct player_frame *ret_frame,
                             struct error *err) MUST_USE;
/* The policy as a file of safetensors and the game's settings as they lie in memory, appended each, for a page that
 * plays it by itself. ST_NOTFOUND: a game of a library, or frames that are stacked. */
enum status policy_play_export(struct policy_play *play, struct strbuf *policy, struct strbuf *settings,
                               struct error *err) MUST_USE;
