"""Who changed a connector since it was applied from its file, by the journal and the config topic;
and what is pruned.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from connectctl.ops.config.masking import BY_NAME, MASK
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.connectors.config.directory import (
    PruneRequest,
    drift_of,
    pruned,
    why_not_applied,
)
from connectctl.ops.operations.connectors.config.history import (
    CLOCKS_MS,
    ConfigOrigin,
    ConfigVersion,
    Write,
)
from connectctl.ops.operations.connectors.config.values import digest
from connectctl.ops.operations.connectors.drift import Drift, Newer

A, B, C = {"x": "1", "y": "1"}, {"x": "2", "y": "1"}, {"x": "1", "y": "2"}
T = 1_800_000_000_000
HOUR = 3_600_000


def origin(*writes: dict[str, str], file: str | None = "/d/a.json") -> ConfigOrigin:
    """The first is applied from a file, the later ones are written by other commands, an hour
    apart.
    """
    return ConfigOrigin(
        [Write(digest(w), T + n * HOUR, f"r{n}", None if n else file) for n, w in enumerate(writes)]
    )


def versions(*configs: dict[str, str] | None) -> list[ConfigVersion]:
    return [ConfigVersion(T + n * HOUR, config, n) for n, config in enumerate(configs)]


def found(now: dict[str, str], wanted: dict[str, str] | None, *more: object) -> Drift:
    drift = drift_of(now, wanted, *more)  # type: ignore[arg-type]
    assert drift is not None
    return drift


def test_a_file_that_was_changed_since_it_was_applied_is_newer_and_nothing_is_to_be_said() -> None:
    drift = found(A, B, origin(A), A, versions(A))
    assert (drift.newer, drift.file, drift.cluster, drift.applied) == (
        Newer.FILE,
        ("x",),
        (),
        {"x": "1"},
    )
    assert drift.words() == ""


def test_a_change_of_another_client_is_told_with_its_property_and_time() -> None:
    drift = found(B, A, origin(A), A, versions(A, B))
    assert (drift.newer, drift.cluster, drift.file, drift.changed_by) == (
        Newer.CLUSTER,
        ("x",),
        (),
        "another client",
    )
    assert drift.words() == (
        "the cluster is newer: x changed on the cluster at 2027-01-15T09:00:00.000Z by another "
        "client, after run r0 applied it at 2027-01-15T08:00:00.000Z"
    )


def test_a_change_of_a_run_that_no_file_has_is_told_with_the_run() -> None:
    drift = found(B, A, origin(A, B), A, versions(A, B))
    assert (drift.newer, drift.changed_by) == (Newer.CLUSTER, "run r1")


def test_changes_of_both_are_told_apart_by_property() -> None:
    drift = found(B, C, origin(A), A, versions(A, B))
    assert (drift.newer, drift.cluster, drift.file) == (Newer.BOTH, ("x",), ("y",))
    assert "y changed in the file as well" in drift.words()


def test_what_no_run_applied_is_unknown_and_says_so() -> None:
    drift = found(B, A, None, None, versions(B))
    assert drift.newer is Newer.UNKNOWN
    assert "whether the cluster or the file is newer is unknown" in drift.words()
    assert "at 2027-01-15T08:00:00.000Z by another client" in drift.words()


def test_a_config_topic_that_was_not_read_leaves_the_time_unknown() -> None:
    drift = found(B, A, origin(A), A, [], frozenset(), "the brokers are not given")
    assert (drift.newer, drift.changed_at, drift.unseen) == (
        Newer.CLUSTER,
        None,
        "the brokers are not given",
    )
    assert "at an unknown time (the brokers are not given)" in drift.words()


def test_a_topic_that_has_another_newest_configuration_does_not_tell_the_time() -> None:
    assert found(B, A, origin(A), A, versions(A, C)).changed_at is None


def test_without_the_configuration_that_was_applied_the_side_is_known_and_no_property() -> None:
    drift = found(B, A, origin(A), None, versions(A, B))
    assert (drift.newer, drift.cluster, drift.applied) == (Newer.CLUSTER, (), None)


def test_what_was_applied_is_masked() -> None:
    before, now = {"db.password": "hush-one", "o": "a"}, {"db.password": "hush-two", "o": "b"}
    drift = found(now, before, origin(before), before, [], frozenset({"o"}))
    assert drift.applied == {"db.password": BY_NAME, "o": MASK}


def test_what_is_deleted_as_it_was_applied_has_no_drift() -> None:
    assert drift_of(A, None, origin(A), A, versions(A)) is None
    assert found(B, None, origin(A), A, versions(A, B)).newer is Newer.CLUSTER


@pytest.mark.parametrize(
    ("now", "writes", "topic", "why"),
    [
        (A, (A,), (), None),
        (B, (A, B), (), None),
        (B, (A,), (A, B), None),
        (
            B,
            (A,),
            (A, None, B),
            "another client deleted it at 2027-01-15T09:00:00.000Z, and created it again",
        ),
        (
            B,
            (A,),
            (B,),
            "another client changed it; unknown whether it is the connector that was applied",
        ),
        (
            B,
            (A,),
            (),
            "another client changed it; unknown whether it is the connector that was applied",
        ),
    ],
)
def test_what_may_be_somebody_elses_connector_of_the_same_name_is_known(
    now: dict[str, str],
    writes: tuple[dict[str, str], ...],
    topic: tuple[dict[str, str] | None, ...],
    why: str | None,
) -> None:
    said = why_not_applied(now, origin(*writes), versions(*topic), None)
    assert said is None if why is None else (said or "").startswith(why)


def test_the_same_content_at_another_time_is_not_what_was_applied() -> None:
    topic = [ConfigVersion(T - CLOCKS_MS - 1, A, 0), ConfigVersion(T + HOUR, B, 1)]
    assert why_not_applied(B, origin(A), topic, None) is not None


def prune(
    there: list[str], known: dict[str, ConfigOrigin], request: PruneRequest
) -> tuple[list[str], dict[str, str]]:
    result = pruned(there, known, request, lambda name: "changed" if name == "changed" else None)
    return list(result.delete), {noop.subject: noop.why for noop in result.unchanged}


def test_prune_deletes_what_was_applied_from_the_same_place_and_says_why_it_leaves_others() -> None:
    known = {name: origin(A) for name in ("mine", "changed")}
    known |= {
        "theirs": origin(A, file="/other/b.json"),
        "created": ConfigOrigin([Write("d", T, "r")]),
    }
    delete, left = prune(
        ["theirs", "mine", "created", "changed", "foreign"], known, PruneRequest(("/d",), True)
    )
    assert delete == ["mine"]
    unknown = "left alone: no run in this machine's journal applied it from a file"
    assert left == {
        "changed": "left alone: changed",
        "created": unknown,
        "foreign": unknown,
        "theirs": "left alone: it was applied from /other/b.json",
    }


def test_a_file_covers_itself_and_a_directory_its_files_and_no_subdirectory() -> None:
    request = PruneRequest.of([Path("/d/sub/.."), Path("/e/f.json")], True, ())
    assert request is not None
    assert [
        request.covers(f) for f in ("/d/x.json", "/e/f.json", "/e/g.json", "/d/sub/x.json")
    ] == [
        True,
        True,
        False,
        False,
    ]
    below = PruneRequest.of([Path("/d")], True, (), recursive=True)
    assert below is not None
    assert [below.covers(f) for f in ("/d/x.json", "/d/sub/er/x.json", "/dd/x.json")] == [
        True,
        True,
        False,
    ]


def test_globs_delete_whatever_matches_and_alone_nothing_else() -> None:
    known = {"mine": origin(A)}
    assert prune(["mine", "test-1"], known, PruneRequest(("/d",), False, ("test-*",))) == (
        ["test-1"],
        {"mine": "left alone: it does not match --prune-match"},
    )
    assert prune(["mine", "test-1"], known, PruneRequest(("/d",), True, ("test-*",)))[0] == [
        "mine",
        "test-1",
    ]


def test_standard_input_has_no_place_that_could_be_known_again() -> None:
    with pytest.raises(BadInput, match="standard input is neither"):
        PruneRequest.of([Path("-")], True, ())
    assert PruneRequest.of([Path("-")], False, ()) is None
    assert PruneRequest.of([Path("-")], False, ("a*",)) == PruneRequest((), False, ("a*",))
