#!/usr/bin/env python3
"""lcbench.py - turns the LCBench surrogate of YAHPO (model.onnx) into lcbench.bin, which `trawl-bench sweep` reads.

usage: lcbench.py MODEL.ONNX OUTPUT_DIR     (needs the packages onnx and numpy; --check also onnxruntime)

Batch normalisations are folded into what follows them; of the six outputs time and validation accuracy are kept. The
layout is that of struct weights in bench/sweep/lcbench.c. `--check N` compares N random points with ONNX Runtime
through `trawl-bench evaluate` (give the program with --bench). The evaluator in the package onnx itself is of no use here:
its batch normalisation takes the statistics of the batch.
"""
import argparse
import os
import subprocess
import sys

if "--help" in sys.argv:
    sys.exit(print(__doc__))  # also where numpy is missing
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402

TASK_ROW = {"lcbench-167168": 10, "lcbench-189906": 30, "lcbench-3945": 34, "lcbench-189354": 24}
LO = [1, 16, 1e-4, 0.1, 1e-5, 1, 64, 0]
HI = [52, 512, 1e-1, 0.99, 1e-1, 5, 1024, 1]


def constants(graph):
    """Value of every constant by the name of its tensor."""
    return {n.output[0]: numpy_helper.to_array(n.attribute[0].t) for n in graph.node if n.op_type == "Constant"}


def input_maps(graph):
    """(log, shift, scale) of each of the 8 numbers: the chain Gather [Add Log] Cast Sub Div."""
    const, maps = constants(graph), []
    users = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    for node in graph.node:
        if node.op_type != "Gather" or node.input[0] != "x_cont":
            continue
        at, log, shift, scale = node.output[0], 0.0, None, None
        while scale is None:
            node = users[at][0]
            if node.op_type == "Log":
                log = 1.0
            elif node.op_type == "Sub":
                shift = float(const[node.input[1]])
            elif node.op_type == "Div":
                scale = float(const[node.input[1]])
            at = node.output[0]
        maps.append((log, shift, scale))
    assert len(maps) == 8
    return np.array(maps, np.float32)


def output_maps(graph):
    """(scale, shift) of the outputs time and validation accuracy, behind the sigmoid: Gather Mul Add."""
    const, maps = constants(graph), []
    nodes = list(graph.node)
    sigmoid = next(n.output[0] for n in nodes if n.op_type == "Sigmoid")
    for i, node in enumerate(nodes):
        if node.op_type != "Gather" or node.input[0] != sigmoid:
            continue
        mul = next(n for n in nodes[i:] if node.output[0] in n.input)
        add = next(n for n in nodes[i:] if mul.output[0] in n.input)
        maps.append((float(const[mul.input[1]]), float(const[add.input[1]])))
    assert len(maps) == 6
    return np.array(maps[:2], np.float32)


def convert(model, path):
    graph = model.graph
    w = {i.name: numpy_helper.to_array(i).astype(np.float64) for i in graph.initializer}

    def norm(name):
        scale = w[name + ".weight"] / np.sqrt(w[name + ".running_var"] + 1e-5)
        return scale, w[name + ".bias"] - scale * w[name + ".running_mean"]

    maps = input_maps(graph)
    parts = [maps[:, 0], maps[:, 1], maps[:, 2], w["embds_fct.0.weight"], w["first_layer.weight"], w["first_layer.bias"]]
    for i in range(3):
        scale, shift = norm(f"layers.{i}.norm")
        up, down = w[f"layers.{i}.linear0.weight"], w[f"layers.{i}.linear1.weight"]
        parts += [up * scale, w[f"layers.{i}.linear0.bias"] + up @ shift, down, w[f"layers.{i}.linear1.bias"]]
    parts += [*norm("last_normalization"), w["head.weight"][:2], w["head.bias"][:2]]
    out = output_maps(graph)
    parts += [out[:, 0], out[:, 1]]
    with open(path, "wb") as file:
        file.write(b"TRAWLLC1")
        for part in parts:
            file.write(np.ascontiguousarray(part, "<f4").tobytes())


def check(path, bench, folder, n):
    import onnxruntime
    rng, session = np.random.default_rng(1), onnxruntime.InferenceSession(path)
    for name, row in TASK_ROW.items():
        x = np.array(LO) + rng.random((n, 8)) * (np.array(HI) - np.array(LO))
        x[:, [0, 1, 5, 6]] = np.rint(x[:, [0, 1, 5, 6]])
        want = session.run(None, {"x_cat": np.full((n, 1), row, np.int32), "x_cont": x.astype(np.float32)})[0]
        text = "".join("truth " + " ".join(repr(float(v)) for v in p) + "\n" for p in x)
        answer = subprocess.run([bench, "evaluate", "--problem", name, "--data", folder], input=text,
                                capture_output=True, text=True, check=True).stdout
        got = np.array([[float(v) for v in line.split()[1:]] for line in answer.splitlines()])
        print(name, "largest relative error of time and accuracy:",
              np.abs(got[:, 1] / want[:, 0] - 1).max(), np.abs(got[:, 0] / want[:, 1] - 1).max(),
              "time", want[:, 0].min(), want[:, 0].max(), "accuracy", want[:, 1].min(), want[:, 1].max())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("output_dir")
    parser.add_argument("--bench", default="build/bench/trawl-bench")
    parser.add_argument("--check", type=int, default=0)
    args = parser.parse_args()
    model = onnx.load(args.model)
    os.makedirs(args.output_dir, exist_ok=True)
    convert(model, os.path.join(args.output_dir, "lcbench.bin"))
    if args.check:
        check(args.model, args.bench, args.output_dir, args.check)


if __name__ == "__main__":
    main()
