"""Configs of PufferLib on the command line: several files, one message, errors, sweeps; hints of other mistakes; and games in its forms."""
import json
import os
import re
import shutil

from tap import TINY, equal, fails, run, show, write

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "study", "dialect", "puffer")
SMALL = ["--train.total-timesteps", "4096", "--train.total-agents", "16", "--train.horizon", "16",
         "--train.minibatch-size", "256", "--train.threads", "1", "--policy.hidden-size", "8", "--policy.num-layers", "1"]


def puffer(name):
    return os.path.join(DATA, name + ".ini")


def values(text):
    """{"section.key": value} of an ini."""
    section, out = "", {}
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif " = " in line:
            key, value = line.split(" = ", 1)
            out["%s.%s" % (section, key)] = value
    return out


def test_several_files_and_our_words(folder):
    ours, err = run("train", puffer("default4"), puffer("breakout4"), "--print-config")
    got = values(ours)
    equal((got["env.name"], got["policy.core"], got["policy.num_layers"], got["train.replay_rounding"], got["train.seed"]),
          ("breakout", "mingru", "2", "floor", "73"))
    equal(len(re.findall("read as a config of PufferLib 4.0", err)), 1)
    again, err = run("sweep", write(folder, "ours.ini", ours), "--print-config")
    equal(values(again), got)
    assert "PufferLib" not in err, err
    alone, _ = run("train", puffer("breakout4"), "--print-config")
    equal(values(alone), got)
    more = write(folder, "more.ini", "[env]\nwidth = 576\n[train]\ngamma = 0.9\nbeta1 = 0.5\n")
    later, _ = run("train", write(folder, "wide.ini", "[env]\nwidth = 600\n"), puffer("breakout4"), more, "--print-config")
    equal((values(later)["train.gamma"], values(later)["train.beta1"], values(later)["train.beta2"]),
          ("0.9", "0.5", "0.9986265112492152"))
    word, _ = run("train", puffer("default4"), "squared", "--print-config")
    equal((values(word)["env.name"], values(word)["train.gamma"]), ("squared", "0.995"))


def test_a_run_is_what_was_printed(folder):
    """The config in a checkpoint is the printed one: the printed config is trained."""
    printed, _ = run("train", puffer("raw_pl4_squared"), *SMALL, "--print-config")
    run("train", puffer("raw_pl4_squared"), *SMALL, "-o", folder / "a.ckpt")
    kept, _ = run("train", "--resume", folder / "a.ckpt", "--print-config")
    equal(values(kept), {key: v for key, v in values(printed).items() if key.count(".") == 1}) # no ranges
    equal((values(kept)["train.gae_lambda"], values(kept)["train.vf_clip_coef"]), ("0.9", "0.2"))


def test_all_that_is_wrong_at_once(folder):
    bad = write(folder, "bad.ini", "[base]\nenv_name = breakout\nworld_size = 4\n[env]\nheight = 5\nnonsense = 1\n"
                "[train]\nlearning_rat = 1\n")
    _, err = run("train", bad, code=2)
    for word in ("4 line(s) of this config", "bad.ini:3: base.world_size = 4", "bad.ini:5: env.height = 5: only 330", "bad.ini:6: unknown key env.nonsense",
                 "bad.ini:8: unknown key train.learning_rat; did you mean train.learning_rate?"):
        assert word in err, err
    own = write(folder, "own.ini", TINY + "[train.x]\ny = 1\n[polcy]\n[sweep.train.gamm]\n")
    _, err = run("sweep", own, "--name", "a", code=2, cwd=folder)
    assert "3 names are unknown" in err and "did you mean [policy]?" in err and "did you mean train.gamma?" in err, err


def test_less_than_a_minibatch_a_rollout_is_refused(folder):
    config = write(folder, "t.ini", TINY)  # a rollout is one minibatch
    run("train", config, "-q", "--train.replay_ratio", 0.5)  # one in two rollouts
    fails("train", config, "--train.replay_ratio", 0.5, "--train.replay_rounding", "floor", code=2,
          says=["train.replay_ratio 0.5", "less than one minibatch of 256", "nothing would be trained"])


def test_a_sweep_of_both_versions(folder):
    store = folder / "s.db"
    small = ["--sweep.devices", "cpu", "--sweep.max-cost", "0", "--quiet", "--store", store, "--trials", 2]
    only = write(folder, "only.ini", "[sweep]\nsweep_only = learning_rate, total_timesteps\n"
                 "[sweep.train.total_timesteps]\nmin = 2e3\nmax = 8e3\n")
    run("sweep", puffer("cartpole3"), only, "--name", "three", *SMALL, *small)
    run("sweep", puffer("default4"), puffer("squared4"), only, "--name", "four", *SMALL, *small)
    for name, metric in (("three", "ep_length"), ("four", "score")):
        study = show(store, name)
        equal(study["study"]["metric"], metric)
        equal([t["state"] for t in study["trials"]], ["done", "done"])
        for t in study["trials"]:
            equal(set(t["params"]), {"train.learning_rate", "train.total_timesteps"})


