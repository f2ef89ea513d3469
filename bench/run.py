"""Start the benchmark: `python bench/run.py [--quick] [--only NAME ...] [--no-peer]`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that `bench` is a package, wherever this is started

from bench.suite import main  # noqa: E402 - needs the line above

if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("Stopped; every server that was started has been ended.")
