"""Audits and clusters whose pages have everything on them, and as much of it as there may be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from connectctl.cli.views import doctor_html
from connectctl.cli.views.html_origin import PageOrigin
from connectctl.ops.audit import field_extractor
from connectctl.ops.audit.plan import AuditRequest
from connectctl.ops.audit.scan import PartTotals
from connectctl.ops.audit.sequences import SourceTotals
from connectctl.ops.audit.summary import Summary
from connectctl.ops.audit.verdict import Audit, findings_of
from connectctl.ops.audit.violations import KINDS, Violation
from connectctl.ops.checks.runner import doctor_run
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.connector import Connector, State, Status, Verdict
from connectctl.ops.connect.worker import Support, Worker
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.operations.cluster.observe import ClusterView, InternalTopic
from connectctl.ops.operations.connectors.observe import ConnectorHealth
from fakes.kafkareads import FakeKafka, connect_group
from fakes.session import FakeSession
from fakes.workers import FakeConnector, FakeWorkers

NOON = 1_700_000_000_000
HOUR = 3600
CONFIG = {"connector.class": "x.y.Source"}
LONG = "inventory.public.order_line_items_with_a_very_long_name_that_somebody_chose_in_2016"
ORIGIN = PageOrigin(
    (
        "connectctl",
        "audit",
        "orders",
        "payments",
        "--sequence",
        "'$.seq'",
        "--by",
        "'$.task'",
        "--html",
        "orders.html",
    ),
    NOON / 1000,
    "MkU3OEVBNTcwNTJENDM2Qk",
    ("brokers 1, 2, 3: protocol of Kafka 4.1 (metadata.version 27, transaction.version 2)",),
    "prod",
    "kafka-1.example.com:9092,kafka-2.example.com:9092",
)


def audited(
    buckets: int = 40, topic: str = "orders", source: str = LONG, detail: str = "", bad: bool = True
) -> Audit:
    """An audit with this many slots of time, and violations of every kind where it is ``bad``."""
    summary = Summary()
    summary.reads = {}
    for partition in range(3):
        summary.add(PartTotals(topic, partition, 0, 10_000, 10_000, 420, 12, 40, 3))
    summary.totals.transactions |= {"committed": 12_345, "aborted": 17, "open": 1}
    summary.totals.records |= {"committed": 1_234_567, "aborted": 1_700, "open": 5}
    for power, count in ((0, 4), (1, 9), (2, 40), (3, 1200), (6, 800), (7, 3), (12, 1)):
        summary.totals.sizes.add(1 << power, count)
    first = NOON // 1000
    summary.totals.timeline.slots = {
        first + n: {
            "committed": 1 + (n * 7919) % 97,
            **({"aborted": n % 5} if bad and n % 9 == 0 else {}),
        }
        for n in range(buckets)
    }
    if bad:
        for kind in KINDS:
            for n in range(6):
                when = NOON + n * 7_000
                summary.add(
                    Violation(kind, source, topic, 0, 90 + n, 17, 1, 9, 9, when, 5012, 3, detail)
                )
        summary.add(SourceTotals(topic, source, 10_000, 54, 54, 3, 54, 54, 0, 9_999))
        summary.add(
            SourceTotals(topic, f"{source} of another table", 10_000, lowest=0, highest=9_999)
        )
    sequence, by = field_extractor.sequence_spec("$.seq"), field_extractor.by_spec("$.task")
    found = Audit(
        "MkU3OEVBNTcwNTJENDM2Qk", AuditRequest((topic,), sequence, by), summary, NOON / 1000
    )
    return replace(found, findings=findings_of(found))


def connector(
    name: str, state: State = State.RUNNING, tasks: int = 3, more: Mapping[str, str] | None = None
) -> ConnectorHealth:
    """A connector on worker one; of a FAILED or DEGRADED one its first task has failed."""
    broken = state in (State.FAILED, State.DEGRADED)
    cause = (
        "org.apache.kafka.connect.errors.ConnectException: Could not connect to "
        "orders-db.example.com:5432"
    )
    statuses = {
        n: Status(
            "FAILED" if broken and n == 0 else "RUNNING",
            "worker-one.example.com:8083",
            cause if broken else None,
        )
        for n in range(tasks)
    }
    all_of_it = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "name": name,
    } | dict(more or {})
    verdict = Verdict(
        state,
        f"1 of {tasks} tasks failed" if broken else "",
        cause if broken else None,
        tasks - broken,
    )
    known = Connector(
        name, Status("RUNNING", "worker-one.example.com:8083"), statuses, all_of_it, "source"
    )
    return ConnectorHealth(
        known, verdict, ("worker-one.example.com:8083", "worker-two.example.com:8083")
    )


def cluster(*connectors: ConnectorHealth, findings: tuple[Finding, ...] = ()) -> ClusterView:
    """A cluster of three workers, one of which is silent; a topic of it was not found."""
    workers = (
        Worker("worker-one.example.com:8083", "http://worker-one.example.com:8083", True, "4.1.0", None, Support.ENABLED,
               connectors=3, tasks=7, config_offset=1204),
        Worker("worker-two.example.com:8083", "http://worker-two.example.com:8083", False, "4.0.1", None,
               Support.NOT_ENABLED, connectors=1, tasks=4, config_offset=1204),
        Worker("worker-three.example.com:8083", "http://worker-three.example.com:8083",
               problem="it did not answer within 3 s", config_offset=1199),
    )  # fmt: skip
    facts = TopicFacts("connect-configs", 1, {0: 3}, {0: 3}, {"cleanup.policy": "compact"})
    deleted = TopicFacts(
        "connect-offsets", 25, dict.fromkeys(range(25), 3), dict.fromkeys(range(25), 2), {}
    )
    topics = (
        InternalTopic("config", "connect-configs", facts),
        InternalTopic("offsets", "connect-offsets", deleted),
        InternalTopic("status"),
    )
    seen = (
        Finding("CLUSTER004", Severity.WARNING, "worker-three.example.com:8083",
                "This worker is in the group, but its REST server cannot be used: it did not "
                "answer within 3 s.",
                "Check rest.advertised.host.name, listeners and firewalls."),
        Finding("CLUSTER005", Severity.WARNING, "workers", "They run different versions: 4.0.1 on 1, 4.1.0 on 1."),
        Finding("TOPIC002", Severity.ERROR, "status topic", "No topic has its records."),
        Finding("TOPIC005", Severity.WARNING, "connect-offsets", "25 of 25 partitions are under-replicated.",
                "Look at the brokers."),
        *findings,
    )  # fmt: skip
    group = connect_group("connect-prod", one=[("orders", -1)])
    return ClusterView(
        "MkU3OEVBNTcwNTJENDM2Qk", group, workers, topics, connectors, "workers", seen
    )


def nothing() -> ClusterView:
    """A cluster of which nothing could be seen."""
    group = ConnectGroup("connect-prod", "Dead", "", ())
    return ClusterView("MkU3OEVBNTcwNTJENDM2Qk", group, (), tuple(map(InternalTopic, ("config", "offsets", "status"))), (),
                       "nothing", ())  # fmt: skip


def busy() -> ClusterView:
    """What a hand-over is made of: connectors in every state, sinks and sources."""
    sink = connector("warehouse-sink")
    sink = replace(sink, connector=replace(sink.connector, type="sink"))
    return cluster(
        connector("orders"),
        connector("payments", State.DEGRADED, 3, {"offsets.storage.topic": "payments-offsets"}),
        connector(LONG, State.FAILED, 1),
        connector("audit-log", State.PAUSED),
        connector("old-inventory", State.STOPPED, 0),
        sink,
        findings=(
            Finding(
                "CLUSTER012",
                Severity.WARNING,
                "orders",
                "It is assigned to a worker that has not reported.",
            ),
        ),
    )


def doctored(connectors: int = 3, tasks: int = 4, name: str = "orders") -> str:
    """The page of ``doctor`` about connectors that failed, were paused and ran within twenty hours."""
    names = [f"{name}-{n}" for n in range(connectors)]
    config: list[ConsumerRecord] = []
    status: list[ConsumerRecord] = []
    offsets: list[ConsumerRecord] = []

    def write(log: list[ConsumerRecord], key: str, value: object, at: float) -> None:
        data = json.dumps(value).encode()
        log.append(ConsumerRecord(key.encode(), data, 0, len(log), int(at * 1000)))

    now = NOON / 1000
    for each in names:
        write(config, f"connector-{each}", {"properties": CONFIG}, now - 20 * HOUR)
        for task in range(tasks):
            write(config, f"task-{each}-{task}", {"properties": CONFIG}, now - 20 * HOUR)
        write(config, f"commit-{each}", {"tasks": tasks}, now - 20 * HOUR)
        for hour, state in ((20, "RUNNING"), (6, "PAUSED"), (5, "RUNNING"), (1, "FAILED")):
            for task in range(tasks):
                told = {"state": state, "trace": None, "worker_id": "one:8083", "generation": hour}
                if state == "FAILED":
                    told["trace"] = f"java.io.IOException: {LONG} is full"
                write(status, f"status-task-{each}-{task}", told, now - hour * HOUR + task)
        for minute in range(0, 19 * 60, 20):
            write(
                offsets, json.dumps([each, {"t": 1}]), {"n": minute}, now - 20 * HOUR + minute * 60
            )
    owners = [(each, task) for each in names for task in (-1, *range(tasks))]
    kafka = FakeKafka(
        {"cfg": config, "off": offsets, "sta": status, "__consumer_offsets": []},
        groups={"connect": connect_group("connect", one=owners)},
    )
    failed = FakeConnector(tasks=["FAILED"] * tasks, config=CONFIG)
    told = {"topics.config": "cfg", "topics.offsets": "off", "topics.status": "sta"}
    workers = FakeWorkers({each: replace(failed) for each in names})
    run = doctor_run(FakeSession(told=told, reads=kafka, calls=workers), (), now)
    return doctor_html.page(run, run.findings(), ORIGIN)
