"""Whoever gives source partitions up comes before whoever reads them from then on."""

from __future__ import annotations

from connectctl.ops.operations.connectors.config.directory import AwaitRelease, ordered, takeovers
from connectctl.ops.operations.connectors.config.steps import (
    ChangeConnector,
    CreateConnector,
    DeleteConnector,
)
from connectctl.ops.operations.connectors.steps import ConnectorStep
from hypothesis import given
from hypothesis import strategies as st

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def reading(file: str) -> dict[str, str]:
    return {"connector.class": FILE_SOURCE, "file": file, "topic": "t"}


def create(name: str) -> ConnectorStep:
    return CreateConnector(name, {}, f"new-{name}")


def change(name: str) -> ConnectorStep:
    return ChangeConnector(name, {}, {}, f"old-{name}", f"new-{name}")


def delete(name: str) -> ConnectorStep:
    return DeleteConnector(name, f"old-{name}")


def test_what_is_deleted_comes_before_what_reads_its_source_partitions_and_other_deletions_come_last() -> (
    None
):
    former = {"old": reading("/a"), "zombie": reading("/z"), "apart": reading("/c")}
    after = takeovers(former, {"b-new": reading("/a"), "a-new": reading("/x")})
    assert after == {"b-new": ("old",)}
    steps = ordered([create("b-new"), create("a-new"), *map(delete, former)], after)
    assert [(type(s).__name__, s.subject) for s in steps] == [
        ("DeleteConnector", "old"),
        ("CreateConnector", "a-new"),
        ("AwaitRelease", "b-new"),
        ("CreateConnector", "b-new"),
        ("DeleteConnector", "apart"),
        ("DeleteConnector", "zombie"),
    ]
    assert (
        steps[2].describe() == "wait until no worker runs old, whose source partitions b-new reads"
    )


def test_a_change_that_gives_source_partitions_up_comes_before_who_takes_them() -> None:
    after = takeovers({"lines": reading("/a")}, {"lines": reading("/b"), "a-lines": reading("/a")})
    steps = ordered([create("a-lines"), change("lines")], after)
    assert steps[:2] == [change("lines"), AwaitRelease("a-lines", "lines", "new-lines")]
    assert isinstance(steps[2], CreateConnector)


def test_who_shared_before_or_keeps_sharing_waits_for_nobody() -> None:
    both = {"a": reading("/x"), "b": reading("/x")}
    assert (
        takeovers(both, {"a": reading("/x") | {"topic": "u"}, "b": reading("/x") | {"topic": "u"}})
        == {}
    )
    assert (
        takeovers({"a": reading("/x")}, {"a": reading("/x") | {"topic": "u"}, "b": reading("/x")})
        == {}
    )


def test_two_that_exchange_their_source_partitions_come_in_order_of_names() -> None:
    after = takeovers(
        {"a": reading("/x"), "b": reading("/y")}, {"a": reading("/y"), "b": reading("/x")}
    )
    assert [
        s.subject
        for s in ordered([change("b"), change("a")], after)
        if not isinstance(s, AwaitRelease)
    ] == [
        "a",
        "b",
    ]


NAMES = st.sampled_from("abcdef")


@given(
    st.dictionaries(NAMES, st.sampled_from([create, change, delete])),
    st.dictionaries(NAMES, st.lists(NAMES, max_size=3).map(tuple)),
)
def test_every_step_is_there_once_and_nobody_comes_before_whom_it_waits_for(
    kinds: dict[str, object], after: dict[str, tuple[str, ...]]
) -> None:
    # no circle
    later = {name: tuple(o for o in others if o < name) for name, others in after.items()}
    steps = [kind(name) for name, kind in kinds.items()]  # type: ignore[operator]
    found = ordered(steps, later)
    own = [s for s in found if not isinstance(s, AwaitRelease)]
    assert sorted((type(s).__name__, s.subject) for s in own) == sorted(
        (type(s).__name__, s.subject) for s in steps
    )
    at = {step.subject: number for number, step in enumerate(own)}
    assert all(at[o] < at[name] for name in at for o in later.get(name, ()) if o in at)
