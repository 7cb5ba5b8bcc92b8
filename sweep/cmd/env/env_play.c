/* env_play.c - `trawl env play`: a checkpoint's policy plays its game, a decision for each line of stdin; for pages. */
#include "envs/plugin/library.h"
#include "store/store.h"
#include "sweep/cli.h"
#include "sweep/cmd/env/env_commands.h"
#include "trainer/trainer.h"
#include "web/serve/policy_play.h"

#define LINE_MAX_BYTES (2u << 20)

static void put(struct strbuf *line, const char *key, double value)
{
    char buf[NUM_TEXT_MAX];
    bool number = value - value == 0.0; /* neither NaN nor infinite, which JSON cannot say */

    strbuf_addf(line, ",\"%s\":%s%s%s", key, number ? "" : "\"", number ? num_format_f64(value, buf) : "nan",
                number ? "" : "\"");
}

static enum status answer(struct policy_play *play, struct strbuf *line, struct error *err)
{
    struct player_frame f;

    strbuf_clear(line);
    strbuf_add(line, "{\"draw\":");
    TRY(policy_play_step(play, line, &f, err));
    strbuf_addf(line, ",\"step\":%lld,\"episode\":%lld,\"ended\":%s", (long long)f.step, (long long)f.episode,
                f.ended ? "true" : "false");
    put(line, "reward", f.reward);
    put(line, "ep_return", f.ep_return);
    put(line, "score", f.score);
    put(line, "perf", f.perf);
    put(line, "ep_length", f.ep_length);
    strbuf_add(line, "}\n");
    return strbuf_status(line, "a picture", err);
}

static enum status serve_lines(struct policy_play *play, FILE *out, struct error *err)
{
    double width, height;
    enum status rc = ST_OK;
    STRBUF(line, LINE_MAX_BYTES);

    policy_play_size(play, &width, &height);
    fprintf(out, "{\"width\":%.0f,\"height\":%.0f}\n", width, height);
    fflush(out);
    while (rc == ST_OK && getchar() != EOF) {
        rc = answer(play, &line, err);
        if (rc == ST_OK && (fputs(line.text, out) < 0 || fflush(out) != 0))
            break; /* nobody watches any more */
    }
    return rc;
}

static enum status play(const char *checkpoint, int64_t seed, bool greedy, FILE *out, struct error *err)
{
    struct trial trial = {.number = 0};
    struct policy_play *game = NULL;
    MEM_LOCAL char *config = NULL;

    TRY(checkpoint_read_config(checkpoint, &config, err));
    trial.config = config;
    env_limit_memory();
    env_libraries_run();
    enum status rc = policy_play_open(&game, &trial, checkpoint, seed, greedy, -1, err);
    THEN(rc, serve_lines(game, out, err));
    policy_play_close(game);
    return rc;
}

enum status env_play(int argc, char **argv, struct error *err)
{
    int64_t seed = 1;
    bool greedy = false;
    FILE *out;
    const struct cli_opt opts[] = {
        {"seed", 0, CLI_INT, &seed, "N", "seeds the game and the choices (1)"},
        {"greedy", 0, CLI_FLAG, &greedy, NULL, "take the likeliest action instead of sampling"},
    };
    const struct cli cli = {
        .name = "env play",
        .synopsis = "trawl env play CHECKPOINT [--seed N] [--greedy]",
        .about =
            "Plays a policy: prints the size of the picture, then for each line of stdin one decision, as a JSON\n"
            "object with the picture's shapes and the numbers of the step. `trawl serve` asks this of a child for\n"
            "games of libraries and for environments of Gymnasium, whose picture is what they render.",
        .examples = "  yes | trawl env play my_game.ckpt | head -100\n"
                    "  trawl env play my_game.ckpt --greedy    # then press Enter for each decision",
        CLI_OPTS(opts),
        CLI_WORDS(1, 1, "a checkpoint"),
    };

    CLI_PARSE(cli, words);
    TRY(env_keep_stdout(&out, err));
    enum status rc = play(words.v[0], seed, greedy, out, err);
    if (fclose(out) != 0 && rc == ST_OK)
        rc = FAIL(err, ST_IO, "env play: the answer could not be written");
    return rc;
}
