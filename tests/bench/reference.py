"""How fast this machine is: the time of sandbox starts, to compare durations of other machines by.

    python tests/bench/reference.py [--starts 20]

One broker and one worker each, one after the other, in a state directory of their own; jars that
are not in the cache are fetched before the first one that counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time


def main() -> None:
    """Print the seconds of all starts, and the median of one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--starts", type=int, default=20)
    starts = parser.parse_args().starts
    with tempfile.TemporaryDirectory(prefix="connectctl-bench-") as state:
        os.environ["XDG_STATE_HOME"] = state
        seconds = [_start() for _ in range(starts + 1)][1:]
    load = os.getloadavg()[0]
    print(
        f"{starts} sandbox starts: {sum(seconds):.0f} s, median {statistics.median(seconds):.1f} s"
    )
    print(f"load at the end {load:.1f}, {os.cpu_count()} processors")


def _start() -> float:
    from connectctl.ops.sandbox import cluster

    began = time.monotonic()
    cluster.up(cluster.SandboxSpec(name="reference", workers=1))
    try:
        return time.monotonic() - began
    finally:
        cluster.down("reference")


if __name__ == "__main__":
    main()
