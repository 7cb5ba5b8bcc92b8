/* play_child.h - a policy that plays a library's game, or an environment of Gymnasium, in a child process, `trawl env play`: a line there is a decision,
 * a line back is its picture and its numbers. One thread. */
#pragma once

#include "trainer/trainer.h"

struct strbuf;
struct play_child;

/* step_s: what its game may take for a step. stop_fd: every wait for the child ends when it is readable; -1: none. */
enum status play_child_open(struct play_child **ret_child, const char *checkpoint, int64_t seed, bool greedy,
                            double open_s, double step_s, int stop_fd, struct error *err) MUST_USE;
void play_child_close(struct play_child *child); /* NULL is fine */
void play_child_size(const struct play_child *child, double *ret_width, double *ret_height);
enum status play_child_step(struct play_child *child, struct strbuf *draw, struct player_frame *ret_frame,
                            struct error *err) MUST_USE;
