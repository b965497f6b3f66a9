"""Observes the tasks of connectors: allowed, generated and running ones (KIP-1004)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect import config_topic, release
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.connector import Connector, State, Status, requested_state
from connectctl.ops.connect.connector_class import has_reference
from connectctl.ops.connect.health import has_failed
from connectctl.ops.connect.internal_topics import Role, address
from connectctl.ops.connect.too_many_tasks import EXCEPTION
from connectctl.ops.connect.worker import Worker
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.unseen import Unseen
from connectctl.ops.kafka.records import TopicImage
from connectctl.ops.operations.cluster import observe as cluster
from connectctl.ops.operations.cluster import worker_answers
from connectctl.ops.operations.cluster.config_state import with_former
from connectctl.ops.operations.cluster.observe import ClusterView
from connectctl.ops.operations.connectors import observe as reading
from connectctl.ops.operations.connectors.observe import ConnectorHealth

PATIENCE = 2.0
"""Seconds to wait for open transactions on the config topic."""
MOST_AT_ONCE = 32
PARTLY_SEEN = ("CLUSTER002", "CLUSTER010", "SIGHT004")
"""Findings about an incomplete view."""
CONFIG_TOPIC, WORKERS = "config topic", "workers"
_RELEASE = re.compile(r"(\d{1,2})\.(\d{1,2})(\.\d+)?")
_REFUSED = re.compile(
    r" has generated (\d+) tasks, which is greater than (\d+), the maximum number of tasks"
)


class Release(NamedTuple):
    """A minor release of Kafka; patch releases change nothing about tasks.max."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def parse(cls, text: str) -> Release:
        """Return the release that the user gave. Raises ``BadInput`` for an invalid one."""
        form = _RELEASE.fullmatch(text)
        if form is None:
            raise BadInput(
                f"{text} is not a release of Kafka",
                next_step="Give it as X.Y or X.Y.Z, for example 3.8.",
            )
        return cls(int(form.group(1)), int(form.group(2)))


TASKS_MAX = Release(3, 8)
"""The first release whose workers enforce tasks.max."""


@dataclass(frozen=True)
class TasksMaxRefusal:
    """A worker's error about too many tasks; the numbers are None if the error does not contain
    them.
    """

    generated: int | None = None
    limit: int | None = None


@dataclass(frozen=True)
class TaskSet:
    """A connector and the tasks that it has generated.

    ``size`` is that of the current set: 0 for a stopped connector and for one that has never had
    tasks. ``last`` is the size of the set that it generated last, and ``last_limit`` the tasks.max
    in the configurations of those tasks; both are None if they are unknown. ``read_from`` is the
    source of the size.
    """

    health: ConnectorHealth
    size: int
    last: int | None = None
    last_limit: int | None = None
    read_from: str = WORKERS

    @property
    def name(self) -> str:
        return self.health.name

    @property
    def config(self) -> Mapping[str, str]:
        return self.health.connector.config

    @property
    def limit(self) -> int | None:
        """Return ``tasks.max`` as a worker parses it; None for an invalid value or a reference."""
        return _positive(self.config.get("tasks.max", "1"))

    @property
    def enforce(self) -> bool | None:
        """Return ``tasks.max.enforce`` as a worker parses it; None for an invalid value or a
        reference.
        """
        text = str(self.config.get("tasks.max.enforce", "true")).strip().lower()
        return {"true": True, "false": False}.get(text)

    @property
    def references(self) -> tuple[str, ...]:
        """Return those of the two properties whose value comes from a config provider of the
        worker.
        """
        values = (
            (name, str(self.config.get(name, ""))) for name in ("tasks.max", "tasks.max.enforce")
        )
        return tuple(name for name, value in values if has_reference(value))

    @property
    def refusal(self) -> TasksMaxRefusal | None:
        """Return the worker's error if the connector is FAILED because it generated too many
        tasks.
        """
        return refusal_in(self.health.connector.status)

    @property
    def refused_tasks(self) -> tuple[int, ...]:
        """Return the tasks that are FAILED because their set is too large."""
        return tuple(n for n, status in self.health.connector.tasks.items() if refusal_in(status))

    @property
    def stopped(self) -> bool:
        """Return whether STOPPED is its state or its requested state."""
        return State.STOPPED in (requested_state(self.health.connector), self.health.verdict.state)

    @property
    def too_large(self) -> bool:
        """Return whether the current set has more tasks than tasks.max."""
        return self.limit is not None and self.size > self.limit

    @property
    def too_large_on_resume(self) -> bool:
        """Return whether it is stopped, and had more tasks when it last ran than tasks.max allows
        now.
        """
        return (
            self.stopped
            and not self.size
            and self.limit is not None
            and (self.last or 0) > self.limit
        )


