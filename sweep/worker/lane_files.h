/* lane_files.h - the checkpoint of a remote worker's trial: a file of its own, which travels from and to the
 * controller. Called by the lane's thread. */
#pragma once

#include "base/base.h"

struct lane;

void lane_files_begin(struct lane *lane); /* the trial's paths become places of our own */
enum status lane_files_send(struct lane *lane, struct error *err) MUST_USE; /* its checkpoint, chunk by chunk */
enum status lane_files_fetch(struct lane *lane, struct error *err) MUST_USE; /* what it resumes from; waits */
void lane_files_end(struct lane *lane); /* removes the file */
