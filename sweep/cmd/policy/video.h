/* video.h - `trawl eval --video`: a checkpoint's policy in its game, as a film. */
#pragma once

#include "base/base.h"

struct setup;

struct video_settings {
    const char *path; /* NULL: none is wanted */
    int64_t steps; /* decisions at most */
    int64_t seed;
    bool greedy;
};
enum status video_open(struct error *err) MUST_USE; /* cairo, which a video opens too */
/* Before an evaluation that takes long: does the game draw itself, is cairo there, can the file be written? */
enum status video_check(const struct video_settings *settings, const struct setup *setup, struct error *err) MUST_USE;
/* The first episode, or as much of it as `steps` are. */
enum status video_make(const char *checkpoint, const struct video_settings *settings, const struct setup *setup,
                       struct error *err) MUST_USE;
