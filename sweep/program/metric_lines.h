/* metric_lines.h - what a program reports about its training: lines `TRAWL score=0.91 step=1000 cost=12.5 loss=0.3` of
 * its output, or JSON objects, one a line, in a file. Plain functions of their input; any thread.
 * Others write into the same line: a progress bar or a logger may stand before TRAWL, colours around it. */
#pragma once

#include "base/base.h"

#define METRICS_MAX 60 /* of one report */
#define METRIC_NAME_BYTES 64

/* One report. step and cost are not metrics: when it was made, and what it had cost by then. */
struct metric_line {
    double step, cost; /* NaN: not given; cost in seconds, or what the program counts */
    bool has_cost; /* one was given, of any value */
    size_t n;
    struct {
        char name[METRIC_NAME_BYTES];
        double value; /* may be NaN or infinite */
    } metrics[METRICS_MAX];
};

/* Does the line (n bytes, without its end) hold the word TRAWL, with more after it? */
bool metric_line_is_marked(const char *line, size_t n);
/* False: it is not a report; a word of a report that is not a name=number is left out. The metric `score` is never the one
 * that has no place. */
bool metric_line_read(const char *line, size_t n, const char *score, struct metric_line *ret_line);
/* The same from {"score": 0.91, "step": 1000}; Python's NaN and Infinity are taken. */
bool metric_json_read(const char *line, size_t n, const char *score, struct metric_line *ret_line);
/* Takes the values of line that are known, as of a later report. */
void metric_line_take(struct metric_line *into, const struct metric_line *line, const char *score);