@dataclass(frozen=True)
class TasksSeen:
    """The observations. ``workers`` have a version if they reported one; ``missing`` are the failed
    observations.
    """

    cluster_id: str
    workers: tuple[Worker, ...]
    sets: tuple[TaskSet, ...]
    missing: tuple[Unseen, ...] = ()

    @property
    def unseen(self) -> tuple[Unseen, ...]:
        """Return the failed observations, and values that only a worker's config provider knows."""
        return (*self.missing, *(unseen for tasks in self.sets for unseen in _unresolved(tasks)))

    @property
    def releases(self) -> frozenset[Release]:
        """Return the releases that the workers report."""
        return frozenset(filter(None, map(release_of, self.workers)))

    @property
    def enforcing(self) -> tuple[str, ...]:
        """Return the addresses of the workers that enforce tasks.max."""
        return tuple(w.address for w in self.workers if enforces(release_of(w)))

    def only(self, names: Sequence[str]) -> TasksSeen:
        """Return the observations of the connectors in ``names``. Raises ``BadInput`` for one that
        does not exist.
        """
        selected = {health.name for health in reading.select([s.health for s in self.sets], names)}
        return TasksSeen(
            self.cluster_id,
            self.workers,
            tuple(s for s in self.sets if s.name in selected),
            self.missing,
        )


def _unresolved(tasks: TaskSet) -> Iterator[Unseen]:
    for name in tasks.references:
        why = f"{tasks.config[name]} is a reference that only the workers can resolve"
        yield Unseen(f"{name} of {tasks.name}", why, f"connectctl connectors show {tasks.name}")


def release_of(worker: Worker) -> Release | None:
    """Return the release that ``worker`` runs, None if it does not report it."""
    found = release.release_of(worker.version)
    return Release(*found[:2]) if found else None


def enforces(version: Release | None) -> bool:
    return version is not None and version >= TASKS_MAX


def refusal_in(status: Status | None) -> TasksMaxRefusal | None:
    """Return the error about too many tasks in a FAILED status (``TooManyTasksException``), None
    for other failures.
    """
    if status is None or not has_failed(status) or not status.trace:
        return None
    refused = _REFUSED.search(status.trace)
    if refused:
        return TasksMaxRefusal(int(refused.group(1)), int(refused.group(2)))
    return TasksMaxRefusal() if EXCEPTION in status.trace else None


def _positive(value: str) -> int | None:
    # Java's Integer.parseInt, after a trim: no underscores, no blanks inside, 32 bits.
    return whole_number(value.strip().removeprefix("+"), 2**31 - 1) or None


# ------------------------------------------------------------------------------------------ looking


def observe(view: ClusterView, kafka: KafkaReads) -> TasksSeen:
    """Return the tasks of the connectors in ``view``; their numbers are from the config topic, else
    from the workers.
    """
    unseen = [
        Unseen(f"worker {w.address}", w.problem, _next_step_for(w))
        for w in view.workers
        if w.problem
    ]
    if view.connectors_from == "nothing":
        why = next(
            (f.message for f in view.findings if f.id == "CLUSTER011"), "nothing is known of them"
        )
        unseen.append(Unseen("connectors", why.rstrip("."), "connectctl cluster show"))
    partly = (f for f in view.findings if f.id in PARTLY_SEEN)
    unseen += [
        Unseen(f"connectors ({f.subject})", f.message.rstrip("."), f.next_step) for f in partly
    ]
    topic = next((t.name for t in view.topics if t.role is Role.CONFIG), None)
    image: TopicImage | None = None
    try:
        images = kafka.image([topic], patience=PATIENCE) if topic else {}
        if topic in images:
            image = with_former(kafka, images[topic], patience=PATIENCE)
        else:
            unseen.append(_topic_unseen("the config topic", "it was not found"))
    except ConnectctlError as e:
        unseen.append(_topic_unseen(str(topic), e.why or e.what))
    sets = sets_of(view.connectors, image)
    return TasksSeen(view.cluster_id, view.workers, sets, tuple(unseen))


