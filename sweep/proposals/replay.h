/* replay.h - the proposals of a stored study, made again from what each of them had seen. Reads the store alone. A
 * replay owns all it holds; one thread. */
#pragma once

#include "base/base.h"

struct replay;
struct store;

enum replay_outcome {
    REPLAY_SAME, /* the same values, to the byte, for the same reason */
    REPLAY_DIFFERS,
    REPLAY_UNRECORDED, /* proposed by an older Trawl, which did not keep what it had seen */
    REPLAY_GIVEN, /* not proposed: the config itself, a person's values, another game of a config, an import */
    REPLAY_OUTCOMES
};
struct replayed {
    int64_t number; /* of the trial */
    enum replay_outcome outcome;
    const char *origin, *params; /* as they are stored; the replay's until the next call */
    char now_origin[32];
    char *now_params; /* owned by the replay, as above; NULL: nothing was proposed now */
    char why[ERROR_TEXT_MAX]; /* why nothing was proposed now */
};

enum status replay_open(struct replay **ret_replay, struct store *store, const char *study, struct error *err) MUST_USE;
void replay_close(struct replay *replay); /* NULL is fine */
/* The next trial; a proposal that differs is not a failure. After the last one: ret->number is -1. */
enum status replay_next(struct replay *replay, struct replayed *ret, struct error *err) MUST_USE;
