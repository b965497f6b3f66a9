"""Hands a connector back to its live workers, in the run that took it over or after that run was
killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from connectctl.ops.clients.kafka_protocol.run_presence import Presence
from connectctl.ops.clients.protocols import Clients, TransactionCalls
from connectctl.ops.connect.connector import State, requested_state
from connectctl.ops.core.context import RunContext
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
from connectctl.ops.operations.connectors.access import observed_cluster
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.steps import WANTED, Await, SetTargetState
from connectctl.ops.operations.fencing.batch_fencer import fence_ids
from connectctl.ops.operations.fencing.observe import FencingSources, observe
from connectctl.ops.operations.fencing.snapshot import FenceRequest
from connectctl.ops.operations.transactions.sources import sources_of
from connectctl.ops.task_runtime.job import environment
from connectctl.ops.task_runtime.job.generation import check_fenced
from connectctl.ops.task_runtime.task.retries import NO_RETRIES, RetryPolicy


class WorkersContext(RunContext):
    """The base of the contexts of the step that hands a connector back."""

    @property
    def retries(self) -> RetryPolicy:
        """The policy for requests without a response."""
        return NO_RETRIES

    def workers(self) -> StepContext:
        """Return the context of steps on the workers, with the clock of this one."""
        raise NotImplementedError

    def calls(self) -> TransactionCalls:
        """Return the client of the transaction coordinators of the run's tasks."""
        raise NotImplementedError

    def ids(self) -> Sequence[str]:
        """Return the transactional ids that tasks of the run may still use."""
        raise NotImplementedError

    def taken_back(self, name: str) -> str | None:
        """Return the state of the connector if its workers have it again, else None."""
        workers = self.workers()
        state = self.retries(
            f"read the state of {name}", lambda: requested_state(workers.read(name))
        )
        return None if state is State.STOPPED else f"handed back to its workers (state {state})"

    def hand_back(self, name: str, verb: str) -> str | None:
        """Fence the ids, then resume or pause the connector on its workers (``verb``)."""
        workers, ids = self.workers(), self.ids()

        def fence() -> None:
            failed = fence_ids(self.calls(), ids, workers.timeout)
            check_fenced(failed, f"the {len(ids)} transactional ids of tasks of {name}")

        self.retries("fence its tasks", fence)
        self.retries(
            f"{verb} {name} on its workers",
            lambda: SetTargetState(name, verb).apply(workers),
        )
        return Await(name, WANTED[verb]).apply(workers)


@dataclass(kw_only=True)
class KilledRunContext(WorkersContext):
    """The context of a hand-back after the run of the connector ``name`` was killed."""

    clients: Clients
    name: str

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Prevent runs of the connector in the context. Raises ``Refused`` while one is alive."""
        with alone(self.clients, self.name):
            yield

    def workers(self) -> StepContext:
        cluster = observed_cluster(self.clients)
        journal = self.clients.journal()
        return StepContext(
            cluster.calls, patience(self.clients), facts=cluster.facts, journal=journal
        ).within(self)

    @cached_property
    def _request(self) -> FenceRequest:
        return FenceRequest(connectors=(self.name,))

    @cached_property
    def _sources(self) -> FencingSources:
        return sources_of(self.clients, self._request)

    def calls(self) -> TransactionCalls:
        return self._sources.calls

    def ids(self) -> Sequence[str]:
        return observe(self._sources, self._request).ids


@contextmanager
def alone(clients: Clients, name: str) -> Iterator[None]:
    """Prevent runs of the connector in the context. Raises ``Refused`` while one is alive."""
    kafka: Any = clients.kafka
    group = kafka.group(clients.group_id)
    topics = find_internal_topics(kafka, group, clients.named_topics, needed=("config",))
    presence = Presence(kafka, group.id, name, str(topics.config))
    presence.hold_alone(patience(clients))
    try:
        yield
    finally:
        presence.leave()


def patience(clients: Clients) -> float:
    """Return the seconds for a connector to start on its workers."""
    return max(clients.timeout, environment.LEAST_PATIENCE)
