"""What leaves in a bundle: no secret from any place, and names that are replaced alike."""

from __future__ import annotations

import json
from typing import Any

import pytest
from connectctl.ops.checks.bundle.codec import decode, encode
from connectctl.ops.checks.bundle.pseudonyms import Names, Replacement
from connectctl.ops.checks.bundle.redaction import Masking
from connectctl.ops.checks.bundle.tape import Call
from connectctl.ops.config.masking import secrets_of
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Unreachable
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.offset_commits import (
    OffsetCommit,
    key_of_commit,
    offset_commits,
    value_of_commit,
)
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.kafka.visibility import Complete, Gap, Partial, Reason
from fakes.secrets import HARMLESS, Planted, trace_with


def call(name: str, *values: Any, arguments: Any = None) -> Call:
    return Call(name, arguments, [{"value": encode(value)} for value in values])


def record(key: str, value: Any) -> ConsumerRecord:
    return ConsumerRecord(key.encode(), json.dumps(value).encode(), 0, 7, 1_000)


def calls_with(planted: Planted) -> list[Call]:
    """Answers that have a secret of each shape in each place where one may be."""
    rest, topic, task, quoted, facts, asked = (planted.config() for _ in range(6))
    configs = (rest, topic, task, quoted, facts)
    quoting = trace_with(secret for each in configs for secret in secrets_of(each))
    image = TopicImage(
        "configs",
        3,
        [
            record("connector-orders", {"properties": topic}),
            record("task-orders-0", {"properties": task}),
            record("session-key", {"key": planted.secret(), "algorithm": "HmacSHA256"}),
        ],
        {0: 8},
        superseded=(record("connector-orders", {"properties": quoted}),),
    )
    info = {
        "orders": {"info": {"config": rest}, "status": {"tasks": [{"id": 0, "trace": quoting}]}}
    }
    defined = {
        "configs": [
            {
                "definition": {"name": "door", "type": "PASSWORD"},
                "value": {"name": "door", "value": planted.secret(), "errors": []},
            }
        ]
    }
    sample = ConsumerRecord(b"customer", planted.secret().encode(), 0, 0)
    error = ConnectctlError("x", why="y")
    error.why = f"refused password={planted.secret()}"
    return [
        call("kafka.image", {"configs": image}),
        call("connect_to.get", info),
        call("connect_to.send", defined, arguments=[{"0": "PUT"}, {"body": asked}]),
        call("kafka.topics", {"t": TopicFacts("t", 1, {0: 1}, {0: 1}, facts)}),
        call("kafka.tails", {"customers": [sample]}),
        Call("connect_to.get", None, [{"error": encode(error)}]),
    ]


def test_no_secret_of_any_shape_leaves_from_any_place() -> None:
    planted = Planted()
    calls = calls_with(planted)
    assert len(planted.all) > 200
    masking = Masking()
    text = json.dumps([[each.name, each.arguments, each.answers] for each in masking.of(calls)])
    assert planted.found_in(text) == []
    assert masking.left_out == {"contents of sampled records that are not Connect's": 1}
    for name in ("time", "mac"):
        assert HARMLESS[name] in text


def test_commits_of_sinks_stay_without_metadata_and_those_of_others_do_not() -> None:
    """The metadata of a commit is any text of an application."""
    tail = [
        ConsumerRecord(key_of_commit(group, "orders", 1), value_of_commit(5) + b"meta", 0, n, 1_000)
        for n, group in enumerate(("connect-files", "billing"))
    ]
    masking = Masking(groups=frozenset({"connect-files"}))
    masked = masking.of([call("kafka.tails", {"__consumer_offsets": tail})])
    (found,) = Replacement({"files": "connector-1", "orders": "topic-1"}).of(masked)
    assert masking.left_out.total() == 1
    text = json.dumps(found.answers)
    assert [each for each in ("files", "orders", "billing", "meta") if each in text] == []
    records = decode(found.answers[0]["value"])["__consumer_offsets"]
    assert offset_commits(records) == [
        OffsetCommit("connect-connector-1", TopicPartition("topic-1", 1), 5, 1.0)
    ]


def test_what_is_masked_is_still_decoded() -> None:
    for each in Masking().of(calls_with(Planted())):
        for answer in each.answers:
            decode(answer.get("value", answer.get("error")))


@pytest.mark.parametrize(
    "value",
    [
        {TopicPartition("t", 1): Code.NOT_COORDINATOR, TopicPartition("t", 2): None},
        Transaction("id", "Ongoing", 1, 2, partitions=(TopicPartition("t", 0),)),
        Partial(frozenset({"a", "b"}), (Gap("x", Reason.NO_ANSWER, detail="late"),)),
        Complete(((b"\xff\x00", float("inf")),)),
        {1: {"a": [1, None, True]}, 2: {}},
        {"$odd": 1},
    ],
)
def test_a_value_is_the_same_after_the_archive(value: Any) -> None:
    assert decode(json.loads(json.dumps(encode(value)))) == value


def test_an_error_is_of_the_same_kind_after_the_archive() -> None:
    right = Right(Operation.READ, Resource.TOPIC, "t")
    error = NotAuthorized("Not allowed", why="Read is missing", next_step="Grant it.", right=right)
    found = decode(json.loads(json.dumps(encode(error))))
    assert isinstance(found, NotAuthorized)
    assert (str(found), found.code, found.right) == (str(error), "not-authorized", right)
    data = encode(Unreachable("x")) | {"kinds": ["OfANewerVersion", "Unreachable"]}
    assert type(decode(data)) is Unreachable


def test_names_are_replaced_as_whole_words_and_longest_first() -> None:
    replacement = Replacement(
        {"orders": "connector-1", "orders.eu": "topic-2", "my conn": "connector-3"}
    )
    for text, expected in {
        "connect-orders-0": "connect-connector-1-0",
        "orders.eu-0, orders": "topic-2-0, connector-1",
        "reorders preorders": "reorders preorders",
        "/connectors/my%20conn/status": "/connectors/connector-3/status",
        '["my conn",{"a":1}]': '["connector-3",{"a":1}]',
    }.items():
        assert replacement.text(text) == expected


def test_words_that_mean_something_else_are_kept_as_names_and_said() -> None:
    image = TopicImage(
        "configs", 1, [record("connector-source", {}), record("connector-a1b", {})], {}
    )
    names = Names.of([call("kafka.image", {"configs": image})])
    assert names.kept == ("source",)
    assert set(names.pseudonyms(b"x")) == {"a1b", "configs"}
    assert names.pseudonyms(b"x") == names.pseudonyms(b"x") != names.pseudonyms(b"y")