def _next_step_for(worker: Worker) -> str:
    return (
        "connectctl tasks check --for-version 4.0"
        if worker.without_rest
        else "connectctl cluster show"
    )


def tasks_of_cluster(
    kafka: KafkaReads, calls: ConnectCalls, group: ConnectGroup, named: Mapping[str, str | None]
) -> TasksSeen:
    """Return the tasks of a whole cluster; ``named`` are the internal topics that the user named,
    by role.
    """
    return observe(cluster.observe_cluster(kafka, calls, group, named), kafka)


def tasks_of_workers(calls: ConnectCalls) -> TasksSeen:
    """Return the tasks from the workers' REST servers alone, without a Kafka cluster."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        workers = tuple(pool.map(partial(_observe_worker, calls), calls.urls))
    connectors = reading.with_health(reading.from_workers(calls), None)
    unseen = [Unseen(f"worker {w.address}", w.problem) for w in workers if w.problem]
    why = "no brokers are named, and workers do not report how many tasks a stopped connector had"
    if any(health.verdict.state is State.STOPPED for health in connectors):
        unseen.append(_topic_unseen("the config topic", why))
    cluster_id = next((w.cluster_id for w in workers if w.cluster_id), "")
    return TasksSeen(cluster_id, workers, sets_of(connectors, None), tuple(unseen))


def _observe_worker(calls: ConnectCalls, url: str) -> Worker:
    return worker_answers.with_version(calls, Worker(address(url), url), worker_answers.PATIENCE)


def _topic_unseen(what: str, why: str) -> Unseen:
    return Unseen(
        what, why, "Name it with --config-topic, and check that this principal may read it."
    )


# ----------------------------------------------------------------------------------------- counting


def sets_of(connectors: Iterable[ConnectorHealth], image: TopicImage | None) -> tuple[TaskSet, ...]:
    """Return the connectors with their tasks; ``image`` is the config topic's, None if it was not
    read.
    """
    if image is None:
        return tuple(TaskSet(health, len(health.connector.tasks)) for health in connectors)
    state = config_topic.state_of(image)
    return tuple(
        _with_counts(
            health, state.connectors.get(health.name), _last_set(state.limits.get(health.name, {}))
        )
        for health in connectors
    )


def _with_counts(
    health: ConnectorHealth, known: ConfiguredConnector | None, last: Sequence[str | None]
) -> TaskSet:
    if known is None:  # created since the topic was read
        return TaskSet(health, len(health.connector.tasks))
    limits = {_positive(limit) for limit in last if limit is not None}
    limit = limits.pop() if len(limits) == 1 else None
    return TaskSet(health, known.task_count, len(last) or None, limit, CONFIG_TOPIC)


def _last_set(tasks: Mapping[int, tuple[int, str | None]]) -> list[str | None]:
    """Return the tasks.max of each task configuration that a connector generated last, including
    inactive ones.

    All tasks of a set are written together, the first task first, and no task configuration is ever
    deleted. So configurations that are newer than the first are of the same set, and older ones are
    left from a larger set (``KafkaConfigBackingStore.putTaskConfigs``). ``tasks`` are the offsets
    and limits of all configurations, by number.
    """
    first = tasks[0][0] if 0 in tasks else -1
    return [limit for _, (offset, limit) in sorted(tasks.items()) if 0 <= first <= offset]


def exceeds_tasks_max(connector: Connector) -> bool:
    """Return whether a connector has more tasks than its tasks.max, or is FAILED because it
    generated more.
    """
    limit = whole_number(connector.config.get("tasks.max", "1")) or 0
    return refusal_in(connector.status) is not None or len(connector.tasks) > limit > 0
