"""fronts_space.py - what fronts.py searches for each game: where a search starts, its ranges, how its score compares with the published one.

A row of GAMES: weight of its time, options it is trained with (START in place of what is not named), ranges in place of SEARCHED, and
  library  the game is LIBRARIES/NAME.so, PufferLib's own; else it is the built-in one
  column   of the published table that ours is compared by (perf), `ours` the number of ours for it, times `factor`
  rules    what differs from PufferLib's game; empty: nothing that changes a score
"""

START = {"policy.core": "mingru", "policy.hidden_size": 64, "policy.num_layers": 2, "train.optimizer": "muon", "train.total_agents": 4096, "train.horizon": 64,
         "train.minibatch_size": 32768, "train.replay_ratio": 1, "train.learning_rate": 0.015, "train.beta1": 0.9, "train.gamma": 0.98,
         "train.gae_lambda": 0.95, "train.ent_coef": 0.003, "train.clip_coef": 0.3, "train.vf_coef": 2.5, "train.vf_clip_coef": 1.5,
         "train.max_grad_norm": 1.0}
SEARCHED = {"policy.hidden_size": "pow2 32 128", "policy.num_layers": "linear 1 3", "train.total_agents": "pow2 1024 8192",
            "train.horizon": "pow2 16 128", "train.minibatch_size": "pow2 8192 65536", "train.replay_ratio": "log 0.4 3",
            "train.learning_rate": "log 0.003 0.08", "train.beta1": "logit 0.6 0.98", "train.gamma": "logit 0.9 0.998",
            "train.gae_lambda": "logit 0.6 0.99", "train.ent_coef": "log 1e-5 0.03", "train.clip_coef": "linear 0.05 0.8",
            "train.vf_coef": "linear 0.5 5"}

