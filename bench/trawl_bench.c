/* trawl_bench.c - trawl-bench: what measures Trawl and is not part of it. `trawl bench` measures games and training on a
 * machine. */
#include "bench/bench_commands.h"

static const struct command {
    const char *name, *summary;
    enum status (*run)(int argc, char **argv, struct error *err);
} commands[] = {
    {"kernels", "time every operation of a device, beside what its bytes and flops need", bench_kernels},
    {"sweep", "play studies on problems of which the truth is known: regret of each method", bench_sweep},
    {"front", "search the problems densely: the best known fronts", bench_front},
    {"promise", "studies with confirming runs: do picks keep their intervals?", bench_promise},
    {"evaluate", "a problem over a pipe, for methods in any language", bench_evaluate},
};

static void print_help(FILE *out)
{
    fputs("trawl-bench measures Trawl itself: kernels, and methods of search.\n\n"
          "usage: trawl-bench COMMAND [options]\n\ncommands:\n",
          out);
    for (size_t i = 0; i < COUNT(commands); i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fputs("\n`trawl-bench COMMAND --help` explains a command.\n", out);
}

int main(int argc, char **argv)
{
    struct error err = {0};

    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    for (size_t i = 0; i < COUNT(commands); i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        enum status rc = commands[i].run(argc - 1, argv + 1, &err);
        if (rc != ST_OK && err.text[0] != '\0')
            fprintf(stderr, "trawl-bench: %s\n", err.text);
        return status_exit_code(rc);
    }
    fprintf(stderr, "trawl-bench: no command '%s'; `trawl-bench --help` lists them\n", argv[1]);
    return 2;
}
