"""loopback_ssh.py - a real sshd on loopback, on a port and with keys of its own, so that tests have hosts without a network."""
import contextlib
import getpass
import os
import shutil
import socket
import subprocess

import tap


class Sshd:
    """Hosts node1, node2, ... are this machine. `ssh` is the command that knows them."""

    def __init__(self, folder):
        binary = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
        if binary is None or shutil.which("ssh") is None:
            raise tap.Skip("sshd and ssh are not installed (openssh-server, openssh-client)")
        self.folder, self.port = folder, tap.free_port()
        for name in ("host_key", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        shutil.copy(folder / "key.pub", folder / "authorized")
        with contextlib.suppress(OSError):  # where sshd runs as root it wants this folder
            os.makedirs("/run/sshd", exist_ok=True)
        tap.write(folder, "sshd_config", "Port %d\nListenAddress 127.0.0.1\nHostKey %s/host_key\nAuthorizedKeysFile %s/authorized\n"
                  "PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nMaxStartups 100\nAcceptEnv TMPDIR\n"
                  % (self.port, folder, folder))
        key = (folder / "host_key.pub").read_text().split()
        tap.write(folder, "known", "[127.0.0.1]:%d %s %s\n" % (self.port, key[0], key[1]))
        tap.write(folder, "ssh_config", "Host node*\n HostName 127.0.0.1\n Port %d\n User %s\n IdentityFile %s/key\n IdentitiesOnly yes\n"
                  " UserKnownHostsFile %s/known\n StrictHostKeyChecking yes\n SendEnv TMPDIR\n" % (self.port, getpass.getuser(), folder, folder))
        self.ssh = "ssh -F %s/ssh_config" % folder
        self.log = open(folder / "sshd.log", "w")
        self.process = subprocess.Popen([binary, "-D", "-e", "-f", folder / "sshd_config"], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, start_new_session=True)
        tap.started.append(self.process)
        tap.wait_for(self.answers, self.process)
        done = subprocess.run(self.ssh.split() + ["node1", "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise tap.Skip("no login by ssh on loopback: %s %s" % (done.stderr.strip(), (folder / "sshd.log").read_text()[-300:]))

    def answers(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def options(self):
        """Of a sweep that uses these hosts."""
        return ["--sweep.ssh", self.ssh, "--sweep.remote-program", tap.TRAWL]
