/* sweep_settings.c - the rows of the [sweep] options. */
#include "study/setup/sweep_settings.h"

#include "store/store.h"

static const struct opt_def sweep_defs[] = {
    OPT_ROW_ENUM(struct sweep_settings, method, "pareto", "pareto|random|sobol", OPT_FIXED,
                 "Chooses how the next trial is found: by a model of score and cost, at random, or evenly spread."),
    OPT_ROW_STR(
        struct sweep_settings, metric, "perf",
        "Names the logged number that is a trial's score: one that docs/metrics.md lists, or env/NAME, a number "
        "of the game's own."),
    OPT_ROW_STR(struct sweep_settings, objective, "",
                "Names a logged number that is a third objective beside score and cost, like memory, env_steps or a "
                "program's own (docs/pareto.md); empty: none."),
    OPT_ROW_ENUM(struct sweep_settings, objective_goal, "minimize", "minimize|maximize", OPT_FIXED,
                 "Sets whether a lower or a higher value of sweep.objective is better."),
    OPT_ROW_ENUM(struct sweep_settings, objective_scale, "linear", "linear|log", OPT_FIXED,
                 "Measures sweep.objective in hypervolume and models as it is, or by its logarithm, which suits memory "
                 "and times."),
    OPT_ROW_STR(struct sweep_settings, require, "",
                "Proposes only trials for which this holds: `train.minibatch_size <= train.total_agents * "
                "train.horizon`; with + - * / %, comparisons, and, or, not."),
    OPT_ROW_ENUM(struct sweep_settings, goal, "maximize", "maximize|minimize", OPT_FIXED,
                 "Sets whether a higher or a lower score is better."),
    OPT_ROW_INT(struct sweep_settings, trials, "0", 0, SWEEP_TRIALS_MAX, OPT_FIXED, 0, 0, "trials",
                "Ends the study at this many trials in all; 0: no limit, or 100 when there is no budget either."),
    OPT_ROW_STR(struct sweep_settings, budget, "0",
                "Ends the study at this much training time in all: 90s, 30m, 2h; 0: no limit."),
    OPT_ROW_STR(struct sweep_settings, wall_time, "0",
                "Ends the study after this much time with a controller running, over all runs of the controller: 8h; "
                "0: no limit."),
    OPT_ROW_STR(struct sweep_settings, device_time, "0",
                "Ends the study at this much device time over all trials: 24h; 0: no limit."),
    OPT_ROW_STR(struct sweep_settings, target, "",
                "Ends the study when its best config is expected to reach this score; empty: none."),
    OPT_ROW_FLOAT(struct sweep_settings, min_gain, "0", 0, 1e6, OPT_FIXED, 0, 0, "1/h",
                  "Ends the study when its hypervolume, of expected scores, grows by less than this share of itself "
                  "in an hour (0.01: 1 %); 0: off."),
    OPT_ROW_STR(struct sweep_settings, gain_window, "1h",
                "Measures sweep.min_gain over the last period of this length, in which at least 10 trials must have "
                "ended.",
                .depends = "sweep.min_gain > 0"),
    OPT_ROW_INT(struct sweep_settings, priority, "1", 1, STUDY_PRIORITY_MAX, OPT_FIXED, 0, 0, "",
                "Weighs the study's share of the devices against that of other studies."),
    OPT_ROW_INT(struct sweep_settings, seed, "1", 0, 4294967295.0, OPT_FIXED, 0, 0, "",
                "Seeds the proposals and, with the trial's number, each trial."),
    OPT_ROW_INT(
        struct sweep_settings, seeds, "1", 1, SWEEP_SEEDS_MAX, OPT_FIXED, 0, 0, "runs",
        "Trains each configuration under this many seeds and takes the mean; a beaten configuration gets no further "
        "seeds. Each run is a trial: sweep.trials counts runs."),
    OPT_ROW_INT(
        struct sweep_settings, branches, "0", 0, SWEEP_BRANCHES_MAX, OPT_FIXED, 0, 0, "trials",
        "Evaluates each run at this many shorter lengths on its way, from the smallest train.total_timesteps of "
        "the search on; each is a trial of its own, with the run's cost up to that point. For runs that contain "
        "shorter ones (train.decay_steps)."),
    OPT_ROW_STR(
        struct sweep_settings, branches_length, "",
        "Names the parameter of a program that is the number of steps of a run, in the steps that it reports. Setting "
        "it states that its schedule allows branches: a run is the beginning of every longer one; empty: it does not.",
        .depends = "sweep.branches > 0"),
    OPT_ROW_STR(
        struct sweep_settings, envs, "",
        "Trains each configuration on all of these games, `pong, breakout`: one trial a game, of which the mean "
        "counts, as perf or another share; empty: env.name alone."),
    OPT_ROW_INT(
        struct sweep_settings, n_init, "0", 0, 10000, OPT_FIXED, 0, 0, "trials",
        "Spreads this many configurations evenly before the model proposes; 0: five more than dimensions, at most 10.",
        .depends = "sweep.method = pareto"),
    OPT_ROW_FLOAT(struct sweep_settings, max_cost, "0", 0, 1e9, OPT_FIXED, 0, 0, "s",
                  "Proposes trials that are predicted to cost less, in units of sweep.cost; the first trials "
                  "(n_init) know no costs, and if all are too expensive the cheapest is proposed; 0: no cap.",
                  .depends = "sweep.method = pareto"),
    OPT_ROW_BOOL(struct sweep_settings, stop_overruns, "true",
                 "Stops a trial that has cost far more than predicted (97.5 % of such runs, and twice the expected "
                 "cost) and can no longer reach more than another has for less; its score is kept.",
                 .depends = "sweep.method = pareto"),
    OPT_ROW_ENUM(struct sweep_settings, cost, "wall", "wall|device|env_steps|own", OPT_FIXED,
                 "Sets what counts as a trial's cost: seconds of training by the clock, seconds of its device, env "
                 "steps, or own: what a program reports as cost, in any unit."),
    OPT_ROW_FLOAT(
        struct sweep_settings, confirm, "0.2", 0, 0.5, OPT_FIXED, 0, 0, NULL,
        "Runs the recommended configs (best, knee, front) again under fresh seeds, the most uncertain first, for "
        "at most this share of the study's budget; 0: never."),
    OPT_ROW_INT(struct sweep_settings, max_failures, "10", 0, 1e6, OPT_FIXED, 0, 0, "trials",
                "Stops the sweep after this many failed trials in a row; 0: never."),
    OPT_ROW_ENUM(
        struct sweep_settings, keep, "none", "none|front|all", OPT_FIXED,
        "Keeps checkpoints of finished trials beside the store: none, those on the front and the last few, or all."),
    OPT_ROW_FLOAT(struct sweep_settings, checkpoint_interval_s, "300", 0, 1e9, OPT_FIXED, 0, 0, "s",
                  "Saves a running trial this often, so that it can resume after a crash; 0: only when it is stopped."),
    OPT_ROW_STR(
        struct sweep_settings, devices, "auto",
        "Names the devices for trials: auto (every GPU, else the CPU), cpu, cuda:all, a list like cuda:0,cuda:1, other "
        "machines as ssh:HOST, slurm:gpu=1*16 or cmd:COMMAND (docs/many-machines.md), or none: only nodes and "
        "outside clients get trials (docs/own-trainer.md)."),
    OPT_ROW_STR(struct sweep_settings, launcher, "none",
                "Starts nodes for waiting trials, in addition to sweep.devices: slurm:gpu=1/partition=long*16 "
                "keeps up to 16 jobs of sbatch, each a `trawl node` (docs/many-machines.md); none: no nodes."),
    OPT_ROW_STR(struct sweep_settings, device_costs, "alike",
                "Sets how seconds on different devices compare: alike: the study uses devices of one kind only; any: "
                "all count the same; or a factor for each kind, by the beginning of its name: NVIDIA H200=1, NVIDIA "
                "A100=0.55."),
    OPT_ROW_STR(struct sweep_settings, ssh, "ssh",
                "Runs this command, which may have options, for devices like ssh:HOST."),
    OPT_ROW_STR(struct sweep_settings, remote_program, "trawl",
                "Names the program on other machines; it must be of the same build."),
    OPT_ROW_INT(
        struct sweep_settings, runs_per_device, "1", 1, SWEEP_LANES_MAX, OPT_FIXED, 0, 0, "trials",
        "Runs this many trials at a time on each device; on a CPU each has its own share of the cores, so there can "
        "be no more than cores (unless sweep.cost is env_steps)."),
    OPT_ROW_FLOAT(struct sweep_settings, hang_timeout_s, "600", 0, 1e9, OPT_FIXED, 0, 0, "s",
                  "Regards a trial as hung after this long without progress, and replaces its worker; 0: never."),
    OPT_ROW_FLOAT(struct sweep_settings, lease_s, "60", 1, 86400, OPT_FIXED, 0, 0, "s",
                  "Waits this long for a report of a client that trains a trial elsewhere (docs/own-trainer.md), then "
                  "gives the trial to another."),
    OPT_ROW_STR(
        struct sweep_settings, worker_memory, "auto",
        "Limits the memory of a worker process: bytes like 4G, 0 for no limit, or auto: its share of nine tenths "
        "of the machine, or of its container."),
};
const struct opt_table sweep_opt_table = {
    .section = "sweep",
    .title = "Sweep",
    .defs = sweep_defs,
    .n_defs = COUNT(sweep_defs),
    .settings_size = sizeof(struct sweep_settings),
};

bool sweep_option_is_apart(const char *key)
{
    static const char *const names[] = {"trials",
                                        "budget",
                                        "wall_time",
                                        "device_time",
                                        "target",
                                        "min_gain",
                                        "priority",
                                        "devices",
                                        "launcher",
                                        "ssh",
                                        "directory",
                                        "remote_program",
                                        "runs_per_device",
                                        "hang_timeout_s",
                                        "worker_memory",
                                        "keep",
                                        "checkpoint_interval_s"};

    for (size_t i = 0; strncmp(key, "sweep.", 6) == 0 && i < COUNT(names); i++)
        if (strcmp(names[i], key + 6) == 0)
            return true;
    return false;
}