def test_lists_of_any_length_are_kept(folder):
    tags = ",".join("tag-%03d" % i for i in range(120))
    run("sweep", write(folder, "t.ini", TINY + "[sweep.train.gamma]\n[track]\ntags = %s\n" % tags), "--name", "a", "--trials", 1,
        "--store", folder / "s.db", "--quiet")
    run("sweep", "--resume", "a", "--trials", 2, "--store", folder / "s.db", "--quiet")
    equal([t["state"] for t in show(folder / "s.db", "a")["trials"]], ["done", "done"])
    out, _ = run("train", "cartpole", "--print-config", "--sweep.devices", ",".join("cuda:%d" % i for i in range(64)))
    config = write(folder, "d.ini", out)
    equal(values(run("train", config, "--print-config")[0])["sweep.devices"].count("cuda:"), 64)
    fails("train", write(folder, "l.ini", "[env]\nname = " + "x" * 70000), code=2, says="the value has 70000 bytes")


def test_hints_name_what_helps(folder):
    path = folder / "with space.ckpt"
    out, _ = run("train", write(folder, "t.ini", TINY), "-o", path)
    assert "`trawl eval '%s'`" % path in out, out
    err = fails("train", path, code=2, says="is a checkpoint")
    assert "`trawl train --resume '%s'` continues" % path in err, err
    fails("sweep", path, "--name", "a", code=2, says="is a checkpoint")
    out, _ = run("train", "cartpole", "--train.device", "gpu", "--print-config")
    equal(values(out)["train.device"], "cuda")
    fails("train", "cartpole", "--train.device", "gpuu", code=2, says="allowed is one of auto, cpu, cuda")
    fails("train", "cartpole", "--train.device", "cuda:1", code=2, says=("did you mean cuda?", "CUDA_VISIBLE_DEVICES", "--devices cuda:N"))
    assert "device = cuda\n" in run("train", "cartpole", "--train.device", "cuda:0", "--print-config")[0]
    err = fails("train", "--resume", path, "--train.optimizer", "adam", code=2, says="made with train.optimizer muon, this run has adam")
    assert "number of the choice" not in err


