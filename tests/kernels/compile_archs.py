#!/usr/bin/env python3
"""compile_archs.py - compiles each CUDA source for cards that no test runs on, without optimisation: what such a card lacks (an
instruction, shared memory) stops the compiler and is found here. usage: compile_archs.py NVCC HOST_COMPILER ROOT BUILD ARCHS SOURCE[:FLAG]..."""

import concurrent.futures
import os
import subprocess
import sys
import tempfile


def main():
    nvcc, host, root, build, archs, *sources = sys.argv[1:]
    fast = ["-Xcicc", "-O0", "-Xptxas", "-O0"]

    def compile_one(job):
        arch, (source, _, flags) = job
        sm = arch.removeprefix("sm_")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([nvcc, "-std=c++17", "-ccbin", host, "-I", root, "-I", os.path.join(build, "envs"), *fast,
                                   *flags.split(), "-gencode", f"arch=compute_{sm},code=sm_{sm}", "-cubin",
                                   os.path.join(root, source), "-o", os.path.join(folder, "out.cubin")],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            print(f"{source} for {arch}:\n{done.stdout[-2000:]}", flush=True)
        return done.returncode == 0

    jobs = [(arch, source.partition(":")) for source in sources for arch in archs.split(",")]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        good = list(pool.map(compile_one, jobs))
    print(f"{sum(good)} of {len(jobs)}: {len(sources)} sources for {archs}")
    return 0 if all(good) and jobs else 1


if __name__ == "__main__":
    sys.exit(main())
