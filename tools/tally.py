#!/usr/bin/env python3
"""tally.py - counts the test cases of several Meson runs; the last lines of tools/test.

usage: tools/tally.py RUNS, a file with a line a step: "log LABEL testlog.json", "passed LABEL TEXT" or
"failed LABEL TEXT".

A TAP program counts with each of its cases, any other program as one. A program that crashed, ran out of time or ended
before its plan counts a failure for each case that it did not reach, one at least. Skips are listed with their reasons.
Exit code 1 when something failed or nothing ran.
"""

import json
import re
import sys

CASE = re.compile(r"^(not )?ok\b\s*(\d+)?\s*-?\s*([^#]*)(?:#\s*(SKIP)\b[:\s]*(.*))?", re.IGNORECASE)
PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*SKIP\b[:\s]*(.*))?", re.IGNORECASE)
PROGRAM_OK = ("OK", "EXPECTEDFAIL")


class Tally:
    def __init__(self):
        self.passed = 0
        self.failures = []  # texts
        self.skips = []

    def add_program(self, label, record):
        """One line of testlog.json."""
        where = f"{label}: {record['name']}"
        result = record["result"]
        out = record.get("stdout", "")
        failed_before = len(self.failures)
        seen, planned, skip_reason = 0, None, ""
        for line in out.splitlines():
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


def main():
    tally = Tally()
    with open(sys.argv[1], encoding="utf-8") as runs:
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
    for title, texts in (("skipped", tally.skips), ("failed", tally.failures)):
        for text in texts:
            print(f"{title}: {text}")
    if tally.passed + len(tally.failures) == 0:
        print("no test ran: the selection is empty")
    print(f"{tally.passed} passed, {len(tally.failures)} failed, {len(tally.skips)} skipped")
    return 1 if tally.failures or tally.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