def test_a_game_of_pufferlibs_form(folder):
    """A small game of our own in the form of PufferLib 4.0: two agents, one dies alone; options by dict_get; rand()."""
    game = folder / "tree" / "ocean" / "pairs"
    os.makedirs(game)
    os.makedirs(folder / "tree" / "config")
    write(folder / "tree" / "config", "pairs.ini", "[base]\nenv_name = pairs\n[vec]\ntotal_agents = 64\n[env]\nlength = 5\nfair = True\n"
          "unread = 3\nnum_envs = 8\nlevels = 'a.bin'\n[train]\nhorizon = 16\nminibatch_size = 512\ntotal_timesteps = 20_000\n[sweep]\nmetric = late_deaths\n")
    write(game, "pairs.h", """
#include <stdlib.h>
#include "raylib.h"
typedef struct { float perf, score, episode_return, episode_length, late, n; } Log;
typedef struct { float *observations, *actions, *rewards, *terminals; Log log; int num_agents; unsigned int rng; int *ticks; int length, fair; } Pairs;
void c_reset(Pairs *env) { for (int a = 0; a < 2; a++) env->ticks[a] = 0, env->observations[a] = (float)(rand() % 2); }
void c_step(Pairs *env)
{
    for (int a = 0; a < 2; a++) {
        int right = (int)env->actions[a] == (int)env->observations[a];
        env->rewards[a] = (float)right;
        if (++env->ticks[a] == env->length + a) {
            env->terminals[a] = 1;
            env->log.perf += (float)right;
            env->log.episode_length += (float)env->ticks[a];
            env->log.late += (float)a;
            env->log.n += 1;
            env->ticks[a] = 0;
        }
        env->observations[a] = (float)(rand() % 2);
    }
}
void c_render(Pairs *env) { InitWindow(1, 1, "x"); DrawText(TextFormat("%d", env->length), 0, 0, 8, RED); DrawSplineBasis(NULL, 0, 1, RED); }
void c_close(Pairs *env) { free(env->ticks); }
""")
    write(game, "binding.c", """
#include "pairs.h"
#define OBS_SIZE 1
#define NUM_ATNS 1
#define ACT_SIZES {2}
#define OBS_TENSOR_T FloatTensor
#define Env Pairs
#include "vecenv.h"
void my_init(Env *env, Dict *kwargs)
{
    env->num_agents = 2;
    env->length = dict_get(kwargs, "length")->value;
    env->fair = dict_get(kwargs, "fair")->value;
    env->ticks = calloc(2, sizeof(int));
}
void my_log(Log *log, Dict *out)
{
    dict_set(out, "perf", log->perf);
    dict_set(out, "episode_length", log->episode_length);
    dict_set(out, "late deaths", log->late);
}
""")
    assert "no value" not in run("env", "build", game, cwd=folder)[1]
    out, _ = run("env", "check", "./pairs.so", cwd=folder)
    assert "FAULT" not in out and "2 agents" in out, out
    shutil.copytree(game, folder / "older")
    binding = (game / "binding.c").read_text()
    write(folder / "older", "binding.c", binding.replace('"vecenv.h"', '"../env_binding.h"'))
    fails("env", "build", "older", code=2, says=["binding.c includes no vecenv.h", "it includes 3.0's env_binding.h"], cwd=folder)
    write(folder / "older", "binding.c", binding.replace("calloc(2", "callocs(2"))
    fails("env", "build", "older", code=2, says=["undefined symbol: callocs", "no file of it defines"], cwd=folder)
    write(folder / "older", "binding.c", binding.replace("num_agents = 2;", "num_agents = dict_get(kwargs, \"agents\")->value;"))
    fails("env", "build", "older", code=2, says=["makes no instance with these options", "config/older.ini"], cwd=folder)
    config, said_by = folder / "tree" / "config" / "pairs.ini", lambda: " ".join(run("env", "build", game, "-o", "none.so", cwd=folder)[1].split())
    kept = config.read_text()
    config.write_text(kept.replace("length = 5", "length = long").replace("fair = True", ""))
    assert "no value for length, fair: %s sets" % config.resolve() in said_by(), said_by()
    config.unlink()
    for text in ("no value for length, fair:", "config/pairs.ini", "config/ocean/pairs.ini", "ocean/pairs/pairs.ini", "[env] length = VALUE"):
        assert text in said_by(), said_by()
    write(game, "pairs.ini", kept)  # a game that lies alone
    assert "no value" not in said_by()
    (game / "pairs.ini").unlink()
    config.write_text(kept)
    options = {o["key"]: o["def"] for o in json.loads(run("env", "describe", "./pairs.so", cwd=folder)[0])["options"]}
    equal(options, {"length": "5", "fair": "true", "unread": "3", "levels": "a.bin"})
    text, _ = run("sweep", "./pairs.so", "tree/config/pairs.ini", "--print-config", cwd=folder)
    for line in ("total_agents = 64", "total_timesteps = 20000", "length = 5", "fair = true", "unread = 3", "metric = env/late_deaths"):
        assert "\n%s\n" % line in text, (line, text)
    text, _ = run("sweep", "./pairs.so", "tree/config/pairs.ini", "--sweep.metric", "environment/late_deaths", "--print-config", cwd=folder)
    assert "\nmetric = env/late_deaths\n" in text, text
    result = json.loads(run("train", "./pairs.so", "--json", "-q", "--train.total_timesteps", "300k", "--log-dir", "logs", "-o", "pairs.ckpt", cwd=folder)[0])
    assert result["ep_length"] == 5.5 and result["perf"] > 0.95, result
    equal(result["env/late_deaths"], 0.5)
    assert "\nenv/late_deaths 0.5\n" in run("eval", "pairs.ckpt", cwd=folder)[0]
    # a game that is given pointers to each agent's row, for self-play there
    routed, header = folder / "tree" / "ocean" / "routed", (game / "pairs.h").read_text()
    os.makedirs(routed)
    write(routed, "pairs.h", header.replace("int num_agents;", "int num_agents; float *seen[2];").replace("env->observations[a]", "env->seen[a][0]"))
    write(routed, "binding.c", binding.replace("#define Env", "#define MY_USES_PERM\n#define Env") + """
void my_setup_perm(StaticVec *vec, Env *env, int slot_base)
{
    for (int a = 0; a < env->num_agents; a++) {
        int row = vec->agent_perm ? vec->agent_perm[slot_base + a] : slot_base + a;
        env->seen[a] = (float *)((char *)vec->observations + (size_t)row * OBS_SIZE * obs_element_size());
    }
}
""")
    run("env", "build", routed, cwd=folder)
    by = ["--env.length", 5, "--env.fair", 1, "--json", "-q", "--train.total_timesteps", "300k"]
    same = json.loads(run("train", "./routed.so", *by, cwd=folder)[0])
    equal([same[key] for key in ("perf", "ep_length")], [result[key] for key in ("perf", "ep_length")])
    # what my_log names is a metric: a life of the agent that dies late has 6 steps, one of the other 5
    reports = [json.loads(line) for line in (folder / "logs" / "metrics.jsonl").read_text().splitlines()]
    assert len(reports) > 2 and all(abs(r["ep_length"] - 5 - r["env/late_deaths"]) < 1e-5 for r in reports), reports
    assert "env/late_deaths" in (folder / "logs" / "metrics.csv").read_text().splitlines()[0]
    write(folder, "own.ini", "[env]\nname = ./pairs.so\n[train]\ntotal_agents = 64\ntotal_timesteps = 20k\n[sweep.train.gamma]\n")
    run("sweep", "own.ini", "--trials", 1, "--store", "p.db", "--name", "p", "-q", cwd=folder)
    assert any(b"env/late_deaths" in path.read_bytes() for path in folder.glob("p.db*"))
    # and a score: half of the lives are the late agent's, by any policy; wrong names are known before a training begins
    by = ["--sweep.metric", "env/late_deaths", "--store", "p.db"]
    run("sweep", "own.ini", "--trials", 2, "--name", "late", *by, "-q", cwd=folder)
    study = show(folder / "p.db", "late")
    assert study["study"]["metric"] == "env/late_deaths" and len(study["trials"]) == 2, study
    assert all(abs(t["score"] - 0.5) < 0.05 and t["score"] != t["perf"] for t in study["trials"]), study["trials"]
    equal(len(re.findall(r"(?:env/late_deaths|steps) .* equal", run("rerun", "late", "--store", "p.db", "--trial", 1, cwd=folder)[0])), 2)
    run("report", "late", "--store", "p.db", "-o", "late.html", cwd=folder)
    assert "env/late_deaths" in (folder / "late.html").read_text()
    fails("sweep", "own.ini", "--name", "none", "--sweep.metric", "env/early", "--store", "p.db", code=2, says="it has env/late_deaths", cwd=folder)


