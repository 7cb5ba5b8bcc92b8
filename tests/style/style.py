#!/usr/bin/env python3
"""style.py - the tree keeps the house rules, and the checkers find planted violations. Speaks TAP.

usage: tests/style/style.py ROOT [TRAWL]     TRAWL: the built program, for the option reference
"""

import ast
import concurrent.futures
import contextlib
import glob
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types

root = os.path.abspath(sys.argv[1])
trawl = sys.argv[2] if len(sys.argv) > 2 else None
sys.path.insert(0, os.path.join(root, "tools"))

import check_includes  # noqa: E402
import check_rules  # noqa: E402
import tally  # noqa: E402


class Skip(Exception):
    pass


def plant(at, path, text):
    full = os.path.join(at, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as file:
        file.write(text)


def none(found):
    assert not found, "\n".join(found)


def exactly_one(found, *parts):
    """Exactly one violation, holding all parts."""
    assert len(found) == 1, f"expected one violation, got {found}"
    for part in parts:
        assert part in found[0], f"'{part}' is not in: {found[0]}"


def test_includes_of_the_tree():
    found, n_files = check_includes.check(root)
    none(found)
    assert n_files > 20, f"only {n_files} files were looked at"


def test_planted_includes():
    cases = [
        # file, its include line, what the message must say (None: allowed)
        ("store/a.c", '#include "web/web.h"', "store/ may include base"),
        ("base/a.c", '#include "gp/gp.h"', "base/ may include nothing"),
        ("trainer/a.c", '#include "kernels/cpu/gemm.h"', "not public"),
        ("trainer/a.c", '#include "kernels/kernels.h"', None),
        ("trainer/a.c", '#  include "sweep/cmd.h"', "trainer/ may include"),
        ("sweep/a.c", '#include "store/store_priv.h"', "not public"),
        ("store/a.c", '#include "store/store_priv.h"', None),
        ("store/a.c", '#include "store_priv.h"', "by their path from the root"),
        ("kernels/cpu/a.c", '#include "envs/games/pong.h"', "not public"),
        ("kernels/cuda/a.cu", '#include "envs/games/pong.h"', None),
        ("web/a.c", '#include "gp/gp.h"', None),
        ("gp/a.c", '#include <sqlite3.h>', "for store/ only"),
        ("sweep/a.c", '#include <curl/curl.h>', "for web/ only"),
        ("sweep/a.c", '#include <locale.h>', "for base/ only"),
        ("tests/gp/a.c", '#include "gp/gp_priv.h"', None),
    ]
    present = ["web/web.h", "gp/gp.h", "gp/gp_priv.h", "kernels/cpu/gemm.h", "kernels/kernels.h", "sweep/cmd.h",
               "store/store_priv.h", "envs/games/pong.h"]
    for path, line, want in cases:
        with tempfile.TemporaryDirectory() as at:
            for header in present:
                plant(at, header, "/* empty */\n")
            plant(at, path, f"/* a file */\n{line}\n")
            found, _ = check_includes.check(at)
            if want is None:
                none(found)
            else:
                exactly_one(found, want, path + ":2")


def test_planted_rules():
    cases = [
        # rule, file, text, what the message must say (None: allowed)
        ("no file over 800 lines", "gp/a.c", "int x;\n" * 801, "801 lines"),
        ("no file over 800 lines", "study/setup/a.c", "int x;\n" * 801, "801 lines"),
        ("no file over 800 lines", "gp/a.c", "int x;\n" * 800, None),
        ("no locale", "sweep/a.c", 'setlocale(LC_ALL, "");\n', "a.c:1"),
        ("no locale", "sweep/a.c", "/* never setlocale() */\n", None),
        ("only base/mem.c allocates", "gp/a.c", "x = 1;\np = malloc(3);\n", "a.c:2: malloc"),
        ("only base/mem.c allocates", "gp/a.c", "free (p);\n", "free"),
        ("only base/mem.c allocates", "gp/a.c", "mem_free(p); s->free(p); cJSON_free(p);\n", None),
        ("only base/mem.c allocates", "gp/a.c", 'puts("malloc(3)"); /* free(p) */\n', None),
        ("only base/mem.c allocates", "base/mem.c", "p = malloc(3);\n", None),
        ("inline PTX is in one file", "kernels/cuda/a.cu", 'asm volatile("trap;");\n', "a.cu:1: asm"),
        ("inline PTX is in one file", "kernels/cuda/ptx.cuh", 'asm("trap;");\n', None),
        ("nothing marked unfinished", "gp/a.c", "/* TODO: all of it */\n", "TODO"),
        ("no paths of one machine", "docs/a.md", "see /home/me/notes\n", "a.md:1"),
        ("no paths of one machine", "docs/a.md", "see https://x.org/home/me and /usr/share/doc\n", None),
        ("clean text", "docs/a.md", "one \n", "blanks"),
        ("clean text", "gp/a.c", "int x;", "no newline"),
        ("markdown links resolve", "docs/a.md", "[b](b.md)\n", "b.md: no such file"),
        ("markdown links resolve", "docs/a.md", "# A b\n[b](#a-b) [x](https://example.org) `[c](d)`\n", None),
        ("markdown links resolve", "docs/a.md", "# A b\n[b](a.md#c)\n", "no such heading"),
        ("files that are named exist", "docs/a.md", "see `gp/b.c`\n", "a.md:1: gp/b.c: no such file"),
        ("files that are named exist", "gp/a.c", "/* as gp/b*.h does */\n", "gp/b*.h"),
        ("files that are named exist", "docs/a.md", "`docs/a.md`, docs/*.md, docs/NAME.md, x/gp/b.c, https://x.org/docs/b.md\n", None),
        ("scripts can be started", "bench/a.py", "#!/usr/bin/env python3\n", "bench/a.py: not executable"),
        ("scripts can be started", "bench/a.py", "import os\n", None),
    ]
    for rule, path, text, want in cases:
        with tempfile.TemporaryDirectory() as at:
            plant(at, path, text)
            found = check_rules.RULES[rule](at)
            if want is None:
                none(found)
            else:
                exactly_one(found, want)
    untested = set(check_rules.RULES) - {case[0] for case in cases}
    assert not untested, f"rules without a planted violation: {untested}"


def missing_imports(path, ours):
    """Modules of the tree that a program imports and would not find, by what it does to sys.path before."""
    tree = ast.parse(pathlib.Path(path).read_text(encoding="utf-8"))
    known, searched = {"__file__": path, "os": os, "pathlib": pathlib, "sys": types.SimpleNamespace()}, [os.path.dirname(path)]
    known["sys"].path = searched
    for node in tree.body:
        text = ast.unparse(node)
        names = [word.name for word in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None)]
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (f"{path}:{node.lineno}: {name}" for name in names
                        if name in ours and not any(os.path.exists(os.path.join(at, name + ".py")) for at in searched))
        elif "sys.path" in text or (isinstance(node, ast.Assign) and "__file__" in text):
            exec(text, known)  # HERE = ..., sys.path.insert(0, ...)


