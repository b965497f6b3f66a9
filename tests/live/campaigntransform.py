"""A transform task of a campaign: as the launcher puts it together, it copies with each record's
place in the input.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import pyarrow as pa
from connectctl.ops.task_runtime.attempt.group_attempt import (
    FROM_RECORDS,
    group_ledger,
    transform_source,
)
from connectctl.ops.task_runtime.attempt.shared_clients import SharedClients
from connectctl.ops.task_runtime.attempt.task_kernel import task_kernel
from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
from connectctl.ops.task_runtime.group.consumer import Assigned, GroupEvent
from connectctl.ops.task_runtime.group.ledger import GroupLedger
from connectctl.ops.task_runtime.job.config_topic_records import Generation
from connectctl.ops.task_runtime.spi.delivery_settings import group_delivery
from connectctl.ops.task_runtime.spi.subscription import subscription
from connectctl.ops.task_runtime.spi.transaction_batch import TaskResult, TaskStats
from connectctl.ops.task_runtime.spi.transform import Record, Records, Transform
from live.campaignattempt import SOCKET_TIMEOUT_MS, Attempt, Telling, Told, report

SESSION_MS = 8_000
CONSUMER = {
    "session.timeout.ms": str(SESSION_MS),
    "heartbeat.interval.ms": "1000",
    "metadata.max.age.ms": "2000",
}


class Numbered(Transform):
    """Gives the offset of each record, with its partition as the key."""

    def start(self, configs: Mapping[str, str]) -> None:
        self._chance = random.Random(int(configs["seed"]))

    def process(self, records: Records) -> Any:
        time.sleep(self._chance.uniform(0.0, 0.03))
        return [Record(str(r.offset).encode(), str(r.partition).encode()) for r in records]


class NumberedColumns(Numbered):
    """The same as columns, which are written as whole batches."""

    columnar = True

    def process(self, records: Records) -> Any:
        time.sleep(self._chance.uniform(0.0, 0.03))
        table = records.arrow
        return pa.table(
            {
                "key": table["partition"].cast(pa.string()),
                "value": table["offset"].cast(pa.string()),
            }
        )


def configs_of(connector: str, source: str, target: str) -> dict[str, str]:
    """The job's configuration."""
    overrides = {f"consumer.override.{name}": value for name, value in CONSUMER.items()}
    return {"topics": source, "topic": target, **overrides}


def spec_of(
    attempt: Attempt, config: Mapping[str, str], kind: type[Transform] = Numbered
) -> TaskSpec:
    """What the launcher would give the attempt."""
    client = {"bootstrap.servers": attempt.bootstrap}
    # which is not asked: the campaign has its own
    generation = Generation("", attempt.connector, attempt.generation)
    return TaskSpec(
        attempt.group,
        attempt.connector,
        f"{__name__}:{kind.__name__}",
        config,
        generation,
        client,
        client,
        "",
        None,
        group_delivery(config),
        timeout=30,
        patience=120.0,
        subscription=subscription(attempt.connector, config),
        tasks=attempt.tasks,
    )


def run(attempt: Attempt, stopped: Callable[[], bool]) -> TaskResult:
    """The attempt, to its end, or until it is ``stopped``."""
    chance = random.Random(attempt.seed)
    columns = chance.random() < 0.5
    config = configs_of(attempt.connector, attempt.input, attempt.topic) | {
        "seed": str(attempt.seed),
        "commit.interval.ms": str(chance.choice([20, 100, 400])),
        "consumer.override.max.poll.records": str(
            FROM_RECORDS if columns else chance.choice([3, 20, 500])
        ),
        "producer.override.transaction.timeout.ms": str(attempt.timeout_ms),
    }
    spec = spec_of(attempt, config, NumberedColumns if columns else Numbered)
    shared = SharedClients(spec)
    vars(shared)["stale_because"] = attempt.stale_because
    stats = TaskStats(doubts=Telling())
    hesitate = staticmethod(lambda: time.sleep(chance.uniform(0, attempt.hesitation)))
    kind = type("Hesitant", (Told,), {"hesitate": hesitate})
    properties = {"socket.timeout.ms": str(SOCKET_TIMEOUT_MS)}
    supply = transform_source(spec, attempt.task, config, stats)
    with (
        closing(group_ledger(spec, shared, attempt.task, stats, stopped)) as ledger,
        closing(supply),
    ):
        tell_of(ledger)
        return task_kernel(
            spec, shared, attempt.task, properties, stopped, stats, kind, ledger
        ).run(supply)


def tell_of(ledger: GroupLedger) -> None:
    """Report where its members begin."""
    opened = vars(ledger)["_open_member"]

    def telling() -> Any:
        member = opened()
        poll = member.poll

        def told(seconds: float, most: int) -> GroupEvent:
            event: GroupEvent = poll(seconds, most)
            if isinstance(event, Assigned):
                begin = {str(at): each.offset for at, each in sorted(event.positions.items())}
                report("reads", to=begin, known="committed")
            return event

        vars(member)["poll"] = told
        return member

    vars(ledger)["_open_member"] = telling
