"""Observe a Streams application: fully for a plan, and quickly and repeatedly for a gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connectctl.ops.clients.protocols import BrokerReads, GroupReads, TransactionCalls, WorkerDriver
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.brokers import BrokerVersion
from connectctl.ops.kafka.streams_eos import BETA, PER_PARTITION, PROPERTY, V2, model_of_id
from connectctl.ops.kafka.visibility import Reason
from connectctl.ops.operations.streams_upgrade.gates import ApplicationHealth
from connectctl.ops.operations.streams_upgrade.snapshot import (
    ApplicationSnapshot,
    Instance,
    TransactionalId,
)

OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


@dataclass(frozen=True)
class ApplicationReader:
    """The clients that read and change an application."""

    application: str
    groups: GroupReads
    transactions: TransactionCalls
    brokers: BrokerReads
    driver: WorkerDriver


def observe(reader: ApplicationReader, instances: Sequence[str]) -> ApplicationSnapshot:
    """Take the snapshot of the application for a planner."""
    old, unseen = _old_brokers(reader.brokers)
    found, missing = transactional_ids(reader)
    seen = health(reader, 0.0)
    return ApplicationSnapshot(
        application=reader.application,
        group=reader.groups.group(reader.application),
        instances=tuple(_instance(reader.driver, address) for address in instances),
        ids=found,
        old_brokers=tuple(old),
        lag=seen.lag,
        unseen=(*unseen, *missing),
    )


def _instance(driver: WorkerDriver, address: str) -> Instance:
    obstacle = driver.check(address)
    try:
        reported = driver.configured(address, PROPERTY)
        changes = {
            value: driver.describe(address, PROPERTY, value) for value in (PER_PARTITION, BETA, V2)
        }
    except ConnectctlError as e:
        return Instance(address, obstacle=obstacle or str(e))
    by_hand = driver.restart_mode(address).by_hand
    return Instance(
        address,
        reported.value if reported else None,
        reported.source if reported else "",
        obstacle,
        by_hand,
        changes,
    )


def _old_brokers(brokers: BrokerReads) -> tuple[list[str], list[str]]:
    """Return messages for brokers older than 2.5, and for those whose version is unknown."""
    old, unseen = [], []
    for broker, version in sorted(brokers.versions().items()):
        if not isinstance(version, BrokerVersion):
            unseen.append(f"whether broker {broker} is 2.5 or newer: {version}")
        elif lacks := version.lacks_of_groups:
            old.append(lacks)
    return old, unseen


def transactional_ids(reader: ApplicationReader) -> tuple[tuple[TransactionalId, ...], list[str]]:
    """Return the application's transactional ids of both models, and what could not be listed."""
    listed = reader.transactions.listed(prefixes=[f"{reader.application}-"])
    found = [
        TransactionalId(each.id, each.state in OPEN)
        for each in listed.seen
        if each.id.startswith(f"{reader.application}-") and model_of_id(reader.application, each.id)
    ]
    # A list of ids with its prefix that is not proven to be complete is not a reason to stop.
    missing = [
        f"its {gap.subject}: {gap.why}"
        for gap in listed.gaps
        if gap.reason is not Reason.NOT_PROVEN
    ]
    return tuple(sorted(found, key=lambda known: known.id)), missing


def health(reader: ApplicationReader, at: float) -> ApplicationHealth:
    """Take a health snapshot of the application; a failed request becomes its ``problem``, not an
    error.
    """
    try:
        group = reader.groups.group(reader.application)
        committed = reader.groups.committed(reader.application)
        end_offsets = reader.groups.ends(list(committed)) if committed else {}
    except ConnectctlError as e:
        return ApplicationHealth(at, problem=f"cannot describe the group {reader.application}: {e}")
    lag = (
        sum(max(0, end - committed[partition]) for partition, end in end_offsets.items())
        if committed
        else None
    )
    return ApplicationHealth(at, group, lag, sum(committed.values()))
