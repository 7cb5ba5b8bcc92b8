"""loopback_ssh.py - a real sshd, which each ssh starts for itself and speaks to by pipes, with keys of its own: tests have hosts without a
network, and without a port."""
import contextlib
import getpass
import os
import shutil
import subprocess

import tap


class Sshd:
    """Hosts node1, node2, ... are this machine. `ssh` is the command that knows them."""

    def __init__(self, folder):
        binary = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
        if binary is None or shutil.which("ssh") is None:
            raise tap.Skip("sshd and ssh are not installed (openssh-server, openssh-client)")
        for name in ("host_key", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        shutil.copy(folder / "key.pub", folder / "authorized")
        with contextlib.suppress(OSError):  # where sshd runs as root it wants this folder
            os.makedirs("/run/sshd", exist_ok=True)
        tap.write(folder, "sshd_config", "HostKey %s/host_key\nAuthorizedKeysFile %s/authorized\nPidFile none\nStrictModes no\nUsePAM no\n"
                  "PasswordAuthentication no\nAcceptEnv TMPDIR\n" % (folder, folder))
        kind, key = (folder / "host_key.pub").read_text().split()[:2]
        tap.write(folder, "known", "loopback %s %s\n" % (kind, key))
        tap.write(folder, "ssh_config", "Host node*\n ProxyCommand %s -i -E %s/sshd.log -f %s/sshd_config\n HostKeyAlias loopback\n User %s\n"
                  " IdentityFile %s/key\n IdentitiesOnly yes\n UserKnownHostsFile %s/known\n StrictHostKeyChecking yes\n SendEnv TMPDIR\n"
                  % (binary, folder, folder, getpass.getuser(), folder, folder))
        self.ssh = "ssh -F %s/ssh_config" % folder
        done = subprocess.run(self.ssh.split() + ["node1", "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            log = folder / "sshd.log"
            raise tap.Skip("no login by ssh on loopback: %s %s" % (" ".join(done.stderr.split()), log.read_text()[-300:] if log.exists() else ""))

    def options(self):
        """Of a sweep that uses these hosts."""
        return ["--sweep.ssh", self.ssh, "--sweep.remote-program", tap.TRAWL]
