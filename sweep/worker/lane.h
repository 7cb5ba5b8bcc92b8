/* lane.h - the thread of a lane. */
#ifndef SWEEP_WORKER_LANE_H
#define SWEEP_WORKER_LANE_H

void *lane_main(void *lane);

#endif