def test_arithmetic_by_raylibs_names(folder):
    """A game's rules may turn vectors by matrices and quaternions and ask what touches: they are computed, not drawn away."""
    game = folder / "ocean" / "spins"
    os.makedirs(game)
    write(game, "spins.h", """
#include <assert.h>
#include "raylib.h"
#include "raymath.h"
#undef NDEBUG
typedef struct { float score, n; } Log;
typedef struct { float *observations, *actions, *rewards, *terminals; Log log; int num_agents; Quaternion turn; } Spins;
static void at(Vector3 a, float x, float y, float z) { if (Vector3Distance(a, (Vector3){x, y, z}) > 1e-4f) abort(); }
static void same(Matrix a, Matrix b) { float16 u = MatrixToFloatV(a), v = MatrixToFloatV(b); for (int i = 0; i < 16; i++) if (fabsf(u.v[i] - v.v[i]) > 1e-4f) abort(); }
static void yes(bool is) { if (!is) abort(); }
static void hits(RayCollision c, float distance, Vector3 point, Vector3 normal)
{
    yes(c.hit && fabsf(c.distance - distance) < 1e-4f), at(c.point, point.x, point.y, point.z), at(c.normal, normal.x, normal.y, normal.z);
}
static void check_rays(void)
{
    Ray in = {{0.5f, 0.25f, -5}, {0, 0, 1}}, middle = {{0.5f, 0.25f, 0}, {0, 0, 1}}, away = {{0.5f, 0.25f, 5}, {0, 0, 1}}, past = {{3, 0, -5}, {0, 0, 1}};
    Ray slanted = {{-2, 0, 0.5f}, {0.6f, 0.8f, 0}}, level = {{-5, 0.25f, 0}, {1, 0, 0}};
    Vector3 o = {0.5f, 0.25f, 0}, back = {0, 0, -1}, a = {0, 0, 1}, b = {2, 0, 1}, c = {2, 2, 1}, d = {0, 2, 1};
    BoundingBox box = {{-1, -1, -1}, {1, 1, 1}};
    hits(GetRayCollisionSphere(in, o, 2), 3, (Vector3){0.5f, 0.25f, -2}, back);
    hits(GetRayCollisionSphere(middle, o, 2), 2, (Vector3){0.5f, 0.25f, 2}, back);
    hits(GetRayCollisionSphere((Ray){{-5, 3, 0}, {1, 0, 0}}, (Vector3){0, 0, 0}, 5), 1, (Vector3){-4, 3, 0}, (Vector3){-0.8f, 0.6f, 0});
    yes(!GetRayCollisionSphere(past, o, 2).hit);
    hits(GetRayCollisionBox(in, box), 4, (Vector3){0.5f, 0.25f, -1}, back);
    hits(GetRayCollisionBox(middle, box), 1, (Vector3){0.5f, 0.25f, 1}, back);
    hits(GetRayCollisionBox((Ray){{-1.6f, -0.6f, 0.5f}, {0.8f, 0.6f, 0}}, box), 0.75f, (Vector3){-1, -0.15f, 0.5f}, (Vector3){-1, 0, 0});
    yes(!GetRayCollisionBox(away, box).hit && !GetRayCollisionBox(past, box).hit && !GetRayCollisionBox(slanted, box).hit);
    hits(GetRayCollisionTriangle(in, a, b, d), 6, (Vector3){0.5f, 0.25f, 1}, (Vector3){0, 0, 1});
    hits(GetRayCollisionTriangle((Ray){{0.5f, 0.25f, 3}, back}, a, d, b), 2, (Vector3){0.5f, 0.25f, 1}, back);
    hits(GetRayCollisionTriangle((Ray){{0, 0, 0}, {0.6f, 0, 0.8f}}, a, (Vector3){2, 0.5f, 1}, (Vector3){2, -0.5f, 1}), 1.25f, (Vector3){0.75f, 0, 1}, back);
    yes(!GetRayCollisionTriangle(away, a, b, d).hit && !GetRayCollisionTriangle(level, a, b, d).hit && !GetRayCollisionTriangle((Ray){{1.5f, 1.5f, 0}, {0, 0, 1}}, a, b, d).hit);
    hits(GetRayCollisionQuad((Ray){{1.5f, 1.5f, 0}, {0, 0, 1}}, a, b, c, d), 1, (Vector3){1.5f, 1.5f, 1}, (Vector3){0, 0, 1});
    yes(!GetRayCollisionQuad(past, a, b, c, d).hit && GetRayCollisionQuad(in, a, b, c, d).hit);
}
static void check(void)
{
    check_rays();
    Vector3 x = {1, 0, 0}, y = {0, 1, 0}, z = {0, 0, 1}, angles = {0.3f, -0.5f, 0.7f}, place, size;
    float quarter = PI / 2, turned;
    Quaternion q = QuaternionFromAxisAngle(z, quarter), p = QuaternionFromAxisAngle(x, 0.4f), turn;
    Matrix m = MatrixMultiply(MatrixRotate((Vector3){1, 2, 3}, 0.9f), MatrixTranslate(4, 5, 6));
    at(Vector3RotateByQuaternion(x, q), 0, 1, 0);
    at(Vector3RotateByAxisAngle(y, x, quarter), 0, 0, 1);
    at(Vector3Transform(x, MatrixRotateZ(quarter)), 0, 1, 0);
    at(Vector3Transform(y, MatrixMultiply(MatrixRotateX(quarter), MatrixTranslate(7, 8, 9))), 7, 8, 10);
    at(Vector3Transform(z, MatrixRotateY(quarter)), 1, 0, 0);
    same(MatrixMultiply(m, MatrixInvert(m)), MatrixIdentity());
    same(QuaternionToMatrix(q), MatrixRotateZ(quarter));
    same(QuaternionToMatrix(QuaternionMultiply(q, p)), MatrixMultiply(MatrixRotateX(0.4f), MatrixRotateZ(quarter)));
    yes(QuaternionEquals(QuaternionFromMatrix(QuaternionToMatrix(p)), p));
    MatrixDecompose(MatrixCompose((Vector3){7, 8, 9}, p, (Vector3){2, 3, 4}), &place, &turn, &size);
    at(place, 7, 8, 9), at(size, 2, 3, 4), same(QuaternionToMatrix(turn), QuaternionToMatrix(p));
    yes(QuaternionEquals(QuaternionSlerp(QuaternionIdentity(), q, 0.5f), QuaternionFromAxisAngle(z, quarter / 2)));
    at(QuaternionToEuler(QuaternionFromEuler(0.3f, -0.5f, 0.7f)), angles.x, angles.y, angles.z);
    QuaternionToAxisAngle(p, &angles, &turned);
    at(angles, 1, 0, 0);
    yes(FloatEquals(turned, 0.4f) && fabsf(MatrixDeterminant(m) - 1) < 1e-4f);
    yes(FloatEquals(Vector3DotProduct(Vector3Perpendicular(angles), angles), 0));
    at(Vector3Transform((Vector3){1, 2, 3}, MatrixLookAt((Vector3){1, 2, 3}, (Vector3){4, 4, 4}, y)), 0, 0, 0);
    at(Vector3Barycenter((Vector3){0.2f, 0.3f, 0}, (Vector3){0, 0, 0}, x, y), 0.5f, 0.2f, 0.3f);
    yes(Vector2Equals(Vector2Reflect((Vector2){1, -1}, (Vector2){0, 1}), (Vector2){1, 1}));
    yes(Vector2Equals(Vector2MoveTowards((Vector2){0, 0}, (Vector2){3, 4}, 2.5f), (Vector2){1.5f, 2}));
    yes(Vector2Equals(Vector2Multiply((Vector2){2, 3}, (Vector2){4, 5}), (Vector2){8, 15}));
    Vector2 where, square[4] = {{0, 0}, {2, 0}, {2, 2}, {0, 2}};
    yes(CheckCollisionLines(square[0], square[2], square[1], square[3], &where) && Vector2Equals(where, Vector2One()));
    yes(CheckCollisionPointPoly(Vector2One(), square, 4) && !CheckCollisionPointPoly((Vector2){3, 1}, square, 4));
    yes(CheckCollisionCircleLine((Vector2){1, 3}, 1.5f, square[2], square[3]) && !CheckCollisionCircleLine((Vector2){1, 3}, 0.5f, square[2], square[3]));
    yes(CheckCollisionBoxSphere((BoundingBox){{0, 0, 0}, {1, 1, 1}}, (Vector3){2, 0.5f, 0.5f}, 1.1f) && !CheckCollisionSpheres(x, 0.5f, y, 0.5f));
}
void c_reset(Spins *env) { check(); env->observations[0] = 1; }
void c_step(Spins *env) { env->terminals[0] = 1; env->log.score += 1; env->log.n += 1; }
void c_render(Spins *env) { if (IsCursorOnScreen() || GetMonitorRefreshRate(0) || IsMouseButtonDown(MOUSE_BUTTON_SIDE)) DrawGrid(1, 1); }
void c_close(Spins *env) { }
""")
    write(game, "binding.c", """
#include "spins.h"
#define OBS_SIZE 1
#define NUM_ATNS 1
#define ACT_SIZES {2}
#define OBS_TENSOR_T FloatTensor
#define Env Spins
#include "vecenv.h"
void my_init(Env *env, Dict *kwargs) { env->num_agents = 1; }
void my_log(Log *log, Dict *out) { dict_set(out, "score", log->score); }
""")
    run("env", "build", game, cwd=folder)
    out, _ = run("env", "check", "./spins.so", cwd=folder)
    assert "FAULT" not in out, out


