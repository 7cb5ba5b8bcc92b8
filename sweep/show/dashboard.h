/* dashboard.h - shows the progress of `trawl train` on stderr. Texts are borrowed until dashboard_end; one thread. */
#pragma once

#include "base/base.h"

struct train_metrics;
struct train_settings;

struct dashboard {
    bool tty;
    const char *title;
    char device[256]; /* with the number of devices that train together */
    int64_t total_steps;
    double max_seconds;
};
void dashboard_begin(struct dashboard *d, const char *title, const char *device, const struct train_settings *train);
void dashboard_report(struct dashboard *d, const struct train_metrics *m);
void dashboard_end(struct dashboard *d);
