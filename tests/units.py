"""Files that one process tests one after the other, because they share a cluster of their own: it
is started once, and ends with the last of them.

Each of the processes of a whole run would start it for the first of these files that it meets, and
keep it to its end. So they would the cluster that all files share (the fixture ``cluster``): its
files are tested by a few of the processes, while there are others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

UNITS = {
    "secured": (
        "live/test_context_secrets.py",
        "live/test_login_faults.py",
        "live/test_reauthentication.py",
        "live/test_reauthentication_commands.py",
        "live/test_sandbox_secured.py",
        "live/test_secured_matrix.py",
        "live/test_spark_standalone.py",
    ),
    "spark": (
        "jobs/test_audit.py",
        "jobs/test_audit_archive.py",
        "jobs/test_audit_inputs.py",
        "jobs/test_offsets.py",
    ),
}
"""The files that ask for a fixture, by its name."""
_OF = {name: unit for unit, names in UNITS.items() for name in names}
_NEXT = pytest.StashKey[str]()
WITH_CLUSTER = 3
"""Processes that have the cluster that files share. A broker and two workers need 7 s of a
processor to start, and 2 s more in each minute; the files that ask for them are a third of the
whole suite.
"""
_ASKED_FOR = re.compile(r"\bcluster: Sandbox\b")


@cache
def asks_for_cluster(file: Path) -> bool:
    """Return whether tests of the file, or its fixtures, have the shared cluster as an argument."""
    return _ASKED_FOR.search(file.read_text(encoding="utf-8")) is not None


def next_unit(units: Sequence[str], asking: Collection[str], has: bool, may: bool) -> str:
    """Return which of ``units`` a process is given, in whose order they are to be tested.

    One that has the shared cluster is given those that ask for it; another one is not, as long as
    there is anything else, unless it ``may`` start one.
    """
    wanted = [unit for unit in units if (unit in asking if has else may or unit not in asking)]
    return (wanted or list(units))[0]


def name_of(file: Path) -> str:
    """Return a file by its directory and its name."""
    return f"{file.parent.name}/{file.name}"


def unit_of(name: str) -> str:
    """Return the unit of a file, which is the file itself where it shares nothing."""
    return _OF.get(name, name)


def goes_on(config: pytest.Config, unit: str) -> bool:
    """Return whether the next test of this process is one of the unit's, too."""
    return config.stash[_NEXT] == unit


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Remember what comes next, before fixtures end."""
    item.config.stash[_NEXT] = unit_of(name_of(nextitem.path)) if nextitem is not None else ""


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Nothing comes next, also where a failure or a person ends the session."""
    session.config.stash[_NEXT] = ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give whole units to processes where whole files would be given."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class ByUnit(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return _OF.get(name_of(Path(file)), file)

        def _reschedule(self, node: Any) -> None:
            """Give a process at least two tests, or its end.

            It runs no test before it knows the next one, and is given one unit for each test that
            it reports. Without this, nothing goes on after another process has died: what it had
            is given away again, also units whose tests are all done.
            """
            super()._reschedule(node)
            while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
                super()._reschedule(node)

        def _assign_work_unit(self, node: Any) -> None:
            asking = {unit for unit, tests in self.workqueue.items() if self._asks(tests)}
            may = len(self._with_cluster) < WITH_CLUSTER
            has = node in self._with_cluster
            unit = next_unit(list(self.workqueue), asking, has, may)
            if unit in asking:
                self._with_cluster.add(node)
            self.workqueue.move_to_end(unit, last=False)
            super()._assign_work_unit(node)

        @cached_property
        def _with_cluster(self) -> set[Any]:
            """The processes that have been given a file which asks for the shared cluster."""
            return set()

        def _asks(self, tests: Collection[str]) -> bool:
            files = {config.rootpath / test.partition("::")[0] for test in tests}
            return any(asks_for_cluster(file) for file in files)

    return ByUnit(config, log) if config.option.dist == "loadfile" else None
