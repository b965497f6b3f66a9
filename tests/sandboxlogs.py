"""A failed test's report has what brokers and workers logged as errors while it ran: on a machine
that is gone by then, nothing else tells a fault of theirs from one of ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from datetime import datetime
from pathlib import Path

import pytest

MOST = 40
"""Lines of a report."""
_BEGINS = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+\] (\w+) ")
_CAUSE = re.compile(r"(Caused by: )?([a-z]\w*\.)+\w*(Exception|Error)\b")


def errors_since(log: Path, since: float) -> Iterator[str]:
    """Yield the errors of a log since ``since``, in seconds since the epoch, each with its causes
    and without the frames of its stack.
    """
    told = False
    for line in log.read_text(errors="replace").splitlines():
        if begins := _BEGINS.match(line):
            when = datetime.strptime(begins[1], "%Y-%m-%d %H:%M:%S").timestamp()
            told = begins[2] == "ERROR" and when >= int(since)
        if told and (begins or _CAUSE.match(line)):
            yield line[:400]


def all_errors_since(root: Path, since: float) -> list[str]:
    """Return the errors in all logs below ``root``, by log; at most ``MOST``."""
    found = []
    for log in sorted(root.glob("connectctl/sandbox/*/logs/*.log")):
        if log.stat().st_mtime >= since:
            found += [f"{log.parts[-3]} {log.stem} {line}" for line in errors_since(log, since)]
    left = len(found) - MOST
    return [*found[:MOST], f"… and {left} more lines"] if left > 0 else found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not report.failed or not item.get_closest_marker("live"):
        return report
    if errors := all_errors_since(Path(os.environ["XDG_STATE_HOME"]), call.start):
        report.sections.append(("errors in the logs of sandboxes", "\n".join(errors)))
    return report
