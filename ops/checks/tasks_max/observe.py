"""What is seen of connectors' tasks: how many they may have, how many they have generated, how many run (KIP-1004)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from connectctl.ops.checks.types import Unseen
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
from connectctl.ops.kafka.records import TopicImage
from connectctl.ops.operations.cluster import observe as cluster
from connectctl.ops.operations.cluster.config_state import with_former
from connectctl.ops.operations.cluster.observe import ClusterView
from connectctl.ops.operations.connectors import observe as reading
from connectctl.ops.operations.connectors.observe import ConnectorHealth

PATIENCE = 2.0
"""Seconds to wait for open transactions on the config topic."""
ANSWER = 3.0
"""Seconds that one worker may take to tell its version."""
MOST_AT_ONCE = 32
PARTLY_SEEN = ("CLUSTER002", "CLUSTER010", "SIGHT004")
"""Findings about a view that is not whole."""
CONFIG_TOPIC, WORKERS = "config topic", "workers"
_RELEASE = re.compile(r"(\d{1,2})\.(\d{1,2})(\.\d+)?")
_REFUSED = re.compile(r" has generated (\d+) tasks, which is greater than (\d+), the maximum number of tasks")


class Release(NamedTuple):
    """A minor release of Kafka; patches change nothing about tasks.max."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def parse(cls, text: str) -> Release:
        """The release that a person gave. Raises ``BadInput`` for what is none."""
        form = _RELEASE.fullmatch(text)
        if form is None:
            raise BadInput(f"{text} is not a release of Kafka", next_step="Give it as X.Y or X.Y.Z, for example 3.8.")
        return cls(int(form.group(1)), int(form.group(2)))


TASKS_MAX = Release(3, 8)
"""The first release whose workers enforce tasks.max."""


@dataclass(frozen=True)
class TasksMaxRefusal:
    """A worker's complaint of too many tasks; the numbers are None where it does not give them."""

    generated: int | None = None
    limit: int | None = None


@dataclass(frozen=True)
class TaskSet:
    """A connector and the tasks that it has generated.

    ``size`` is that of the set which is in force: 0 for a stopped connector and for one that has never got any.
    ``last`` is the size of the set that it generated last, and ``last_limit`` the tasks.max that is in those tasks' own
    configurations; both None where that cannot be seen. ``read_from`` says who told the size.
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
        """``tasks.max`` as a worker reads it; None for a value that no worker takes, or that is a reference."""
        return _positive(self.config.get("tasks.max", "1"))

    @property
    def enforce(self) -> bool | None:
        """``tasks.max.enforce`` as a worker reads it; None for a value that no worker takes, or that is a reference."""
        said = str(self.config.get("tasks.max.enforce", "true")).strip().lower()
        return {"true": True, "false": False}.get(said)

    @property
    def references(self) -> tuple[str, ...]:
        """Those of the two properties whose value a config provider of the worker gives."""
        given = ((name, str(self.config.get(name, ""))) for name in ("tasks.max", "tasks.max.enforce"))
        return tuple(name for name, value in given if has_reference(value))

    @property
    def refusal(self) -> TasksMaxRefusal | None:
        """Why the connector is FAILED, where that is because it generated too many tasks."""
        return refusal_in(self.health.connector.status)

    @property
    def refused_tasks(self) -> tuple[int, ...]:
        """The tasks that are FAILED because the set they belong to is too large."""
        return tuple(n for n, status in self.health.connector.tasks.items() if refusal_in(status))

    @property
    def stopped(self) -> bool:
        """Whether it is, or is asked to be, STOPPED."""
        return State.STOPPED in (requested_state(self.health.connector), self.health.verdict.state)

    @property
    def too_large(self) -> bool:
        """Whether the set that is in force has more tasks than tasks.max."""
        return self.limit is not None and self.size > self.limit

    @property
    def too_large_on_resume(self) -> bool:
        """Whether it is stopped, and had more tasks when it last ran than tasks.max allows now."""
        return self.stopped and not self.size and self.limit is not None and (self.last or 0) > self.limit


@dataclass(frozen=True)
class TasksSeen:
    """All that was seen. ``workers`` have a version where they told one; ``missing`` is what could not be looked at."""

    cluster_id: str
    workers: tuple[Worker, ...]
    sets: tuple[TaskSet, ...]
    missing: tuple[Unseen, ...] = ()

    @property
    def unseen(self) -> tuple[Unseen, ...]:
        """What could not be looked at, and values that only a worker's config provider knows."""
        return (*self.missing, *(unseen for tasks in self.sets for unseen in _unresolved(tasks)))

    @property
    def releases(self) -> frozenset[Release]:
        """The releases that the workers run, as far as they tell."""
        return frozenset(filter(None, map(release_of, self.workers)))

    @property
    def enforcing(self) -> tuple[str, ...]:
        """The addresses of the workers that enforce tasks.max."""
        return tuple(w.address for w in self.workers if enforces(release_of(w)))

    def only(self, names: Sequence[str]) -> TasksSeen:
        """The same with only the connectors called ``names``. Raises ``BadInput`` for one that does not exist."""
        picked = {each.name for each in reading.select([s.health for s in self.sets], names)}
        return TasksSeen(self.cluster_id, self.workers, tuple(s for s in self.sets if s.name in picked), self.missing)


def _unresolved(tasks: TaskSet) -> Iterator[Unseen]:
    for name in tasks.references:
        why = f"{tasks.config[name]} is a reference that only the workers can resolve"
        yield Unseen(f"{name} of {tasks.name}", why, f"connectctl connectors show {tasks.name}")


