"""Records that internal topics retain and no worker needs, by what doctor reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.checks.history.records import History
from connectctl.ops.checks.internal_topics import retained_rules
from connectctl.ops.checks.internal_topics.retained_rules import observe
from connectctl.ops.connect.config_topic import ConfigState
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import check
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.rhythm import Rhythm
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.operations.cluster.observe import InternalTopic
from fakes.check_context import check_context
from fakes.kafkareads import FakeKafka, rhythm_of
from hypothesis import given
from hypothesis import strategies as st

NOW, MINUTE, HOUR, DAY = 1_000_000_000.0, 60.0, 3600.0, 86_400.0
DEFAULTS = {
    "segment.ms": "604800000",
    "min.compaction.lag.ms": "0",
    "min.cleanable.dirty.ratio": "0.5",
}


def found(
    role: str = "status",
    *ages: float,
    settings: dict[str, str] | None = None,
    keys: int = 1,
    **history: Any,
) -> dict[str, Finding]:
    """The findings about a topic ``t`` with records of these ages in seconds, of ``keys`` in turns."""
    records = [
        ConsumerRecord(b"k%d" % (n % keys), b"v", 0, n, int((NOW - age) * 1000))
        for n, age in enumerate(sorted(ages, reverse=True))
    ]
    facts = TopicFacts("t", 1, {}, {}, DEFAULTS if settings is None else settings)
    context = check_context(
        kafka=FakeKafka(records={"t": records}),
        view=SimpleNamespace(topics=(InternalTopic(role, "t", facts),)),
        internal={role: "t"},
        state=ConfigState({"orders": None}),  # type: ignore[dict-item]
        history=History(config_read=True, **history),
    )
    return {each.id: each for each in check(retained_rules, observe(context, NOW))}


def every(seconds: float, first: float, last: float = 0.0) -> list[float]:
    return [first - n * seconds for n in range(int((first - last) / seconds) + 1)]


def test_a_topic_that_is_not_cleaned_for_weeks_is_told_with_its_records() -> None:
    finding = found("status", *every(HOUR, 30 * DAY))["TOPIC015"]
    assert (finding.subject, finding.severity) == ("t", Severity.WARNING)
    assert "551 of its 721 records are superseded" in finding.message


@pytest.mark.parametrize(
    ("role", "ages", "settings"),
    [
        ("status", every(MINUTE, 6 * DAY), None),  # all may be in the active segment
        ("status", [30 * DAY, *every(MINUTE, 6 * DAY)], None),  # the rest of a compaction
        ("config", [300 * DAY], None),
        ("config", [], None),
        # a log that rests: nothing closes its active segment
        ("status", every(HOUR, 37 * DAY, 31 * DAY), None),
        ("status", every(HOUR, 30 * DAY), {"segment.ms": "604800000"}),  # the rest may not be seen
        ("status", every(HOUR, 30 * DAY), DEFAULTS | {"min.cleanable.dirty.ratio": "0.9"}),
        ("status", every(HOUR, 30 * DAY), DEFAULTS | {"min.compaction.lag.ms": "2592000000"}),
    ],
)
def test_what_compaction_may_leave_is_no_finding(
    role: str, ages: list[float], settings: dict[str, str] | None
) -> None:
    assert found(role, *ages, settings=settings) == {}


def test_short_segments_are_cleaned_sooner() -> None:
    hourly = DEFAULTS | {"segment.ms": "3600000"}
    assert "TOPIC015" in found("status", *every(MINUTE, 4 * DAY), settings=hourly)


def test_keys_are_counted_one_by_one() -> None:
    assert found("status", *every(HOUR, 30 * DAY), keys=721) == {}


def test_offsets_topics_are_judged_by_the_rhythms_of_their_keys() -> None:
    regular = Rhythm(NOW - 30 * DAY, NOW, MINUTE, 43_200)
    finding = found("offsets", rhythms_of_topic=(regular,))["TOPIC015"]
    assert "33,119 of its 43,200 records" in finding.message
    cleaned = Rhythm(NOW - 8 * DAY, NOW, 7 * DAY, 1_500)
    assert found("offsets", rhythms_of_topic=(cleaned,)) == {}
    # those of a connector's own topic say nothing about the workers'
    assert found("offsets", rhythms={"orders": (regular,)}, rhythms_of_topic=(cleaned,)) == {}


@given(st.lists(st.floats(1, 40 * DAY), min_size=1, max_size=60), st.floats(8 * DAY, 20 * DAY))
def test_a_rhythm_never_proves_more_superseded_records_than_there_are(
    ages: list[float], closed: float
) -> None:
    rhythm = rhythm_of(NOW - age for age in ages)
    assert rhythm is not None
    older = sum(age > closed for age in ages)
    assert retained_rules._at_least(rhythm, NOW - closed) <= max(0, older - 1)


def test_offsets_of_connectors_that_do_not_exist_are_told_a_day_later() -> None:
    times = {
        "orders": {b"a": (NOW - 9 * DAY,)},
        "old": {b"b": (NOW - 9 * DAY, NOW - 2 * DAY)},
        "older": {b"c": (NOW - 9 * DAY,)},
        "deleted lately": {b"d": (NOW - HOUR,)},
    }
    finding = found("offsets", offset_times=times)["TOPIC014"]
    assert finding.severity is Severity.INFO
    assert "2 connectors that this group does not have: older, old." in finding.message
    assert "orders" not in finding.message
    assert found("offsets", offset_times={"orders": times["orders"]}) == {}
