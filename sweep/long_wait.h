/* long_wait.h - lines about a wait that has no end of its own: after a minute, and each time after twice as long, up to
 * an hour between two. */
#pragma once

struct long_wait {
    double since_s, next_s; /* of the monotonic clock; seconds waited until the next line */
};

void long_wait_begin(struct long_wait *wait); /* also again, when the wait is over */
/* "WHAT for 2m; still waiting", where a line is due. */
void long_wait_report(struct long_wait *wait, const char *what);
