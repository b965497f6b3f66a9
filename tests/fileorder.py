"""The order in which files are tested: the longest first, as the last run of the whole suite on
this machine found them.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from units import name_of, unit_of

ALL = "not slow and not campaign"
"""The marks of the whole suite."""
KEPT = "connectctl/seconds"
"""Where pytest's cache has the seconds of each file."""
LONGEST = (
    "live/test_endurance.py",
    "live/test_demo.py",
    "live/test_run_clusters.py",
    "live/test_documented_commands.py",
    "secured",
    "live/test_upgrade_failures.py",
    "live/test_runtime_dataframes.py",
    "live/test_rights_proven.py",
    "live/test_run_transform.py",
    "live/test_run_archive.py",
    "live/test_upgrade_commands.py",
    "live/test_upgrade.py",
    "live/test_offset_changes.py",
    "live/test_run_takeover.py",
    "live/test_three_brokers.py",
    "live/test_offsets_meanwhile.py",
    "live/test_run_dataframe.py",
    "offsets/test_fail_at.py",
    "live/test_run.py",
    "live/test_transaction_version.py",
    "cli/test_one_judge.py",
    "cli/test_rest_faults.py",
    "live/test_run_topiccopy.py",
    "live/test_run_sink.py",
    "live/test_offsets_of_many_changes.py",
    "live/test_offsets_of_changes.py",
    "live/test_topiccopy_brokers.py",
    "live/test_topiccopy_unopened.py",
    "live/test_upgrade_versions.py",
    "upgrade/test_fail_at.py",
)
"""Files and units of files that take minutes, where no run is remembered."""
CLUSTER = "cluster"
"""The fixture that a process starts for the first file that asks for it, and keeps to its end: the
later, the less it costs.
"""
LONG = 60.0
"""Seconds from which a file is long: whoever begins one of them at the end is waited for by the
others.
"""
LIVE_UNTIL = 0.9
"""The part of the other files within which those that wait for clusters are begun; the rest are
short.
"""


def longest(seconds: dict[str, float] | None) -> list[str]:
    """The long files and units, the longest first, by the seconds of each file in a run;
    ``LONGEST`` without any.
    """
    if not seconds:
        return list(LONGEST)
    of = defaultdict[str, float](float)
    for name, each in seconds.items():
        of[unit_of(name)] += each
    return sorted((unit for unit, each in of.items() if each >= LONG), key=lambda unit: -of[unit])


def last_of(units: list[str], asking: set[str]) -> list[str]:
    """Return the units with those last that ask for the cluster that files share."""
    return sorted(units, key=lambda unit: unit in asking)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first, of them those with clusters of their own. Then those that wait for
    clusters and those that compute by turns, else they would compute all at once when nobody waits
    any more. The files of a unit follow each other.
    """
    places: dict[Path, float] = {}
    for waits, until in ((True, LIVE_UNTIL), (False, 1.0)):
        files = list(
            dict.fromkeys(item.path for item in items if (item.path.parent.name == "live") is waits)
        )
        places |= {file: until * number / len(files) for number, file in enumerate(files)}
    units = {file: unit_of(name_of(file)) for file in places}
    asking = {units[item.path] for item in items if CLUSTER in getattr(item, "fixturenames", ())}
    cache = cache_of(config)
    first = last_of(longest(cache.get(KEPT, None) if cache is not None else None), asking)
    places |= {
        file: first.index(unit) - len(first) for file, unit in units.items() if unit in first
    }
    begun: dict[str, float] = {}
    for file, unit in units.items():
        begun[unit] = min(places[file], begun.get(unit, places[file]))
    items.sort(key=lambda item: (begun[units[item.path]], units[item.path]))


class _Remembered:
    """The seconds of each file, kept by the process that hears of all tests."""

    def __init__(self, cache: pytest.Cache):
        self._cache, self._seconds = cache, defaultdict[str, float](float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[name_of(Path(report.location[0]))] += report.duration

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            self._cache.set(KEPT, dict(self._seconds))


def cache_of(config: pytest.Config) -> pytest.Cache | None:
    """Return pytest's cache; None where it is not used (``-p no:cacheprovider``)."""
    return getattr(config, "cache", None)


def is_whole(config: pytest.Config) -> bool:
    """Whether the whole suite is tested, but for what only an expression of ``-m`` adds."""
    named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS or config.option.keyword
    return not named and config.option.markexpr == ALL


def pytest_configure(config: pytest.Config) -> None:
    """Remember seconds where the whole suite is tested."""
    parts = hasattr(config, "workerinput") or config.option.collectonly
    cache = cache_of(config)
    if cache is not None and is_whole(config) and not parts:
        config.pluginmanager.register(_Remembered(cache))
