/* health.c - back-off and quarantine.
 *
 *   death 1: again at once; 2, 3, ...: after HEALTH_BACKOFF_S, twice that, ...; HEALTH_MAX_DEATHS in a row: quarantine,
 *   for HEALTH_QUARANTINE_S, then one more try, then twice as long. A success resets all counts, and so does a life of
 *   HEALTH_QUARANTINE_S. Kills by others (not by us, for silence) have a count of their own: the same times, up to
 *   HEALTH_OUTSIDE_MAX_S.
 *
 * Invariant: what dies together counts once: eight workers of a host whose network fails are one death of the host. */
#include "sweep/supervise/health.h"

static double backoff_s(int deaths)
{
    return deaths > 1 ? HEALTH_BACKOFF_S * pow(2, deaths - 2) : 0;
}

enum health_verdict health_death(struct health *h, double began_s, enum health_cause cause, double now_s)
{
    if (h->died_s > 0 && began_s < h->died_s)
        return HEALTH_SAME;
    if (now_s - began_s >= HEALTH_QUARANTINE_S)
        health_success(h);
    h->died_s = now_s;
    if (cause == HEALTH_OUTSIDE) {
        h->kills++;
        h->retry_at_s = now_s + fmin(backoff_s(h->kills), HEALTH_OUTSIDE_MAX_S);
        return HEALTH_RETRY;
    }
    h->deaths++;
    if (h->deaths < HEALTH_MAX_DEATHS && cause != HEALTH_HOPELESS) {
        h->retry_at_s = now_s + backoff_s(h->deaths);
        return HEALTH_RETRY;
    }
    h->retry_at_s = now_s + fmin(HEALTH_QUARANTINE_S * pow(2, h->quarantines), HEALTH_QUARANTINE_MAX_S);
    h->quarantined = true;
    h->quarantines++;
    h->deaths = HEALTH_MAX_DEATHS - 1; /* one more try, then again */
    return HEALTH_QUARANTINED;
}

void health_success(struct health *h)
{
    h->deaths = h->kills = h->quarantines = 0;
}

bool health_may_start(const struct health *h, double now_s)
{
    return h->retry_at_s <= now_s;
}
