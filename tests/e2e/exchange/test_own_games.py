"""Games of the user's own, in libraries: new, build, check; wherever a game's name goes; what breaks costs a trial and no more."""
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

import tap
from tap import equal, show, write

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")

VERSION = int(re.search(r"ENV_API_VERSION (\d+)", open(os.path.join(ROOT, "envs", "env_def.h"), encoding="utf-8").read()).group(1))

# of the game that `trawl env new` writes, and how each fault gets in
FAULTS = {
    "an observation is not a finite number": ("obs[2] = ", "obs[2] = state->apple_y == 9 ? 0.0f / 0.0f : "),
    "a reward is not a finite number": ("!step->ended ? 0.0f", "!step->ended ? 1.0f / 0.0f"),
    "the shape does not say may_truncate": ("step->ended = ", "step->truncated = "),
    "written past the end of its rows": ("obs[2] = ", "obs[3] = obs[2] = "),
    "a reward is not a finite number, or was not written":
        ("step->rewards[0] = !step->ended", "if (step->ended) step->rewards[0] = !step->ended"),
    "an observation is not a finite number, or was not written": ("obs[1] = ", "if (state->apple_y < 9) obs[1] = "),
    "ended the process by exit()": ("state->apple_y++;", "state->apple_y++; { extern void exit(int); if (actions[0] == 2) exit(0); }"),
    "perf is 2 on average": ("caught ? 1.0f : 0.0f;", "2.0f;"),
    "the score of an episode that ended is not a finite number": ("step->score = ", "step->score = 0.0f / 0.0f + "),
    "is there randomness that is not state->rng": ("state->apple_y = 0;", "static int n; state->apple_y = n++ % 2;"),
    "killed by signal 6": ("state->apple_y++;", "state->apple_y++; if (actions[0] == 2) __builtin_abort();"),
    "a saved state that is loaded plays on differently":
        ("state->apple_y++;", "static _Thread_local int n[64]; if (++n[state->rng.key % 64] == 150) state->apple_y = 0; state->apple_y++;"),
}


def for_the_host(args):
    """nvcc takes ten seconds for a game: only the tests that name --gpu use it."""
    return (*args, "--gpu", "no") if args[:2] == ("env", "build") and "--gpu" not in args else args


def run(*args, **more):
    return tap.run(*for_the_host(args), **more)


def fails(text, *args, code=2, **more):
    return tap.fails(*for_the_host(args), code=code, says=text, **more)


def said(*args, **more):
    """stdout and stderr, whatever the exit code."""
    done = subprocess.run([tap.TRAWL, *map(str, for_the_host(args))], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=tap.PATIENCE_S, **more)
    return done.stdout + done.stderr


def new_game(folder, name="apples", change=None, build=True):
    run("env", "new", name, cwd=folder)
    if change is not None:
        text = (folder / (name + ".h")).read_text()
        assert text.count(change[0]) == 1, (change[0], text.count(change[0]))
        (folder / (name + ".h")).write_text(text.replace(*change))
    if build:
        run("env", "build", name + ".h", cwd=folder)
    return folder / (name + ".so")


def test_from_nothing_to_a_sweep_by_the_page(folder):
    """The commands of docs/own-games.md as they stand there; the sweep is shorter."""
    page = open(os.path.join(ROOT, "docs", "own-games.md"), encoding="utf-8").read()
    blocks = re.findall(r"^```sh run\n(.*?)^```", page, re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) >= 6, lines
    for line in lines:
        words = line.split()
        assert words[0] == "trawl", line
        if words[1] == "sweep":
            words += ["--trials", "6", "-q"]
        out, _ = run(*words[1:], cwd=folder)
        if words[1:3] == ["env", "check"]:
            assert "speed" in out and "FAULT" not in out, out
    trials = show(folder / "apples.db", "first")["trials"]
    equal([t["state"] for t in trials], ["done"] * len(trials))
    assert (folder / "apples.html").stat().st_size > 10000


def test_a_path_goes_where_a_name_goes(folder):
    library = new_game(folder)
    described = json.loads(run("env", "describe", library)[0])
    equal((described["name"], described["shape"]["obs_size"], described["options"][0]["key"]), ("apples", 3, "width"))
    assert "--env.width" in run("envs", library)[0] and "--env.width" in run("train", library, "--help")[0]
    out, _ = run("train", library, "--env.width", 4, "--train.total_timesteps", "100k", "--json", "-q", "-o", folder / "a.ckpt")
    assert json.loads(out)["perf"] > 0.9, out
    equal(json.loads(run("eval", folder / "a.ckpt", "--episodes", 8, "--json")[0])["env"], "apples")
    run("train", "--resume", folder / "a.ckpt", "--train.total_timesteps", "120k", "-q")
    # from the folder of the file that names it, whatever the folder that the command runs in
    (folder / "sub").mkdir()
    config = write(folder / "sub", "x.ini", "[env]\nname = ../apples.so\nwidth = 5\n[train]\ntotal_timesteps = 20k\n")
    text, _ = run("train", config, "--print-config", cwd="/")
    assert "name = %s" % os.path.realpath(library) in text and re.search(r"^hash = [0-9a-f]{16}$", text, re.M), text
    config = write(folder / "sub", "home.ini", "[env]\nname = ~/apples.so\n")
    text, _ = run("train", config, "--print-config", cwd="/", env={**os.environ, "HOME": str(folder)})
    assert "name = %s" % os.path.realpath(library) in text, text
    shutil.copy(library, folder / "sub" / "apples.so")
    fails("no library of a game at", "train", write(folder, "y.ini", "[env]\nname = ./no.so\n"))
    fails("two games are named", "train", library, "pong")
    fails("env.wdith", "train", library, "--env.wdith", 5)
    fails("allowed", "train", library, "--env.width", 1)


