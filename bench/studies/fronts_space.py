"""fronts_space.py - what fronts.py searches for each game, and how its score compares with the published one.

A row of GAMES: weight of its time, steps (where a search starts, least and most), the options at the start (of those that are not named START's), and
  only     what is searched beside the steps (all of AROUND), in ranges that AROUND makes of the start, or in those of `search`
  starts   how many of PufferLib's published runs the search begins with, where fronts.py has their settings; what is searched then is what they differ in
  max_s    the longest of those runs, seconds
  own      options of the game that they differ in
  library  the game is LIBRARIES/THIS.so, PufferLib's own or the same rules in Trawl's form; else it is the built-in one
  host     that library is PufferLib's own, which the host steps
  column   of the published table that ours is compared by (perf, score), times `factor`
  training compared by the mean of the training episodes that ended in the last tenth of the steps, not by an evaluation
  rules    what differs from PufferLib's game; none: nothing that changes a score
"""

import os

START = {"policy.core": "mingru", "policy.hidden_size": 64, "policy.num_layers": 2, "train.optimizer": "muon", "train.total_agents": 4096, "train.horizon": 64,
         "train.minibatch_size": 32768, "train.replay_ratio": 1, "train.learning_rate": 0.015, "train.beta1": 0.9, "train.gamma": 0.98,
         "train.gae_lambda": 0.95, "train.ent_coef": 0.003, "train.clip_coef": 0.3, "train.vf_coef": 2.5, "train.vf_clip_coef": 1.5,
         "train.max_grad_norm": 1.0, "train.reward_clip": 1}
# distribution, and by what the start is divided and multiplied (logit: one less it), within what is allowed
AROUND = {"policy.hidden_size": ("pow2", 2, 2), "policy.num_layers": ("linear", 2, 1.5), "train.total_agents": ("pow2", 4, 2), "train.horizon": ("pow2", 2, 2),
          "train.minibatch_size": ("pow2", 4, 2), "train.replay_ratio": ("log", 2.5, 2), "train.learning_rate": ("log", 4, 3), "train.beta1": ("logit", 2.5, 2.5),
          "train.gamma": ("logit", 2.5, 2.5), "train.gae_lambda": ("logit", 3, 3), "train.ent_coef": ("log", 10, 6), "train.clip_coef": ("log", 2.5, 2.5),
          "train.vf_coef": ("log", 3, 1.7)}

