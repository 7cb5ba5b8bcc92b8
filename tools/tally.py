#!/usr/bin/env python3
"""tally.py - counts the test cases of several Meson runs; the last lines of tools/test.

usage: tools/tally.py RUNS, a file with a line a step: "log LABEL testlog.json", "passed LABEL TEXT" or
"failed LABEL TEXT".

A TAP program counts with each of its cases, any other program as one. A program that crashed, ran out of time or ended
before its plan counts a failure for each case that it did not reach, one at least. Skips are listed with their reasons;
above the failures stands the output of each: the lines "# ..." after its "not ok", or a dead program's last words.
Exit code 1 when something failed or nothing ran.
"""

import argparse
import json
import re
import sys

CASE = re.compile(r"^(not )?ok\b\s*(\d+)?\s*-?\s*([^#]*)(?:#\s*(SKIP)\b[:\s]*(.*))?", re.IGNORECASE)
PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*SKIP\b[:\s]*(.*))?", re.IGNORECASE)
PROGRAM_OK = ("OK", "EXPECTEDFAIL")
REPORT = re.compile(r"(ERROR|WARNING): \w+Sanitizer|: runtime error: ")  # where a sanitizer's report begins
WORDS_LINES = 25  # of a failure's own words
WORDS_HEAD = 5  # of them from the beginning, when there are more
WORDS_WIDTH = 500


def short(lines, head=WORDS_HEAD):
    """At most WORDS_LINES of the lines: the first `head` and the last; each of a bearable length."""
    lines = [line if len(line) <= WORDS_WIDTH else f"{line[:WORDS_WIDTH // 2]} ... {line[-WORDS_WIDTH // 2:]}" for line in lines]
    if len(lines) <= WORDS_LINES:
        return lines
    tail = WORDS_LINES - 1 - head
    return [*lines[:head], f"... {len(lines) - head - tail} lines more ...", *(lines[-tail:] if tail > 0 else [])]


def last_words(out, err):
    """The last output of a program that died: a sanitizer's report from its beginning, or both streams' last lines."""
    said = err.splitlines()
    at = next((i for i, line in enumerate(said) if REPORT.search(line)), None)
    if at is not None:
        return short(said[at:], head=WORDS_LINES - 1)
    return short(out.splitlines() + said, head=0)


class Tally:
    def __init__(self):
        self.passed = 0
        self.failures = []  # texts
        self.words = []  # (text of a failure, lines of its output)
        self.skips = []

    def add_program(self, label, record):
        """One line of testlog.json."""
        where = f"{label}: {record['name']}"
        result = record["result"]
        out, err = record.get("stdout", ""), record.get("stderr", "")
        failed_before = len(self.failures)
        seen, planned, skip_reason, own = 0, None, "", None
        for line in out.splitlines():
            if own is not None and line.startswith("#"):
                own.append(line)
                continue
            own = None
            plan = PLAN.match(line)
            if plan:
                planned = (planned or 0) + int(plan.group(1))
                skip_reason = plan.group(2) or skip_reason
                continue
            case = CASE.match(line)
            if not case:
                continue
            seen += 1
            bad, _, name, directive, reason = case.groups()
            name = name.strip() or (reason or "").strip() or f"case {seen}"
            if directive and directive.upper() == "SKIP":
                self.skips.append(f"{where}: {name}: {(reason or '').strip() or 'no reason given'}")
            elif bad:
                self.failures.append(f"{where}: {name}")
                own = []
                self.words.append((self.failures[-1], own))
            else:
                self.passed += 1
        if result == "SKIP":
            if seen == 0:
                self.skips.append(f"{where}: {skip_reason.strip() or 'the program skips itself (exit code 77)'}")
        elif result in PROGRAM_OK:
            if seen == 0:
                self.passed += 1
        else:
            lost = max((planned or 0) - seen, 0)
            if lost == 0 and len(self.failures) == failed_before:
                lost = 1
            what = {"TIMEOUT": "ran out of time", "INTERRUPT": "was interrupted"}.get(
                result, f"ended with status {record.get('returncode')}")
            for _ in range(lost):
                self.failures.append(f"{where}: the program {what} after {seen} of its cases")
            if lost > 0:
                self.words.append((self.failures[-1], last_words(out, err)))

    def print(self):
        """The lists and the closing line."""
        for text in self.skips:
            print(f"skipped: {text}")
        for text, lines in self.words:
            if lines:
                print(f"of {text}:")
            for line in short(lines):
                print(f"    {line}")
        for text in self.failures:
            print(f"failed: {text}")
        if self.passed + len(self.failures) == 0:
            print("no test ran: the selection is empty")
        print(f"{self.passed} passed, {len(self.failures)} failed, {len(self.skips)} skipped")


def main():
    tally = Tally()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs")
    with open(parser.parse_args().runs, encoding="utf-8") as runs:
        for line in runs:
            kind, label, rest = line.rstrip("\n").split(" ", 2)
            if kind == "failed":
                tally.failures.append(f"{label}: {rest}")
                continue
            if kind == "passed":
                tally.passed += 1
                continue
            with open(rest, encoding="utf-8") as log:
                for record in log:
                    tally.add_program(label, json.loads(record))
    sys.stdout.flush()
    tally.print()
    return 1 if tally.failures or tally.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