def test_the_default_number_of_agents_fits_the_game(folder):
    for options, agents in (([], 128), (["--env.agents", 3], 129), (["--env.agents", 200], 200)):
        assert "\ntotal_agents = %d\n" % agents in run("train", "snake", *options, "--print-config")[0]
    fails("128 is not a multiple of the 3 agents", "train", "snake", "--env.agents", 3, "--train.total_agents", 128)


def test_an_option_keeps_a_name_that_pufferlib_gives_a_meaning(folder):
    """env.num_envs is a number of agents there; of a game that has such an option it is the game's, wherever it stands."""
    new_game(folder, build=False)
    text = (folder / "apples.h").read_text()
    (folder / "apples.h").write_text(re.sub(r"(settings->|int64_t |_settings, )width", r"\1num_envs", text))
    run("env", "build", "apples.h", cwd=folder)
    write(folder, "c.ini", "[env]\nname = ./apples.so\nnum_envs = 5\n")
    for words in (("./apples.so", "--env.num_envs", 5), ("c.ini",)):
        config, said_of_it = run("train", *words, "--print-config", cwd=folder)
        assert "\nnum_envs = 5\n" in config and "\ntotal_agents = 128\n" in config and "PufferLib" not in said_of_it, (config, said_of_it)


def test_check_finds_faults(folder):
    for i, (text, change) in enumerate(FAULTS.items()):
        library = new_game(folder, "bad%d" % i, change)
        out, err = run("env", "check", library, "--steps", 400, code=1)
        assert text in out + err, (text, out, err)
    library = new_game(folder, "slow", ("state->apple_y++;", "state->apple_y++; for (volatile int on = 1; on;) ;"))
    out, err = run("env", "check", library, "--seconds", 1, code=1)
    assert "was not done within 1 s" in err, err
    out, _ = run("env", "check", "pong", "--steps", 300, "--env.frameskip", 4)
    assert "FAULT" not in out and "speed" in out, out
    out, _ = run("env", "check", "pong", "--steps", 3)
    assert "; no episode ended within them" in out and "a larger --steps checks longer" in out and "score 0" not in out, out


def test_a_perf_outside_counts_as_the_nearer_end(folder):
    steps = ("--train.total_timesteps", "20k", "--train.device", "cpu", "-q", "--json")
    for perf, counts in ((7, 1), (-3, 0)):
        library = new_game(folder, "apples%d" % counts, ("caught ? 1.0f : 0.0f;", "%d;" % perf))
        out, err = run("train", library, *steps, "-o", folder / "x.ckpt")
        result = json.loads(out)
        equal([result["perf"], result["train"]["perf"]], [counts] * 2)
        assert err.count("perf is %d on average; it has to lie in [0, 1], and counts as %d" % (perf, counts)) == 1, err
        equal(json.loads(run("eval", folder / "x.ckpt", "--json")[0])["perf"], counts)


def test_no_episode_ends(folder):
    """Of a table whose running episode is not known: the result is unknown, in words, and costs a trial of a sweep."""
    new_game(folder, change=("step->ended = ", "step->ended = actions[0] > 99 && "), build=False)
    library = library_of(folder, "endless", """#include "apples.h"
#define ENV_GAME apples
#include "trawl_env.h"
TRAWL_EXPORT const struct env_def *trawl_env(void)
{
    static struct env_def def;
    def = apples_def;
    def.track_at = 0;
    return &def;
}
""")
    steps = ("--train.total_timesteps", "20k", "--train.total_agents", 64, "--train.eval_max_steps", 64, "--train.device", "cpu", "-q")
    out, _ = run("train", library, *steps, "-o", folder / "x.ckpt")
    assert "no score: no episode ended in the evaluation" in out and "in the 3" in out and "with fewer agents" in out and "nan" not in out, out
    result = json.loads(run("train", library, *steps, "--json")[0])
    equal([result["score"], result["perf"], result["train"]["perf"], result["episodes"]], [None, None, None, 0])
    assert "no score: no episode ended" in run("eval", folder / "x.ckpt", "--max-steps", 32)[0]
    config = write(folder, "sweep.ini", tap.SPACE + "[env]\nname = %s\n" % library)
    for name, metric, where in (("s", "perf", "evaluation; raise train.eval_max_steps"), ("t", "train/perf", "training; give each agent more steps")):
        run("sweep", config, *steps, "--sweep.metric", metric, "--store", folder / "s.db", "--name", name, "--trials", 1, code=1)
        study = show(folder / "s.db", name)
        equal([(t["state"], t["score"], t["on_front"]) for t in study["trials"]], [("failed", None, False)])
        assert "%s is unknown: no episode ended in the %s" % (metric, where) in study["trials"][0]["reason"], study


