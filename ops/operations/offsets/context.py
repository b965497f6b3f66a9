"""The context of the steps that change source offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.connector import Owners, State, at_rest, requested_state, verdict_of
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Refused
from connectctl.ops.core.finding import counted
from connectctl.ops.core.wait import observe_until
from connectctl.ops.operations.cluster.denied_rights import denied
from connectctl.ops.operations.connectors.context import POLL, StepContext
from connectctl.ops.operations.connectors.observe import Facts, assembled, read_or_not_found
from connectctl.ops.operations.offsets.changes import CopyOffsets, OffsetRequest
from connectctl.ops.operations.offsets.engine import Engine, Local, ReadRequest, View
from connectctl.ops.operations.offsets.incomplete import check_complete

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import (
        ClusterLock,
        GroupOffsetWrites,
        KafkaWrites,
        RightsReads,
    )
    from connectctl.ops.connect.run_presence import Holder
    from connectctl.ops.core.journal import Journal, Run
    from connectctl.ops.kafka.acls import Right
    from connectctl.ops.operations.offsets.observe import Sources

SETTLING = 10.0
"""Seconds that a rebalance may hide the running tasks, or keep a connector UNASSIGNED, before a
change is refused.
"""
UNSETTLED = "its group is rebalancing, so that it is not known who runs its tasks"
ProducerEpochs = Mapping[str, tuple[int, int]]
"""Producer id and epoch by transactional id."""


@dataclass
class OffsetContext(StepContext):
    """The context of steps that change offsets. ``lock`` is the lock of the cluster, for the
    executor.
    """

    sources: Sources = field(kw_only=True)
    group_id: str = field(kw_only=True)
    others: dict[str, KafkaWrites] = field(default_factory=dict)
    engine: Engine = field(default_factory=Local)
    fenced: dict[str, ProducerEpochs] = field(default_factory=dict)
    """Producer id and epoch of the task's ids after fencing in this run, by connector."""
    origin: Callable[[CopyOffsets], Iterable[tuple[str, str]]] | None = None
    """Reads the current effective offsets of the source connector of a copy: raw keys and values as
    text.
    """
    groups: Callable[[], GroupOffsetWrites] = field(kw_only=True)
    """The client for committed offsets of consumer groups."""
    lock: ClusterLock = field(kw_only=True)
    own_rights: Callable[[], RightsReads] = field(kw_only=True)
    """The rights of this principal on the workers' cluster, as brokers report them."""

    def denied(self, rights: Iterable[Right]) -> Right | None:
        return denied(self.own_rights(), rights)

    def obstacles(self, request: OffsetRequest) -> list[str]:
        """Return the reason against ``request`` if the offsets that it copies have moved since the
        plan was made.
        """
        if not isinstance(request, CopyOffsets) or self.origin is None:
            return []
        planned, now = dict(request.entries), dict(self.origin(request))
        count = sum(planned.get(key) != now.get(key) for key in {*planned, *now})
        moved = (
            f"{counted(count, 'source partition')} of {request.source} moved since the plan "
            "was made"
        )
        return [f"{moved}: stop {request.source}, and make a new plan"] if count else []

    def view(self, request: ReadRequest) -> View:
        """Read the topics of one connector. Raises ``ConnectctlError`` if they cannot be read
        completely.
        """
        connector = request.purpose.connector
        found = self.engine.view(self.sources, [request])
        check_complete(found.topic_states[connector], connector)
        store = found.snapshot.stores.get(connector)
        if store is not None and store.bootstrap is not None and store.bootstrap not in self.others:
            self.others[store.bootstrap] = self.sources.writes(store.bootstrap, store.overrides)
        return found

    def running(self, connector: str) -> str | None:
        """Return the evidence that a task of ``connector`` may write offsets, None if none can."""
        if not self.sources.kafka.group(self.group_id).members:
            return None

        def observed() -> tuple[str | None, bool]:
            facts = self._facts()
            if facts.configured is None:
                return self._running_by_workers(connector)
            configured = facts.configured.get(connector)
            if configured is None:
                return _running_without_config(facts.owners, connector)
            found = facts.of(assembled({connector: configured}, {})[0])
            if at_rest(found):
                return None, False
            if requested_state(found) is State.STOPPED:
                # It is at rest once its tasks have left the assignment, which is unknown during a
                # rebalance.
                return (
                    "STOPPED with tasks still stopping"
                    if facts.owners
                    else f"STOPPED, and {UNSETTLED}",
                    True,
                )
            return self._verdict(facts, connector) or "not stopped", False

        return observe_until(
            observed,
            lambda evidence: not evidence[1],
            SETTLING,
            POLL,
            now=self.now,
            sleep=self.sleep,
        )[0]

    def _running_by_workers(self, connector: str) -> tuple[str | None, bool]:
        """Return the evidence of the workers alone, because the config topic cannot be read."""
        found = read_or_not_found(self.calls, connector)
        if isinstance(found, ConnectctlError) or at_rest(found):
            return None, False
        verdict = verdict_of(found)
        return str(verdict), verdict.state is State.UNASSIGNED

    def _verdict(self, facts: Facts, connector: str) -> str | None:
        """Return the verdict on the connector as text, None if no worker reports its statuses."""
        try:
            found = read_or_not_found(self.calls, connector)
        except ConnectctlError:
            return None
        if isinstance(found, ConnectctlError):
            return None
        verdict = verdict_of(facts.of(found), facts.owners)
        return str(verdict) if verdict.state is not State.STOPPED else None

    def refuse_while_running(self, connector: str) -> None:
        """Raise ``Refused`` if a task of ``connector`` may write offsets, on a worker or in a run
        of connectctl.
        """
        if state := self.running(connector):
            hint = f"connectctl connectors stop {connector} --wait"
            raise Refused(
                f"{connector} is {state}; it must be stopped while its offsets are changed",
                next_step=hint,
            )
        holders: tuple[Holder, ...] = ()
        with suppress(NotAuthorized):  # The plan relies on fencing.
            holders = self.sources.kafka.holders(self.group_id, connector)
        if holders:
            raise in_use(connector, holders)

    def kafka(self, bootstrap: str | None) -> KafkaWrites:
        """Return the client of the cluster at ``bootstrap``, of the workers' own cluster for
        None.
        """
        if bootstrap is None:
            return self.sources.writes()
        if bootstrap not in self.others:
            self.others[bootstrap] = self.sources.writes(bootstrap)
        return self.others[bootstrap]


def _running_without_config(owners: Owners | None, connector: str) -> tuple[str | None, bool]:
    """Return the evidence on a connector without a configuration: tasks of a deleted one stop after
    a delay.
    """
    if owners is None:
        return f"not configured, and {UNSETTLED}", True
    return ("deleted, and workers still run it", True) if owners.parts(connector) else (None, False)


def in_use(connector: str, holders: Sequence[Holder]) -> Refused:
    return Refused(
        f"The offsets of {connector} are not written: another connectctl run is running it",
        why="; ".join(map(str, holders)),
        next_step="Stop that run first (SIGTERM), and start it again afterwards: it resumes from "
        "the written offsets.",
        code="in-use",
    )


def change_begun(journal: Journal, run: Run, subject: str, kind: str) -> Mapping[str, Any] | None:
    """Return the planned step of ``kind`` for ``subject`` if an attempt of the run began it,
    otherwise None.
    """
    begun = {mark.step for mark in run.marks}
    steps = [step.get("inner", step) for step in journal.plan(run.id)["steps"]]
    found = (step for number, step in enumerate(steps) if number in begun)
    return next(
        (step for step in found if (step["step"], step["subject"]) == (kind, subject)), None
    )
