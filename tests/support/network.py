"""Machines of a cluster: network namespaces behind one switch, whose links are cut, slowed down and made lossy.

Whoever uses this is alone in namespaces of its own (`ALONE`): processes, mounts and networks are gone with it, however
it ends, and several at once do not meet.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

ALONE = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
)
"""What a command is run by that shall have networks, mounts and processes of its own, and end with who started it."""
NEEDED = {"ip": "iproute2", "tc": "iproute2", "iptables": "iptables", "nginx": "nginx"}
SWITCH = "10.77.0.1"
_NETEM = ["delay", "120ms", "40ms", "loss", "8%"]
_SHAPED = ["tbf", "rate", "400kbit", "burst", "8k", "latency", "300ms"]
_LOSSY = ["-m", "statistic", "--mode", "random", "--probability", "0.08", "-j", "DROP"]


def missing() -> list[str]:
    """Packages that are needed and not installed."""
    return sorted({package for program, package in NEEDED.items() if shutil.which(program) is None})


def open_network() -> None:
    """The switch, with an address of its own for those who are no machine: the database, the engine, clients."""
    Path("/run/netns").mkdir(exist_ok=True)
    _run("mount", "-t", "tmpfs", "none", "/run/netns")  # so that the names are ours alone
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", "name", "switch", "type", "bridge")
    _run("ip", "addr", "add", f"{SWITCH}/24", "dev", "switch")
    _run("ip", "link", "set", "switch", "up")


class Machine:
    """One host of the network."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.address = f"10.77.0.{number}"
        self._cable = f"c-{name}"
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "link", "set", self._cable, "master", "switch", "up")
        _run("ip", "-n", name, "addr", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _run("ip", "-n", name, "link", "set", device, "up")

    @property
    def prefix(self) -> Sequence[str]:
        """What a command is run by to run here."""
        return ("nsenter", f"--net=/run/netns/{self.name}")

    def cut(self) -> None:
        """Nothing comes in or goes out, and nobody is told."""
        _run("ip", "link", "set", self._cable, "down")

    def disturb(self) -> str:
        """What goes out is late and now and then lost; says how that is done here."""
        if _tries("tc", "-n", self.name, "qdisc", "add", "dev", "eth0", "root", "netem", *_NETEM):
            return "netem"
        _run("tc", "-n", self.name, "qdisc", "add", "dev", "eth0", "root", *_SHAPED)
        _run(*self.prefix, "iptables", "-A", "OUTPUT", *_LOSSY)
        return "tbf and iptables, since this kernel has no netem"

    def mend(self) -> None:
        """All is well again."""
        _run("ip", "link", "set", self._cable, "up")
        _tries("tc", "-n", self.name, "qdisc", "del", "dev", "eth0", "root")
        _tries(*self.prefix, "iptables", "-F", "OUTPUT")


def _tries(*command: str) -> bool:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def _run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