GAMES = {
    "breakout": {
        "weight": 1.4, "library": "breakout_steep", "starts": 14, "max_s": 30, "own": ["env.frameskip"], "steps": "100M 700k 500M", "training": True, "only": ["train.learning_rate", "train.total_agents", "train.minibatch_size", "train.ent_coef"],
        "start": {"env.frameskip": 4, "train.total_agents": 2048, "train.replay_ratio": 0.87, "train.learning_rate": 0.0388,
                  "train.beta1": 0.7, "train.gamma": 0.973, "train.gae_lambda": 0.969, "train.clip_coef": 0.56, "train.ent_coef": 0.015,
                  "train.vf_coef": 4, "train.vf_clip_coef": 1.2, "train.max_grad_norm": 1.5, "train.rho_clip": 1.5, "train.c_clip": 1.5},
        "rules": "perf is that of training episodes that end, as PufferLib logs it: in an evaluation some games last 20,000 decisions and more"},
    "slimevolley": {
        "weight": 3.2, "starts": 16, "max_s": 100, "steps": "120M 200k 500M",
        "only": ["policy.hidden_size", "policy.num_layers", "train.horizon", "train.learning_rate", "train.replay_ratio", "train.gamma"],
        "start": {"policy.num_layers": 2, "train.total_agents": 8192, "train.learning_rate": 0.018, "train.beta1": 0.93, "train.gamma": 0.983,
                  "train.gae_lambda": 0.99, "train.clip_coef": 0.15, "train.vf_coef": 4.5, "train.replay_ratio": 1.5, "train.ent_coef": 0.002},
        "search": {"train.horizon": "pow2 16 64"}},
    "trash_pickup": {
        "weight": 1.3, "steps": "10M 500k 60M", "only": ["policy.num_layers", "train.learning_rate", "train.total_agents", "train.gamma", "train.ent_coef"],
        "start": {"train.horizon": 32, "train.minibatch_size": 8192, "train.gamma": 0.94, "train.gae_lambda": 0.975, "train.replay_ratio": 1.2,
                  "train.learning_rate": 0.015, "train.beta1": 0.93, "train.clip_coef": 0.3, "train.vf_coef": 3, "train.ent_coef": 2e-4},
        "factor": 0.975,
        "rules": "PufferLib counts a bin as a piece that nobody can pick up: its perf ends at .975, and ours is taken times that"},
    "drone": {
        "weight": 2.4, "library": "drone_hover", "starts": 16, "max_s": 80, "own": ["env.alpha_dist", "env.alpha_hover", "env.alpha_omega", "env.alpha_shaping"], "steps": "12M 300k 100M", "only": ["policy.hidden_size", "train.learning_rate", "train.replay_ratio", "train.total_agents"],
        "start": {"env.alpha_dist": 0.782192, "env.alpha_hover": 0.071445, "env.alpha_omega": 0.00135588, "env.alpha_shaping": 3.9754,
                  "policy.hidden_size": 128, "policy.action_std_init": 0.3, "train.total_agents": 2048, "train.horizon": 32, "train.minibatch_size": 8192,
                  "train.replay_ratio": 2, "train.learning_rate": 0.00975, "train.beta1": 0.914, "train.gamma": 0.981, "train.gae_lambda": 0.884, "train.clip_coef": 0.1,
                  "train.vf_coef": 4.4, "train.vf_clip_coef": 3.4, "train.ent_coef": 1e-4, "train.max_grad_norm": 0.7}},
    "freeway": {
        "weight": 1.2, "library": "freeway_kept", "starts": 12, "max_s": 400, "steps": "150M 8M 600M",
        "only": ["policy.hidden_size", "policy.num_layers", "train.learning_rate", "train.replay_ratio", "train.total_agents", "train.ent_coef"],
        "start": {"policy.hidden_size": 128, "policy.num_layers": 5, "train.total_agents": 8192, "train.learning_rate": 0.0119, "train.beta1": 0.884,
                  "train.gamma": 0.9837, "train.gae_lambda": 0.851, "train.clip_coef": 0.167, "train.vf_coef": 2.6, "train.vf_clip_coef": 1.37,
                  "train.max_grad_norm": 3.1, "train.ent_coef": 0.0036, "train.replay_ratio": 1.25, "train.rho_clip": 1.51, "train.c_clip": 1.65,
                  "train.prio_alpha": 0.91, "train.prio_beta0": 0.76},
        "column": "score", "rules": "compared by crossings: PufferLib's perf may exceed 1"},
    "maze": {
        "weight": 1, "library": "maze_turns", "starts": 12, "max_s": 510, "steps": "50M 1M 400M",
        "only": ["policy.hidden_size", "train.total_agents", "train.learning_rate", "train.replay_ratio", "train.gamma", "train.ent_coef"],
        "start": {"policy.hidden_size": 128, "policy.num_layers": 3, "train.minibatch_size": 16384, "train.learning_rate": 0.00112, "train.beta1": 0.971,
                  "train.gamma": 0.9886, "train.gae_lambda": 0.944, "train.replay_ratio": 1.9375, "train.clip_coef": 0.19, "train.vf_coef": 4.5,
                  "train.vf_clip_coef": 2.6, "train.max_grad_norm": 2, "train.ent_coef": 7e-5, "train.rho_clip": 5, "train.c_clip": 2.1,
                  "train.prio_alpha": 0.6, "train.prio_beta0": 0.83}},
    "g2048": {
        "weight": 1.4, "steps": "100M 4M 400M", "only": ["policy.hidden_size", "policy.num_layers", "train.learning_rate", "train.replay_ratio", "train.ent_coef"],
        "start": {"policy.hidden_size": 128, "train.total_agents": 8192, "train.minibatch_size": 16384, "train.learning_rate": 0.0025, "train.beta1": 0.93,
                  "train.gamma": 0.996, "train.gae_lambda": 0.76, "train.clip_coef": 0.12, "train.vf_coef": 0.7, "train.vf_clip_coef": 0, "train.ent_coef": 0.008,
                  "train.replay_ratio": 1.2},
        "rules": "boards always begin with two tiles; PufferLib's training sets larger ones on some"},
    "connect4": {
        "weight": 0.8, "library": "connect4_first", "starts": 14, "max_s": 50, "steps": "3M 300k 60M", "only": ["train.learning_rate", "train.replay_ratio", "train.total_agents", "train.gamma"],
        "start": {"policy.hidden_size": 128, "train.total_agents": 2048, "train.minibatch_size": 4096, "train.replay_ratio": 3,
                  "train.learning_rate": 0.0115, "train.gamma": 0.9, "train.gae_lambda": 0.937, "train.clip_coef": 0.4,
                  "train.vf_coef": 4, "train.vf_clip_coef": 2, "train.ent_coef": 1e-4, "train.beta1": 0.88, "train.max_grad_norm": 0.55}},
    "pong": {
        "weight": 0.5, "steps": "2.6M 200k 12M", "only": ["policy.num_layers", "train.learning_rate", "train.replay_ratio", "train.total_agents", "train.gamma"],
        "start": {"env.frameskip": 8, "train.total_agents": 512, "train.horizon": 64, "train.minibatch_size": 8192, "train.replay_ratio": 0.8,
                  "train.learning_rate": 0.1, "train.beta1": 0.84, "train.gamma": 0.96, "train.gae_lambda": 0.95, "train.clip_coef": 0.7, "train.ent_coef": 0.015,
                  "train.vf_coef": 1.5, "train.vf_clip_coef": 4, "train.max_grad_norm": 0.3}},
    "tripletriad": {
        "weight": 0.8, "library": "tripletriad", "host": True, "steps": "8M 300k 40M", "only": ["policy.hidden_size", "train.learning_rate", "train.replay_ratio", "train.total_agents"],
        "start": {"policy.hidden_size": 128, "policy.num_layers": 1, "train.horizon": 16, "train.minibatch_size": 8192, "train.replay_ratio": 2,
                  "train.learning_rate": 0.006, "train.beta1": 0.94, "train.gamma": 0.955, "train.gae_lambda": 0.98, "train.clip_coef": 0.25,
                  "train.vf_coef": 2.1, "train.vf_clip_coef": 3.9, "train.ent_coef": 5e-4, "train.max_grad_norm": 4.6}},
    "cartpole": {
        "weight": 0.4, "steps": "800k 60k 20M",
        "start": {"policy.core": "mlp", "policy.num_layers": 1, "policy.hidden_size": 32, "train.total_agents": 2048, "train.horizon": 32, "train.minibatch_size": 4096,
                  "train.learning_rate": 0.07, "train.beta1": 0.8, "train.gae_lambda": 0.99, "train.clip_coef": 0.5, "train.ent_coef": 1e-4,
                  "train.vf_coef": 1.4, "train.vf_clip_coef": 0},
        "rules": "episodes of 500 steps, PufferLib's of 200: perf is the share of either"},
    "tetris": {
        "weight": 0.8, "steps": "60M 1M 500M", "only": ["train.learning_rate", "train.replay_ratio", "train.gae_lambda", "train.clip_coef", "train.ent_coef"],
        "start": {"policy.hidden_size": 256, "policy.num_layers": 1, "train.learning_rate": 0.01, "train.beta1": 0.95, "train.gamma": 0.99, "train.gae_lambda": 0.75,
                  "train.clip_coef": 0.1, "train.ent_coef": 0.005},
        "search": {"train.clip_coef": "log 0.02 0.25"},
        "column": "score", "rules": "compared by points; pieces turn beside what is in their way, the field is empty at first, turning is not rewarded"},
    "enduro": {
        "weight": 1.6, "library": "enduro_days", "starts": 12, "max_s": 40, "steps": "80M 1500k 400M", "training": True,
        "start": {"policy.num_layers": 1, "train.total_agents": 512, "train.minibatch_size": 16384, "train.replay_ratio": 1,
                  "train.learning_rate": 0.0136, "train.beta1": 0.84, "train.gae_lambda": 0.908, "train.clip_coef": 0.6, "train.vf_coef": 1, "train.vf_clip_coef": 1.75,
                  "train.eval_episodes": 1, "train.eval_max_steps": 64},
        "rules": "perf is a tenth for each day (13,920 steps) that a game has won since it was made, logged as a day ends, so it is that of the games that "
                 "were trained on and grows with the steps of each; PufferLib's own number continues for half as many steps after training"},
    "go": {
        "weight": 1.6, "library": "go_greedy", "starts": 12, "max_s": 180, "own": ["env.reward_move_pass", "env.reward_move_invalid", "env.reward_player_capture", "env.reward_opponent_capture"],
        "steps": "6M 2M 200M", "only": ["policy.hidden_size", "train.learning_rate", "train.replay_ratio", "train.total_agents", "train.gae_lambda"],
        "start": {"env.reward_move_pass": -0.820963, "env.reward_move_invalid": -0.0514018, "env.reward_player_capture": 0.679441, "env.reward_opponent_capture": -0.377903,
                  "policy.hidden_size": 128, "policy.num_layers": 1, "train.total_agents": 512, "train.minibatch_size": 4096, "train.replay_ratio": 3,
                  "train.learning_rate": 0.006, "train.beta1": 0.97, "train.gamma": 0.93, "train.gae_lambda": 0.99, "train.ent_coef": 5e-4,
                  "train.clip_coef": 0.4, "train.vf_coef": 3, "train.vf_clip_coef": 2, "train.max_grad_norm": 1}},
    "tower_climb": {
        "weight": 1.6, "library": "tower_climb", "starts": 12, "max_s": 100, "own": ["env.reward_climb_row", "env.reward_fall_row", "env.reward_illegal_move", "env.reward_move_block"],
        "steps": "40M 3M 500M", "only": ["policy.hidden_size", "train.learning_rate", "train.replay_ratio", "train.total_agents", "train.ent_coef"],
        "start": {"env.reward_climb_row": 0.38, "env.reward_fall_row": 0, "env.reward_illegal_move": -0.0048, "env.reward_move_block": 0.063,
                  "policy.hidden_size": 256, "policy.num_layers": 3, "train.total_agents": 2048, "train.minibatch_size": 8192, "train.replay_ratio": 1.5,
                  "train.learning_rate": 0.0055, "train.beta1": 0.945, "train.gamma": 0.91, "train.gae_lambda": 0.8, "train.ent_coef": 0.006,
                  "train.clip_coef": 0.3, "train.vf_coef": 4.9, "train.vf_clip_coef": 4.4, "train.max_grad_norm": 5, "train.min_lr_ratio": 0.1}},
    "terraform": {
        "weight": 1.6, "library": "terraform", "starts": 12, "max_s": 150, "own": ["env.reward_scale"], "steps": "60M 5M 400M",
        "only": ["policy.hidden_size", "train.learning_rate", "train.replay_ratio", "train.total_agents", "train.gamma"],
        "start": {"env.reward_scale": 0.134554, "policy.hidden_size": 256, "policy.num_layers": 4, "train.total_agents": 2048, "train.horizon": 128, "train.minibatch_size": 16384,
                  "train.replay_ratio": 1, "train.learning_rate": 0.01, "train.beta1": 0.95, "train.gamma": 0.875, "train.gae_lambda": 0.52, "train.ent_coef": 0.01,
                  "train.clip_coef": 0.05, "train.vf_coef": 4.5, "train.vf_clip_coef": 2, "train.max_grad_norm": 2.5}},
    "pacman": {
        "weight": 0.8, "library": "pacman", "host": True, "steps": "15M 300k 80M",
        "start": {"policy.hidden_size": 128, "policy.num_layers": 3, "train.minibatch_size": 16384, "train.replay_ratio": 1.2, "train.gamma": 0.99, "train.clip_coef": 0.15,
                  "train.vf_coef": 0.5, "train.vf_clip_coef": 3.6, "train.ent_coef": 0.03}},
}


