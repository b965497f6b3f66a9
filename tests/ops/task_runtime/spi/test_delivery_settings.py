"""A connector's producer properties in librdkafka's terms, and what cannot be overridden."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.spi.delivery_settings import (
    check,
    delivery_settings,
    group_delivery,
    sink_delivery,
    target_cluster,
)


@pytest.mark.parametrize(
    ("config", "boundary", "interval", "timeout"),
    [
        ({}, Boundary.POLL, 60, 15_000),
        ({"transaction.boundary": "POLL"}, Boundary.POLL, 60, 15_000),
        ({"transaction.boundary": "interval"}, Boundary.INTERVAL, 60, 75_000),
        (
            {"transaction.boundary": "Interval", "transaction.boundary.interval.ms": "2000"},
            Boundary.INTERVAL,
            2,
            17_000,
        ),
        ({"transaction.boundary": "connector"}, Boundary.CONNECTOR, 60, 60_000),
        ({"producer.override.transaction.timeout.ms": "30000"}, Boundary.POLL, 60, 30_000),
    ],
)
def test_a_transaction_has_as_much_time_as_its_boundary_needs(
    config: dict[str, str], boundary: Boundary, interval: float, timeout: int
) -> None:
    found = delivery_settings(config)
    assert (found.boundary, found.interval, found.timeout_ms) == (boundary, interval, timeout)


def test_properties_with_an_equal_are_carried_over() -> None:
    found = delivery_settings(
        {
            "producer.override.request.timeout.ms": "5",
            "producer.override.compression.type": "zstd",
            "producer.override.max.request.size": "2000000",
            "producer.override.security.protocol": "SSL",
            "producer.override.bootstrap.servers": "other:9092",
        }
    )
    assert found.properties == {
        "request.timeout.ms": "5",
        "compression.type": "zstd",
        "message.max.bytes": "2000000",
    }
    assert (found.security, found.bootstrap, found.ignored) == (
        {"security.protocol": "SSL"},
        "other:9092",
        (),
    )


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        (
            "transactional.id",
            "mine",
            "The value 'mine' for the 'transactional.id' property will be ignored as it cannot be "
            "overridden for connectors when exactly-once source support is enabled.",
        ),
        ("enable.idempotence", "false", "The value 'true' will be used instead."),
        ("acks", "1", "The value 'all' will be used instead."),
        ("partitioner.class", "mine", "The value 'murmur2' will be used instead."),
        ("interceptor.classes", "mine", "has no effect with exactly-once delivery"),
        ("linger.ms", "5", "has no effect with exactly-once delivery"),
        ("delivery.timeout.ms", "5", "the transactional producer has no such property."),
    ],
)
def test_what_cannot_be_overridden_is_said(name: str, value: str, says: str) -> None:
    (line,) = delivery_settings({f"producer.override.{name}": value}).ignored
    assert says in line


def test_at_least_once_librdkafka_says_what_it_does_not_know() -> None:
    given = {"producer.override.interceptor.classes": "mine", "producer.override.linger.ms": "5"}
    told = delivery_settings({"exactly.once.source.support": "disabled"} | given).ignored
    assert [line for line in told if "producer.override" in line] == [
        "producer.override.interceptor.classes is ignored: librdkafka has no such property."
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable.idempotence", "true"),
        ("acks", "all"),
        ("acks", "-1"),
        ("batch.size", "5"),
        ("client.id", "c"),
        ("compression.type", "lz4"),
        ("max.request.size", "5000000"),
        ("request.timeout.ms", "5000"),
        ("transaction.timeout.ms", "5000"),
    ],
)
def test_what_is_so_in_any_case_is_not_worth_a_word(name: str, value: str) -> None:
    assert delivery_settings({f"producer.override.{name}": value}).ignored == ()


@pytest.mark.parametrize(
    ("value", "strict"), [("true", True), ("TRUE", True), ("false", False), (None, False)]
)
def test_strict_mode_is_a_property_of_the_connector(value: str | None, strict: bool) -> None:
    assert (
        delivery_settings({} if value is None else {"epoch.per.transaction": value}).strict
        is strict
    )


def test_families_of_properties_that_have_no_effect_are_told_once_each() -> None:
    found = delivery_settings(
        {
            "topic.creation.default.partitions": "3",
            "topic.creation.default.replication.factor": "1",
            "consumer.override.fetch.min.bytes": "1",
            "admin.override.client.id": "a",
        }
    ).ignored
    assert [line.partition(" no effect here")[0].rpartition(" ")[0] for line in found] == [
        "topic.creation.default.partitions, topic.creation.default.replication.factor",
        "consumer.override.fetch.min.bytes",
        "admin.override.client.id",
    ]


def test_without_exactly_once_offsets_are_flushed_at_the_workers_interval_and_boundaries_have_no_effect() -> (
    None
):
    found = delivery_settings(
        {
            "exactly.once.source.support": "preparing",
            "offset.flush.interval.ms": "2500",
            "transaction.boundary": "interval",
            "transaction.boundary.interval.ms": "100",
            "epoch.per.transaction": "true",
        }
    )
    assert (found.exactly_once, found.interval, found.strict) == (False, 2.5, False)
    assert "at-least-once delivery" in found.ignored[0]
    assert found.ignored[1].startswith(
        "transaction.boundary, transaction.boundary.interval.ms, epoch.per.transaction"
    )


def test_a_promised_latency_is_in_seconds_and_its_transactions_time_out_a_while_behind_it() -> None:
    found = delivery_settings({"transaction.boundary.latency.ms": "250"})
    assert (found.latency, found.boundary, found.timeout_ms) == (0.25, Boundary.POLL, 15_250)
    assert delivery_settings({}).latency is None


def test_without_exactly_once_no_latency_is_promised_and_it_is_said() -> None:
    found = delivery_settings(
        {"exactly.once.source.support": "disabled", "transaction.boundary.latency.ms": "250"}
    )
    assert found.latency is None
    assert "transaction.boundary.latency.ms has no effect without exactly-once." in found.ignored


def test_a_transform_and_a_sink_are_told_that_a_promised_latency_is_for_sources() -> None:
    config = {"transaction.boundary.latency.ms": "250"}
    for found in (group_delivery(config), sink_delivery(config, exactly_once=True)):
        assert found.latency is None
        assert (
            "transaction.boundary.latency.ms has no effect here: it is for source connectors."
            in found.ignored
        )


def test_the_flush_interval_is_that_of_transactions_where_none_is_given() -> None:
    assert (
        delivery_settings(
            {"transaction.boundary": "interval", "offset.flush.interval.ms": "2500"}
        ).interval
        == 2.5
    )


@pytest.mark.parametrize(
    ("name", "value"), [("batch.size", "0"), ("linger.ms", "soon"), ("compression.type", "zip")]
)
def test_values_that_librdkafka_does_not_take_are_bad_input_by_their_java_names(
    name: str, value: str
) -> None:
    with pytest.raises(
        BadInput, match=rf"producer\.override\.{name}={value} is not supported by librdkafka"
    ):
        check(delivery_settings({f"producer.override.{name}": value}))


def test_values_that_librdkafka_takes_are_fine() -> None:
    check(
        delivery_settings(
            {"producer.override.linger.ms": "5", "producer.override.max.request.size": "2000000"}
        )
    )


@pytest.mark.parametrize(
    ("config", "target"),
    [
        ({}, None),
        # the same servers in another order
        ({"producer.override.bootstrap.servers": "b:2,a:1"}, None),
        ({"producer.override.linger.ms": "5"}, None),
        ({"producer.override.bootstrap.servers": "c:3"}, "c:3"),
        # as Connect compares them: as sets of texts
        ({"producer.override.bootstrap.servers": "a:1"}, "a:1"),
        # another principal on the same servers
        ({"producer.override.sasl.jaas.config": "x"}, "a:1,b:2"),
        ({"consumer.override.bootstrap.servers": "c:3"}, None),
    ],
)
def test_a_connector_writes_elsewhere_by_other_servers_or_as_another_principal(
    config: dict[str, str], target: str | None
) -> None:
    found = target_cluster(config, "a:1,b:2")
    assert (found and found[0]) == target
    if found:
        assert found[1] == {k.removeprefix("producer.override."): v for k, v in config.items()}


@pytest.mark.parametrize(
    ("guarantee", "once"),
    [({}, True), ({"guarantee": "exactly-once"}, True), ({"guarantee": "at-least-once"}, False)],
)
def test_the_guarantee_of_a_transform_says_what_producers_its_tasks_have(
    guarantee: dict[str, str], once: bool
) -> None:
    assert group_delivery(guarantee).exactly_once is once


@pytest.mark.parametrize(
    "lines",
    [
        lambda config: delivery_settings(config).ignored,
        lambda config: group_delivery(config).ignored,
        lambda config: sink_delivery(config, exactly_once=False).ignored,
    ],
)
def test_records_that_are_dropped_silently_are_told_of(
    lines: Callable[[dict[str, str]], tuple[str, ...]],
) -> None:
    (line,) = lines({"errors.tolerance": "all"})
    assert "dropped silently" in line
    for more in ({"errors.deadletterqueue.topic.name": "bad"}, {"errors.log.enable": "true"}):
        assert lines({"errors.tolerance": "all", **more}) == ()
    assert lines({}) == ()
