"""What ``consumer.override.*`` becomes for librdkafka, what is refused, and what is said of the
rest.
"""

from __future__ import annotations

import re

import pytest
from confluent_kafka import Consumer
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.group.consumer_settings import (
    MOST_RECORDS,
    SESSION_MS,
    ConsumerSettings,
    consumer_settings,
    session_warning,
)


def settings(**overrides: str) -> ConsumerSettings:
    """Those of the connector ``c``; underscores stand for dots."""
    return consumer_settings(
        "c", {f"consumer.override.{k.replace('_', '.')}": v for k, v in overrides.items()}
    )


def test_without_overrides_it_is_connects_group_from_the_beginning() -> None:
    assert consumer_settings("c", {"topics": "in"}) == ConsumerSettings(
        "connect-c", "earliest", MOST_RECORDS
    )
    assert (settings().session_ms, settings().dynamic) == (SESSION_MS, False)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"group_id": "mine"}, ConsumerSettings("mine")),
        ({"group_id": " "}, ConsumerSettings("connect-c")),
        ({"auto_offset_reset": "Latest"}, ConsumerSettings("connect-c", "latest")),
        ({"auto_offset_reset": "none"}, ConsumerSettings("connect-c", "error")),
        ({"max_poll_records": "7"}, ConsumerSettings("connect-c", most_records=7)),
    ],
)
def test_what_is_this_programs_own_is_no_property(
    given: dict[str, str], expected: ConsumerSettings
) -> None:
    assert settings(**given) == expected


@pytest.mark.parametrize(
    ("name", "value", "property_", "becomes"),
    [
        ("session.timeout.ms", "60000", "session.timeout.ms", "60000"),
        ("fetch.min.bytes", " 10 ", "fetch.min.bytes", "10"),
        ("client.rack", "a", "client.rack", "a"),
        ("fetch.max.wait.ms", "100", "fetch.wait.max.ms", "100"),
        ("metadata.max.age.ms", "1000", "topic.metadata.refresh.interval.ms", "1000"),
        ("metadata.max.age.ms", "0", "topic.metadata.refresh.interval.ms", "100"),
        ("metadata.max.age.ms", "86400000", "topic.metadata.refresh.interval.ms", "3600000"),
        ("group.protocol", "CONSUMER", "group.protocol", "CONSUMER"),
    ],
)
def test_a_property_has_librdkafkas_name_and_bounds(
    name: str, value: str, property_: str, becomes: str
) -> None:
    found = consumer_settings("c", {f"consumer.override.{name}": value})
    assert (dict(found.properties), found.ignored) == ({property_: becomes}, ())
    Consumer({"group.id": "g", **found.properties}).close()  # which refuses what it does not know


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"auto_offset_reset": "middle"},
            "Invalid value middle of consumer.override.auto.offset.reset",
        ),
        ({"max_poll_records": "0"}, "consumer.override.max.poll.records"),
        ({"max_poll_records": "many"}, "it must be a number above 0"),
        (
            {"session_timeout_ms": "soon"},
            "Invalid value soon of consumer.override.session.timeout.ms",
        ),
        ({"group_protocol": "raft"}, "use one of classic, consumer"),
        ({"bootstrap_servers": "elsewhere:9092"}, "name the cluster with --bootstrap-servers"),
        (
            {"ssl_keystore_location": "/x"},
            "consumer.override.ssl.keystore.location is not supported: sinks and",
        ),
        ({"sasl_jaas_config": "x"}, "in one Kafka cluster"),
        (
            {"group_protocol": "consumer", "session_timeout_ms": "6000"},
            "session.timeout.ms cannot be set when consumer.override.group.protocol=consumer",
        ),
        (
            {"group_protocol": "Consumer", "heartbeat_interval_ms": "1"},
            "heartbeat.interval.ms cannot be set",
        ),
        (
            {"group_protocol": "consumer", "partition_assignment_strategy": "cooperative-sticky"},
            "use consumer.override.group.remote.assignor",
        ),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput) as refused:
        settings(**given)
    error = refused.value
    assert message in f"{error} {error.why} {error.next_step}"


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ({"isolation_level": "read_uncommitted"}, "read_committed is used"),
        ({"enable_auto_commit": "true"}, "false is used"),
        ({"partition_assignment_strategy": "range"}, "cooperative-sticky is used"),
        ({"group_instance_id": "x"}, "each task uses its transactional id"),
        ({"interceptor_classes": "x"}, "librdkafka has no such property"),
    ],
)
def test_what_is_ignored_is_said(given: dict[str, str], note: str) -> None:
    (said,) = settings(**given).ignored
    assert re.match(r"consumer\.override\.[a-z.]+(=\S+)? is ignored: ", said)
    assert note in said
    assert settings(**given).properties == {}


def test_what_is_given_as_it_is_anyway_is_no_note() -> None:
    assert settings(isolation_level="READ_COMMITTED", enable_auto_commit="false").ignored == ()


def test_members_of_the_consumer_protocol_are_dynamic() -> None:
    assert settings(group_protocol="CONSUMER").dynamic
    assert settings(group_protocol="consumer").session_ms == SESSION_MS
    assert not settings(group_protocol="classic").dynamic


def test_a_session_lasts_for_three_gaps_between_leases() -> None:
    assert session_warning(45_000, 15.0) is None
    said = session_warning(45_000, 15.1)
    assert said is not None
    assert "15.1 s passed between two leases" in said
    assert "session.timeout.ms to 45300 or more" in said