def test_a_game_of_pufferlibs_newer_form(folder):
    """puf_step, an agent's rows of its own, a mask, bytes as observations."""
    game = folder / "ocean" / "masked"
    os.makedirs(game)
    write(game, "masked.h", """
#include "raylib.h"
typedef unsigned char obs_t;
#include "pufferenv.h"
#define OBS_SIZE 2
#define NUM_ATNS 1
#define ACT_SIZES {3}
struct Log { float perf, score, episode_return, episode_length, n; };
struct Env { Log log; Agent agents[2]; int num_agents, tag, boundary_reached, ticks, length; unsigned int rng; };
static void show(Env *env)
{
    for (int a = 0; a < env->num_agents; a++) {
        int forbidden = rand_r(&env->rng) % 3;
        for (int i = 0; i < 3; i++)
            env->agents[a].action_mask[i] = i != forbidden;
        env->agents[a].observations[0] = 200;
        env->agents[a].observations[1] = (unsigned char)forbidden;
    }
}
void puf_init(Env *env, Dict *kwargs)
{
    env->num_agents = 2;
    env->length = dict_find(kwargs, "length") ? dict_get(kwargs, "length") : 4;
}
void puf_reset(Env *env) { env->ticks = 0; show(env); }
void puf_step(Env *env)
{
    for (int a = 0; a < 2; a++) {
        if ((int)env->agents[a].actions[0] == env->agents[a].observations[1])
            abort();
        env->agents[a].rewards[0] = 0.5f;
    }
    env->ticks++;
    if (env->ticks >= env->length) {
        env->agents[0].terminals[0] = env->agents[1].terminals[0] = 1;
        env->log.perf += 1, env->log.score += 7, env->log.episode_length += env->ticks, env->log.n += 1;
        env->ticks = 0;
    }
    show(env);
}
void puf_render(Env *env) { DrawText("x", 0, 0, 8, RED); (void)env; }
void puf_close(Env *env) { (void)env; }
void puf_log(Log *log, Dict *out) { dict_set(out, "perf", log->perf); dict_set(out, "score", log->score); dict_set(out, "episode_length", log->episode_length); }
""")
    run("env", "build", game, cwd=folder)
    described = json.loads(run("env", "describe", "./masked.so", cwd=folder)[0])
    equal([o["key"] for o in described["options"]], ["length"])
    equal(described["shape"]["has_mask"], True)
    out, _ = run("train", "./masked.so", "--env.length", 6, "--json", "-q", "--train.total_timesteps", "20k", cwd=folder)
    result = json.loads(out)
    equal((result["score"], result["perf"], result["ep_length"]), (7, 1, 6))
    result = json.loads(run("train", "./masked.so", "--json", "-q", "--train.total_timesteps", "20k", cwd=folder)[0])
    equal(result["ep_length"], 4)  # the game's own value


