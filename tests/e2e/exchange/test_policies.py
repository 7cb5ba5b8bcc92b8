"""Policies that leave Trawl: as ONNX, safetensors and a C header, each against what Trawl's own policy gave; and videos.

The case with onnxruntime needs its package: of `tools/test --servers`, or of the Python that TRAWL_ONNX names."""
import base64
import json
import math
import os
import pathlib
import re
import struct
import subprocess

import tap
from tap import equal, fails, run, write
from test_gym import TINY, gone, mine

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
HEADER = ROOT / "trainer" / "export"

# A grid of noise; levers: two choices with a mask; dials: a choice and two numbers; many: a choice and 63 numbers; bytes: levers whose noise is bytes; beside: a
# smaller grid and a list; mixed: the same in bytes, the list's last five floats.
LEVERS = '''
#ifndef LEVERS_H
#define LEVERS_H
MASK
#include "trawl_env.h"
struct levers_settings { int64_t unused; };
struct levers_state { struct rng rng; float seen[40]; int32_t at, unused; };
ENV_FN void levers_shape(const struct levers_settings *settings, struct env_shape *ret)
{
    (void)settings;
    ret->obs_size = 40, ret->height = 4, ret->width = 5, ret->channels = 2;
    ret->u8 = BYTES;
    ret->n_floats = FLOATS;
    ret->byte_scale = 50.0f;
    ret->n_agents = 1;
    ret->n_heads = NUMBERS ? NUMBERS + 1 : 2;
    ret->has_mask = !NUMBERS;
    ret->head_sizes[0] = 3;
    ret->head_sizes[1] = NUMBERS ? 0 : 4;
    for (int j = 1; NUMBERS && j <= NUMBERS; j++)
        ret->head_sizes[j] = 0, ret->low[j] = -1.5f * (float)j, ret->high[j] = 4.0f;
}
ENV_FN void levers_look(struct levers_state *state)
{
    for (int i = 0; i < 40; i++)
        state->seen[i] = 4.0f * rng_f32(&state->rng) - 1.0f;
}
ENV_FN void levers_reset(const struct levers_settings *settings, struct levers_state *state)
{
    (void)settings;
    state->at = 0;
    levers_look(state);
}
ENV_FN void levers_step(const struct levers_settings *settings, struct levers_state *state, const int32_t *actions,
                        struct env_step *step)
{
    (void)settings;
    step->rewards[0] = actions[0] == 1 ? 1.0f : 0.0f;
    step->ended = ++state->at == 7;
    levers_look(state);
}
ENV_FN void levers_mask(const struct levers_settings *settings, const struct levers_state *state, int agent, uint8_t *mask)
{
    (void)settings, (void)agent;
    for (int i = 0; i < 7; i++) /* at times nothing of a head is allowed */
        mask[i] = state->at % 3 == 2 ? i > 3 : state->seen[i] > 0.5f;
}
#if BYTES
ENV_FN void levers_observe(const struct levers_settings *settings, const struct levers_state *state, int agent, uint8_t *obs)
#else
ENV_OBS_FN void levers_observe(const struct levers_settings *settings, const struct levers_state *state, int agent, env_obs *obs)
#endif
{
    (void)settings, (void)agent;
    for (int i = 0; i < 40 - FLOATS; i++)
        obs[i] = BYTES ? (int)(30.0f * (state->seen[i] + 1.0f)) : state->seen[i];
    for (int i = 0; i < FLOATS; i++)
        env_floats((uint8_t *)(void *)obs, 40 - FLOATS)[i] = state->seen[40 - FLOATS + i];
}
#ifndef __CUDACC__
static const struct opt_def levers_options[] = {
    OPT_ROW_INT(struct levers_settings, unused, "0", 0, 1, OPT_FIXED, 0, 0, "", "Is not used."),
};
static const struct env_about levers_about = {"noise and levers", NULL, 0};
static inline void levers_draw(const struct levers_settings *settings, const struct levers_state *state, struct env_picture *p)
{
    (void)settings;
    p->width = p->height = 70;
    env_draw_circle(p, 10.0 * state->at, 35, 5, ENV_OWN);
}
#endif
#endif
'''