def test_wrong_inputs(folder):
    fails("new, build, check, describe or play", "env")
    fails("no command 'make'", "env", "make")
    for name in ("Apples", "9x", "a-b", "a" * 40):
        fails("is not a name for a game", "env", "new", name, cwd=folder)
    new_game(folder, build=False)
    fails("apples.h already exists", "env", "new", "apples", cwd=folder, code=1)
    write(folder, "half.ini", "")
    fails("half.ini already exists", "env", "new", "half", cwd=folder, code=1)
    assert not (folder / "half.h").exists()
    fails("'linux' is a macro", "env", "new", "linux", cwd=folder)
    fails("trawl_env.h is the header that games include", "env", "new", "trawl_env", cwd=folder)
    for name, text in (("My-Game", "the game would be named 'My-Game'"), ("unix", "'unix' is a macro")):
        shutil.copy(folder / "apples.h", folder / (name + ".h"))
        assert text in run("env", "build", name + ".h", cwd=folder, code=2)[1], name
    for name in ("Snake", "two snakes"):
        (folder / name).mkdir()
        write(folder / name, "binding.c", "")
        fails("the game would be named '%s', after its folder" % name, "env", "build", name, cwd=folder)
    (folder / 'a "b').mkdir()
    shutil.copy(folder / "apples.h", folder / 'a "b')
    out, _ = run("env", "build", 'a "b/apples.h', "-o", 'a "b/c d.so', cwd=folder)
    equal(shlex.split(out.split("trawl env check ")[1]), ['a "b/c d.so'])
    run("train", 'a "b/c d.so', "-q", "--train.total_timesteps", "8k", cwd=folder)
    text = (folder / "apples.h").read_text()
    write(folder, "words.h", text.replace("apples", "words") + """
_Static_assert(sizeof A == sizeof "b c" && sizeof D == sizeof "$HOME" && E == 2, "a shell's words, nothing expanded");
""")
    run("env", "build", "words.h", "--flags", """-DA='"b c"' -DD=\\"\\$HOME\\"  "-DE=1 + 1" """, cwd=folder)
    run("env", "build", "words.h", "--flags", """-DA='"b c"' '-DD="$HOME"' -DE=2""", cwd=folder)
    fails(["--flags -DX='a b", "a quote has no end"], "env", "build", "apples.h", "--flags", "-DX='a b", cwd=folder)
    fails("no/such.h", "env", "build", "no/such.h", cwd=folder, code=1)
    fails("has no binding.c and no", "env", "build", ".", cwd=folder)
    fails("must end with .so", "env", "build", "apples.h", "-o", "x", cwd=folder)
    write(folder, "game.txt", "x")
    fails("is neither a .h, .c", "env", "build", "game.txt", cwd=folder)
    write(folder, "broken.h", "int x\n")
    assert "could not compile" in run("env", "build", "broken.h", cwd=folder, code=2)[1]
    assert not (folder / "broken.so").exists() and not [f for f in os.listdir(folder) if ".tmp." in f]
    fails("cannot be started", "env", "build", "apples.h", cwd=folder, env={**os.environ, "CC": "no-such-compiler"}, code=1)
    write(folder, "text.so", "not a library")
    fails("text.so: it is not a shared library; `trawl env build` makes one", "train", folder / "text.so")
    (folder / "folder.so").mkdir()
    os.mkfifo(folder / "pipe.so")
    for name in ("folder", "pipe"):
        for words in (("train",), ("envs",), ("env", "check"), ("env", "describe")):
            fails("it is not a file", *words, name + ".so", cwd=folder)
    run("env", "build", "apples.h", cwd=folder)
    for words in (("envs",), ("env", "check", "--steps", 30), ("env", "describe"), ("train", "-q", "--train.total_timesteps", "8k")):
        run(*words, "apples.so", cwd=folder)  # a bare name is one of this folder
    fails("at least 1", "env", "check", "pong", "--steps", 0)
    fails("did you mean env.frameskip", "env", "check", "pong", "--env.frameskp", 2)
    fails("allowed is 1 to 60", "env", "check", "pong", "--env.frameskip", 99)
    fails("--settings", "env", "describe", "pong", "--settings", "0g")


