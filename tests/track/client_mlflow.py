"""client_mlflow.py - the official mlflow client does a whole run against the server of MLFLOW_TRACKING_URI; says what it did.

Run by the interpreter of the environment that `tools/test --servers` makes. Prints a JSON line: run id and what it logged.
"""
import json
import os
import sys
import tempfile

import mlflow

mlflow.set_experiment("official")
with mlflow.start_run(run_name="by the official client", tags={"group": "proof"}) as run:
    mlflow.log_params({"train.lr": 0.01, "env.name": "breakout"})
    for step in range(5):
        mlflow.log_metrics({"score": step / 3, "train/loss": float("nan") if step == 2 else 1.0 / (step + 1)}, step=step)
    mlflow.log_metric("score", float("inf"), step=5)
    mlflow.set_tag("note", "done")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config.ini")
        with open(path, "w", encoding="utf-8") as file:
            file.write("[train]\nlr = 0.01\n")
        mlflow.log_artifact(path, "files")
history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "score")
json.dump({"run_id": run.info.run_id, "history": [[m.step, repr(m.value)] for m in history]}, sys.stdout)
