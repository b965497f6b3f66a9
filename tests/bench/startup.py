"""How long ``connectctl --help`` takes beside ``import typer, rich``, in the same run; prints a ratio.

python tests/bench/startup.py [--runs 20]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = {
    "import typer, rich": [sys.executable, "-c", "import typer, rich"],
    "connectctl --help": [str(Path(sys.executable).with_name("connectctl")), "--help"],
}


def main() -> None:
    """Alternate the two and print medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with Path(os.devnull).open("w") as nowhere:
        for _ in range(runs):
            for name, command in COMMANDS.items():
                started = time.perf_counter()
                subprocess.run(command, stdout=nowhere, check=True)
                seconds[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    for name, median in medians.items():
        print(f"{name:20} {median * 1000:5.0f} ms")
    print(f"ratio {medians['connectctl --help'] / medians['import typer, rich']:.2f}")


if __name__ == "__main__":
    main()
