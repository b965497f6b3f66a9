"""The cluster as a roll sees it, with what it is looked at and changed with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from connectctl.cli.commands.offsets.execution import look_at
from connectctl.cli.commands.preflight.app import check_run
from connectctl.cli.output import terminal
from connectctl.ops.checks.tasks_max.observe import look_at_cluster
from connectctl.ops.checks.types import Goal
from connectctl.ops.config import paths
from connectctl.ops.core.journal import Journal
from connectctl.ops.operations.cluster.connect_groups import is_unknown, unknown_group
from connectctl.ops.operations.offsets.target import Target
from connectctl.ops.operations.streams_upgrade.observe import ApplicationReader
from connectctl.ops.operations.upgrade import run_state
from connectctl.ops.operations.upgrade.observe import ClusterReader, members_of, observe

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.checks.tasks_max.observe import TasksSeen
    from connectctl.ops.clients.protocols import WorkerDriver
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.operations.offsets.engine import View
    from connectctl.ops.operations.offsets.key_filter import Purpose
    from connectctl.ops.operations.offsets.planning import ConnectorState
    from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot


@dataclass(frozen=True)
class Scene:
    """The cluster as it is now, and what it is looked at and changed with."""

    session: Session
    journal: Journal
    reader: ClusterReader
    driver: WorkerDriver
    snapshot: RollingSnapshot

    @property
    def where(self) -> tuple[str, str]:
        """Kafka cluster and group."""
        return self.snapshot.cluster_id, self.snapshot.group_id

    @property
    def timeout(self) -> float:
        """Seconds that the person grants one wait."""
        return self.session.timeout

    def leaving_out(self, without: Collection[str]) -> Scene:
        """The cluster without workers that are gone."""
        return replace(self, snapshot=self.snapshot.leaving_out(without))

    def findings(self, goal: str) -> Iterable[Finding]:
        """What preflight finds for a goal."""
        return check_run(self.session, [], Goal(goal), []).findings()

    def offsets(
        self, topics: Mapping[str, str | None], purposes: Mapping[str, Purpose] = MappingProxyType({})
    ) -> tuple[View | None, list[ConnectorState]]:
        """Where the offsets of connectors stand, which are the keys of ``topics``, the topics that they are to have.

        Those with one of ``purposes`` may not exist yet.
        """
        targets = [
            Target(name, None, topic, new=name in purposes, purpose=purposes.get(name))
            for name, topic in topics.items()
        ]
        looked, subjects = look_at(self.session, targets)
        return looked.view, subjects

    def tasks(self) -> TasksSeen:
        """The connectors with their tasks."""
        return look_at_cluster(self.reader.kafka, self.reader.calls, self.reader.group(), self.session.named_topics)

    def application(self, name: str) -> tuple[ApplicationReader, list[str]]:
        """What a stream application is looked at and changed with, and its instances as the context has them."""
        session = self.session
        driver, instances = session.application(name)
        return ApplicationReader(name, session.client_groups, session.transactions, session.brokers, driver), instances


def observe_cluster(session: Session, *, workers: bool = True) -> Scene:
    """The cluster as a roll sees it. Raises ``BadInput`` for a group that does not exist, unless no ``workers`` matter."""
    journal = Journal(paths.journal_directory())
    kafka = session.kafka
    group = session.group()
    last = run_state.last_workers(journal, kafka.cluster_id(), group.id)
    if workers and is_unknown(group) and last is None:
        raise unknown_group(group, session.transactions.connect_groups)
    driver = session.driver(tell)
    reader = ClusterReader(
        kafka=kafka,
        calls=session.connect_to(group),
        group_id=group.id,
        transactions=session.transactions,
        driver=driver,
        extra=tuple(session.settings.get("rest") or ()),
        remembered=dict.fromkeys(last[1], last[0]) if last else {},
    )
    known = run_state.journal_records(journal, kafka.cluster_id(), group.id, members_of(group))
    return Scene(session, journal, reader, driver, observe(reader, group, known))


def tell(line: str) -> None:
    """What a person is to do, on standard error."""
    terminal.note(line, style="bold")
