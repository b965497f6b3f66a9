"""What the offsets of a connector tell of its records, where that is sound."""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.audit.field_extractor import RecordPart
from connectctl.ops.audit.offset_positions import compared, inferred, positions
from connectctl.ops.audit.sequences import Committed

VERIFIABLE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"


@pytest.mark.parametrize(("whole", "path"), [("false", ()), ("TRUE", ("seqno",))])
def test_a_verifiable_source_tells_both(whole: str, path: tuple[str, ...]) -> None:
    found = inferred({"connector.class": VERIFIABLE, "complete.record.data": whole})
    assert found.sequence is not None
    assert found.by is not None
    assert (found.sequence.path, found.by.part, found.by.label, found.member) == (
        path,
        RecordPart.KEY,
        "id",
        "seqno",
    )


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (
            {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector"},
            "have no line number",
        ),
        ({"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector"}, "upstream"),
        ({"connector.class": "com.acme.Source"}, "Source is not a supported"),
        (None, "its configuration is unknown"),
    ],
)
def test_others_do_not_and_it_is_said_why(config: dict[str, str] | None, why: str) -> None:
    found = inferred(config)
    assert found.sequence is None
    assert why in str(found.why)


def test_offsets_before_and_after_are_the_bounds() -> None:
    found = compared(
        [({"id": 0}, {"seqno": 5})], [({"id": 0}, {"seqno": 9}), ({"id": 1}, {"seqno": 2})], "seqno"
    )
    assert found.numbers == {"0": Committed(5, 9), "1": Committed(2, 2)}
    assert found.shown["0"] == ({"id": 0}, {"seqno": 9})


@pytest.mark.parametrize(
    ("pairs", "member", "why"),
    [
        ([({"id": 0}, {"seqno": 5})], None, "the field of the source offset"),
        ([({"a": 0, "b": 1}, {"seqno": 5})], "seqno", "several fields"),
        ([(None, {"seqno": 5})], "seqno", "several fields"),
        ([({"id": 0}, {"pos": "x"})], "pos", "no integer"),
    ],
)
def test_what_cannot_be_compared_is_not(pairs: Any, member: str | None, why: str) -> None:
    assert why in str(compared([], pairs, member).why)


def test_what_a_stream_remembers_beside_its_offsets_is_no_source_partition() -> None:
    pairs: Any = [
        ({"shop": "a"}, {"id": 9}),
        ({"connectctl.stream": "q", "task": 0}, {"batch": 3, "through": True}),
    ]
    assert compared([], pairs, "id").shown == {"a": ({"shop": "a"}, {"id": 9})}


def test_the_position_of_a_file_is_that_of_one_file() -> None:
    one, two = ({"filename": "a"}, {"position": 30}), ({"filename": "b"}, {"position": 3})
    later = ({"filename": "a"}, {"position": 50})
    assert positions([one], [later]) == (30, 50)
    assert positions([], [later]) == (0, 50)
    assert positions([one], [one, two]) is None
    assert positions([], []) is None
