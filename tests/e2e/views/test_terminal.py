"""The live views on a terminal of 80 columns: they fit, they end at the right place, and the cursor is restored."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import tap
from tap import TINY, TINY_SWEEP, equal, write

COLUMNS = 80
SEQUENCE = re.compile(rb"\x1b\[\??([\d;]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+")


def on_terminal(*args, interrupt_at=None, term="xterm", size=(40, COLUMNS), **env):
    """Runs trawl on a terminal of its own, and interrupts it once its output matches `interrupt_at`. Returns the
    screen's lines, the bytes written and the exit code."""
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        os.environ.update(TERM=term, **env)
        os.execv(tap.TRAWL, [tap.TRAWL, *map(str, args)])
    written, begin, sent = b"", time.monotonic(), False
    while True:
        if time.monotonic() - begin > tap.PATIENCE_S:
            os.kill(pid, signal.SIGKILL)
        if select.select([fd], [], [], 0.05)[0]:
            try:
                more = os.read(fd, 65536)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            written += more
        if not sent and interrupt_at and re.search(interrupt_at, written, re.DOTALL):
            os.kill(pid, signal.SIGINT)
            sent = True
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    return screen(written), written, code


def screen(written):
    """The screen after these bytes: cursor up, erase line, erase below."""
    rows, row, column = [""], 0, 0
    for match in SEQUENCE.finditer(written):
        piece = match.group(0)
        if piece == b"\r":
            column = 0
        elif piece == b"\n":
            row += 1
            if row == len(rows):
                rows.append("")
        elif piece.startswith(b"\x1b"):
            kind = match.group(2)
            count = int(match.group(1) or 1) if kind == b"A" else 0
            if kind == b"A":
                row = max(0, row - count)
            elif kind in b"KJ":
                rows[row] = rows[row][:column]
                if kind == b"J":
                    del rows[row + 1:]
        else:
            text = piece.decode("utf-8", "replace")
            rows[row] = rows[row][:column].ljust(column) + text + rows[row][column + len(text):]
            column += len(text)
    return rows


def cursor_is_back(written):
    equal((written.count(b"\x1b[?25l"), written.count(b"\x1b[?25h")), (1, 1))
    assert written.rindex(b"\x1b[?25h") > written.rindex(b"\x1b[?25l")


def test_training_dashboard(folder):
    config = write(folder, "t.ini", TINY + "log_interval_s = 0.05\n")
    rows, written, code = on_terminal("train", config, "--train.total_timesteps", "1G",
                                      interrupt_at=b"(optimiser.*){3}")  # it has been drawn again
    equal(code, 130)
    cursor_is_back(written)
    text = "\n".join(rows)
    for word in ("steps/s", "left", "score", "entropy", "optimiser", "interrupted"):
        assert word in text, (word, text)
    equal(text.count("steps/s      elapsed"), 1)  # one block, redrawn in place
    long = [r for r in rows if len(r) > COLUMNS and not r.startswith("trawl: ")]
    equal(long, [])


def test_sweep_view(folder):
    config = write(folder, "s.ini", TINY_SWEEP.replace("4096", "50k"))
    rows, written, code = on_terminal("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 5,
                                      LC_ALL="C.UTF-8", NO_COLOR="")
    equal(code, 0)
    cursor_is_back(written)
    text = "\n".join(rows)
    for word in ("100 %", "done 5", "hypervolume", "front of cost and perf", "trawl export a"):
        assert word in text, (word, text)
    assert any("\u25c6" in r and "\u2502" in r for r in rows), text  # the best, in braille
    assert b"\x1b[1;33m" in written
    equal(text.count("hypervolume"), 1)


def test_sweep_view_without_colour_in_ascii_on_a_small_terminal(folder):
    config = write(folder, "s.ini", TINY_SWEEP.replace("4096", "50k"))
    rows, written, code = on_terminal("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 5,
                                      size=(16, 50), LC_ALL="C", NO_COLOR="1")
    equal(code, 0)
    cursor_is_back(written)
    text = "\n".join(rows)
    assert any("*" in r and "|" in r for r in rows), text
    assert text.count("hypervolume") == 1 and not re.search(rb"\x1b\[[\d;]*m", written), written
    block = rows[:[i for i, r in enumerate(rows) if r.startswith("a: 5 done")][0]]
    assert len(block) <= 15 and all(len(row) <= 50 for row in block), block
    written[:written.index(b"recommended")].decode("ascii")


def test_front_of_many_parameters_is_folded(folder):
    more = "".join(f"\n[sweep.train.{key}]\n" for key in ("ent_coef", "clip_coef", "gae_lambda", "max_grad_norm"))
    config, store = write(folder, "s.ini", TINY_SWEEP + more), folder / "s.db"
    plain, _ = tap.run("sweep", config, "--store", store, "--name", "a", "--trials", 3, "-q")
    heads = [line.split() for line in plain.splitlines() if line.startswith(" trial")]
    equal(len(heads), 1)  # a pipe has no width
    rows, _, _ = on_terminal("show", "a", "--store", store, "--front")
    folded = [row.split() for row in rows if row.startswith(" trial")]
    assert len(folded) > 1 and all(len(row) < COLUMNS for row in rows if row.startswith(" ")), rows
    equal(folded[0] + sum((head[1:] for head in folded[1:]), []), heads[0])


def test_dumb_terminal_gets_plain_lines(folder):
    config = write(folder, "t.ini", TINY)
    _, written, code = on_terminal("train", config, term="dumb")
    equal(code, 0)
    assert b"\x1b" not in written, written


def test_killed_by_the_second_interrupt_shows_the_cursor(folder):
    config = write(folder, "t.ini", TINY + "log_interval_s = 0.05\n")
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(tap.TRAWL, [tap.TRAWL, "train", str(config), "--train.total_timesteps", "1G"])
    written = b""
    while b"elapsed" not in written:
        written += os.read(fd, 65536)
    os.kill(pid, signal.SIGINT)
    os.kill(pid, signal.SIGINT)
    try:
        while True:
            written += os.read(fd, 65536)
    except OSError:
        pass
    equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 130)
    os.close(fd)
    assert written.rindex(b"\x1b[?25h") > written.rindex(b"\x1b[?25l")
