"""``connectors history`` where the config topic is not seen: what it says then, and what it never
claims.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.changingworld import World


@pytest.fixture
def blind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose config topic this principal may not read, once connectors are changed."""
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.setattr("connectctl.ops.operations.connectors.steps.QUICK_POLL", 0.001)
    monkeypatch.setattr("connectctl.ops.operations.connectors.steps.POLL", 0.001)

    world = World(tmp_path)
    world.kafka.forbidden.add("cfg")
    return world


def test_without_a_journal_the_refusal_is_the_answer_and_not_an_empty_history(blind: World) -> None:
    result = blind.run("connectors", "history", "orders")
    assert result.exit_code == 5
    assert "Not allowed to read" in result.stderr
    assert "No configuration" not in result.stderr


def test_the_journal_alone_is_shown_with_a_warning(blind: World) -> None:
    assert blind.run("connectors", "patch", "orders", "batch.size=5", "--yes").exit_code == 0
    result = blind.run("connectors", "history", "orders")
    assert result.exit_code == 0, result.output
    assert (
        "only revisions in the journal of this machine are shown: Not allowed to read"
        in result.stderr
    )
    assert "batch.size=5" in result.stdout
    data = json.loads(blind.run("connectors", "history", "orders", "-o", "json").stdout)
    assert data["configTopicUnseen"] == "Not allowed to read ['cfg']"
    assert [(v["what"], v["configOffset"]) for v in data["revisions"]] == [
        ("changed", None),
        ("oldest known", None),
    ]
    newest, oldest = data["revisions"]
    assert oldest["at"] is None
    assert oldest["revision"] == f"before-{newest['revision']}"
    unknown = blind.run("connectors", "rollback", "orders", "--to", "2", "--yes")
    assert unknown.exit_code == 2
    assert "orders has no revision 2" in unknown.stderr
    assert "the config topic was not read: Not allowed to read" in unknown.stderr
    back = blind.run("connectors", "rollback", "orders", "--to", oldest["revision"], "--yes")
    assert back.exit_code == 0, back.output
    assert "remove batch.size (was 5)" in back.output
