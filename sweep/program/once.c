/* once.c - runs a program in the foreground. */
#include "sweep/program/once.h"

#include "sweep/program/trial_program.h"
#include "sweep/signals.h"

#define LOOK_MS 50 /* at whether a signal came */

enum status program_once(const struct trial_program *trial, struct program_end *ret_end, struct metric_line *ret_last,
                         struct error *err)
{
    struct program_run *run = NULL;
    bool ended = false;

    ret_last->n = 0;
    TRY(trial_program_start(trial, &run, err));
    MEM_LOCAL struct program_report *report = mem_alloc(sizeof *report);
    while (!ended) {
        ended = program_run_wait(run, LOOK_MS);
        while (program_run_report(run, report))
            metric_line_take(ret_last, &report->line, trial->metric);
        if (signals_stop())
            program_run_stop(run);
    }
    program_run_end(run, ret_end);
    program_run_destroy(run);
    return ST_OK;
}
