"""A real PostgreSQL in a folder of its own, on a Unix socket, for tests: as library, or

usage: postgres.py PROGRAM [ARGS]     runs a test program against an empty server (TRAWL_TEST_STORE; _CLEAR empties it, _PSQL asks it)

As root the server runs as the user postgres or nobody: it refuses to run as root."""
import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time


PATIENCE_S = 240  # with a server that starts on a busy machine, after a crash too


def bin_folder():
    """The newest server of this machine; None: there is none."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb") + [p for p in [shutil.which("initdb")] if p]
    found.sort(key=lambda p: [int(w) for w in p.split("/") if w.isdigit()])
    return pathlib.Path(found[-1]).parent if found else None


MISSING = None if bin_folder() else "no PostgreSQL server is installed (Debian: postgresql)"


class Postgres:
    """port: also on TCP at 127.0.0.1; listen: on TCP at that address; else on its socket alone. inside: words before the server's
    command, like those that enter a network namespace."""

    def __init__(self, port=None, password=None, listen="", inside=()):
        self.port = port
        self.listen = listen or ("127.0.0.1" if port else "")
        self.inside = list(inside)
        self.bin = bin_folder()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="trawl-pg-", dir="/tmp"))
        self.user = ["setpriv", "--pdeathsig", "QUIT"]  # a test that is killed leaves no server
        if os.geteuid() == 0:
            users = {u.pw_name: u for u in pwd.getpwall()}
            user = users.get("postgres", users["nobody"])
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.user += ["--reuid=%d" % user.pw_uid, "--regid=%d" % user.pw_gid, "--clear-groups"]
        self.folder.chmod(0o755)
        words = ["-A", "trust"]
        if password is not None:
            (self.folder / "password").write_text(password)
            (self.folder / "password").chmod(0o644)
            words = ["--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile", self.folder / "password"]
        self.call("initdb", "-D", self.folder / "data", "-U", "trawl", "-E", "UTF8", "--locale=C", "-N", *words)
        if listen:
            with open(self.folder / "data" / "pg_hba.conf", "a") as rules:
                rules.write("host all all all trust\n")
        self.process = None
        self.start()

    def call(self, program, *words, text=""):
        done = subprocess.run([*self.user, str(self.bin / program), *map(str, words)], cwd="/", text=True,
                              input=text, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError("%s: %s%s" % (program, done.stdout, done.stderr))
        return done.stdout

    def start(self):
        settings = {"listen_addresses": self.listen, "unix_socket_directories": self.folder,
                    "fsync": "off", "max_connections": 60, "shared_buffers": "16MB"}
        if self.port:
            settings["port"] = self.port
        words = [w for key, value in settings.items() for w in ("-c", "%s=%s" % (key, value))]
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.process is None or self.process.poll() is not None:  # the backends of one that was killed may have its memory still
                with open(self.folder / "log", "ab") as log:
                    self.process = subprocess.Popen([*self.inside, *self.user, str(self.bin / "postgres"), "-D", str(self.folder / "data"), *words],
                                                    cwd="/", stdout=log, stderr=log, start_new_session=True)
            if self.ready():
                return
            time.sleep(0.1)
        raise RuntimeError("the server did not start: %s" % (self.folder / "log").read_text(errors="replace")[-2000:])

    def ready(self):
        words = ["-h", str(self.folder), "-U", "trawl", "-d", "postgres", "-q"] + (["-p", str(self.port)] if self.port else [])
        return subprocess.run([str(self.bin / "pg_isready"), *words], cwd="/", stderr=subprocess.DEVNULL).returncode == 0

    def stop(self, how=signal.SIGINT):
        """SIGINT: its clients are sent away. SIGKILL: as by a crash."""
        if self.process is None:
            return
        if how == signal.SIGKILL:
            os.killpg(self.process.pid, how)
        else:
            self.process.send_signal(how)
        self.process.wait()
        self.process = None
        if how == signal.SIGKILL:
            time.sleep(0.2)

    def restart(self, how=signal.SIGINT):
        self.stop(how)
        self.start()

    def url(self, database="postgres"):
        port = "&port=%d" % self.port if self.port else ""
        return "postgresql://trawl@/%s?host=%s%s" % (database, self.folder, port)

    def sql(self, text, database="postgres"):
        """Rows as lists of texts."""
        out = self.call("psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", self.url(database), "-c", text)
        return [line.split("\t") for line in out.splitlines()]

    def change_stopped(self, text, database):
        """One statement of a server that is stopped: no client sees it before the others."""
        self.call("postgres", "--single", "-j", "-D", self.folder / "data", database, text=text + ";\n\n")

    def database(self, name):
        self.sql("CREATE DATABASE %s" % name)
        return self.url(name)

    def close(self):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main():
    if MISSING:
        print("1..0 # SKIP %s" % MISSING)
        return 77
    with Postgres() as server:
        psql = "%s -X -q -A -t -v ON_ERROR_STOP=1 -d '%s'" % (server.bin / "psql", server.url())
        clear = psql + " -c 'SET client_min_messages = error; DROP SCHEMA IF EXISTS trawl CASCADE'"
        env = dict(os.environ, TRAWL_TEST_STORE=server.url(), TRAWL_TEST_CLEAR=clear, TRAWL_TEST_PSQL=psql)
        return subprocess.run(sys.argv[1:], env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
