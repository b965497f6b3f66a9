"""Files of tests that take turns: they look at one promise from several sides, and each run of the
whole suite has one of these sides, drawn by the commit and named in the output.

``CONNECTCTL_TEST_DEEP=1 pytest`` runs all of them, and so does whoever names files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
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
_LEFT_OUT = "CONNECTCTL_TEST_FILES_LEFT_OUT"
"""The variable in which the first process of a run hands them to those that it starts."""


def left_out(seed: str) -> dict[str, list[str]]:
    """Return the files that are not drawn, by promise."""
    found = {}
    for promise, sides in TURNS.items():
        (drawn,) = chosen(list(sides), 1, f"{seed} {promise}")
        found[promise] = [file for side in sides if side != drawn for file in _files(side)]
    return found


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