def test_measurements_find_their_helpers():
    """No test runs the programs of bench/, which import helpers from tests/ and tools/."""
    paths = sorted(glob.glob(os.path.join(root, "bench", "**", "*.py"), recursive=True))
    ours = {os.path.basename(name)[:-3] for name in check_rules.files(root, (".py",))}
    assert len(paths) > 20 and "tap" in ours, (paths, ours)
    none([line for path in paths for line in missing_imports(path, ours)])
    with tempfile.TemporaryDirectory() as at:
        plant(at, "bench/a.py", 'import os, sys\nsys.path.insert(0, os.path.dirname(__file__) + "/../tests")\nimport tap\nimport numpy\n')
        exactly_one(list(missing_imports(os.path.join(at, "bench/a.py"), {"tap"})), "a.py:3: tap")
        plant(at, "tests/tap.py", "")
        none(list(missing_imports(os.path.join(at, "bench/a.py"), {"tap"})))


def test_scripts_have_help():
    """Each script that states its usage: without a package that it needs for its work, without writing anything."""
    paths = [path for path in check_rules.files(root, ("", ".py"), ("bench", "tools"))
             if re.match("#!(?s:.*)usage:", check_rules.read(root, path))]
    assert len(paths) > 25, paths
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        helps = pool.map(lambda path: subprocess.run([os.path.join(root, path), "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL), paths)
        none([f"{path} --help: {ran.stderr[-300:] or 'no usage'}" for path, ran in zip(paths, helps)
              if ran.returncode != 0 or "usage:" not in ran.stdout])


def test_tally():
    """The counter behind the last line of tools/test."""
    def program(result, out, code=0):
        counted = tally.Tally()
        counted.add_program("run", {"name": "x", "result": result, "stdout": out, "returncode": code})
        return counted.passed, len(counted.failures), len(counted.skips)

    cases = [
        (("OK", "1..2\nok 1 - a\nok 2 - b\n"), (2, 0, 0)),
        (("OK", "plain program\n"), (1, 0, 0)),
        (("ERROR", "1..3\nok 1 - a\nnot ok 2 - b\nok 3 - c\n", 1), (2, 1, 0)),
        (("ERROR", "1..3\nok 1 - a\n", -11), (1, 2, 0)),  # crashed in the second of three
        (("ERROR", "", -11), (0, 1, 0)),
        (("ERROR", "1..1\nok 1 - a\n", 1), (1, 1, 0)),  # a leak reported at exit
        (("TIMEOUT", "1..1\n", -15), (0, 1, 0)),
        (("FAIL", "", 1), (0, 1, 0)),
        (("OK", "1..2\nok 1 - a\nnot ok 2 # SKIP b\n"), (1, 0, 1)),
        (("OK", "1..1\nok 1 - a # SKIP no GPU\n"), (0, 0, 1)),
        (("SKIP", "1..0 # SKIP no GPU\n"), (0, 0, 1)),
        (("SKIP", "", 77), (0, 0, 1)),
    ]
    for arguments, want in cases:
        got = program(*arguments)
        assert got == want, f"{arguments}: counted {got}, expected {want}"


def test_tally_words():
    """A failure's output stands above the list of failures."""
    def printed(*records):
        counted, out = tally.Tally(), io.StringIO()
        for record in records:
            counted.add_program("run", {"name": "x", "returncode": 1, **record})
        with contextlib.redirect_stdout(out):
            counted.print()
        return out.getvalue().splitlines()

    tap = "1..3\nok 1 - a\n# 0.1 s\nnot ok 2 - b\n# why\n# and where\nok 3 - c\n# 0.2 s\n"
    want = ["of run: x: b:", "    # why", "    # and where", "failed: run: x: b", "2 passed, 1 failed, 0 skipped"]
    got = printed({"result": "ERROR", "stdout": tap, "stderr": "noise\n"})
    assert got == want, got
    got = printed({"result": "ERROR", "stdout": "1..1\nnot ok 1 - a\n" + "".join(f"# {i}\n" for i in range(100))})
    assert got[1:-2] == [f"    # {i}" for i in range(5)] + ["    ... 76 lines more ..."] + [f"    # {i}" for i in range(81, 100)], got
    got = printed({"result": "TIMEOUT", "stdout": "1..2\nok 1 - a\n", "stderr": "".join(f"at {i}\n" for i in range(100))})
    assert got[0] == "of run: x: the program ran out of time after 1 of its cases:" and got[-3] == "    at 99", got
    assert len(got) == tally.WORDS_LINES + 3, got
    report = "".join(f"{i}\n" for i in range(50)) + "==7==ERROR: AddressSanitizer: heap-use\n" + "#0 in f\n" * 60
    got = printed({"result": "ERROR", "stdout": "1..1\nok 1 - a\n", "stderr": report})
    assert got[1:3] == ["    ==7==ERROR: AddressSanitizer: heap-use", "    #0 in f"] and len(got) == tally.WORDS_LINES + 3, got
    got = printed({"result": "ERROR", "stdout": "1..1\nnot ok 1 - a\n# " + "y" * 9000 + "end\n"})
    assert len(got[1]) < 600 and got[1].endswith("yend"), got
    assert printed({"result": "OK", "stdout": "1..1\nok 1 - a\n# 0.1 s\n"}) == ["1 passed, 0 failed, 0 skipped"]


def test_option_reference():
    if not trawl:
        raise Skip("the program is not given")
    made = subprocess.run([trawl, "reference"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    with open(os.path.join(root, "docs/options.md"), encoding="utf-8") as file:
        assert file.read() == made.stdout, "docs/options.md is out of date: trawl reference > docs/options.md"


def test_man_page():
    """Every command has its part, and no line of help is read as a request of the formatter."""
    if not trawl:
        raise Skip("the program is not given")
    page = subprocess.run([trawl, "reference", "--man"], capture_output=True, text=True, check=True).stdout
    commands = subprocess.run([trawl, "--help"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^  (\w+) +\w", commands.split("commands:")[1].split("\n\n")[0], re.M)
    parts = re.split(r'^\.SH "trawl (\w+)"$', page, flags=re.M)
    assert names == parts[1::2] and len(names) > 10, f"the page has {parts[1::2]}, the program {names}"
    for name, part in zip(names, parts[2::2]):
        text = part.split(".eo\n")[1].rsplit("\n.ec", 1)[0]
        assert f"usage: trawl {name}" in text, f"trawl {name}: no usage"
        none([f"trawl {name}: {line}" for line in text.splitlines() if line.startswith((".", "'"))])


def clang_format():
    """The program in the version of .clang-format."""
    for name in ("clang-format-14", "clang-format"):
        try:
            version = subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        if " version 14." in version:
            return name
    raise Skip("clang-format 14 is not installed; other versions format otherwise")


def test_format():
    program = clang_format()
    paths = list(check_rules.files(root, check_rules.CODE))
    assert len(paths) > 20, f"only {len(paths)} files were looked at"
    ran = subprocess.run([program, "--dry-run", *paths], cwd=root, capture_output=True, text=True, check=True)
    lines = [line for line in ran.stderr.splitlines() if "[-Wclang-format-violations]" in line]
    none(sorted({line.split(":")[0] + ": not formatted: clang-format -i" for line in lines}))


def tests():
    for name, rule in check_rules.RULES.items():
        yield name, lambda rule=rule: none(rule(root))
    yield "includes keep to the folder table", test_includes_of_the_tree
    yield "planted includes are found", test_planted_includes
    yield "planted violations are found", test_planted_rules
    yield "measurements find their helpers", test_measurements_find_their_helpers
    yield "scripts have help", test_scripts_have_help
    yield "the tally of test runs", test_tally
    yield "the tally says why", test_tally_words
    yield "clang-format finds nothing to change", test_format
    yield "docs/options.md is up to date", test_option_reference
    yield "trawl(1) has every command", test_man_page


def run_cases(cases):
    """The number of failed (name, function) pairs."""
    cases = list(cases)
    print(f"1..{len(cases)}")
    failed = 0
    for number, (name, run) in enumerate(cases, 1):
        try:
            run()
            print(f"ok {number} - {name}")
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}")
        except Exception as error:  # a case that breaks is a case that failed
            failed += 1
            print(f"not ok {number} - {name}")
            for line in f"{type(error).__name__}: {error}".splitlines():
                print(f"# {line}")
    return failed


def main():
    failed = run_cases(tests())
    for text in check_rules.long_files(root):
        print(f"# note: {text}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