GAMES = {
    "breakout": {
        "weight": 1, "steps": "90M 2M 250M",
        "start": {"env.frameskip": 4, "train.reward_clip": 1, "train.total_agents": 2048, "train.replay_ratio": 0.85, "train.learning_rate": 0.03,
                  "train.beta1": 0.75, "train.gamma": 0.97, "train.gae_lambda": 0.98, "train.clip_coef": 0.45, "train.ent_coef": 0.01,
                  "train.vf_coef": 3.1, "train.vf_clip_coef": 1.2, "train.max_grad_norm": 1.5}},
    "pong": {
        "weight": 0.7, "steps": "2.6M 300k 12M",
        "start": {"env.frameskip": 8, "policy.num_layers": 3, "train.total_agents": 512, "train.horizon": 32, "train.minibatch_size": 16384,
                  "train.learning_rate": 0.1, "train.beta1": 0.6, "train.gamma": 0.96, "train.gae_lambda": 0.9, "train.clip_coef": 0.7, "train.ent_coef": 0.01,
                  "train.vf_coef": 1, "train.vf_clip_coef": 4, "train.max_grad_norm": 0.3},
        "search": {"policy.hidden_size": "pow2 32 64", "train.total_agents": "pow2 256 4096", "train.minibatch_size": "pow2 2048 32768",
                   "train.replay_ratio": "log 0.4 4", "train.learning_rate": "log 0.02 0.2"}},
    "cartpole": {
        "weight": 0.6, "steps": "800k 100k 20M",
        "start": {"policy.core": "mlp", "policy.num_layers": 1, "policy.hidden_size": 32, "train.total_agents": 1024, "train.horizon": 32, "train.minibatch_size": 4096,
                  "train.learning_rate": 0.07, "train.beta1": 0.8, "train.gae_lambda": 0.99, "train.clip_coef": 0.5, "train.ent_coef": 1e-4,
                  "train.vf_coef": 1.4, "train.vf_clip_coef": 0},
        "search": {"policy.hidden_size": "pow2 32 64", "policy.num_layers": None, "train.total_agents": "pow2 128 8192", "train.minibatch_size": "pow2 1024 32768",
                   "train.replay_ratio": "log 0.5 8", "train.learning_rate": "log 0.005 0.15", "train.gae_lambda": "logit 0.9 0.995"},
        "rules": "episodes of 500 steps, PufferLib's of 200: perf is the share of either"},
    "slimevolley": {
        "weight": 2.2, "steps": "90M 1M 1G",
        "start": {"train.total_agents": 8192, "train.horizon": 32, "train.learning_rate": 0.01, "train.beta1": 0.95, "train.gamma": 0.9877,
                  "train.gae_lambda": 0.979, "train.clip_coef": 0.15, "train.vf_coef": 4},
        "search": {"train.total_agents": "pow2 2048 16384", "train.gamma": "logit 0.97 0.998", "train.gae_lambda": "logit 0.9 0.995",
                   "train.learning_rate": "log 0.002 0.05"}},
    "trash_pickup": {
        "weight": 1.6, "steps": "30M 1M 250M",
        "start": {"train.horizon": 16, "train.minibatch_size": 16384, "train.gamma": 0.93, "train.gae_lambda": 0.97, "train.replay_ratio": 1.8,
                  "train.clip_coef": 0.1, "train.vf_coef": 4, "train.ent_coef": 3e-4},
        "search": {"train.horizon": "pow2 8 64", "train.gamma": "logit 0.85 0.99", "train.ent_coef": "log 1e-5 0.01"},
        "factor": 0.975,
        "rules": "PufferLib counts a bin as a piece that nobody can pick up: its perf ends at .975, and ours is taken times that"},
    "maze": {
        "weight": 2, "steps": "50M 2M 250M",
        "start": {"env.max_size": 47, "policy.hidden_size": 128, "train.total_agents": 2048, "train.horizon": 128, "train.learning_rate": 0.008, "train.beta1": 0.95,
                  "train.gamma": 0.9936, "train.gae_lambda": 0.942, "train.replay_ratio": 1.5, "train.clip_coef": 0.15, "train.vf_coef": 3,
                  "train.ent_coef": 1e-3},
        "search": {"policy.hidden_size": "pow2 64 256", "train.horizon": "pow2 32 256", "train.gamma": "logit 0.97 0.999", "train.learning_rate": "log 0.001 0.04"},
        "rules": "each maze is new, PufferLib's are 8192; a choice is a direction, PufferLib's turns the agent"},
    "freeway": {
        "weight": 2, "steps": "100M 10M 600M",
        "start": {"policy.hidden_size": 128, "train.total_agents": 8192, "train.learning_rate": 0.01, "train.beta1": 0.95, "train.gamma": 0.9887,
                  "train.gae_lambda": 0.76, "train.clip_coef": 0.2, "train.vf_coef": 4, "train.ent_coef": 1e-3},
        "search": {"policy.hidden_size": "pow2 64 256", "policy.num_layers": "linear 1 4", "train.total_agents": "pow2 2048 16384", "train.gae_lambda": "logit 0.4 0.97",
                   "train.gamma": "logit 0.95 0.998", "train.learning_rate": "log 0.001 0.04"},
        "column": "score", "ours": "score",
        "rules": "compared by crossings: PufferLib's perf may exceed 1"},
    "g2048": {
        "weight": 1.6, "steps": "100M 5M 1G",
        "start": {"policy.hidden_size": 128, "train.total_agents": 8192, "train.learning_rate": 0.006, "train.beta1": 0.95, "train.gamma": 0.998, "train.gae_lambda": 0.7,
                  "train.clip_coef": 0.1, "train.vf_coef": 1, "train.vf_clip_coef": 0, "train.ent_coef": 0.005},
        "search": {"policy.hidden_size": "pow2 64 512", "train.total_agents": "pow2 2048 16384", "train.gamma": "logit 0.98 0.9995", "train.gae_lambda": "logit 0.3 0.95",
                   "train.learning_rate": "log 0.001 0.03", "train.ent_coef": "log 1e-4 0.05", "train.clip_coef": "linear 0.01 0.5",
                   "train.vf_coef": "linear 0.1 3"},
        "rules": "boards always begin with two tiles; PufferLib's training sets larger ones on some"},
    "tetris": {
        "weight": 1.5, "steps": "100M 1M 1G",
        "start": {"policy.hidden_size": 128, "policy.num_layers": 1, "train.learning_rate": 0.01, "train.beta1": 0.95, "train.gamma": 0.99, "train.gae_lambda": 0.75,
                  "train.clip_coef": 0.1, "train.vf_coef": 2.5, "train.ent_coef": 0.005},
        "search": {"policy.hidden_size": "pow2 64 256", "policy.num_layers": "linear 1 2", "train.gamma": "logit 0.95 0.999", "train.gae_lambda": "logit 0.4 0.97",
                   "train.learning_rate": "log 0.001 0.04", "train.ent_coef": "log 1e-4 0.05", "env.drop_reward": "log 0.001 0.05"},
        "column": "score", "ours": "score",
        "rules": "compared by points; gravity, garbage and rewards are our own"},
    "go": {
        "weight": 0.8, "steps": "20M 1M 100M",
        "start": {"env.capture_reward": 0.05, "policy.hidden_size": 128, "train.total_agents": 2048, "train.minibatch_size": 16384, "train.gae_lambda": 0.96,
                  "train.clip_coef": 0.3, "train.ent_coef": 1e-3},
        "search": {"policy.hidden_size": "pow2 128 512", "train.total_agents": "pow2 512 4096", "train.learning_rate": "log 0.001 0.04"},
        "rules": "another opponent, illegal moves are masked, either colour: not the same game"},
    "connect4": {
        "weight": 2, "library": True, "steps": "4M 300k 16M",
        "start": {"policy.hidden_size": 128, "policy.num_layers": 1, "train.total_agents": 2048, "train.horizon": 32, "train.minibatch_size": 8192,
                  "train.replay_ratio": 3, "train.learning_rate": 0.0085, "train.gamma": 0.8, "train.gae_lambda": 0.96, "train.clip_coef": 0.5,
                  "train.vf_coef": 5, "train.vf_clip_coef": 2, "train.ent_coef": 1e-4, "train.beta1": 0.88},
        "search": {"policy.hidden_size": "pow2 64 256", "policy.num_layers": "linear 1 2", "train.total_agents": "pow2 512 4096", "train.horizon": "pow2 8 64",
                   "train.minibatch_size": "pow2 4096 32768", "train.gamma": "logit 0.7 0.97", "train.replay_ratio": "log 1 6"}},
    "enduro": {
        "weight": 2.2, "library": True, "steps": "35M 2M 70M", "eval_episodes": 256,
        "start": {"policy.hidden_size": 64, "policy.num_layers": 1, "train.total_agents": 512, "train.minibatch_size": 16384, "train.replay_ratio": 1.3,
                  "train.learning_rate": 0.0136, "train.beta1": 0.84, "train.gamma": 0.98, "train.gae_lambda": 0.908, "train.clip_coef": 0.6,
                  "train.vf_coef": 1, "train.vf_clip_coef": 1.75},
        "search": {"policy.num_layers": "linear 1 2", "train.total_agents": "pow2 256 2048", "train.minibatch_size": "pow2 4096 32768",
                   "train.gamma": "logit 0.95 0.995", "train.gae_lambda": "logit 0.8 0.97"}},
    "drone": {
        "weight": 2.2, "library": True, "steps": "15M 500k 45M",
        "start": {"policy.hidden_size": 128, "train.total_agents": 2048, "train.horizon": 32, "train.minibatch_size": 8192, "train.replay_ratio": 2,
                  "train.learning_rate": 0.00975, "train.beta1": 0.914, "train.gamma": 0.981, "train.gae_lambda": 0.884, "train.clip_coef": 0.1,
                  "train.vf_coef": 4.4, "train.vf_clip_coef": 3.4, "train.ent_coef": 1e-4, "train.max_grad_norm": 0.7},
        "search": {"policy.hidden_size": "pow2 64 256", "train.total_agents": "pow2 1024 4096", "train.minibatch_size": "pow2 4096 32768",
                   "train.horizon": "pow2 16 64", "train.gamma": "logit 0.95 0.995", "train.gae_lambda": "logit 0.7 0.97", "train.clip_coef": "linear 0.03 0.5"}},
    "tripletriad": {
        "weight": 1.2, "library": True, "steps": "8M 400k 60M",
        "start": {"policy.hidden_size": 128, "policy.num_layers": 1, "train.horizon": 16, "train.minibatch_size": 8192, "train.replay_ratio": 2,
                  "train.learning_rate": 0.008, "train.beta1": 0.94, "train.gamma": 0.955, "train.gae_lambda": 0.98, "train.clip_coef": 0.25,
                  "train.vf_coef": 2.1, "train.vf_clip_coef": 3.9, "train.ent_coef": 5e-4},
        "search": {"policy.hidden_size": "pow2 64 512", "policy.num_layers": "linear 1 2", "train.horizon": "pow2 8 32", "train.replay_ratio": "log 0.7 4",
                   "train.minibatch_size": "pow2 4096 32768", "train.learning_rate": "log 0.001 0.04"}},
    "pacman": {
        "weight": 1.4, "library": True, "steps": "20M 500k 80M",
        "start": {"policy.hidden_size": 128, "train.minibatch_size": 16384, "train.gamma": 0.99, "train.gae_lambda": 0.95, "train.clip_coef": 0.13,
                  "train.vf_coef": 0.5, "train.vf_clip_coef": 3.6, "train.ent_coef": 0.02},
        "search": {"policy.hidden_size": "pow2 64 256", "policy.num_layers": "linear 1 4", "train.ent_coef": "log 1e-4 0.2", "train.vf_coef": "linear 0.1 3"}},
    "terraform": {
        "weight": 1, "library": True, "steps": "30M 2M 60M",
        "start": {"policy.hidden_size": 128, "train.total_agents": 2048, "train.horizon": 128, "train.minibatch_size": 16384, "train.learning_rate": 0.0055,
                  "train.beta1": 0.95, "train.gamma": 0.9, "train.gae_lambda": 0.5, "train.clip_coef": 0.1, "train.vf_coef": 4, "train.ent_coef": 0.008},
        "search": {"policy.hidden_size": "pow2 64 256", "train.gamma": "logit 0.8 0.98", "train.gae_lambda": "logit 0.2 0.95", "train.horizon": "pow2 32 256"}},
}


def steps_of(text):
    return float(text[:-1]) * {"k": 1e3, "M": 1e6, "G": 1e9}[text[-1]]


def sections(game, name, eval_episodes, device, shorter=1):
    """An ini text: a sweep of the game, which the program knows by this name."""
    row = GAMES[game]
    start, low, high = (round(steps_of(text) / shorter) for text in row["steps"].split())
    options = {"env.name": name, **START, **row["start"], "train.total_timesteps": start, "train.eval_episodes": row.get("eval_episodes", eval_episodes), "train.device": device,
               "sweep.method": "pareto", "sweep.metric": row.get("ours", "perf")}
    searched = {**SEARCHED, "train.total_timesteps": f"log {low} {high}", **row.get("search", {})}
    lines = []
    for section in ("env", "policy", "train", "sweep"):
        lines += [f"[{section}]"] + [f"{key.partition('.')[2]} = {value}" for key, value in options.items() if key.startswith(section + ".")]
    for key, text in searched.items():
        if text is not None:
            lines += [f"[sweep.{key}]"] + [f"{name} = {value}" for name, value in zip(("distribution", "min", "max"), text.split())]
    return "\n".join(lines) + "\n"
