/* health.h - when a worker, or a host with several, may be started again after it died. Pure: a plain value and the
 * times that it is given. */
#pragma once

#include "base/base.h"

#define HEALTH_MAX_DEATHS 5
#define HEALTH_BACKOFF_S 0.5
#define HEALTH_OUTSIDE_MAX_S 10
#define HEALTH_QUARANTINE_S 600
#define HEALTH_QUARANTINE_MAX_S 7200

struct health {
    int deaths; /* in a row, without a success in between */
    int kills; /* the same, of those that came from outside */
    int quarantines; /* in a row */
    bool quarantined; /* until it is started again */
    double died_s; /* the last death that counted; 0: none */
    double retry_at_s;
};
enum health_verdict {
    HEALTH_SAME, /* one event with the last death: nothing changed */
    HEALTH_RETRY, /* from retry_at_s on */
    HEALTH_QUARANTINED,
};
enum health_cause {
    HEALTH_CRASH,
    HEALTH_HOPELESS, /* it never worked and named a reason, so that to try at once is in vain */
    HEALTH_OUTSIDE, /* it was killed or frozen from outside: the device is not to blame, and never quarantined */
};
/* began_s: start of what died. */
enum health_verdict health_death(struct health *health, double began_s, enum health_cause cause, double now_s);
void health_success(struct health *health);
bool health_may_start(const struct health *health, double now_s);
