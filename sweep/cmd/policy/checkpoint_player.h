/* checkpoint_player.h - a checkpoint's policy on one game of its own, on the CPU: what an export and a video begin
 * with. */
#pragma once

#include "base/base.h"

struct kern;
struct player;
struct setup;

struct checkpoint_player {
    struct setup *setup; /* owned, as all */
    struct kern *kern;
    struct player *player;
};
/* Starts zeroed; closed also after a failure. The game of a library is loaded into this process. */
enum status checkpoint_player_open(struct checkpoint_player *p, const char *checkpoint, int64_t seed, bool greedy,
                                   struct error *err) MUST_USE;
void checkpoint_player_close(struct checkpoint_player *p);
