/* lane.h - the thread of a lane: takes messages from its mailbox and trains. It owns its run and whatever of its trial
 * is not atomic. */
#ifndef SWEEP_WORKER_LANE_H
#define SWEEP_WORKER_LANE_H

void *lane_main(void *lane);

#endif
