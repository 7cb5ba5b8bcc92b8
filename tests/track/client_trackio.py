"""client_trackio.py - the official trackio client does a whole run against the server of TRACKIO_SERVER_URL.

Run by the interpreter of the environment that `tools/test --servers` makes."""
import trackio

run = trackio.init(project="official", name="by-the-official-client", config={"lr": 0.01})
for step in range(5):
    trackio.log({"score": step / 3, "train/loss": float("nan") if step == 2 else 1.0 / (step + 1)}, step=step)
trackio.finish()