DEFAULTS = {"train.rho_clip": 1, "train.c_clip": 1, "train.prio_alpha": 0, "train.prio_beta0": 0.4}
# PufferLib's columns, our names, how a search walks them
PUBLISHED = {"vec/total_agents": ("train.total_agents", "pow2"), "train/horizon": ("train.horizon", "pow2"), "train/minibatch_size": ("train.minibatch_size", "pow2"),
             "policy/hidden_size": ("policy.hidden_size", "pow2"), "policy/num_layers": ("policy.num_layers", "linear"),
             "train/learning_rate": ("train.learning_rate", "log"), "train/beta1": ("train.beta1", "logit"), "train/gamma": ("train.gamma", "logit"),
             "train/gae_lambda": ("train.gae_lambda", "logit"), "train/replay_ratio": ("train.replay_ratio", "log"), "train/ent_coef": ("train.ent_coef", "log"),
             "train/clip_coef": ("train.clip_coef", "log"), "train/vf_coef": ("train.vf_coef", "log"), "train/vf_clip_coef": ("train.vf_clip_coef", "log"),
             "train/max_grad_norm": ("train.max_grad_norm", "log"), "train/prio_alpha": ("train.prio_alpha", "linear"),
             "train/prio_beta0": ("train.prio_beta0", "linear"), "train/vtrace_rho_clip": ("train.rho_clip", "log"), "train/vtrace_c_clip": ("train.c_clip", "log")}


