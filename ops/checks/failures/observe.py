"""Observes the connectors and tasks that are not healthy, with what their statuses retain of the
past.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.history.records import ConfigRecord, StatusRecord
from connectctl.ops.connect.config_topic import COMMIT, CONNECTOR, TARGET
from connectctl.ops.connect.connector import Connector, owners_of
from connectctl.ops.connect.health import (
    UnhealthyComponent,
    has_failed,
    part_name,
    unhealthy_components,
)


@dataclass(frozen=True)
class PartPast:
    """A connector or a task: what is wrong with it now, None if nothing, and its retained statuses,
    oldest first.

    ``asked_at`` is when its newest configuration, target state or set of tasks was written, in
    seconds since the epoch, None if unknown. ``worker`` has it by the group's assignment.
    """

    connector: str
    task: int
    now: UnhealthyComponent | None
    statuses: tuple[StatusRecord, ...] = ()
    asked_at: float | None = None
    worker: str | None = None

    @property
    def name(self) -> str:
        """Return the connector, or connector and task: ``orders/0``."""
        return part_name(self.connector, self.task)

    @property
    def failures(self) -> tuple[StatusRecord, ...]:
        """Return its retained FAILED statuses, oldest first."""
        return tuple(record for record in self.statuses if has_failed(record.status))

    @property
    def since(self) -> float | None:
        """Return since when its newest statuses have been the same state, in seconds since the
        epoch; None if its newest status has no time or it has none.
        """
        since: float | None = None
        for record in reversed(self.statuses):
            if record.state != self.statuses[-1].state:
                break
            since = record.at
        return since


@dataclass(frozen=True)
class FailureFacts:
    """The parts of the checked connectors. ``now`` is in seconds since the epoch.

    ``settled``: the group is not rebalancing, so that assignments are known. ``delay`` are the
    seconds for which parts of a lost worker wait, from the last rebalance. ``commits`` are the
    records of the config topic about each connector, oldest first.
    """

    parts: tuple[PartPast, ...]
    now: float
    settled: bool = True
    delay: float = 0.0
    records: Mapping[str, tuple[ConfigRecord, ...]] | None = None


def observe(context: CheckContext, now: float) -> FailureFacts:
    """Observe the checked connectors and their tasks; ``now`` in seconds since the epoch."""
    group = context.group
    owners = owners_of(group)
    unhealthy = {each.part: each for each in unhealthy_components(context.checked, owners)}
    parts = [
        part for connector in context.checked for part in _parts(context, connector, unhealthy)
    ]
    return FailureFacts(
        tuple(parts), now, group.settled, group.delay_ms / 1000, context.history.by_connector
    )


def _parts(
    context: CheckContext,
    connector: Connector,
    unhealthy: Mapping[tuple[str, int], UnhealthyComponent],
) -> Iterator[PartPast]:
    of_connector = context.history.by_connector.get(connector.name, ())
    asked = [record.at for record in of_connector if record.kind in (CONNECTOR, COMMIT, TARGET)]
    asked_at = max((at for at in asked if at is not None), default=None)
    for task in connector.parts:
        part = connector.name, task
        statuses = context.history.statuses.get(part, ())
        worker = (connector.assigned or {}).get(task)
        yield PartPast(*part, unhealthy.get(part), statuses, asked_at, worker)
