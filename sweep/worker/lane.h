/* lane.h - the thread of a lane: takes messages from its mailbox and trains. It owns its run and whatever of its trial
 * is not atomic. */
#pragma once

void *lane_main(void *lane);