CONV = ["--policy.encoder", "conv", "--policy.conv_channels", "8"]
CASES = {  # name: options of the training
    "mlp": ["--policy.num_layers", "2", "--policy.activation", "tanh"],
    "linear": ["--policy.core", "none", "--policy.encoder_activation", "none"],
    "mingru": ["--policy.core", "mingru", "--policy.num_layers", "2"],
    "lstm": ["--policy.core", "lstm", "--policy.num_layers", "2", "--policy.norm_obs", "true"],
    "conv": CONV + ["--policy.conv_stride", "2"],
    "conv_mingru": CONV + ["--policy.core", "mingru", "--policy.norm_obs", "true", "--policy.conv_layers", "3"],
    "bins": ["--policy.value_bins", "21", "--policy.value_max", "30"],
    "bytes_linear": ["--policy.num_layers", "1"],
    "bytes_conv": CONV + ["--policy.core", "mingru", "--env.frame_stack", "2"],
    "beside": CONV + ["--policy.norm_obs", "true", "--env.frame_stack", "3"],
    "mixed": CONV + ["--policy.core", "mingru", "--policy.norm_obs", "true", "--env.frame_stack", "2"],
    "mixed_conv": CONV + ["--policy.num_layers", "1"],
    "mixed_linear": ["--policy.num_layers", "1"],
    "single": ["--policy.core", "mingru"],
    "numbers": [],
    "numbers_state": ["--policy.action_std", "state", "--policy.action_bounds", "tanh",
                      "--policy.core", "lstm", "--policy.value_net", "separate"],
    "many": ["--train.learning_rate", "0.001"],
    "numbers_scaled": ["--policy.norm_obs", "true", "--policy.action_std_init", "0.3", "--policy.value_net", "separate"],
}
SMALL = ["-q", "--train.total_timesteps", "4096", "--train.total_agents", "16", "--train.horizon", "16",
         "--train.minibatch_size", "256", "--policy.hidden_size", "24", "--train.threads", "1", "--train.learning_rate", "0.05",
         "--train.eval_episodes", "1", "--train.device", "cpu"]

# Reads decisions as numbers: begins, obs, mask; writes a line of action, outputs, state, and of the last one's draws.
CHECK = r'''
#include MINE
#ifndef PATH
#include "trawl_policy.h"
#endif
int main(int argc, char **argv)
{
    struct trawl_policy p;
    float obs[128] = {0}, out[256] = {0}, action[TRAWL_POLICY_HEADS], drawn[TRAWL_POLICY_HEADS], uniform[2 * TRAWL_POLICY_HEADS];
    unsigned char mask[64];
    int begins, masked = argc > 2, tries = 1000, lines = 0;
    if (argc < 2 || OPEN) { puts("refused"); return 3; }
    float *state = (float *)calloc(p.state_size + 1, sizeof *state);
    while (scanf("%d", &begins) == 1) {
        for (size_t i = 0; i < p.obs_size; i++)
            if (scanf("%f", &obs[i]) != 1) return 4;
        for (size_t i = 0, bit; masked && i < p.n_columns; i++, mask[i - 1] = (unsigned char)bit)
            if (scanf("%zu", &bit) != 1) return 4;
        if (begins) memset(state, 0, p.state_size * sizeof *state);
        trawl_policy_forward(&p, state, obs, out);
        trawl_policy_act(&p, out, masked ? mask : NULL, NULL, action);
        for (size_t i = 0; i < p.n_heads; i++) printf("%.9g ", action[i]);
        for (size_t i = 0; i < p.n_columns; i++) printf("%.9g ", out[i]);
        printf("%.9g ", trawl_policy_value(&p, out));
        for (size_t i = 0; i < p.state_size; i++) printf("%.9g ", state[i]);
        puts("");
        lines++;
    }
    if (lines == 0) { /* just a try */
        if (p.obs_size <= 128 && p.n_out <= 256) trawl_policy_forward(&p, state, obs, out);
        tries = p.n_columns < 64;
    }
    for (int t = 0; t < tries; t++) { /* head h gets (t + 1/2) / tries and a cosine of 1: draws in order of their probability */
        for (size_t h = 0; h < p.n_heads; h++) uniform[2 * h] = ((float)t + 0.5f) / (float)tries, uniform[2 * h + 1] = 0;
        trawl_policy_act(&p, out, masked ? mask : NULL, uniform, drawn);
        for (size_t h = 0; h < p.n_heads; h++) printf("%.9g ", drawn[h]);
    }
    puts("");
    free(state);
    trawl_policy_close(&p);
    return 0;
}
'''


def near(a, b, what, within=2e-5):
    equal(len(a), len(b))
    for x, y in zip(a, b):
        assert abs(x - y) <= within * max(1.0, abs(y)), "%s: %r, Trawl's own is %r" % (what, x, y)


