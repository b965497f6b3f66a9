"""What the tests cost: processor and clock by phase of a test and by fixture, with all processes
that they start.

::

    CONNECTCTL_TEST_COSTS=/tmp/costs pytest -p bench.suitecosts        every process writes lines there
    python tests/bench/suitecosts.py /tmp/costs                       prints tables by file and by fixture

Processes of tests outlive the call that starts them, so that a control group counts them: Linux, as
root.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_V1, _V2 = Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup")


class _Costs:
    """The control group of this process, and the file that it writes."""

    def __init__(self, directory: Path) -> None:
        first = _V1.is_dir()
        group = (_V1 if first else _V2) / f"connectctl-tests-{os.getpid()}"
        group.mkdir(exist_ok=True)
        (group / "cgroup.procs").write_text(str(os.getpid()))
        self._usage = group / ("cpuacct.usage" if first else "cpu.stat")
        self._per_second = 1e9 if first else 1e6
        directory.mkdir(parents=True, exist_ok=True)
        self._file = (directory / f"{os.getpid()}.jsonl").open("a", buffering=1)

    def processor(self) -> float:
        """Seconds of the processor that this process and all that it started have used."""
        text = self._usage.read_text().split()
        return int(text[1] if text[0] == "usage_usec" else text[0]) / self._per_second

    @contextmanager
    def of(self, **named: str) -> Iterator[None]:
        used, began = self.processor(), time.monotonic()
        yield
        spent = {"processor": self.processor() - used, "clock": time.monotonic() - began}
        self._file.write(json.dumps(named | spent) + "\n")

    def close(self) -> None:
        self._file.close()


_COSTS = (
    _Costs(Path(os.environ["CONNECTCTL_TEST_COSTS"]))
    if "CONNECTCTL_TEST_COSTS" in os.environ
    else None
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    assert _COSTS is not None
    with _COSTS.of(test=item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[None]:
    assert _COSTS is not None
    name = f"{fixturedef.baseid}::{fixturedef.argname} ({fixturedef.scope})"
    with _COSTS.of(fixture=name, under=request.node.nodeid):
        return (yield)


def pytest_unconfigure() -> None:
    assert _COSTS is not None
    _COSTS.close()


def _print(title: str, lines: dict[str, list[float]], most: int = 60) -> None:
    total = [sum(each[n] for each in lines.values()) for n in (0, 1, 2)]
    print(f"\n{'processor':>9} {'clock':>7} {'number':>7}  {title}")
    for name, (processor, clock, number) in sorted(lines.items(), key=lambda each: -each[1][0])[
        :most
    ]:
        print(f"{processor:9.1f} {clock:7.1f} {number:7.0f}  {name}")
    print(f"{total[0]:9.1f} {total[1]:7.1f} {total[2]:7.0f}  all")


def main(directory: Path) -> None:
    files: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    tests: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    fixtures: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for path in directory.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            each = json.loads(line)
            into = [(fixtures, each["fixture"])] if "fixture" in each else []
            if "test" in each:
                into = [(files, each["test"].partition("::")[0]), (tests, each["test"])]
            for table, name in into:
                for n, spent in enumerate((each["processor"], each["clock"], 1)):
                    table[name][n] += spent
    _print("file", files, 200)
    _print("fixture", fixtures)
    _print("test", tests, 120)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
