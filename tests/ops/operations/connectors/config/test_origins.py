"""What runs wrote to connectors, as the journal tells it: only what they did themselves, and what
still counts.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from connectctl.ops.core.journal import Journal, RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.connectors.config.history import ConfigOrigin, origins
from connectctl.ops.operations.connectors.config.steps import (
    ChangeConnector,
    CreateConnector,
    DeleteConnector,
)
from connectctl.ops.operations.connectors.steps import ConnectorStep


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


def run(
    journal: Journal, verb: str, *steps: ConnectorStep, marks: str = "begun done", group: str = "g"
) -> str:
    """A run whose steps all got ``marks``."""
    begun = journal.begin_plan(Plan(f"connectors {verb}", "c", steps, group_id=group))
    for number in range(len(steps)):
        for what in marks.split():
            journal.mark(begun.id, number, what)
    journal.end(begun.id, RunState.DONE)
    return begun.id


def create(after: str = "1", file: str | None = "/d/a.json") -> ConnectorStep:
    return CreateConnector("a", {}, after, file=file)


def change(after: str, file: str | None = "/d/a.json") -> ConnectorStep:
    return ChangeConnector("a", {}, {}, "0", after, file)


def known(journal: Journal) -> ConfigOrigin | None:
    return origins(journal, "c", "g", ["a", "b"]).get("a")


def applied(journal: Journal) -> str | None:
    found = known(journal)
    return found.applied.digest if found and found.applied else None


def test_the_newest_write_from_a_file_is_what_was_applied(journal: Journal) -> None:
    run(journal, "create", create("1"))
    run(journal, "apply", change("2", "/d/b.json"))
    run(journal, "patch", change("3", None))
    found = known(journal)
    assert found is not None
    assert [each.digest for each in found.writes] == ["1", "2", "3"]
    assert found.applied is not None
    assert (found.applied.digest, found.applied.file) == ("2", "/d/b.json")


@pytest.mark.parametrize(
    ("marks", "digest"),
    [
        ("begun done", "1"),
        ("begun begun already", "1"),
        ("begun already", None),
        ("begun", None),
        ("begun failed", None),
        ("left out", None),
    ],
)
def test_what_a_run_did_not_do_itself_is_not_its_own(
    journal: Journal, marks: str, digest: str | None
) -> None:
    run(journal, "apply", create("1"), marks=marks)
    assert applied(journal) == digest


def test_what_was_undone_counts_for_nothing(journal: Journal) -> None:
    run(journal, "apply", create("1"))
    undone = run(journal, "apply", change("2"))
    run(journal, "undo", change("1", None))
    journal.end(undone, RunState.UNDONE)
    assert applied(journal) == "1"


def test_what_a_run_deleted_is_known_no_more_until_it_is_applied_again(journal: Journal) -> None:
    run(journal, "apply", create("1"))
    run(journal, "delete", DeleteConnector("a", "1"))
    assert known(journal) is None
    run(journal, "apply", create("2"))
    assert applied(journal) == "2"


def test_other_clusters_and_runs_without_their_files_tell_nothing(journal: Journal) -> None:
    run(journal, "apply", create("1"), group="other")
    lost = run(journal, "apply", create("2"))
    shutil.rmtree(journal.directory / "runs" / lost)
    assert known(journal) is None