def published_starts(game, experiments):
    """Settings of runs on the published front, spread over its costs, in Trawl's names and by its rules: whole layers, and the replay ratio of the whole
    minibatches that PufferLib makes of a rollout. A run's beginning lies on that front like a run of so many steps. First the game's own start. A file of
    one's own has a list of such settings for a game."""
    row = GAMES[game]
    if isinstance(experiments.get(game), list):
        return experiments[game]
    measure = "env/" + row.get("column", "perf")
    kept = set(PUBLISHED) | {"uptime", "agent_steps", measure} | {key.replace(".", "/") for key in row.get("own", [])}
    columns = {key: [float(x) for x in str(text).split(",")] for key, text in experiments.get(game, {}).items() if key in kept}
    front = []
    for i in sorted(range(len(columns.get("uptime", []))), key=lambda i: columns["uptime"][i]):
        if columns["uptime"][i] <= row.get("max_s", 0) and (not front or columns[measure][i] > columns[measure][front[-1]]):
            front.append(i)
    n = min(row.get("starts", 0), len(front))
    options, (first, low, high) = {**DEFAULTS, **START, **row["start"]}, steps_of(game, 1)
    starts = [{key: options[key] for key in [key for key, _ in PUBLISHED.values()] + row.get("own", []) if key in options} | {"train.total_timesteps": first}]
    for i in [front[round(k * (len(front) - 1) / max(n - 1, 1))] for k in range(n)]:
        values = {key: column[i if len(column) > 1 else 0] for key, column in columns.items()}
        start = {name: values[key] for key, (name, _) in PUBLISHED.items()} | {name: values[name.replace(".", "/")] for name in row.get("own", [])}
        for key, text in row.get("search", {}).items():
            least, most = (float(x) for x in text.split()[1:])
            start[key] = min(max(start[key], least), most)
        samples = start["train.total_agents"] * start["train.horizon"]
        start["train.minibatch_size"] = min(start["train.minibatch_size"], samples)
        passes = max(int(start["train.replay_ratio"] * samples / start["train.minibatch_size"]), 1)
        starts.append(start | {"policy.num_layers": max(int(start["policy.num_layers"]), 1), "train.replay_ratio": passes * start["train.minibatch_size"] / samples,
                               "train.total_timesteps": round(min(max(values["agent_steps"] * 1e6, low), high))})
    return [{key: int(value) if value == int(value) else value for key, value in start.items()} for start in starts]


