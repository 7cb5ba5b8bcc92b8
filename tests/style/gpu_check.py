#!/usr/bin/env python3
"""gpu_check.py - tools/gpu-check with fake programs: its verdicts on their output. Speaks TAP.

usage: tests/style/gpu_check.py ROOT"""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

root = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(root, "tests", "style"))

import style  # noqa: E402: it runs cases

TESTS = ["test_parity", "test_parity_nets", "test_parity_norm", "test_cuda_sigmoid", "test_cuda_env", "test_cuda_rollout", "trainer_test_cuda", "trainer_test_cuda_start"]
# Lists two tests, or runs one.
TEST = """#!/bin/sh
for last; do :; done
[ "$last" = --list ] && { echo good; echo bad; exit 0; }
echo "$0 $*" >>"$RUNS"
echo "ok 1 - $last"
"""
# Runs the program behind its own options; finds something in the test "bad".
SANITIZER = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift 2; done
"$@"
for last; do :; done
[ "$last" = good ] && { echo "========= ERROR SUMMARY: 0 errors"; exit 0; }
echo "=========     at add_k(float *, unsigned long)+0xa0 in a.cu:27"
echo "========= ERROR SUMMARY: 3 errors"
exit 9
"""


def plant(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


class Machine:
    """A folder as --pack makes it, and a sanitizer on the path."""

    def __init__(self, at):
        self.at = at
        plant(os.path.join(at, "trawl"), "#!/bin/sh\necho '{\"cuda\": \"available\"}'\n")
        plant(os.path.join(at, "compute-sanitizer"), SANITIZER)
        for name in TESTS:
            plant(os.path.join(at, name), TEST)

    def check(self, *arguments, code=1):
        env = dict(os.environ, PATH=self.at + os.pathsep + os.environ["PATH"], RUNS=os.path.join(self.at, "runs"))
        done = subprocess.run([sys.executable, os.path.join(root, "tools", "gpu-check"), "--prefix", self.at, "--out",
                               os.path.join(self.at, "out"), *arguments], capture_output=True, text=True, env=env, check=False)
        assert done.returncode == code, f"exit code {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def n_runs(self):
        with open(os.path.join(self.at, "runs"), encoding="utf-8") as file:
            return len(file.readlines())


def test_sanitizer():
    with tempfile.TemporaryDirectory() as at:
        machine = Machine(at)
        out = machine.check("--only", "sanitizer")
        n = 4 * 9  # tools, programs (one of them in f32 and bf16)
        assert f"{n} clean" in out and f"{n} found" in out, out
        assert "found: 3 errors in add_k" in out, out
        assert machine.n_runs() == 2 * n
        out = machine.check("--only", "sanitizer=0")  # all is known, nothing runs again
        assert machine.n_runs() == 2 * n and "clean: earlier" in out and "not begun" not in out, out
        plant(os.path.join(at, "test_parity"), TEST + "# another program\n")
        out = machine.check("--only", "sanitizer=0")
        assert out.count("out of time: not begun") == 2 * 2 * 4, out  # each row, and once more among the failures
        machine.check("--only", "sanitizer", "--jobs", "3")
        assert machine.n_runs() == 2 * n + 2 * 4


def test_parity():
    with tempfile.TemporaryDirectory() as at:
        machine = Machine(at)
        assert "test_cuda_sigmoid bf16" in machine.check("--only", "parity", code=0)
        assert "trainer_test_cuda_ranks" in machine.check("--only", "ranks", code=1)  # it is missing
        plant(os.path.join(at, "trainer_test_cuda_ranks"), TEST)
        assert "1 of 1 met" in machine.check("--only", "ranks", code=0)
        plant(os.path.join(at, "test_cuda_env"), "#!/bin/sh\necho ok 1 - a\necho not ok 2 - b\nexit 1\n")
        plant(os.path.join(at, "test_parity"), "#!/bin/sh\necho '1..0 # SKIP no GPU'\n")
        os.unlink(os.path.join(at, "test_parity_nets"))
        out = machine.check("--only", "parity")
        for part in ("1 passed, 1 failed, 0 skipped: b", "0 passed, 0 failed, 1 skipped", "not in " + at, "6 of 9 met"):
            assert part in out, f"'{part}' is not in: {out}"


def test_findings_of_libraries():
    sys.path.insert(0, os.path.join(root, "tools"))
    import gpu_sanitizer

    race = "========= Error: Race reported between Read access at %s+0xb00\n=========     and Write access at %s+0x29b0\n"
    race += "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n"
    fine, failed = "ok 1 - a\n", "not ok 1 - a\n"
    for tool, one, other, said, test, want in (("racecheck", "nvjet_a", "nvjet_b", fine, "a", "clean"),
                                               ("racecheck", "nvjet_a", "add_k", fine, "a", "found"),
                                               ("racecheck", "nvjet_a", "nvjet_b", failed, "a", "found"),
                                               ("racecheck", "solo_k", "solo_k", fine, "test_resume_17", "clean"),
                                               ("racecheck", "solo_k", "solo_k", fine, "test_resume_16", "found"),
                                               ("racecheck", "solo_k", "add_k", fine, "test_resume_17", "found"),
                                               ("memcheck", "nvjet_a", "nvjet_b", fine, "a", "found"),
                                               ("initcheck", "add_bf16_k", "add_bf16_k", fine, "a", "clean"),
                                               ("initcheck", "add_bf16_k", "add_k", fine, "a", "found")):
        got = gpu_sanitizer.outcome_of(tool, gpu_sanitizer.EXIT_FOUND, said, race % (one, other), test)
        assert got[0] == want, f"{tool}, {one} and {other} in {test}: {got}"


def test_curves():
    loader = importlib.machinery.SourceFileLoader("gpu_check", os.path.join(root, "tools", "gpu-check"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
    loader.exec_module(module)
    runs = [{"perf": 1.0, "steps": [10, 20, 30], "seconds": [1, 2, 3], "curve": [0.0, 0.5, 1.0]},
            {"perf": 0.5, "steps": [10, 22], "seconds": [1, 4], "curve": [0.5, 0.7]}]
    series = module.curve_series("f32", {"runs": runs})
    want = {"steps": [10, 21], "seconds": [1, 3], "low": [0.0, 0.5], "high": [0.5, 0.7]}
    assert {key: series[key] for key in want} == want, json.dumps(series)
    assert [round(x, 9) for x in series["mean"]] == [0.25, 0.6], series["mean"]


def test_learning():
    with tempfile.TemporaryDirectory() as at:
        machine = Machine(at)
        plant(os.path.join(at, "trawl"), """#!/bin/sh
[ "$1" = train ] || { echo '{"cuda": "available"}'; exit 0; }
case "$*" in *cartpole*"seed 1 "*|*memory*"seed 1 "*|*memory*"seed 2 "*) perf=0.5;; *) perf=0.96;; esac
echo "{\\"perf\\": $perf, \\"env_steps\\": 1, \\"cost_s\\": 1, \\"steps_per_s\\": 1}"
""")
        out = machine.check("--only", "learning", "--quick", "--precision", "f32")
        for part in ("perf 0.960 (0.500 at least)", "perf 0.500 (0.500 at least)", "1 of 2 met"):  # the median of three decides
            assert part in out, f"'{part}' is not in: {out}"


def tests():
    yield "each test under the sanitizer, and on from there", test_sanitizer
    yield "what is found within a library's kernels is the library's, and nothing else is", test_findings_of_libraries
    yield "parity: failed, skipped and missing programs", test_parity
    yield "learning: the median of three seeds decides", test_learning
    yield "curves of seeds become a band", test_curves


if __name__ == "__main__":
    sys.exit(1 if style.run_cases(tests()) > 0 else 0)
