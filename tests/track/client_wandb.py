"""client_wandb.py - a whole run by W&B's own client: config, tags, group, history with numbers that are not finite, a file.

Settings come from the environment (WANDB_BASE_URL, WANDB_API_KEY). Prints {"id", "project", "entity"} as its last line."""
import json
import math
import pathlib

import wandb

run = wandb.init(project="proof", group="study", job_type="train", name="proof-1", tags=["a", "b"],
                 config={"train": {"lr": 0.01}, "env": "breakout"}, dir=".",
                 settings=wandb.Settings(silent=True, x_disable_stats=True, disable_git=True, save_code=False, console="off"))
for step in range(6):
    run.log({"score": math.inf if step == 5 else step / 3, "train/loss": math.nan if step == 2 else 1.0 / (step + 1)},
            step=step * 100)
path = pathlib.Path(".", "note.txt")
path.write_text("kept with the run\n")
run.save(str(path), base_path=".", policy="now")
run.finish()
print(json.dumps({"id": run.id, "project": run.project, "entity": run.entity}))
