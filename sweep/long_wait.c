/* long_wait.c - see long_wait.h. */
#include "sweep/long_wait.h"

#include "base/text/duration.h"

#define FIRST_S 60.0
#define MOST_S 3600.0

void long_wait_begin(struct long_wait *w)
{
    *w = (struct long_wait){clock_mono_s(), FIRST_S};
}

void long_wait_report(struct long_wait *w, const char *what)
{
    char text[32];

    if (clock_mono_s() - w->since_s < w->next_s)
        return;
    log_info("%s for %s; still waiting", what, format_seconds(w->next_s, text));
    w->next_s += fmin(w->next_s, MOST_S);
}
