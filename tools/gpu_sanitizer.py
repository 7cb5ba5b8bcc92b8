"""gpu_sanitizer.py - compute-sanitizer over each test of the CUDA backend alone, for tools/gpu-check.

A step is a tool, a program and one of its tests. What came of each is kept in OUT/sanitizer.csv as soon as it is known, so
that a run that is cut off continues where it was: a step that ended is not run again for the same program, and one that ran
out of time gets twice as much. It begins before those that never ran, since the longest should not begin last. Of the
trainer's tests only one of each variant is run: the others differ in what the host does."""

import concurrent.futures
import hashlib
import os
import re
import threading

import result_table

TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]
SAME_LAUNCHES = re.compile(r"(?!test_recorded_or_not|test_population)\w+_\d+$")  # of the trainer's tests: those that another makes
FIRST_LIMIT_S = 150
EXIT_FOUND = 9
PLACE = re.compile(r"(?:\bat|access at) (?:void )?([\w:]+)[^\n]*\+0x")
OF_LIBRARIES = re.compile(r"nvjet_|cutlass|cudnn")  # kernels of cuBLASLt and cuDNN, which are not ours to fix
UNEVEN = re.compile(r"test_\w+_17$|population_side_by_side$")  # some groups of threads have no matrix, and fewer barriers
OF_UNEVEN = re.compile(r"solo_k$")  # racecheck loses count of a block's barriers then, see bench/notes/cuda.md
AFTER_CUDNN = re.compile(r"add_bf16_k$")  # reads what cuDNN has written (its numbers agree with the CPU's), which initcheck does not see


def program_hash(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


def places(output):
    """Kernels that are named in the findings, most frequent first."""
    names = {}
    for name in PLACE.findall(output):
        names[name] = names.get(name, 0) + 1
    return sorted(names, key=names.get, reverse=True)


def outcome_of(tool, code, out, errors, test=""):
    """(clean | found | out of time | not run, text). A race within a library's kernel is the library's; an
    address there, or memory that was never written, may have come from us, but for what cuDNN writes."""
    if code == -1:
        return "out of time", ""
    text = out + errors
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: ([^\n]*)", text)
    where = places(text)
    found = ", ".join(where[:3])
    failed = re.search(r"^not ok (?!.*# SKIP)", out, re.M) is not None
    known = {"racecheck": (OF_LIBRARIES, "within a library's kernels"), "initcheck": (AFTER_CUDNN, "of what cuDNN has written")}
    kernel, why = known.get(tool, (None, ""))
    if tool == "racecheck" and UNEVEN.search(test):
        kernel, why = OF_UNEVEN, "after barriers of a part of the block"
    theirs = kernel and where and all(map(kernel.match, where)) and "not printed" not in text
    if code == EXIT_FOUND and theirs and not failed:
        return "clean", f"but for {summary[-1]} {why}, {found}"
    if code == EXIT_FOUND or failed:
        return "found", f"{summary[-1] if summary else 'a test failed'}{' in ' + found if found else ''}"
    if code == 0 and re.search(r"^ok (?!.*# SKIP)", out, re.M) and summary and summary[-1].startswith("0 "):
        return "clean", ""
    reason = [line for line in out.splitlines() + errors.splitlines() if line and not line.startswith(("1..", "# ok"))]
    return "not run", (reason or re.findall(r"# SKIP (.*)", out) or [f"exit code {code}"])[-1][:90]


class Sanitizer:
    def __init__(self, check, sanitizer, programs):
        """programs: (name, path, arguments) that list their tests with --list."""
        self.check = check
        self.sanitizer = sanitizer
        self.file = os.path.join(check.out, "sanitizer.csv")
        self.lock = threading.Lock()
        self.hashes = {name: program_hash(path) for name, path, _ in programs}
        self.steps = [(tool, name, path, arguments, test) for name, path, arguments in programs for tool in TOOLS
                      for test in check.tests_of(path, arguments)  # programs of single operations first
                      if not (name.startswith("trainer") and SAME_LAUNCHES.match(test))]
        self.known = self.load()

    def load(self):
        """Findings of earlier runs with the same --out, by step."""
        rows = result_table.read(self.file)
        return {row.pop("step"): {**row, "seconds": float(row["seconds"]), "limit_s": float(row["limit_s"])} for row in rows}

    def key(self, step):
        return " ".join([step[0], step[1], *step[3], step[4]])

    def before(self, step):
        """The earlier result of the step with the same program."""
        entry = self.known.get(self.key(step), {})
        return entry if entry.get("program") == self.hashes[step[1]] else {}

    def keep(self, step, outcome, note, seconds, limit_s):
        with self.lock:
            self.known[self.key(step)] = {"outcome": outcome, "note": note, "seconds": round(seconds, 1), "limit_s": limit_s,
                                          "program": self.hashes[step[1]]}
            result_table.write(self.file, self.check.about, [{"step": key, **entry} for key, entry in self.known.items()])

    def row(self, step, outcome, note, seconds):
        note = f": {note}" if note else f" in {seconds:.0f} s" if seconds else ""
        self.check.row("sanitizer", self.key(step), outcome + note, "clean", outcome == "clean")

    def run_one(self, step):
        tool, name, path, arguments, test = step
        earlier = self.before(step)
        limit_s = 2 * earlier["limit_s"] if earlier.get("outcome") == "out of time" else FIRST_LIMIT_S
        given_s = min(limit_s, self.check.left_s())
        if given_s < 5:
            self.row(step, "out of time", "not begun", 0)
            return
        quiet = ["--report-api-errors", "no"] if tool == "memcheck" else []  # tests run out of memory on purpose
        command = [self.sanitizer, "--tool", tool, "--error-exitcode", str(EXIT_FOUND), *quiet, path, *arguments, test]
        log = "sanitizer-" + "-".join([tool, name, *arguments, test])
        code, out, errors, seconds = self.check.run(log, command, given_s, {"TRAWL_TEST_SHORT": "1"})
        outcome, note = outcome_of(tool, code, out, errors, test)
        if outcome != "out of time" or given_s >= limit_s:  # cut short by the part's end: no result
            self.keep(step, outcome, note, seconds, limit_s)
        self.row(step, outcome, note, seconds)

    def run(self, jobs):
        order = {"out of time": 0, "": 1, "not run": 2}
        ended = [step for step in self.steps if self.before(step).get("outcome") in ("clean", "found")]
        for step in ended:
            entry = self.before(step)
            self.row(step, entry["outcome"], entry["note"] or "earlier", entry["seconds"])
        left = sorted((step for step in self.steps if step not in ended),
                      key=lambda step: order[self.before(step).get("outcome", "")])
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(self.run_one, step) for step in left]:
                done.result()
        counts = {}
        for step in self.steps:
            outcome = self.before(step).get("outcome", "never run")
            counts[outcome] = counts.get(outcome, 0) + 1
        print("sanitizer: " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
              + f"; run it again with this {os.path.basename(self.file)} in --out to continue", flush=True)
