/* gym_settings.h - the options of an environment of Gymnasium (its rows: gym.c). (public) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/config/opt.h"

#define GYM_PREFIX "gym:" /* of its name; or */
#define GYM_POOL_PREFIX "envpool:"

struct gym_settings {
    char python[OPT_STR_MAX], path[OPT_STR_MAX], kwargs[OPT_STR_MAX], info[OPT_STR_MAX];
    int64_t processes;
    double timeout_s, score_min, score_max, byte_scale;
    bool vector;
    char unused[7]; /* settings compare as bytes */
};

#define GYM_FRAME_SIDE 640 /* of larger frames each pixel is a mean */
/* After the last step of an episode too, and not of the next one's first observation. */
struct gym_frame {
    int32_t height, width; /* even */
    uint32_t pixels[GYM_FRAME_SIDE * GYM_FRAME_SIDE]; /* (height, width) 0x00RRGGBB */
};

/* Can a score be scaled to perf? Else perf is NaN. */
static inline bool gym_has_range(const struct gym_settings *settings)
{
    return settings->score_max > settings->score_min;
}
