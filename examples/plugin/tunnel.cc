/* tunnel.cc - a game in C++ whose instances own memory: each keeps the cells that it has dug in a std::set.
 *
 *   trawl env build examples/plugin/tunnel.cc && trawl env check ./tunnel.so && trawl train ./tunnel.so
 *
 * A digger moves left or right along a line and digs where it stands; a new cell gives 0.1, and the episode ends after
 * `steps` decisions. Observation: its place, whether the cells beside it are dug, and the share of time that is left.
 * Actions: 0 left, 1 right. score = cells dug, perf = score / (steps + 1).
 * The table is filled by hand: open makes a batch of objects, close frees them; without save and load a training that
 * resumes plays new episodes. */
#include <set>
#include <vector>

#include "trawl_env.h"

namespace {

struct Settings {
    int64_t steps;
};

struct Tunnel {
    rng stream;
    std::set<int> dug;
    int place, steps;
    double sum;

    void reset()
    {
        place = (int)rng_below(&stream, 21) - 10;
        steps = 0;
        sum = 0.0;
        dug = {place};
    }
};

using Batch = std::vector<Tunnel>;

void observe_one(const Settings *settings, const Tunnel &game, float *obs)
{
    obs[0] = (float)game.place / 16.0f;
    obs[1] = game.dug.count(game.place - 1) ? 1.0f : 0.0f;
    obs[2] = game.dug.count(game.place + 1) ? 1.0f : 0.0f;
    obs[3] = 1.0f - (float)game.steps / (float)settings->steps;
}

enum status shape(const env_def *, const void *, env_shape *ret_shape, error *)
{
    ret_shape->obs_size = 4;
    ret_shape->n_agents = 1;
    ret_shape->n_heads = 1;
    ret_shape->head_sizes[0] = 2;
    return ST_OK;
}

enum status open(const env_def *, const void *, size_t n_envs, void **ret_states, error *)
{
    *ret_states = new Batch(n_envs);
    return ST_OK;
}

void close(const void *, void *states, size_t)
{
    delete static_cast<Batch *>(states);
}

void reset(const void *, void *states, rng root, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        Tunnel &game = (*static_cast<Batch *>(states))[i];
        game.stream = rng_split(root, i);
        game.reset();
    }
}

void observe(const void *settings, const void *states, float *obs, uint8_t *, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        observe_one(static_cast<const Settings *>(settings), (*static_cast<const Batch *>(states))[i], obs + 4 * i);
}

void step(const void *settings, void *states, env_log *logs, const env_io *io, size_t from, size_t to)
{
    const Settings *s = static_cast<const Settings *>(settings);

    for (size_t i = from; i < to; i++) {
        Tunnel &game = (*static_cast<Batch *>(states))[i];
        game.place += io->actions[i] == 1 ? 1 : -1;
        io->rewards[i] = game.dug.insert(game.place).second ? 0.1f : 0.0f;
        game.sum += (double)io->rewards[i];
        io->terms[i] = ++game.steps == s->steps;
        io->truncs[i] = 0;
        if (io->terms[i] && !(logs[i].limit > 0.0 && logs[i].episodes >= logs[i].limit)) {
            logs[i].episodes += 1.0;
            logs[i].score += (double)game.dug.size();
            logs[i].perf += (double)game.dug.size() / (double)(s->steps + 1);
            logs[i].ep_return += game.sum;
            logs[i].ep_length += (double)game.steps;
        }
        if (io->terms[i])
            game.reset();
        observe_one(s, game, io->obs + 4 * i);
    }
}

const opt_def options[] = {
    OPT_ROW_INT(Settings, steps, "30", 1, 1000, OPT_FIXED, 0, 0, "steps", "Ends an episode after this many decisions."),
};
const env_about about = {"dig a tunnel as long as possible", nullptr, 0};

env_def table()
{
    env_def def = {};

    def.api_version = ENV_API_VERSION;
    def.def_bytes = sizeof def;
    def.name = "tunnel";
    def.about = &about;
    def.options.section = "env";
    def.options.title = "Environment: tunnel";
    def.options.defs = options;
    def.options.n_defs = 1;
    def.options.settings_size = sizeof(Settings);
    def.shape = shape;
    def.reset_range = reset;
    def.observe_range = observe;
    def.step_range = step;
    def.open = open;
    def.close = close;
    return def;
}

} // namespace

TRAWL_EXPORT const struct env_def *trawl_env(void)
{
    static const env_def def = table();
    return &def;
}
