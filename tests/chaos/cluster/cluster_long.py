"""`make chaos ARGS=cluster`: clusters one after the other, each with another seed, until enough was killed and cut."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.chaos.chaos_run import seed_of
from tests.support.network import ALONE, missing

KILLS = 210
EACH = 70
"""How much one cluster has to bear."""
_FOLDER = "/tmp"


def obstacle() -> str | None:
    """Why it cannot be run here."""
    if os.geteuid() != 0:
        return "Machines of a cluster are network namespaces, which only root can make. Run it as root."
    if packages := missing():
        return f"Programs are missing: install the packages {' '.join(packages)}."
    return None


def alone(folder: Path, *arguments: str) -> list[str]:
    """The command of one run."""
    return [*ALONE, sys.executable, "-m", "tests.chaos.cluster.cluster_run", str(folder), *arguments]


def main(kills: int) -> int:
    """Until so much was done, or something is wrong; 1 then."""
    if reason := obstacle():
        print(reason, file=sys.stderr)
        return 1
    seed = seed_of()
    for number in range(-(-kills // EACH)):
        print(f"OSTLER_CHAOS_SEED={seed + number}", flush=True)
        with tempfile.TemporaryDirectory(prefix="ostler-", dir=_FOLDER, ignore_cleanup_errors=True) as name:
            folder = Path(name)
            folder.chmod(0o755)
            command = alone(folder, "--seed", str(seed + number), "--kills", str(min(kills, EACH)))
            if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else KILLS))
