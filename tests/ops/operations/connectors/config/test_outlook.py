"""A connector that is created resumes from what is stored under its name, or is told whose offsets
it leaves behind.
"""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.operations.connectors.config.outlook import (
    OffsetsByConnector,
    carried,
    of_new,
    of_others,
)

FILE = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "file": "a",
    "topic": "t",
}
OTHER = {"connector.class": "com.example.OtherSource"}
A: dict[str, Any] = {"filename": "a"}
OLD = OffsetsByConnector({"old": [(A, {"position": 1}), ({"filename": "b"}, {"position": 2})]})


def test_a_connector_of_an_old_name_resumes_from_what_it_reads() -> None:
    told = of_new("old", FILE, OLD)
    assert told.partitions == {"resumed": (A,)}
    assert told.sentences == ('resumes from 1 source offset stored before: {"filename":"a"}',)
    assert of_new("new", FILE, OLD).sentences == ()


def test_of_another_file_it_begins_anew_although_offsets_are_stored_under_its_name() -> None:
    assert of_new("old", FILE | {"file": "c"}, OLD).partitions == {
        "begun anew": ({"filename": "c"},)
    }


def test_of_an_unknown_class_it_may_resume() -> None:
    (sentence,) = of_new("old", OTHER, OLD).sentences
    assert sentence.startswith("may resume from offsets that are stored under its name")


def test_offsets_that_were_not_seen_are_no_absence() -> None:
    (sentence,) = of_new(
        "old", FILE, OffsetsByConnector(unseen=ConnectctlError("the brokers are not given"))
    ).sentences
    assert (
        sentence
        == "whether offsets are stored under its name is unknown (the brokers are not given)"
    )
    with pytest.raises(Refused, match="No offsets can be carried over"):
        carried(
            "new", FILE, OffsetsByConnector(unseen=ConnectctlError("the brokers are not given")), ()
        )


def test_the_offsets_of_a_former_name_stay_and_the_plan_says_how_to_take_them() -> None:
    told = of_others("new", FILE, {}, OLD)
    assert told.partitions == {"begun anew": (A,)}
    assert told.sentences == (
        "leaves 1 source offset of what it reads under the name old, which no longer exists (to "
        "start from them: --carry-offsets, or connectctl offsets copy old new --stop)",
    )
    told = of_others("new", FILE, {"old": FILE}, OLD)
    assert told.shares == ("old",)
    assert told.sentences[0] == "reads the same source partitions as old"
    own = OffsetsByConnector({**OLD.by_name, "new": [(A, {"position": 5})]})
    assert of_others("new", FILE, {}, own).sentences == ()


def test_what_is_carried_is_what_it_reads_of_the_one_former_name_that_rests() -> None:
    assert carried("new", FILE, OLD, ()) == (('{"filename":"a"}', '{"position":1}'),)
    with pytest.raises(Refused, match="while it runs"):
        carried("new", FILE, OLD, {"old"})
    with pytest.raises(Refused, match="No offsets") as none:
        carried("new", FILE | {"file": "c"}, OLD, ())
    assert none.value.why == "no connector has offsets of what it reads"
    two = OffsetsByConnector({**OLD.by_name, "older": OLD.by_name["old"]})
    with pytest.raises(Refused, match="No offsets") as several:
        carried("new", FILE, two, ())
    assert several.value.why == "several connectors have such offsets: old, older"
