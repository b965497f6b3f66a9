"""The CPU time of ``connectctl --help`` beside that of ``import typer, rich``, in the same run;
fails beyond ``MOST``.

python tests/bench/startup.py [--runs 20]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

COMMANDS = {
    "import typer, rich": [sys.executable, "-c", "import typer, rich"],
    "connectctl --help": [str(Path(sys.executable).with_name("connectctl")), "--help"],
}
MOST = 1.3


def main() -> None:
    """Alternate the two and print medians and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with Path(os.devnull).open("w") as nowhere:
        for _ in range(runs):
            for name, command in COMMANDS.items():
                before = _spent()
                subprocess.run(command, stdout=nowhere, check=True)
                seconds[name].append(_spent() - before)
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    for name, median in medians.items():
        print(f"{name:20} {median * 1000:5.0f} ms")
    ratio = medians["connectctl --help"] / medians["import typer, rich"]
    print(f"ratio {ratio:.2f}")
    sys.exit(ratio > MOST)


def _spent() -> float:
    """Seconds of CPU that processes which have ended took: other work on the machine hardly changes
    them.
    """
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