def release_of(worker: Worker) -> Release | None:
    """The release that ``worker`` runs, None where it does not report it."""
    found = release.release_of(worker.version)
    return Release(*found[:2]) if found else None


def enforces(version: Release | None) -> bool:
    return version is not None and version >= TASKS_MAX


def refusal_in(status: Status | None) -> TasksMaxRefusal | None:
    """What a FAILED status says of too many tasks (``TooManyTasksException``), None where it failed otherwise."""
    if status is None or not has_failed(status) or not status.trace:
        return None
    refused = _REFUSED.search(status.trace)
    if refused:
        return TasksMaxRefusal(int(refused.group(1)), int(refused.group(2)))
    return TasksMaxRefusal() if EXCEPTION in status.trace else None


def _positive(value: str) -> int | None:
    # Java's Integer.parseInt, after a trim: no underscores, no blanks inside, 32 bits.
    return whole_number(value.strip().removeprefix("+"), 2**31 - 1) or None


# --------------------------------------------------------------------------------------------------------------- looking


def look(view: ClusterView, kafka: KafkaReads) -> TasksSeen:
    """The tasks of the connectors in ``view``; their sizes from the config topic, else as the workers tell them."""
    unseen = [Unseen(f"worker {w.address}", w.problem, _way_out(w)) for w in view.workers if w.problem]
    if view.connectors_from == "nothing":
        why = next((f.message for f in view.findings if f.id == "CLUSTER011"), "nothing is known of them")
        unseen.append(Unseen("connectors", why.rstrip("."), "connectctl cluster show"))
    partly = (f for f in view.findings if f.id in PARTLY_SEEN)
    unseen += [Unseen(f"connectors ({f.subject})", f.message.rstrip("."), f.next_step) for f in partly]
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


def _way_out(worker: Worker) -> str:
    return "connectctl tasks check --for-version 4.0" if worker.without_rest else "connectctl cluster show"


def look_at_cluster(
    kafka: KafkaReads, calls: ConnectCalls, group: ConnectGroup, named: Mapping[str, str | None]
) -> TasksSeen:
    """The same of a whole cluster; ``named`` are the internal topics that the person named, by role."""
    return look(cluster.observe_cluster(kafka, calls, group, named), kafka)


def look_at_workers(calls: ConnectCalls) -> TasksSeen:
    """The same from the workers' REST servers alone, where no Kafka cluster is named."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        workers = tuple(pool.map(lambda url: _ask(calls, url), calls.urls))
    found = reading.with_health(reading.from_workers(calls), None)
    unseen = [Unseen(f"worker {w.address}", w.problem) for w in workers if w.problem]
    why = "no brokers are named, and workers do not report how many tasks a stopped connector had"
    if any(j.verdict.state is State.STOPPED for j in found):
        unseen.append(_topic_unseen("the config topic", why))
    cluster_id = next((w.cluster_id for w in workers if w.cluster_id), "")
    return TasksSeen(cluster_id, workers, sets_of(found, None), tuple(unseen))


def _ask(calls: ConnectCalls, url: str) -> Worker:
    try:
        root = calls.get("/", url=url, timeout=ANSWER)
    except ConnectctlError as e:
        return Worker(address(url), url, problem=e.why or e.what)
    return Worker(address(url), url, version=root.get("version"), cluster_id=root.get("kafka_cluster_id"))


def _topic_unseen(what: str, why: str) -> Unseen:
    return Unseen(what, why, "Name it with --config-topic, and check that this principal may read it.")


# -------------------------------------------------------------------------------------------------------------- counting


def sets_of(connectors: Iterable[ConnectorHealth], image: TopicImage | None) -> tuple[TaskSet, ...]:
    """The connectors with their tasks; ``image`` is the config topic's, None where it was not read."""
    if image is None:
        return tuple(TaskSet(health, len(health.connector.tasks)) for health in connectors)
    state = config_topic.state_of(image)
    return tuple(
        _counted(health, state.connectors.get(health.name), _last_set(state.limits.get(health.name, {})))
        for health in connectors
    )


def _counted(health: ConnectorHealth, known: ConfiguredConnector | None, last: Sequence[str | None]) -> TaskSet:
    if known is None:  # created since the topic was read
        return TaskSet(health, len(health.connector.tasks))
    limits = {_positive(limit) for limit in last if limit is not None}
    asked = limits.pop() if len(limits) == 1 else None
    return TaskSet(health, known.task_count, len(last) or None, asked, CONFIG_TOPIC)


def _last_set(tasks: Mapping[int, tuple[int, str | None]]) -> list[str | None]:
    """The tasks.max in each task configuration that a connector generated last, also where they are in force no more.

    All tasks of a set are written in one go, the first task first, and none is ever deleted: what is newer than the first
    is of the same set, and what is older is left from a larger one (``KafkaConfigBackingStore.putTaskConfigs``).
    ``tasks`` are the offsets and limits of all that there are, by number.
    """
    first = tasks[0][0] if 0 in tasks else -1
    return [limit for _, (offset, limit) in sorted(tasks.items()) if 0 <= first <= offset]


def exceeds_tasks_max(connector: Connector) -> bool:
    """Whether a connector has more tasks than its tasks.max, or wanted more and is FAILED for that."""
    limit = whole_number(connector.config.get("tasks.max", "1")) or 0
    return refusal_in(connector.status) is not None or len(connector.tasks) > limit > 0
