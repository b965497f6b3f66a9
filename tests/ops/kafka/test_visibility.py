"""Answers that are complete, or partial with the reason and the missing right."""

from __future__ import annotations

import pytest
from connectctl.ops.core.errors import NotAuthorized, TimedOut, Unreachable
from connectctl.ops.core.rule_docs import rule_docs
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.kafka.visibility import (
    DESCRIBE_CLUSTER,
    Complete,
    Gap,
    Partial,
    Reason,
    describe_group,
    describe_id,
    gap_findings,
    gap_of,
    not_authorized,
    observation_of,
    refused,
    whole,
)

GROUP = Gap("group connect-prod", Reason.NOT_AUTHORIZED, describe_group("connect-prod"))
DOWN = Gap("broker 2", Reason.NO_ANSWER, detail="connection refused")


def test_a_right_is_written_in_kafkas_words() -> None:
    assert str(describe_group("connect-prod")) == "Describe on Group connect-prod"
    assert (
        str(Right(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, "t")) == "DescribeConfigs on Topic t"
    )
    assert str(DESCRIBE_CLUSTER) == "Describe on Cluster kafka-cluster"


def test_a_right_is_written_as_kafka_acls_takes_it() -> None:
    assert describe_group("connect prod").arguments == "--operation Describe --group 'connect prod'"
    assert describe_id().arguments == "--operation Describe --transactional-id '*'"
    assert DESCRIBE_CLUSTER.arguments == "--operation Describe --cluster"


def test_an_answer_without_gaps_is_complete_and_given_whole() -> None:
    answer = observation_of([1], ())
    assert answer == Complete([1])
    assert (whole(answer, "the list"), answer.gaps) == ([1], ())


def test_a_partial_answer_is_not_given_whole_and_names_the_right() -> None:
    answer = observation_of([1], [DOWN, GROUP])
    assert isinstance(answer, Partial)
    assert answer.seen == [1]
    with pytest.raises(NotAuthorized, match="Describe on Group connect-prod") as caught:
        whole(answer, "the groups")
    assert caught.value.right == GROUP.right
    assert "--operation Describe --group connect-prod" in str(caught.value)


def test_what_nobody_answered_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="broker 2: no answer: connection refused") as caught:
        whole(observation_of([], [DOWN]), "the groups")
    assert not isinstance(caught.value, NotAuthorized)


def test_a_change_that_is_guarded_by_a_partial_answer_is_refused() -> None:
    error = refused([GROUP], "The tasks were not fenced", force="a running task may fail")
    assert str(error).startswith("The tasks were not fenced: group connect-prod: not authorized")
    assert "--force overrides it: a running task may fail." in str(error)


def test_gaps_are_found_once_each_with_stable_ids() -> None:
    found = gap_findings([GROUP, DOWN, GROUP])
    assert [(f.id, f.severity, f.subject) for f in found] == [
        ("SIGHT001", "warning", "group connect-prod"),
        ("SIGHT002", "warning", "broker 2"),
    ]
    assert "Describe on Group connect-prod is missing" in found[0].message
    assert {"SIGHT001", "SIGHT002"} <= rule_docs().keys()


def test_an_edges_error_becomes_a_gap() -> None:
    denied = not_authorized(
        "Not authorized to describe the group connect-prod", describe_group("connect-prod")
    )
    assert gap_of(denied, "group connect-prod") == GROUP
    unnamed = gap_of(NotAuthorized("no", why="login failed"), "topics")
    assert (unnamed.reason, unnamed.why) == (Reason.NOT_AUTHORIZED, "not authorized (login failed)")
    assert gap_of(TimedOut("slow", why="10 s"), "topics") == Gap(
        "topics", Reason.NO_ANSWER, None, "10 s"
    )
