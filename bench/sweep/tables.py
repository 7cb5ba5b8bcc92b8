"""tables.py - writes the tables of bench/sweep/table.c: a JSON header and arrays of f32."""
import json
import struct

import numpy as np


def param(key, scale, low, high, whole=False, choices=0, parent=-1, parent_value=0.0, fill=0.0):
    return {"key": key, "scale": scale, "int": whole, "min": low, "max": high, "choices": choices, "parent": parent,
            "parent_value": parent_value, "fill": fill}


def unit(params, x):
    """The unit coordinates of gp/space.c for columns of natural values x (n, dim)."""
    u = np.empty_like(x, dtype=float)
    for j, p in enumerate(params):
        v, lo, hi = x[:, j].astype(float), p["min"], p["max"]
        if p["scale"] == "pow2":
            lo, hi = np.ceil(np.log2(lo)), np.floor(np.log2(hi))
            u[:, j] = (np.log2(v) - lo + 0.5) / (hi - lo + 1)
        elif p["scale"] == "categorical" or (p["int"] and p["scale"] == "linear"):
            u[:, j] = (v - lo + 0.5) / (hi - lo + 1)
        elif p["scale"] == "log":
            half = 0.5 if p["int"] else 0.0
            u[:, j] = np.log(v / (lo - half)) / np.log((hi + half) / (lo - half))
        elif p["scale"] == "logit":
            logit = lambda t: np.log(t / (1 - t))
            u[:, j] = (logit(v) - logit(lo)) / (logit(hi) - logit(lo))
        else:
            u[:, j] = (v - lo) / (hi - lo)
    return np.clip(u, 0, 1)


def write(path, header, x, y, *more):
    """x (rows, dim), y (rows, seeds, checkpoints), then arrays that only people read."""
    header = dict(header, rows=len(x), seeds=y.shape[1])
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(b"TRAWLTB1" + struct.pack("<I", len(text)) + text)
        for array in (x, y, *more):
            file.write(np.ascontiguousarray(array, "<f4").tobytes())
