/* node_beat.h - a node's signs of life in its store, from a thread of their own: what waits for the store is not a sign
 * that the node is gone. The caller owns the beat; its calls may come from any one thread. */
#pragma once

#include "base/base.h"

struct node_beat;

enum status node_beat_start(struct node_beat **ret_beat, const char *store, const char *name, const char *job,
                            struct error *err) MUST_USE; /* texts are borrowed */
/* What it has opened; meets as in struct node. */
void node_beat_device(struct node_beat *beat, const char *device, const char *meets);
void node_beat_ready(struct node_beat *beat, int64_t slots); /* how many slots could have a trial now */
void node_beat_stop(struct node_beat *beat); /* the store no longer has the node; NULL is fine */
