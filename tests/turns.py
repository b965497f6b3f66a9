"""Files of tests that take turns: they look at one promise from several sides, and each run of the
whole suite has one of these sides, drawn by the commit and named in the output.

``CONNECTCTL_TEST_DEEP=1 pytest`` runs all of them, and so does whoever names files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, count
from pathlib import Path

import pytest
from depth import DEEP
from draws import chosen, drawn_by
from fileorder import is_whole

TURNS: dict[str, tuple[str, ...]] = {
    "upgrades": (
        "upgrade",
        "upgrade_commands",
        "upgrade_failures",
        "upgrade_versions",
        "migrations tasks_check",
    ),
    "sandboxes": (
        "sandbox_cluster",
        "sandbox_jars",
        "sandbox_killed",
    ),
    "pages": (
        "documented_commands",
        "demo",
        "help_examples completion",
        "from_kcctl ci",
    ),
    "rights and logins": (
        "rights_proven",
        "secured_matrix context_secrets",
        "secrets_spark sandbox_secured spark_standalone",
        "login_faults logins_cut reauthentication reauthentication_commands",
        "secured secrets",
        "preflight_acls preflight_self",
    ),
    "offsets of connectors that change": (
        "offset_changes",
        "offsets_meanwhile",
        "offsets_meanwhile_table offsets_meanwhile_at_rest offset_rules",
        "offsets_of_many_changes offsets_of_changes",
    ),
    "workers": (
        "preflight_workers",
        "one_judge",
        "mirror_maker",
        "several_groups",
        "releases",
    ),
    "connectors": (
        "connectors_live connectors_states",
        "connectors_history foreign_errors",
        "connectors_config connectors_directory",
        "worker_files",
    ),
    "preflight": (
        "preflight_stores preflight_fencing",
        "preflight_brokers",
        "validate_agrees",
    ),
    "brokers that die": (
        "three_brokers",
        "topiccopy_brokers",
        "runtime_campaign",
    ),
    "lives of tasks": (
        "run_lease",
        "run_takeover",
        "run_latency",
        "runtime_takeover runtime_timeout runtime_doubt runtime_leftovers start_faults",
    ),
    "runs": (
        "run run_tasks",
        "run_examples",
        "run_conformance",
        "run_sink",
        "run_topiccopy topiccopy_unopened",
    ),
    "transforms": (
        "run_transform run_transform_ids",
        "run_transform_scale",
        "run_single_message_transforms transforms_agree group_zombies group_aware",
    ),
    "Spark": (
        "run_clusters",
        "runtime_dataframes",
        "run_dataframe",
        "engines",
        "run_archive",
    ),
    "fencing": (
        "fence_zombie",
        "fence_many fence_diagnosis",
    ),
    "consumer groups of tasks": (
        "group_mutants",
        "group_member group_transactions group_topics",
    ),
    "formats": (
        "schema_registry",
        "transaction_version",
        "garbage_records column_reader",
    ),
}
"""The sides of each promise; a side is files of ``tests/live``."""
SECONDS = {
    "upgrade": 230,
    "upgrade_commands": 230,
    "upgrade_failures": 230,
    "upgrade_versions": 180,
    "migrations": 190,
    "sandbox_jars": 95,
    "documented_commands": 245,
    "demo": 250,
    "help_examples": 170,
    "from_kcctl": 160,
    "rights_proven": 220,
    "secrets_spark": 100,
    "login_faults": 135,
    "secured": 150,
    "offset_changes": 195,
    "offsets_meanwhile": 265,
    "offsets_of_many_changes": 195,
    "preflight_workers": 145,
    "one_judge": 120,
    "releases": 125,
    "connectors_live": 140,
    "connectors_history": 95,
    "connectors_config": 125,
    "three_brokers": 195,
    "topiccopy_brokers": 130,
    "runtime_campaign": 110,
    "run_lease": 150,
    "run_takeover": 125,
    "runtime_takeover": 100,
    "run": 120,
    "run_sink": 100,
    "run_topiccopy": 120,
    "run_transform": 100,
    "run_clusters": 220,
    "runtime_dataframes": 110,
    "run_dataframe": 130,
    "schema_registry": 190,
}
"""The seconds of long sides, by their first file, beside four other processes of tests on two
processors; less for a side that waits for most of its time, which leaves the processors to others.
All others count as ``SHORT``.
"""
SHORT = 50
MOST = 1600
"""The most seconds that the sides of a commit take together: a commit that draws more draws again,
so that no run is much longer than the others.
"""
_LEFT_OUT = "CONNECTCTL_TEST_FILES_LEFT_OUT"
"""The variable in which the first process of a run hands them to those that it starts."""


def drawn_sides(seed: str) -> dict[str, str]:
    """Return the side of each promise that ``seed`` draws."""
    draws = (
        {
            promise: next(iter(chosen(list(sides), 1, f"{seed} {again} {promise}")))
            for promise, sides in TURNS.items()
        }
        for again in count()
    )
    return next(found for found in draws if seconds(found.values()) <= MOST)


def seconds(sides: Iterable[str]) -> int:
    """Return the seconds that ``sides`` take together."""
    return sum(SECONDS.get(side.split()[0], SHORT) for side in sides)


def left_out(seed: str) -> dict[str, list[str]]:
    """Return the files that are not drawn, by promise."""
    return {
        promise: [file for side in TURNS[promise] if side != drawn for file in _files(side)]
        for promise, drawn in drawn_sides(seed).items()
    }


def taking_turns() -> Iterator[str]:
    """Yield the names of all files that take turns."""
    for sides in TURNS.values():
        for side in sides:
            yield from _files(side)


def _files(side: str) -> Iterator[str]:
    return (f"test_{name}.py" for name in side.split())


def pytest_configure(config: pytest.Config) -> None:
    """Draw where the whole suite is tested."""
    if hasattr(config, "workerinput"):
        return
    if is_whole(config) and not DEEP:
        os.environ[_LEFT_OUT] = " ".join(chain.from_iterable(left_out(drawn_by()).values()))
    else:
        os.environ.pop(_LEFT_OUT, None)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave the files out before they are imported."""
    names = os.environ.get(_LEFT_OUT, "").split()
    return True if collection_path.name in names and _is_live(collection_path) else None


def _is_live(file: Path) -> bool:
    return file.parent == Path(__file__).parent / "live"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the files that had not their turn."""
    if not os.environ.get(_LEFT_OUT):
        return
    commit = drawn_by()
    terminalreporter.section(
        f"files whose turn commit {commit} does not draw (CONNECTCTL_TEST_DEEP=1 has them all)"
    )
    for promise, files in left_out(commit).items():
        terminalreporter.line(f"{promise}: {', '.join(files)}")