def test_what_else_the_newer_form_allows(folder):
    """obs_t below what uses it, options by a function of the game's own, an option that the game sets, a number beside an unused mask,
    aligned types in the C library's memory. More observations than there is room for are a fault."""
    game = folder / "ocean" / "drift"
    os.makedirs(game)
    write(game, "drift.h", """
#include "pufferenv.h"
#if defined(from_float) && !defined(PRECISION_FLOAT)
typedef precision_t obs_t;
#else
typedef float obs_t;
#endif
#define OBS_SIZE 1
#define NUM_ATNS 1
#define ACT_SIZES {1}
struct Log { float perf, score, episode_return, episode_length, n; };
struct Env { Log log; Agent agents[1]; int num_agents, ticks, length; double wind; unsigned int rng; };
typedef struct __attribute__((aligned(32))) { float x[8]; } Aligned;
static double own(Dict *kwargs, const char *key, double fallback) { return dict_find(kwargs, key) ? dict_get(kwargs, key) : fallback; }
void puf_init(Env *env, Dict *kwargs)
{
    for (int i = 0; i < 8; i++) {
        Aligned *block = i % 2 ? malloc(40) : calloc(1, sizeof *block);
        if ((size_t)block % sizeof *block != 0)
            abort();
        block->x[0] = 1, block->x[7] = 8;
        for (int n = 2; n < 200; n += 37) {
            block = realloc(block, n * sizeof *block);
            if ((size_t)block % sizeof *block != 0 || block->x[0] != 1 || block->x[7] != 8)
                abort();
        }
        free(realloc(NULL, 5));
        if (realloc(block, 0) != NULL)
            abort();
    }
    for (volatile size_t n = 0; n < 3; n++) { /* no such sizes: the compiler may not know */
        if (malloc(-1 - 31 * n) != NULL || realloc(NULL, -1 - n) != NULL)
            abort();
    }
    env->num_agents = 1;
    env->agents[0].action_mask = NULL;
    env->length = own(kwargs, "length", 5);
    env->wind = dict_get(kwargs, "wind");
    dict_set(kwargs, "num_agents", 1);
}
void puf_reset(Env *env) { env->ticks = 0, env->agents[0].observations[0] = 0.5f; }
void puf_step(Env *env)
{
    env->agents[0].rewards[0] = env->agents[0].actions[0] + env->wind;
    if (++env->ticks == env->length) {
        env->agents[0].terminals[0] = 1;
        env->log.score += env->wind, env->log.episode_length += env->ticks, env->log.n += 1;
        puf_reset(env);
    }
}
void puf_render(Env *env) { (void)env; }
void puf_close(Env *env) { (void)env; }
void puf_log(Log *log, Dict *out) { dict_set(out, "score", log->score); dict_set(out, "episode_length", log->episode_length); }
""")
    _, said = run("env", "build", game, cwd=folder)
    assert "no value for wind:" in said, said
    described = json.loads(run("env", "describe", "./drift.so", cwd=folder)[0])
    equal({o["key"]: float(o["def"]) for o in described["options"]}, {"length": -1e15, "wind": 0})
    for more, expected in ([], (0, 5)), (["--env.length", 6, "--env.wind", 2], (2, 6)):
        result = json.loads(run("train", "./drift.so", *more, "--json", "-q", "--train.total_timesteps", "20k", cwd=folder)[0])
        equal((result["score"], result["ep_length"]), expected)
    os.makedirs(folder / "config")
    write(folder / "config", "drift.ini", "[env]\nlength = 3\n")
    run("env", "build", game, cwd=folder)
    result = json.loads(run("train", "./drift.so", "--json", "-q", "--train.total_timesteps", "20k", cwd=folder)[0])
    equal(result["ep_length"], 3)
    # the game asks for a file that is not there, and crashes: the message names the file
    kept = (game / "drift.h").read_text()
    write(game, "drift.h", kept.replace("env->num_agents = 1;", 'env->num_agents = fopen("resources/drift.bin", "rb") ? 1 : (abort(), 0);'))
    fails("env", "build", game, code=2, says=["the game cannot open resources/drift.bin (from the folder %s): No such file" % folder.resolve(), "signal"], cwd=folder)
    write(game, "drift.h", kept)
    write(game, "drift.h", (game / "drift.h").read_text().replace("observations[0] = 0.5f;", "observations[0] = env->agents[0].observations[1] = 0.5f;"))
    run("env", "build", game, cwd=folder)
    assert "writes more observations than its OBS_SIZE of 1" in run("env", "check", "./drift.so", code=1, cwd=folder)[1]
    write(game, "drift.h", (game / "drift.h").read_text().replace(" obs_t;", " seen_t;"))
    fails("env", "build", game, code=2, says="write `typedef float obs_t;` above #include", cwd=folder)


