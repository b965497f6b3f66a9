"""Runs ``connectctl demo`` again and again, alone or beside busy loops, and tells how often and how
fast it passed.

    python tests/bench/demo.py --runs 30
    python tests/bench/demo.py --runs 10 --busy 20

Exit code 1 where one did not pass; its output is printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processes that do nothing but count."""
    made = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for each in made:
            each.kill()
            each.wait()


def once() -> tuple[float, subprocess.CompletedProcess[str]]:
    """One demonstration, and its seconds."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "connectctl.cli", "demo"],
        capture_output=True,
        text=True,
        check=False,
    )
    return time.monotonic() - began, done


def main() -> int:
    """Run them, and print a line for each."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--runs", type=int, default=30)
    arguments.add_argument("--busy", type=int, default=0, help="busy loops beside it")
    given = arguments.parse_args()
    took: list[float] = []
    with busy(given.busy):
        for number in range(1, given.runs + 1):
            seconds, done = once()
            alarming = [
                line
                for line in done.stdout.splitlines()
                if line.startswith(("Not well", "In transition"))
            ]
            load = os.getloadavg()[0]
            print(
                f"{number:>3}  exit {done.returncode}  {seconds:6.1f} s  load {load:4.1f}  "
                f"{alarming or ''}",
                flush=True,
            )
            if done.returncode:
                print(done.stdout, done.stderr, sep="\n")
                return 1
            took.append(seconds)
    print(
        f"{len(took)} of {given.runs} passed; median {statistics.median(took):.0f} s, longest "
        f"{max(took):.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