def test_files_of_other_machines_and_parts_of_files(folder):
    """What the system's loader says of them is "No such file", or nothing: it dies."""
    whole = new_game(folder).read_bytes()
    other = 183 if whole[18] != 183 else 62  # aarch64, x86-64
    for name, data, text in (("arm", whole[:18] + bytes([other, 0]) + whole[20:], "it is a library for %s, 64 bits, and this program is for" % {183: "aarch64", 62: "x86-64"}[other]),
                             ("old", whole[:4] + b"\1" + whole[5:], "32 bits, and this program is for"),
                             ("half", whole[:len(whole) // 2], "it is cut off: %d bytes of at least" % (len(whole) // 2)),
                             ("head", whole[:30], "it is cut off"), ("word", whole[:3], "it is not a shared library"), ("none", b"", "it is not a shared library")):
        (folder / (name + ".so")).write_bytes(data)
        for words in (("train",), ("envs",), ("env", "check")):
            fails([name + ".so: ", text], *words, name + ".so", cwd=folder)


def test_a_crash_says_where(folder):
    """A training has no controller that reports how it died: it does that itself, and a trial's reason has the same line."""
    library = new_game(folder, "wild", ("state->apple_y++;", """state->apple_y++;
    {
        static int n;
        if (__atomic_add_fetch(&n, 1, 5) > 500)
            *(volatile int *)(settings->width * 3) = 1;
    }"""))
    done = subprocess.run([tap.TRAWL, "train", library, "-q", "--train.device", "cpu"], capture_output=True, text=True, timeout=tap.PATIENCE_S)
    if "Sanitizer" in done.stderr: # it reports a crash itself
        return
    line = done.stderr.splitlines()[-1]
    assert done.returncode == -signal.SIGSEGV and line.startswith("killed by signal 11 (Segmentation fault) in the game %s: `addr2line" % library.resolve()), done
    config = write(folder, "s.ini", tap.SPACE + "[env]\nname = ./wild.so\n[train]\ndevice = cpu\n")
    run("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 1, "-q", code=1)
    equal([t["reason"].split(": `")[0] for t in show(folder / "s.db")["trials"]], ["the worker process died: " + line.split(": `")[0]])


def library_of(folder, name, body):
    write(folder, name + ".c", '#include "trawl_env.h"\n' + body)
    said("env", "build", name + ".c", "-o", name + ".so", cwd=folder)
    return folder / (name + ".so")


def test_other_versions_and_tables_are_refused(folder):
    new_game(folder, build=False)
    game = '#include "apples.h"\n#define ENV_GAME apples\n#include "trawl_env.h"\n'
    for name, change, text in (
            ("version", "def.api_version = 77;", "version 77 of the interface, this program has %d" % VERSION),
            ("short", "def.def_bytes = 8;", "its table has 8 bytes"),
            ("name", 'def.name = "No Name";', "its game is named 'No Name'"),
            ("reset", "def.reset_range = 0;", "lacks about, shape, reset_range"),
            ("section", 'def.options.section = "train";', "a game's section is 'env'"),
            ("track", "def.track_at = def.state_size - 8;", "its track lies at"),
            ("loud", 'for (int i = 0; i < 900; i++) puts("{}"); def.state_size = 0;', "loud.so: it needs a state_size"),
            ("twice", "static struct opt_def o[2]; o[0] = o[1] = apples_options[0];  def.options.defs = o; def.options.n_defs = 2;", "two options are named 'width'"),
            ("word", "static struct opt_def o[2]; o[0] = o[1] = apples_options[0]; o[0].key = \"a b\"; def.options.defs = o; def.options.n_defs = 2;", "option 0 is named 'a b'"),
            ("kind", "static struct opt_def o[2]; o[0] = o[1] = apples_options[0]; o[0].type = (enum opt_type)77; def.options.defs = o; def.options.n_defs = 2;", "has type 77"),
            ("scale", "static struct opt_def o[2]; o[0] = o[1] = apples_options[0]; o[0].scale = (enum opt_scale)77; def.options.defs = o; def.options.n_defs = 2;", "and scale 77"),
            ("range", "static struct opt_def o[2]; o[0] = o[1] = apples_options[0]; o[0].max = 1; def.options.defs = o; def.options.n_defs = 2;", "is allowed from 2 to 1"),
            ("swept", "static struct opt_def o[2]; o[0] = o[1] = apples_options[0]; o[0].scale = OPT_LOG; o[0].sweep_min = -5; o[0].sweep_max = 50; def.options.defs = o; def.options.n_defs = 2;", "swept from -5 to 50"),
            ("beyond", "static struct opt_def o[2]; o[0] = o[1] = apples_options[0]; o[0].scale = OPT_LINEAR; o[0].sweep_min = 5; o[0].sweep_max = 500; def.options.defs = o; def.options.n_defs = 2;", "swept from 5 to 500"),
            ("default", "static struct opt_def o[2]; o[0] = o[1] = apples_options[0]; o[0].def = \"seven\"; o[1].key = \"other\"; def.options.defs = o; def.options.n_defs = 2;", "game apples: option table: env.width is \"seven\""),
            ("offset", "static struct opt_def o[1]; o[0] = apples_options[0]; o[0].offset = 4; def.options.defs = o;",
             "beyond the settings of 8 bytes")):
        code = game + "TRAWL_EXPORT const struct env_def *trawl_env(void)\n{\n    static struct env_def def;\n    def = apples_def;\n" \
            "    %s\n    return &def;\n}\n" % change
        library = library_of(folder, name, code)
        assert text in said("train", library), (text, said("train", library))
        assert text in said("envs", library), (text, said("envs", library))
    library = library_of(folder, "nothing", "int x;\n")
    fails("no symbol trawl_env", "train", library)
    library = library_of(folder, "dies", '__attribute__((constructor)) static void die(void)\n{\n    fprintf(stderr, "no luck\\n");\n'
                         "    __builtin_trap();\n}\n")
    text = said("envs", library)
    assert "was killed by signal" in text and "its log ends: no luck" in text, text
    assert said("envs", folder / "loud.so").startswith("trawl: %s: it needs" % (folder / "loud.so"))  # not what the game printed
    library = library_of(folder, "silent", "__attribute__((constructor)) static void die(void)\n{\n    __builtin_trap();\n}\n")
    assert "and was killed by signal" in said("envs", library), said("envs", library)


def test_code_for_the_gpu(folder):
    """By nvcc, where the program was built with CUDA: exported beside the table, and checked and trained like before; a header that nvcc
    does not accept is built for the host."""
    new_game(folder, change=("env_gpu_rows<3>", "env_gpu_direct"), build=False)  # without a rollout's kernels: 10 s less of nvcc
    fails("--gpu maybe; auto, yes or no", "env", "build", "apples.h", "--gpu", "maybe", cwd=folder)
    write(folder, "own.c", "int x;\n")
    fails("--gpu yes is for a header", "env", "build", "own.c", "--gpu", "yes", cwd=folder)
    if "without CUDA" in said("env", "build", "apples.h", "--gpu", "yes", cwd=folder):
        assert not (folder / "apples.so").exists()
        assert "GPU code" not in run("env", "build", "apples.h", "--gpu", "auto", cwd=folder)[0]
        return
    out, _ = run("env", "build", "apples.h", "--gpu", "yes", cwd=folder)
    assert "GPU code" in out and b"trawl_env_device" in (folder / "apples.so").read_bytes(), out
    out, _ = run("env", "check", "./apples.so", "--steps", 200, cwd=folder)
    on_gpu = "on the GPU: the same bytes as on the host" in out
    assert on_gpu or (not os.environ.get("TRAWL_REQUIRE_GPU") and "its GPU code was not played" in out), out
    run("train", "./apples.so", "-q", "--train.total_timesteps", "20k", cwd=folder)
    out, _ = run("env", "build", "apples.h", "--gpu", "no", cwd=folder)
    assert "GPU code" not in out and b"trawl_env_device" not in (folder / "apples.so").read_bytes(), out
    text = (folder / "apples.h").read_text()
    (folder / "apples.h").write_text(text.replace("state->apple_y++;", "state->apple_y++; { void *p = state; int *q = p; (void)q; }"))
    assert "with a GPU the host steps this game" in said("env", "build", "apples.h", "--gpu", "auto", cwd=folder)
    assert "could not compile it" in said("env", "build", "apples.h", "--gpu", "yes", cwd=folder)


def test_a_step_that_fails_ends_the_training(folder):
    """A game with memory of its own that reports, after some steps, that it cannot go on."""
    new_game(folder, build=False)
    game = '#include "apples.h"\n#define ENV_GAME apples\n#include "trawl_env.h"\n'
    code = game + """
static int n;
static enum status my_open(const struct env_def *def, const void *settings, size_t n_envs, void **ret_states, struct error *err)
{
    (void)def, (void)settings, (void)err;
    *ret_states = calloc(n_envs, sizeof(struct apples_instance));
    return ST_OK;
}
static void my_close(const void *settings, void *states, size_t n_envs)
{
    (void)settings, (void)n_envs;
    free(states);
}
static enum status my_failed(const void *states, struct error *err)
{
    (void)states;
    return n++ < 200 ? ST_OK : FAIL(err, ST_IO, "apples: the basket is lost after step %d", n);
}
TRAWL_EXPORT const struct env_def *trawl_env(void)
{
    static struct env_def def;
    def = apples_def;
    def.track_at = 0;
    def.open = my_open;
    def.close = my_close;
    def.failed = my_failed;
    return &def;
}
"""
    library = library_of(folder, "shut", "#include <stdlib.h>\n" + code.replace("*ret_states = ", 'if (n_envs > 1)\n        return FAIL(err, ST_IO, "apples: no basket");\n    *ret_states = '))
    assert library.exists(), said("env", "build", "shut.c", cwd=folder)
    out, err = run("env", "check", library, "--steps", 30, code=1)
    assert "FAULT  apples: no basket" in out and "has 6 faults" in err, (out, err)
    library = library_of(folder, "lost", "#include <stdlib.h>\n" + code)
    fails("the basket is lost after step 201", "train", library, "--train.device", "cpu", "-q", code=1)


def test_a_step_that_never_ends_does_not_outlive_a_signal(folder):
    """A game that loops for ever once it is told to: one SIGTERM ends training and evaluation, and the policy stays."""
    loop = """#include <stdio.h>
#include <stdlib.h>
static void loop(void)
{
    FILE *file = getenv("LOOP") != NULL ? fopen(getenv("LOOP"), "w") : NULL;
    if (file != NULL)
        fclose(file);
    for (volatile int i = 0; file != NULL;)
        i = 0;
}
"""
    new_game(folder, change=("state->apple_y++;", "state->apple_y++; loop();"), build=False)
    (folder / "apples.h").write_text(loop + (folder / "apples.h").read_text())
    run("env", "build", "apples.h", cwd=folder)
    steps = ("--train.total_timesteps", "20k", "--train.device", "cpu", "-q")
    run("train", "./apples.so", *steps, "-o", "whole.ckpt", cwd=folder)
    hung = [tap.start(*args, cwd=folder, env=dict(os.environ, LOOP=args[0]))
            for args in (("train", "./apples.so", *steps, "-o", "cut.ckpt"), ("eval", "whole.ckpt"))]
    for process, name in zip(hung, ("train", "eval")):
        tap.wait_for((folder / name).exists, process)
    for process in hung:
        process.terminate()
    (_, trained), (_, played) = (tap.end(process, code=130) for process in hung)
    for err in (trained, played):
        assert "the game has not come back" in err, err
    assert "its policy is saved in cut.ckpt.policy" in trained and not (folder / "cut.ckpt").exists(), trained
    run("eval", "cut.ckpt.policy", cwd=folder)
    run("train", "./apples.so", *steps, "--from-policy", "cut.ckpt.policy", cwd=folder)
    fails("holds a policy alone", "train", "--resume", "cut.ckpt.policy", cwd=folder)


def test_a_mask_is_declared_twice_and_written(folder):
    new_game(folder, change=("n_heads = 1;", "n_heads = 1; ret_shape->has_mask = true;"), build=False)
    assert "does not define ENV_GAME_HAS_MASK" in said("env", "build", "apples.h", cwd=folder)
    (folder / "apples.h").write_text((folder / "apples.h").read_text().replace("/* A row", """#define ENV_GAME_HAS_MASK
ENV_FN void apples_mask(const struct apples_settings *s, const struct apples_state *st, int agent, uint8_t *mask)
{
    (void)s, (void)st, (void)agent, (void)mask;
}
/* A row"""))
    run("env", "build", "apples.h", cwd=folder)
    assert "the mask allows no choice at all, or was not written" in run("env", "check", "./apples.so", "--steps", 30, cwd=folder, code=1)[0]


def test_the_mask_of_each_head_is_checked(folder):
    new_game(folder, change=("n_heads = 1;", "n_heads = 2; ret_shape->has_mask = true; ret_shape->head_sizes[1] = 2;"), build=False)
    masked = (folder / "apples.h").read_text().replace("/* A row", """#define ENV_GAME_HAS_MASK
ENV_FN void apples_mask(const struct apples_settings *s, const struct apples_state *st, int agent, uint8_t *mask)
{
    const uint8_t allowed[] = {ALLOWED};
    (void)s, (void)st, (void)agent;
    for (int i = 0; i < 5; i++)
        mask[i] = sqrt(allowed[i]) > 0.5;
}
/* A row""")
    for allowed, sound in (("1, 0, 0, 0, 1", True), ("1, 1, 1, 0, 0", False)):
        (folder / "apples.h").write_text(masked.replace("ALLOWED", allowed))
        assert "warning" not in run("env", "build", "apples.h", cwd=folder)[1]  # sqrt is known
        out, _ = run("env", "check", "./apples.so", "--steps", 30, cwd=folder, code=0 if sound else 1)
        assert ("the mask allows no choice at all" in out) != sound, (allowed, out)


def test_bytes_and_then_floats(folder):
    """An observation of five bytes and two floats: checked, trained, normalised in part; impossible ones are refused."""
    new_game(folder, build=False)
    text = (folder / "apples.h").read_text()
    observe = text[text.index("ENV_OBS_FN void apples_observe"):]
    observe = observe[:observe.index("\n}\n")]
    text = text.replace(observe, """ENV_FN void apples_observe(const struct apples_settings *settings, const struct apples_state *state, int agent,
                           uint8_t *obs)
{
    (void)settings, (void)agent;
    for (int i = 0; i < 5; i++)
        obs[i] = state->apple_x == i;
    env_floats(obs, 5)[0] = 100.0f * (float)state->apple_y;
    env_floats(obs, 5)[1] = 100.0f * (float)state->basket_x;""")
    text = re.sub(r"ENV_GPU\(.*\)", "ENV_GPU(apples, env_gpu_bytes)", text) + "#define ENV_GAME_BYTES\n"
    for floats, says in ((2, ""), (7, "n_floats is 7 of 7 numbers")):
        (folder / "apples.h").write_text(text.replace("ret_shape->obs_size = 3;", """ret_shape->obs_size = 7;
    ret_shape->u8 = true;
    ret_shape->byte_scale = 1;
    ret_shape->n_floats = %d;""" % floats))
        if says:
            assert says in said("env", "build", "apples.h", cwd=folder)
            continue
        run("env", "build", "apples.h", cwd=folder)
        out, _ = run("env", "check", "./apples.so", "--steps", 100, cwd=folder)
        assert "FAULT" not in out, out
        assert "observation 7 (5 bytes, 2 numbers)" in run("envs", "./apples.so", cwd=folder)[0]
        out, _ = run("train", "./apples.so", "--env.width", 5, "--train.total_timesteps", "200k", "--policy.norm_obs", "true",
                     "--train.device", "cpu", "-q", "--json", cwd=folder)
        assert json.loads(out)["perf"] > 0.9, out


def test_a_game_that_takes_all_memory_fails_alone(folder):
    """64 MB more in every step, hardly touched: the check's limit stops it, long before the machine is short."""
    if b"__asan_init" in open(tap.TRAWL, "rb").read() or b"__tsan_init" in open(tap.TRAWL, "rb").read():
        raise tap.Skip("a sanitizer maps more than any limit")
    library = new_game(folder, change=("state->apple_y++;", "state->apple_y++; { extern void *malloc(__SIZE_TYPE__); "
                                       "*(volatile char *)malloc(64 << 20) = 1; }"))
    env = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}  # `meson test` sets it: libc would write to all of it
    fails("killed by signal 11", "env", "check", library, code=1, env=env)


def test_exit_is_an_error(folder):
    """A game that calls exit(0): what runs it has not done its work, and its exit code must not claim so."""
    library = new_game(folder, change=("state->apple_y++;", "state->apple_y++; { extern void exit(int); exit(0); }"))
    fails("apples.so: the game ended the process by exit()", "train", library, "-q", code=1)
    config = write(folder, "s.ini", tap.SPACE + "[env]\nname = ./apples.so\n[train]\ndevice = cpu\n")
    run("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 1, "-q", code=1)
    equal([t["reason"] for t in show(folder / "s.db")["trials"]],
          ["the worker process died: %s: the game ended the process by exit(); a game reports what is wrong by FAIL" % os.path.realpath(library)])
    # one thread waits with its message, since nobody reads it; the other one must not end the process meanwhile
    reads, writes = os.pipe()
    os.write(writes, b"x" * fcntl.fcntl(writes, fcntl.F_GETPIPE_SZ))
    train = subprocess.Popen([tap.TRAWL, "train", library, "-q", "--train.device", "cpu", "--train.threads", "2"], stderr=writes)
    os.close(writes)
    time.sleep(1)
    with open(reads, "rb") as log:
        assert b"by exit()" in log.read()
    equal(train.wait(timeout=tap.PATIENCE_S), 1)
    (folder / "apples.h").write_text((folder / "apples.h").read_text().replace("ret_shape->n_heads = 1;", "{ extern void exit(int); exit(0); }"))
    fails("apples.so: the game ended the process by exit()", "env", "build", "apples.h", cwd=folder)
    fails("apples.so: the game ended the process by exit()", "env", "describe", library, code=1)
    library = new_game(folder, "quits", ("state->apple_y++;", "state->apple_y++; { extern void _exit(int); _exit(0); }"))
    fails("quits.so ended the process by exit() or _exit() in the check after", "env", "check", library, code=1)
    config = write(folder, "q.ini", tap.SPACE + "[env]\nname = ./quits.so\n[train]\ndevice = cpu\n")
    run("sweep", config, "--store", folder / "q.db", "--name", "a", "--trials", 1, "-q", code=1)
    equal([t["log_tail"] for t in show(folder / "q.db")["trials"]], [None])
    library = new_game(folder, "quits3", ("state->apple_y++;", "state->apple_y++; { extern void _exit(int); _exit(3); }"))
    fails("quits3.so ended the process by exit() or _exit() in the check after", "env", "check", library, code=1)


def test_large_rewards_are_noted(folder):
    said_of = {reward: said("env", "check", new_game(folder, "r" + reward[0], ("!step->ended ? 0.0f", "!step->ended ? -" + reward)), "--steps", 50)
               for reward in ("1e30f", "9.0f")}
    assert "note   a reward is -1e+30, the largest of all" in said_of["1e30f"] and "FAULT" not in said_of["1e30f"], said_of
    assert "reward is" not in said_of["9.0f"] and "speed" in said_of["9.0f"], said_of


def test_numbers_that_are_none_are_the_games(folder):
    for i, change in enumerate((("obs[2] = ", "obs[2] = 0.0f / 0.0f + "), ("!step->ended ? 0.0f", "!step->ended ? 1.0f / 0.0f"))):
        library = new_game(folder, "none%d" % i, change)
        fails("the game gave it; `trawl env check`", "train", library, "-q", "--train.device", "cpu", code=1)
    library = new_game(folder, "sums", ("!step->ended ? 0.0f", "!step->ended ? 3e38f"))  # whose discounted sums overflow
    fails("the game gave it, or its numbers are too large for train.scale_reward; ", "train", library, "-q", "--train.device", "cpu",
          "--train.scale_reward", "true", code=1)


def test_shapes_that_are_none_are_refused(folder):
    """By whatever reads the shape first: the description is as strict as the training."""
    for i, (change, text) in enumerate(((("n_heads = 1;", "n_heads = 65;"), "an action has 65 components, and at most 64 are trained; make one of several"),
                                        (("n_heads = 1;", "n_heads = 1 << 30;"), "an action has 1073741824 components"),
                                        (("ret_shape->obs_size = 3;", "{ static int n; ret_shape->obs_size = 3 + n++ % 2; }"), "its shape differs from call to call"),
                                        (("n_agents = 1;", "n_agents = 0;"), "0 agents"), (("n_agents = 1;", "n_agents = 100000;"), "100000 agents"),
                                        (("obs_size = 3;", "obs_size = 0;"), "0 observations"), (("head_sizes[0] = 3;", "head_sizes[0] = -3;"), "impossible shape"))):
        library = new_game(folder, "odd%d" % i, change, build=False).with_suffix(".so")
        assert text in said("env", "build", "odd%d.h" % i, cwd=folder), text
        for words in (("train", library), ("envs", library), ("env", "describe", library), ("env", "check", library)):
            out = said(*words)
            assert text in out, (words, text, out)


def test_what_a_game_prints_does_not_bury_the_sweep(folder):
    """Its first lines are shown, and the last ones if it crashes, also from a buffer of stdout."""
    library = new_game(folder, "loud", ("state->apple_y++;", """state->apple_y++;
    {
        static int n;
        printf("line %d of the game\\n", ++n);
        if (n == 3000)
            __builtin_abort();
    }"""))
    config = write(folder, "loud.ini", tap.TINY_SWEEP.replace("name = squared\nn = 1\n", "name = %s\n" % library))
    _, err = run("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 1, "--devices", "cpu", code=1)
    lines = [int(line.split()[1]) for line in err.splitlines() if line.startswith("line ")]
    equal(lines, [*range(1, 21), *range(2991, 3001)])
    assert "its games have printed 20 lines" in err and "3000 of the game" in json.dumps(show(folder / "s.db")), err


def test_what_a_game_prints_does_not_bury_a_command(folder):
    """Nor is it in the result on stdout. The last lines are shown where the command fails, whatever ended it."""
    library = new_game(folder, "loud", ("state->apple_y++;", """state->apple_y++;
    {
        static int n;
        printf("line %d of the game\\n", ++n);
        if (n == 3000 && getenv("LAST") != NULL)
            strcmp(getenv("LAST"), "exit") == 0 ? exit(0) : __builtin_abort();
    }"""), build=False)
    write(folder, "loud.h", "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" + (folder / "loud.h").read_text())
    run("env", "build", "loud.h", cwd=folder)
    train = ["train", library, "--train.total_timesteps", "6k", "--train.device", "cpu", "--train.threads", 1]

    def printed(*args, **more):
        out, err = run(*args, cwd=folder, **more)
        assert "of the game" not in out, out
        return out, err, [int(line.split()[1]) for line in err.splitlines() if line.endswith(" of the game")]

    for args, who in ((train + ["--json", "-o", "a.ckpt"], "train"), (["eval", "a.ckpt", "--json"], "eval"), (["env", "check", library], "env check")):
        out, err, lines = printed(*args)
        equal(lines, [*range(1, 21)])
        assert "trawl: info: %s: its games have printed 20 lines" % who in err, err
        assert "ok     " in out if who == "env check" else "score" in json.loads(out), out
        assert who != "train" or re.search(r"\d+%  .*steps", err), err
        for last, code in (("abort", -6 if who != "env check" else 1), ("exit", 1)):
            err, lines = printed(*args, code=code, env={**os.environ, "LAST": last})[1:]
            equal(lines, [*range(1, 21), *range(2991 + (last == "exit"), 3001)])  # of 10 lines one may be the program's
            equal(err.count("the game ended the process by exit()"), last == "exit")
    said = "".join(run(*train, "--json", cwd=folder, env={**os.environ, "TRAWL_DEBUG": "1"}))
    assert "line 3000 of the game" in said and "its games have printed" not in said


def test_a_crash_costs_its_trial(folder):
    """A game of width 9 crashes after some steps, one of width 11 hangs; the others end, and so does the sweep."""
    write(folder, "apples.log", "")
    library = new_game(folder, change=(
        "state->apple_y++;",
        'state->apple_y++; { static int n; if (settings->width == 9 && __atomic_add_fetch(&n, 1, 5) > 5000) '
        '{ fprintf(stderr, "the basket broke\\n"); __builtin_abort(); } '
        'for (volatile int on = settings->width == 11 && n == 0; on;) ; }'))
    config = write(folder, "s.ini", """
[env]
name = ./apples.so
[train]
device = cpu
threads = 1
total_agents = 64
horizon = 16
minibatch_size = 512
total_timesteps = 20k
[sweep]
method = sobol
[sweep.env.width]
values = 7, 9, 11
""")
    run("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 6, "-q", "--sweep.hang_timeout_s", 10)
    trials = show(folder / "s.db", "a")["trials"]
    failed = [t for t in trials if t["state"] == "failed"]
    assert failed and len(failed) < len(trials), trials
    for trial in failed:
        if trial["params"]["env.width"] == "9" or trial["params"]["env.width"] == 9:
            assert "signal 6" in trial["reason"] and trial["reason"].endswith("its log ends: the basket broke"), trial
            assert "the basket broke" in trial["log_tail"], trial
        else:
            assert "made no progress" in trial["reason"], trial
    equal({str(t["params"]["env.width"]) for t in failed}, {"9", "11"})
    assert all(t["state"] == "done" for t in trials if t not in failed)
    # and the readers of the store never load it
    run("report", "a", "--store", folder / "s.db", "-o", folder / "a.html")
    os.remove(library)
    run("show", "a", "--store", folder / "s.db")
    run("report", "a", "--store", folder / "s.db", "-o", folder / "b.html")


def test_only_workers_load_it(folder):
    """A library that kills every process but a child that describes, and workers."""
    library = new_game(folder, change=("#ifndef __CUDACC__\n/* A row", """#ifndef __CUDACC__
#include <stdlib.h>
__attribute__((constructor)) static void where(void)
{
    char line[400] = "";
    FILE *file = fopen("/proc/self/cmdline", "r");
    size_t n = file != NULL ? fread(line, 1, sizeof line - 1, file) : 0;
    for (size_t i = 0; i < n; i++)
        line[i] = line[i] == 0 ? ' ' : line[i];
    if (strstr(line, " worker") == NULL && strstr(line, " describe") == NULL)
        abort();
}
/* A row"""))
    text = (folder / "apples.h").read_text()
    assert "<string.h>" not in text
    (folder / "apples.h").write_text(text.replace("#include <stdlib.h>\n", "#include <stdlib.h>\n#include <string.h>\n"))
    run("env", "build", "apples.h", cwd=folder)
    config = (folder / "apples.ini").read_text()
    write(folder, "apples.ini", config.replace("300k", "8k").replace("50k", "5k").replace("500k", "9k"))
    run("sweep", folder / "apples.ini", "--store", folder / "s.db", "--name", "a", "--trials", 2, "-q")
    equal([t["state"] for t in show(folder / "s.db", "a")["trials"]], ["done"] * 2)
    run("train", library, code=-6)


def test_a_page_plays_it(folder):
    """In a child process: a game that crashes ends the stream with its signal, and the server lives."""
    os.environ.setdefault("MAKE_STUDY", "")  # which other tests of that file need
    import serve_client
    new_game(folder, change=("state->apple_y++;", 'state->apple_y++; if (state->apple_y == 12 && access("%s/crash", 0) == 0) '
                             '{ fprintf(stderr, "no basket\\n"); abort(); }' % folder), build=False)
    text = (folder / "apples.h").read_text()
    (folder / "apples.h").write_text(text.replace('#include "trawl_env.h"', '#include <stdlib.h>\n#include <unistd.h>\n#include "trawl_env.h"'))
    run("env", "build", "apples.h", cwd=folder)
    config = (folder / "apples.ini").read_text()
    write(folder, "apples.ini", config.replace("300k", "8k").replace("50k", "5k").replace("500k", "9k"))
    run("sweep", "apples.ini", "--store", folder / "s.db", "--name", "a", "--trials", 1, "-q", "--sweep.keep", "all", cwd=folder)
    with serve_client.serving(folder / "s.db") as s:
        begin, frames = serve_client.watch(s, "/api/v1/studies/a/trials/0/play?fps=120&seed=3", 20)
        equal((begin["env"], begin["width"], begin["height"]), ("apples", 140, 280))
        equal(s.get("/api/v1/studies/a")["env"], "apples")
        equal([f["step"] for f in frames], list(range(1, 21)))
        assert all(len(f["draw"]) == 2 for f in frames), frames
        write(folder, "crash", "")
        _, events = serve_client.watch_all(s, "/api/v1/studies/a/trials/0/play?fps=120&seed=3")
        assert events[-1][0] == "end" and "signal 6" in events[-1][1]["reason"] and "no basket" in events[-1][1]["reason"], events[-1]
        equal(s.get("/api/v1/studies")["studies"][0]["name"], "a")