def test_texts_lists_and_long_logs(folder):
    """What the newest form has besides: options that are texts or lists, observations of 16 bits, names that an instance has set, a log longer than any
    other, its perf last; and more options than 64."""
    game, config = folder / "ocean" / "fleet", folder / "config"
    os.makedirs(game)
    os.makedirs(config)
    many = "".join("wide_%d = %d\n" % (i, i) for i in range(80))
    write(config, "fleet.ini", "[base]\nenv_name = fleet\n[env]\nships = 5,4,3\nplace = 'some \"where\".bin'\nlength = 4\n%s[train]\nhorizon = 16\nminibatch_size = 512\n"
          "total_timesteps = 5_000\n[vec]\ntotal_agents = 64\n[sweep]\nmetric = of_another_game\n[selfplay]\nenabled = 1\n" % many)
    write(game, "fleet.h", """
typedef float obs_t;
#include "pufferenv.h"
#define OBS_SIZE 1
#define NUM_ATNS 1
#define ACT_SIZES {2}
struct Log { float score, more[100], perf, n; };
struct Env { Log log; Agent agents[1]; int num_agents, ticks, length; Color color; unsigned int rng; };
static struct { char text[100][16]; int n; } *names;
void puf_init(Env *env, Dict *kwargs)
{
    DictItem *ships = dict_find(kwargs, "ships"), *wide = dict_find(kwargs, "wide_79");
    if (ships->len != 3 || ships->values[1] != 4 || ships->value != 5 || strcmp(dict_get_str(kwargs, "place"), PLACE) || wide == NULL || wide->value != 79)
        abort();
    if (names == NULL)
        for (names = calloc(1, sizeof *names); names->n < 100; names->n++)
            snprintf(names->text[names->n], 16, "more%d", names->n);
    env->num_agents = 1;
    env->length = dict_get(kwargs, "length");
}
void puf_reset(Env *env) { env->ticks = 0; env->agents[0].observations[0] = bf16_to_f32(f32_to_bf16(1.00390625f)) - 1; }
void puf_step(Env *env)
{
    if (env->agents[0].observations[0] != 0 || PUF_BACKEND != PUF_CPU)
        abort();
    if (++env->ticks == env->length) {
        env->agents[0].terminals[0] = 1;
        env->log.score += 1, env->log.more[7] += 3, env->log.perf += 0.5f, env->log.n += 1;
        puf_reset(env);
    }
}
void puf_render(Env *env) { DrawText("x", 0, 0, 8, env->color); puf_web_vsync(); }
void puf_close(Env *env) { puf_set_bot_policy(env, 1); }
void puf_log(Log *log, Dict *out)
{
    dict_set(out, "score", log->score);
    for (int i = 0; i < names->n; i++)
        dict_set(out, names->text[i], log->more[i]);
    dict_set(out, "perf", log->perf);
}
""".replace("PLACE", '"some \\"where\\".bin"'))
    run("env", "build", game, cwd=folder)
    out, err = run("train", "./fleet.so", config / "fleet.ini", "--json", "-q", cwd=folder)
    result = json.loads(out)
    equal((result["score"], result["perf"], result["env/more7"], result["env/more8"]), (1, 0.5, 3, 0))
    assert "sweep.metric = of_another_game is left out" in err and "the one that learns plays all of a game's agents" in err, err
    fails("sweep", "./fleet.so", config / "fleet.ini", "--name", "a", code=2, says="sweep.metric is 'of_another_game', which no run logs", cwd=folder)
    assert "signal 6" in run("env", "check", "./fleet.so", "--env.place", "here", code=1, cwd=folder)[1]
    write(config, "fleet.ini", "[env]\n" + "".join("wide_%d = 1\n" % i for i in range(300)))
    fails("env", "build", game, code=2, says="have 303 options; at most 256 can be taken", cwd=folder)
