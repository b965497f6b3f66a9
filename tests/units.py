"""Files that one process tests one after the other, because they share a cluster of their own: it
is started once, and ends with the last of them.

Each of the processes of a whole run would start it for the first of these files that it meets, and
keep it to its end.
"""

from __future__ import annotations

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
    )
}
"""The files that ask for a fixture, by its name."""
_OF = {name: unit for unit, names in UNITS.items() for name in names}
_NEXT = pytest.StashKey[str]()


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

    return ByUnit(config, log) if config.option.dist == "loadfile" else None