def head_sizes(line):
    """0: a number, which has two columns, mean and log std."""
    return [3, len(line["mask"]) - 3] if "mask" in line else [3] + [0] * ((len(line["columns"]) - 3) // 2)


def trained(folder, name, options):
    """A checkpoint with weights of some training, and 64 of its decisions."""
    checkpoint = folder / (name + ".ckpt")
    game = {"numbers": "dials", "many": "many", "bytes": "bytes", "beside": "beside", "mixed": "mixed", "single": "single"}.get(name.split("_")[0], "levers")
    run("train", folder / (game + ".so"), *SMALL, *options, "-o", checkpoint, cwd=folder)
    run("export", checkpoint, "-o", folder / (name + ".safetensors"), "--samples", folder / (name + ".jsonl"), cwd=folder)
    lines = [json.loads(line) for line in (folder / (name + ".jsonl")).read_text().splitlines()]
    equal(len(lines), 64)
    assert 1 < sum(line["begins"] for line in lines) < 64
    return checkpoint, lines


def compiled(folder, name, options=(), **defines):
    source = write(folder, "check.c", CHECK)
    flags = ["-D%s=%s" % item for item in defines.items()]
    for compiler, standard in (("cc", "-std=c99"), ("c++", "-std=c++17")):
        subprocess.run([compiler, standard, "-x", "c" if compiler == "cc" else "c++", "-O1", "-Wall", "-Wextra", "-Werror", *options, *flags,
                        "-I", HEADER, "-o", folder / name, source, "-lm"], check=True)
    return folder / name


def softmax(logits, allowed):
    top = max(x for x, ok in zip(logits, allowed) if ok)
    weights = [math.exp(x - top) * ok for x, ok in zip(logits, allowed)]
    return [w / sum(weights) for w in weights]


def heads_of(lines, sizes):
    """(first column, size, allowed choices) of each head of the last decision."""
    at = 0
    for size in sizes:
        allowed = lines[-1].get("mask", [1] * 99)[at:at + size] if size else []
        yield at, size, allowed if any(allowed) else [1] * size
        at += size or 1


def check_draws(lines, sizes, drawn):
    columns, n = lines[-1]["columns"], len(drawn) // len(sizes)
    at_std = len(columns) - sum(size == 0 for size in sizes)
    for j, (at, size, allowed) in enumerate(heads_of(lines, sizes)):
        own = drawn[j::len(sizes)]
        if size == 0:  # above the mean by the deviation times the Rayleigh distribution's quantile, within the range
            assert own == sorted(own) and own[-1] > own[0], own[:3]
            at_std += 1
            continue
        for choice, p in enumerate(softmax(columns[at:at + size], allowed)):
            assert abs(own.count(choice) / n - p) <= 2 / n, (choice, p, own.count(choice))


def check_c(program, lines, *arguments):
    words = []
    for line in lines:
        words.append(" ".join(map(repr, [int(line["begins"]), *line["obs"], *line.get("mask", [])])))
    masked = ["mask"] if "mask" in lines[0] else []
    done = subprocess.run([program, *arguments, *masked], input="\n".join(words), capture_output=True, text=True, check=True)
    rows = [[float(x) for x in row.split()] for row in done.stdout.splitlines()]
    equal(len(rows), len(lines) + 1)
    sizes = head_sizes(lines[0])
    for line, row in zip(lines, rows):
        state = [x for key in sorted(line) if key.startswith("state_") for x in line[key]]
        near(row[len(sizes):], line["columns"] + line["value"] + state, "the C header")
    for j, (at, size, allowed) in enumerate(heads_of(lines, sizes)):
        got, columns = rows[-2][j], lines[-1]["columns"]
        if size:
            equal(got, max((x, -i) for i, x in enumerate(columns[at:at + size]) if allowed[i])[1] * -1)
    check_draws(lines, sizes, rows[-1])


def build_game(folder):
    masked = "#define ENV_GAME_HAS_MASK\n"
    of_bytes = masked + "#define ENV_GAME_BYTES"
    for name, numbers, bytes_too, floats, wide, macros in (
            ("levers", "0", "0", "0", "5", masked), ("dials", "2", "0", "0", "5", ""), ("many", "63", "0", "0", "5", ""), ("bytes", "0", "1", "0", "5", of_bytes),
            ("single", "0", "0", "0", "5", masked), ("beside", "0", "0", "0", "4", masked), ("mixed", "0", "1", "5", "4", of_bytes)):
        text = LEVERS.replace("NUMBERS", numbers).replace("BYTES", bytes_too).replace("FLOATS", floats).replace("MASK", macros)
        text = text.replace("width = 5, ret", "width = %s, ret" % wide).replace("levers", name)
        if name == "single":  # its second head has one choice
            text = text.replace("0 ? 0 : 4;", "1;").replace("i < 7", "i < 4")
        write(folder, name + ".h", text)
        run("env", "build", name + ".h", "--gpu", "no", cwd=folder)


def test_every_kind_of_policy_by_the_c_header(folder):
    build_game(folder)
    program = compiled(folder, "check", MINE="<stdio.h>", OPEN="trawl_policy_load(&p, argv[1])")
    for name, options in CASES.items():
        _, lines = trained(folder, name, options)
        check_c(program, lines, folder / (name + ".safetensors"))


def test_a_policy_within_a_header(folder):
    build_game(folder)
    checkpoint, lines = trained(folder, "conv_mingru", CASES["conv_mingru"])
    run("export", checkpoint, "-o", folder / "my-lever.h", cwd=folder)
    n = (folder / "conv_mingru.safetensors").stat().st_size
    program = compiled(folder, "check", PATH="1", MINE='"' + str(folder / "my-lever.h") + '"',
                       OPEN="!argv || trawl_policy_open(&p, my_lever_policy.bytes, %d)" % n)
    check_c(program, lines, "unused")


def test_safetensors_are_what_they_say(folder):
    build_game(folder)
    checkpoint, _ = trained(folder, "lstm", CASES["lstm"])
    data = (folder / "lstm.safetensors").read_bytes()
    n, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + n])
    equal(n % 8, 0)
    equal(head.pop("__metadata__")["format"], "trawl-policy")
    end = 0
    for tensor in head.values():
        equal((tensor["dtype"], tensor["data_offsets"][0]), ("F32", end))
        end = tensor["data_offsets"][1]
        equal(end - tensor["data_offsets"][0], 4 * math.prod(tensor["shape"]))
    equal(len(data), 8 + n + end)
    equal(head["core.1.weight_hh"]["shape"], [96, 24])
    equal(head["obs.scale"]["shape"], [40, 2])
    program = compiled(folder, "check", MINE="<stdio.h>", OPEN="trawl_policy_load(&p, argv[1])")
    for name, bad in (("cut", data[:-4]), ("more", data + b"0000"), ("head", data[:8 + n // 2]), ("empty", b""), ("text", b"x" * 99),
                      ("huge", b"\xff" * 8 + data[8:])):
        path = folder / name
        path.write_bytes(bad)
        equal(subprocess.run([program, path], capture_output=True, text=True).returncode, 3)


def test_a_wrong_description_is_refused(folder):
    """Any digit of the layout changed: refused, or a policy that is read within its bounds."""
    build_game(folder)
    program = compiled(folder, "check", ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"], MINE="<stdio.h>",
                       OPEN="trawl_policy_load(&p, argv[1])")
    trained(folder, "conv_mingru", CASES["conv_mingru"])
    data = (folder / "conv_mingru.safetensors").read_bytes()
    begin = data.index(b'"layout":"') + 10
    layout = data[begin:data.index(b'"', begin)]
    codes = []
    for at, old in enumerate(layout):
        for new in {ord("0"), ord("9"), ord("-")} if chr(old).isdigit() else ():
            (folder / "bad").write_bytes(data[:begin + at] + bytes([new]) + data[begin + at + 1:])
            done = subprocess.run([program, folder / "bad"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            assert done.returncode in (0, 3), (layout[:at], chr(new), done.stderr[-2000:])
            codes.append(done.returncode)
    assert codes.count(3) > 40 and 0 in codes, codes  # a digit instead of itself, low and high are read


def test_what_is_no_policy_is_refused(folder):
    write(folder, "a.ckpt", "no checkpoint")
    run("train", "squared", *SMALL, "-o", folder / "real.ckpt", cwd=folder)
    fails("export", "a.ckpt", "-o", "a.onnx", code=1, says=["a.ckpt", "not a Trawl checkpoint"], cwd=folder)
    fails("export", "none.ckpt", "-o", "a.onnx", code=1, says="none.ckpt", cwd=folder)
    fails("export", "real.ckpt", code=2, says=".safetensors", cwd=folder)
    fails("export", "real.ckpt", "-f", "csv", code=2, says="onnx, safetensors or header", cwd=folder)
    fails("export", "real.ckpt", "-p", "best", "-o", "a.onnx", code=2, says="--pick", cwd=folder)
    fails("export", "study", "--samples", "s", code=2, says="--samples", cwd=folder)
    fails("export", "study", "-o", "a.onnx", code=1, says="trawl.db", cwd=folder)
    equal(sorted(path.name for path in folder.iterdir()), ["a.ckpt", "real.ckpt"])


def test_a_trials_policy_is_exported(folder):
    """By the rules of `export`, from the checkpoint that the trial left; its config has the same weights."""
    write(folder, "sweep.ini", tap.TINY_SWEEP)
    run("sweep", "sweep.ini", "--trials", "3", "--store", "s.db", "--name", "a", "--sweep.keep", "all", cwd=folder)
    run("export", "a", "--store", "s.db", "--pick", "trial=1", "-o", "it.safetensors", cwd=folder)
    run("export", "a", "--store", "s.db", "--pick", "trial=1", "-o", "it.ini", cwd=folder)
    run("train", "it.ini", "-q", "-o", "it.ckpt", cwd=folder)
    equal((folder / "it.safetensors").read_bytes(), numbers_of(folder, folder / "it.ckpt"))
    run("sweep", "sweep.ini", "--trials", "2", "--store", "s.db", "--name", "b", cwd=folder)
    fails("export", "b", "--store", "s.db", "--pick", "trial=0", "-o", "b.onnx", code=1, says=["left no checkpoint", "sweep.keep"],
          cwd=folder)


def numbers_of(folder, checkpoint):
    """The bytes of a checkpoint's policy."""
    run("export", checkpoint, "-o", folder / "numbers.safetensors", cwd=folder)
    return (folder / "numbers.safetensors").read_bytes()


STILL = ["--train.learning_rate", "0", "--train.total_timesteps", "512"]  # two rollouts that change no weight


def test_training_starts_from_a_policy(folder):
    """Other agents, optimiser and seed; weights and what observations were normalised by come along, and no more is needed."""
    first = folder / "first.ckpt"
    run("train", "cartpole", *SMALL, "--policy.norm_obs", "true", "-o", first, cwd=folder)
    shape = ["--policy.norm_obs", "true"]
    made = []
    for seed, more in (("2", []), ("3", ["--train.optimizer", "adam", "--train.total_agents", "64", "--train.horizon", "8"])):
        checkpoint = folder / (seed + ".ckpt")
        run("train", "cartpole", *SMALL, *shape, *STILL, "--train.seed", seed, *more, "--from-policy", "first.ckpt", "-o", checkpoint,
            cwd=folder)
        made.append(numbers_of(folder, checkpoint))
    at = 8 + struct.unpack("<Q", made[0][:8])[0]
    scale = at + 4 * 2 * 4
    source = numbers_of(folder, first)
    equal(made[0][scale:], source[scale:])  # the weights
    equal(made[1][scale:], source[scale:])
    near(struct.unpack("<8f", made[0][at:scale]), struct.unpack("<8f", source[at:scale]), "scale of observations", within=0.2)
    run("train", "cartpole", *SMALL, *shape, *STILL, "--train.seed", "2", "-o", folder / "fresh.ckpt", cwd=folder)
    assert numbers_of(folder, folder / "fresh.ckpt")[scale:] != source[scale:]
    first.rename(folder / "gone")  # neither resuming nor playing asks for it
    run("train", "--resume", "2.ckpt", "-q", "--train.total_timesteps", "1024", cwd=folder)
    run("eval", "2.ckpt", cwd=folder)
    fails("train", "cartpole", *SMALL, *shape, "--from-policy", first, code=1, says=["train.from_policy", "first.ckpt"], cwd=folder)
    fails("train", "cartpole", "--from-policy", "nowhere.ckpt", code=2, says="nowhere.ckpt", cwd=folder)
    fails("train", "--resume", "2.ckpt", "--from-policy", "2.ckpt", code=2, says="give one of them", cwd=folder)


def test_a_policy_of_another_shape_is_refused_with_both(folder):
    run("train", "cartpole", *SMALL, "-o", folder / "it.ckpt", cwd=folder)
    cases = ((["--policy.hidden_size", "32"], ["policy.hidden_size 24", "has 32"]),
             (["--policy.value_net", "separate"], ["policy.value_net shared", "has separate"]),
             (["--policy.core", "lstm"], ["policy.core mlp", "has lstm"]),
             (["--policy.norm_obs", "true"], ["policy.norm_obs false", "has true"]))
    for options, says in cases:
        fails("train", "cartpole", *SMALL, *options, "--from-policy", "it.ckpt", code=2, says=["it.ckpt", *says], cwd=folder)
    fails("train", "pendulum", *SMALL, "--from-policy", "it.ckpt", code=2, says=["observation size 4", "has 3"], cwd=folder)


def test_a_sweep_starts_from_a_policy(folder):
    """The path is that of the config file's folder, and stands whole in each trial's config."""
    (folder / "there").mkdir()
    text = tap.TINY_SWEEP.replace("[train]", "[train]\nfrom_policy = it.ckpt").replace("[sweep.policy.hidden_size]\nmin = 4\nmax = 16", "")
    run("train", write(folder, "first.ini", tap.TINY), "-q", "-o", folder / "there" / "it.ckpt", cwd=folder)
    write(folder / "there", "sweep.ini", text)
    run("sweep", folder / "there" / "sweep.ini", "--trials", "2", "--store", "s.db", "--name", "a", cwd=folder)
    trials = tap.show(folder / "s.db", "a")["trials"]
    equal([t["state"] for t in trials], ["done", "done"])
    out, _ = run("export", "a", "--store", "s.db", "--pick", "trial=0", cwd=folder)
    assert "from_policy = %s" % (folder / "there" / "it.ckpt").resolve() in out, out
    (folder / "there" / "it.ckpt").unlink()
    subprocess.run([tap.TRAWL, "sweep", "--resume", "a", "--trials", "3", "--store", "s.db"], cwd=folder, capture_output=True)
    lost = tap.show(folder / "s.db", "a")["trials"][2]
    equal(lost["state"], "failed")
    assert any("train.from_policy" in v and "it.ckpt" in v for v in lost.values() if isinstance(v, str)), lost


def gif_blocks(data, at):
    """The bytes of sub-blocks, and where they end."""
    out = b""
    while data[at]:
        out += data[at + 1:at + 1 + data[at]]
        at += 1 + data[at]
    return out, at + 1


def gif_pixels(data, bits, n):
    """Decompressed indices of an image (LZW)."""
    clear, out, stream, at = 1 << bits, [], int.from_bytes(data, "little"), 0
    table, width, last = [], bits + 1, None
    while len(out) < n:
        code, at = stream >> at & ((1 << width) - 1), at + width
        if code == clear:
            table, width, last = [[i] for i in range(clear)] + [None, None], bits + 1, None
            continue
        assert code != clear + 1, "ended after %d of %d pixels" % (len(out), n)
        entry = table[code] if code < len(table) else last + last[:1]
        if last is not None and len(table) < 4096:
            table.append(last + entry[:1])
        out += entry
        last = entry
        if len(table) == 1 << width and width < 12:
            width += 1
    return out


def read_gif(path):
    """(width, height, frames of colours, delays in 1/100 s, is it shown again and again)"""
    data = path.read_bytes()
    equal(data[:6], b"GIF89a")
    width, height, flags = struct.unpack("<HHB", data[6:11])
    equal(flags & 0x80, 0)  # each frame has a palette of its own
    at, frames, delays, loops, canvas = 13, [], [], False, [None] * (width * height)
    while data[at] != 0x3b:
        if data[at] == 0x21:
            block, end = gif_blocks(data, at + 2)
            loops = loops or block == b"NETSCAPE2.0\1\0\0"
            delays += [struct.unpack("<H", block[1:3])[0]] if data[at + 1] == 0xf9 else []
            at = end
            continue
        equal(data[at], 0x2c)
        x, y, w, h, flags = struct.unpack("<HHHHB", data[at + 1:at + 10])
        n_colours, at = 2 << (flags & 7), at + 10
        palette = [tuple(data[at + 3 * i:at + 3 * i + 3]) for i in range(n_colours)]
        bits, at = data[at + 3 * n_colours], at + 3 * n_colours + 1
        block, at = gif_blocks(data, at)
        pixels = gif_pixels(block, bits, w * h)
        for row in range(h):
            canvas[(y + row) * width + x:(y + row) * width + x + w] = [palette[i] for i in pixels[row * w:(row + 1) * w]]
        frames.append(list(canvas))
    equal(at + 1, len(data))
    return width, height, frames, delays, loops


BACKGROUND, OWN = (0xf1, 0xf3, 0xf5), (0x0b, 0x64, 0xb8)


def test_a_video_shows_the_game(folder):
    """levers draws a circle of 5 at (10 at, 35) of 70 x 70, and its episode has 7 steps."""
    build_game(folder)
    run("train", folder / "levers.so", *SMALL, "-o", "it.ckpt", cwd=folder)
    _, said = run("eval", "it.ckpt", "--video", "it.gif", cwd=folder)
    assert "an episode of 7 steps" in said, said
    width, height, frames, delays, loops = read_gif(folder / "it.gif")
    equal((width, height, len(frames), set(delays), loops), (640, 640, 8, {4}, True))
    scale = 640 / 70
    for step, frame in enumerate(frames):
        for at in range(7):
            seen = frame[320 * 640 + min(639, int(10 * at * scale) + (4 if at == 0 else 0))]
            equal(seen, OWN if at == min(step, 6) else BACKGROUND)
    write(folder, "libcairo.so.2", "no library")
    out, said = run("eval", "it.ckpt", "--video", "it.gif", code=1, cwd=folder, env={**os.environ, "LD_LIBRARY_PATH": str(folder)})
    assert "install the package libcairo2" in said and "score" not in out + said  # before it plays
    run("eval", "it.ckpt", "--video", "short.gif", "--video-steps", "2", cwd=folder)
    equal(len(read_gif(folder / "short.gif")[2]), 3)
    # snakes end alone: one that dies first does not end the film
    run("train", "snake", *SMALL, "-o", "snake.ckpt", cwd=folder)
    steps, ends = re.search(r"(\d+) steps, (\d+) of which ended episodes", run("eval", "snake.ckpt", "--video", "snake.gif", cwd=folder)[1]).groups()
    assert ends == "16" or (steps == "1000" and int(ends) > 1), (steps, ends)


def with_ffmpeg(folder, script):
    """An environment in which the program ffmpeg is this script."""
    (folder / "bin").mkdir(exist_ok=True)
    write(folder / "bin", "ffmpeg", "#!/bin/sh\n" + script).chmod(0o755)
    return {**os.environ, "PATH": "%s:%s" % (folder / "bin", os.environ["PATH"])}


def test_an_mp4_goes_through_ffmpeg(folder):
    run("train", "cartpole", *SMALL, "-o", "it.ckpt", cwd=folder)
    video = ["eval", "it.ckpt", "-n", "2", "--video", "it.mp4", "--video-steps", "5"]
    env = with_ffmpeg(folder, 'echo "$*" >said; for last; do :; done; cat >"$last"')
    run(*video, cwd=folder, env=env)
    words = (folder / "said").read_text().split()
    width, height = map(int, words[words.index("-s") + 1].split("x"))
    equal((words[words.index("-pix_fmt") + 1], words[words.index("-r") + 1], width % 2, height % 2), ("bgr0", "25", 0, 0))
    data = (folder / "it.mp4").read_bytes()  # what ffmpeg was given
    equal(len(data), 6 * width * height * 4)
    equal(data[:3], bytes(reversed(BACKGROUND)))
    (folder / "it.mp4").unlink()
    for script, says in (("cat >/dev/null; exit 3", "failed to write it.mp4"), ("exit 3", "ffmpeg")):
        fails(*video, cwd=folder, env=with_ffmpeg(folder, script), code=1, says=says)
    fails(*video, cwd=folder, env={**os.environ, "PATH": str(folder)}, code=1, says=["ffmpeg", "not on the PATH", ".gif"])
    fails("eval", "it.ckpt", "--video", "it.avi", code=2, says=[".gif", ".mp4"], cwd=folder)
    fails("eval", "it.ckpt", "--video", "it.gif", "--video-steps", "0", code=2, says="at least 1", cwd=folder)
    equal(sorted(path.name for path in folder.iterdir()), ["bin", "it.ckpt", "said"])


FILMED = '''
import time
import boards, numpy as np


class Filmed(boards.Guess):
    """A frame is of one colour, the step's; a large one of three columns again and again."""
    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, size=(6, 9), render_mode=None, fault=None):
        super().__init__()
        self.size, self.render_mode, self.wrong = size, render_mode, fault

    def render(self):
        assert self.render_mode == "rgb_array"
        frame = np.empty((*self.size, 3), np.uint8)
        frame[:] = 20 * self.at, 200, 0
        if self.size[1] > 640:
            frame[:, :, 2] = np.arange(self.size[1]) % 3 * 3
        if self.wrong == "noise":
            frame = np.random.default_rng(self.at).integers(0, 256, frame.shape, np.uint8)
        if self.wrong == "hang" and self.at == 3:
            time.sleep(10000)
        if self.wrong == "render" and self.at == 3:
            raise RuntimeError("no paint")
        return frame.astype(self.wrong) if self.wrong == "float" else frame[:len(frame) - 2 * (self.wrong == "size" and self.at == 3)]


class Said(boards.Guess):
    metadata = {"render_modes": ["ansi"]}

    def __init__(self, render_mode=None):
        super().__init__()
'''


def test_a_video_of_gymnasium(folder):
    """Each frame that it renders, the last one of the episode too; what cannot be filmed is said before the evaluation."""
    python = mine(folder)
    write(folder, "films.py", FILMED)
    run("train", "gym:films:Filmed", *python, *TINY, "-q", "-o", "it.ckpt", cwd=folder)
    env = with_ffmpeg(folder, 'echo "$*" >said; for last; do :; done; cat >"$last"')
    _, said = run("eval", "it.ckpt", "-n", 2, "--video", "it.gif", cwd=folder)
    assert "an episode of 8 steps" in said, said
    width, height, frames, _, _ = read_gif(folder / "it.gif")
    equal((width, height), (8, 6))  # of even sides
    equal(frames, [[(20 * at, 200, 0)] * 48 for at in range(9)])
    run("eval", "it.ckpt", "-n", 2, "--video", "it.mp4", "--env.kwargs", '{"size": [20, 1281]}', cwd=folder, env=env)
    assert " -s 426x6 " in (folder / "said").read_text()  # each pixel is the mean of 3 x 3
    equal((folder / "it.mp4").read_bytes(), b"".join(bytes([3, 200, 20 * at, 0]) * 426 * 6 for at in range(9)))
    film = ["eval", "it.ckpt", "-n", 2, "--video", "no.gif", "--env.kwargs"]
    fails(*film, '{"fault": "render"}', code=1, says=["gym:films:Filmed", "no paint", "in the step of instance 0"], cwd=folder)
    fails(*film, '{"fault": "size"}', code=2, says="a frame has 8 x 4 pixels, the one before 8 x 6", cwd=folder)
    said = fails(*film, '{"fault": "float"}', code=2, says="is ['rgb_array'], and render() gave an array (6, 9, 3) of float64", cwd=folder)
    assert "score" not in said, said
    fails(*film[:-1], "--env.vector", "true", code=2, says=["shows a single environment", "--env.vector false"], cwd=folder)
    for game, text in (("gym:boards:Guess-v3", ["unexpected keyword argument 'render_mode'", "a video needs the argument render_mode"]),
                       ("gym:films:Said", ["metadata[\"render_modes\"] is ['ansi']"])):
        fails(*film[:-1], "--env.name", game, code=2, says=[game, *text], cwd=folder)
    assert not list(folder.glob("no.gif*"))
    gone(folder)


def test_a_page_shows_frames_of_gymnasium(folder):
    """Those that it renders, by a child of the server; what it raises ends the stream, and one that hangs ends with the server."""
    os.environ.setdefault("MAKE_STUDY", "")  # which other tests of that file need
    import serve_client
    python = mine(folder)
    write(folder, "films.py", FILMED)
    config = write(folder, "films.ini", tap.TINY_SWEEP.replace("name = squared\nn = 1", "name = gym:films:Filmed\ntimeout_s = 5000"))
    run("sweep", config, *python, "--store", folder / "s.db", "--name", "a", "--trials", 1, "-q", "--sweep.keep", "all", cwd=folder)
    checkpoint, = folder.glob("s.db.checkpoints/*.ckpt")
    play = "/api/v1/studies/a/trials/0/play?fps=120"

    def trained(game, **kwargs):
        run("train", game, *python, *TINY, "-q", "-o", checkpoint, "--env.timeout_s", 5000, "--env.kwargs", json.dumps(kwargs), cwd=folder)

    with serve_client.serving(folder / "s.db") as s:
        connection, answer = serve_client.open_play(s, play)
        events = serve_client.events_of(answer)
        kind, begin = next(events)
        equal((kind, begin["env"], begin["width"], begin["height"]), ("begin", "gym:films:Filmed", 8, 6))
        child, = subprocess.run(["pgrep", "-a", "-P", str(s.process.pid)], capture_output=True, text=True).stdout.splitlines()
        assert "env play" in child, child
        connection.close()
        _, frames = serve_client.watch(s, play, 20)
        for n, frame in enumerate(frames):
            (kind, gif), = frame["draw"]
            (folder / "it.gif").write_bytes(base64.b64decode(gif))
            width, height, pictures, _, _ = read_gif(folder / "it.gif")
            equal((kind, width, height, pictures), ("i", 8, 6, [[(20 * (n % 8 + 1), 200, 0)] * 48]))
        trained("gym:films:Filmed", size=[640, 640], fault="noise")
        _, frames = serve_client.watch(s, play, 10)
        assert all(len(frame["draw"][0][1]) > 400000 for frame in frames)
        for game, kwargs, says in (("gym:films:Filmed", {"fault": "render"}, ["no paint", "in the step of instance 0"]),
                                   ("gym:films:Filmed", {"fault": "size"}, ["a frame has 8 x 4 pixels, the one before 8 x 6"]),
                                   ("gym:films:Filmed", {"fault": "float"}, ["render() gave an array (6, 9, 3) of float64"]),
                                   ("gym:films:Said", {}, ["metadata[\"render_modes\"] is ['ansi']"]),
                                   ("gym:boards:Guess-v3", {}, ["needs the argument render_mode"])):
            trained(game, **kwargs)
            kind, data = serve_client.watch_all(s, play)[1][-1]
            assert kind == "end" and all(text in data["reason"] for text in (game, *says)), (game, data)
        trained("gym:films:Filmed", fault="hang")
        connection, answer = serve_client.open_play(s, play)
        equal([kind for _, (kind, _) in zip(range(3), serve_client.events_of(answer))], ["begin", "frame", "frame"])
        equal(s.get("/api/v1/studies")["studies"][0]["name"], "a")
    connection.close()
    gone(folder)


ASK_ONNX = '''
import json, sys, numpy as np, onnx, onnxruntime
model, samples = sys.argv[1:]
onnx.checker.check_model(onnx.load(model), full_check=True)
session = onnxruntime.InferenceSession(model)
names, rows, state = [o.name for o in session.get_outputs()], [], None
for line in open(samples):
    d = json.loads(line)
    n = sum(key.startswith("state_") for key in d)
    feed = {"obs": np.array([d["obs"]] * 2, np.float32)}
    if n:
        state = np.zeros((n, 2, len(d["state_0"])), np.float32) if d["begins"] else state
        feed["state"] = state
    if "mask" in d:
        feed["mask"] = np.array([d["mask"]] * 2, bool)
    out = dict(zip(names, session.run(None, feed)))
    state = out.get("next_state")
    rows.append({name: value[..., 1, :].ravel().tolist() if name == "next_state" else value[1].ravel().tolist()
                 for name, value in out.items()})
    assert all(np.array_equal(v[:, 0], v[:, 1]) if k == "next_state" else np.array_equal(v[0], v[1]) for k, v in out.items())
print(json.dumps(rows))
'''


def test_onnxruntime_itself_gives_the_same(folder):
    python = tap.package("onnx and onnxruntime", "TRAWL_ONNX")
    build_game(folder)
    for name, options in CASES.items():
        checkpoint, lines = trained(folder, name, options)
        run("export", checkpoint, "-o", folder / "it.onnx", cwd=folder)
        done = subprocess.run([python, "-c", ASK_ONNX, folder / "it.onnx", folder / (name + ".jsonl")], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        rows = json.loads(done.stdout)
        equal(len(rows), len(lines))
        for line, row in zip(lines, rows):
            check_onnx(name, line, row, head_sizes(line))


def check_onnx(name, line, row, sizes):
    at, at_std = 0, len(line["columns"]) - sum(size == 0 for size in sizes)
    near(row["value"], line["value"], name)
    near(row.get("next_state", []), [x for key in sorted(line) if key.startswith("state_") for x in line[key]], name)
    for j, size in enumerate(sizes):
        if size == 0:
            mean = line["columns"][at]
            near(row["mean_%d" % j] + row["log_std_%d" % j], [mean, line["columns"][at_std]], name)
            u = math.tanh(mean) if name == "numbers_state" else min(max(mean, -1), 1)
            low, high = -1.5 * j, 4.0
            near([row["action"][j]], [(low + high) / 2 + (high - low) / 2 * u], name)
            at, at_std = at + 1, at_std + 1
            continue
        allowed = line.get("mask", [1] * 99)[at:at + size]
        allowed = allowed if any(allowed) else [1] * size
        near([x for x, ok in zip(row["logits_%d" % j], allowed) if ok],
             [x for x, ok in zip(line["columns"][at:at + size], allowed) if ok], name)
        assert all(x == -math.inf for x, ok in zip(row["logits_%d" % j], allowed) if not ok)
        likeliest = max(range(size), key=lambda i: (line["columns"][at + i] if allowed[i] else -math.inf, -i))
        equal(row["action"][j], likeliest)
        at += size
