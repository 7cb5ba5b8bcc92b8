"""run_tests.py - runs the tests of one file, which finds the helpers of tests/ and examples/ by their names.

usage: run_tests.py FILE TRAWL [TEST | -TEST ...]     -TEST is left out"""
import importlib
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
path = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path[:0] = map(str, (path.parent, here, here / "kills", here / "exchange", here.parent / "store", here.parents[1] / "examples"))

import tap  # noqa: E402

if __name__ == "__main__":
    tap.main(importlib.import_module(path.stem))
