/* log.c - level, sink and thread context of log lines. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#define LOG_LINE_MAX 2048

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the three below */
static log_sink_fn *sink;
static void *sink_ctx;
static enum log_level min_level = LOG_LEVEL_INFO;

static _Thread_local int64_t trial_number = -1;

void log_set_level(enum log_level level)
{
    pthread_mutex_lock(&lock);
    min_level = level;
    pthread_mutex_unlock(&lock);
}

void log_set_sink(log_sink_fn *new_sink, void *ctx)
{
    pthread_mutex_lock(&lock);
    sink = new_sink;
    sink_ctx = ctx;
    pthread_mutex_unlock(&lock);
}

void log_set_trial(int64_t number)
{
    trial_number = number;
}

void log_write(enum log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"debug", "info", "warning", "error"};
    char line[LOG_LINE_MAX];
    va_list args;
    int n = 0;

    if (trial_number >= 0)
        n = snprintf(line, sizeof line, "trial %lld: ", (long long)trial_number);
    va_start(args, fmt);
    vsnprintf(line + n, sizeof line - (size_t)n, fmt, args);
    va_end(args);

    pthread_mutex_lock(&lock);
    if (level >= min_level) {
        if (sink != NULL)
            sink(sink_ctx, level, line);
        else
            fprintf(stderr, "trawl: %s: %s\n", names[level], line);
    }
    pthread_mutex_unlock(&lock);
}