def metric_of(game):
    row = GAMES[game]
    return ("train/" if row.get("training") else "") + row.get("column", "perf")


def steps_of(game, shorter):
    return [round(float(text[:-1]) * {"k": 1e3, "M": 1e6, "G": 1e9}[text[-1]] / shorter) for text in GAMES[game]["steps"].split()]


def around(key, start):
    """Distribution, least and most of a parameter that starts there."""
    kind, down, up = AROUND[key]
    if kind == "logit":
        return kind, 1 - min((1 - start) * down, 0.7), 1 - max((1 - start) / up, 1e-4)
    if key == "train.clip_coef":
        return kind, start / down, min(start * up, 1)
    if key == "train.vf_coef":
        return kind, start / down, min(start * up, 5)
    if key == "policy.num_layers":
        return kind, max(int(start / down), 1), max(round(start * up), 2)
    return kind, start // down if kind == "pow2" else start / down, start * up


def name_of(game, libraries):
    """The game's name for the program: that of a built-in one, or the path of its library."""
    library = GAMES[game].get("library")
    return os.path.join(os.path.abspath(libraries), library + ".so") if library else game


def sections(game, name, eval_episodes, device, shorter=1, starts=()):
    """An ini text: a sweep of the game, which the program knows by this name; with starts, of what they differ in."""
    row = GAMES[game]
    start, low, high = steps_of(game, shorter)
    options = {"env.name": name, **START, "train.eval_episodes": eval_episodes, **row["start"], "train.total_timesteps": start, "train.device": device,
               "sweep.method": "pareto", "sweep.metric": metric_of(game)}
    if len(starts) > 1:
        kinds = {key: kind for key, kind in PUBLISHED.values()} | {key: "linear" for key in row.get("own", [])}
        searched = {key: (kind, min(s[key] for s in starts if key in s), max(s[key] for s in starts if key in s)) for key, kind in kinds.items()}
        options |= {key: low for key, (_, low, high) in searched.items() if low == high} | {"sweep.n_init": 1}
        searched = {key: fields for key, fields in searched.items() if fields[1] < fields[2]}
    else:
        searched = {key: around(key, options[key]) for key in row.get("only", AROUND)} | {key: text.split() for key, text in row.get("search", {}).items()}
        options["sweep.n_init"] = min(len(row.get("only", AROUND)) + 2, 10)
    lengths = [round(s["train.total_timesteps"] / shorter) for s in starts]
    searched["train.total_timesteps"] = ("log", min([low, *lengths]), max([high, *lengths]))
    lines = []
    for section in ("env", "policy", "train", "sweep"):
        lines += [f"[{section}]"] + [f"{key.partition('.')[2]} = {value}" for key, value in options.items() if key.startswith(section + ".")]
    for key, fields in searched.items():
        lines += [f"[sweep.{key}]"] + [f"{field} = {value}" for field, value in zip(("distribution", "min", "max"), fields)]
    return "\n".join(lines) + "\n"
