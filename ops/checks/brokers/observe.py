"""What transactions need of the brokers: versions, features, settings, ``__transaction_state``. Looked at, not judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.types import Goal, Unseen, answer_of, reason
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.offset_store import client_bootstrap, connects_to
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.brokers import BrokerVersion
from connectctl.ops.kafka.topics import TopicFacts

TRANSACTION_STATE = "__transaction_state"
MAX_TIMEOUT, EXPIRATION = "transaction.max.timeout.ms", "transactional.id.expiration.ms"
LOG_REPLICAS, LOG_MIN_ISR = "transaction.state.log.replication.factor", "transaction.state.log.min.isr"
VERIFICATION = "transaction.partition.verification.enable"
CLEANUP = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
LEAST, MOST = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
BOUNDS = (LEAST, MOST)
SETTINGS = (MAX_TIMEOUT, EXPIRATION, LOG_REPLICAS, LOG_MIN_ISR, VERIFICATION, CLEANUP, *BOUNDS)
TIMEOUT = "transaction.timeout.ms"
DEFAULT_TIMEOUT_MS = 60_000
"""``transaction.timeout.ms`` of Java's producer."""
_SESSION, _PROTOCOL = "session.timeout.ms", "group.protocol"
_LOOK_THERE = "Run preflight in a context whose bootstrap_servers are those."


@dataclass(frozen=True)
class ClientTimeout:
    """A producer's ``transaction.timeout.ms`` or a sink's ``session.timeout.ms``, in milliseconds, and the property that
    sets it, None for the default.
    """

    name: str
    milliseconds: int
    property: str | None = None


@dataclass(frozen=True)
class BrokerFacts:
    """All that was seen. ``versions`` and ``settings`` are of the brokers that reported them, by their ids.

    ``transaction_state`` is None where the topic does not exist yet, and where it is ``log_hidden``. ``sources`` are the
    producers of source connectors that write to these brokers, ``leader`` the producer of the workers' leader, ``sessions``
    what sinks request of their groups.
    ``enabled`` is whether tasks have transactions now, None if no worker reports it. ``workers`` are the workers' versions.
    """

    brokers: int
    versions: Mapping[int, BrokerVersion] = field(default_factory=dict)
    settings: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    transaction_state: TopicFacts | None = None
    log_hidden: bool = False
    sources: tuple[ClientTimeout, ...] = ()
    leader: ClientTimeout = ClientTimeout("leader", DEFAULT_TIMEOUT_MS)
    sessions: tuple[ClientTimeout, ...] = ()
    enabled: bool | None = None
    workers: tuple[str, ...] = ()
    unseen: tuple[Unseen, ...] = ()

    @property
    def logs(self) -> tuple[TopicFacts, ...]:
        """The topic of transactions, if it was described."""
        return () if self.transaction_state is None else (self.transaction_state,)

    def numbers(self, name: str) -> dict[int, int]:
        """A setting that is a whole number, by broker."""
        values = {broker: reported.get(name, "") for broker, reported in self.settings.items()}
        found = {broker: whole_number(value.removeprefix("-")) for broker, value in values.items()}
        return {broker: -n if values[broker].startswith("-") else n for broker, n in found.items() if n is not None}


def concerned(enabled: bool | None, goal: Goal) -> bool:
    """Whether the goal, or the cluster as it is, has transactions at all; the leader has them from ``preparing`` on."""
    return goal in (Goal.PREPARING, Goal.ENABLED) or (goal is Goal.NOW and enabled is not False)


def observe(context: CheckContext, goal: Goal) -> BrokerFacts:
    """Observe what transactions need, concurrently. Sends no requests if nothing needs them."""
    sinks = [each for each in context.checked if each.type == "sink"]
    of_workers = context.worker_property
    sessions, away = sessions_of(sinks, of_workers, context.edges.bootstrap)
    if not concerned(context.enabled, goal):
        facts = BrokerFacts(0, enabled=context.enabled, sessions=sessions, unseen=away)
        return _with_bounds(context, facts) if sessions else facts
    unseen: list[Unseen] = [*away]
    reads, kafka = context.edges.brokers(), context.edges.kafka
    with ThreadPoolExecutor(3) as pool:
        versions = pool.submit(reads.versions)
        settings = pool.submit(reads.settings, SETTINGS)
        hidden = pool.submit(reads.hidden, [TRANSACTION_STATE])
        log = answer_of(lambda: kafka.topics([TRANSACTION_STATE]), unseen, TRANSACTION_STATE) or {}
        count = answer_of(kafka.brokers, unseen, "the brokers") or 0
        said = answer_of(versions.result, unseen, "the brokers' versions") or {}
        reported = answer_of(settings.result, unseen, "the brokers' settings") or {}
        secret = bool(answer_of(hidden.result, unseen, TRANSACTION_STATE))
    unseen += _silent(said, "version") + _silent(reported, "settings")
    known = {broker: each for broker, each in reported.items() if not isinstance(each, ConnectctlError)}
    unseen += unseen_settings(known, (CLEANUP, *BOUNDS) if sessions else (CLEANUP,))
    if secret and not any(each.what == TRANSACTION_STATE for each in unseen):
        hint = f"Grant this principal Describe and DescribeConfigs on the topic {TRANSACTION_STATE}."
        unseen.append(Unseen(TRANSACTION_STATE, "this principal may not see the topic", hint))
    here, elsewhere = _by_cluster(context)
    unseen += elsewhere
    return BrokerFacts(
        brokers=count,
        versions={broker: each for broker, each in said.items() if isinstance(each, BrokerVersion)},
        settings=known,
        transaction_state=log.get(TRANSACTION_STATE),
        log_hidden=secret,
        sources=tuple(
            _layered(each, "producer", TIMEOUT, of_workers) or ClientTimeout(each.name, DEFAULT_TIMEOUT_MS)
            for each in here
        ),
        # The leader's own producer has the worker's properties without a prefix.
        leader=_given("leader", ((TIMEOUT, of_workers(TIMEOUT)),)) or ClientTimeout("leader", DEFAULT_TIMEOUT_MS),
        sessions=sessions,
        enabled=context.enabled,
        workers=context.versions,
        unseen=tuple(unseen),
    )


def _with_bounds(context: CheckContext, facts: BrokerFacts) -> BrokerFacts:
    """Without transactions: the brokers' bounds for sessions, and nothing else."""
    unseen = [*facts.unseen]
    reads = context.edges.brokers()
    reported = answer_of(lambda: reads.settings(BOUNDS), unseen, "the brokers' settings") or {}
    known = {broker: each for broker, each in reported.items() if not isinstance(each, ConnectctlError)}
    unseen += [*_silent(reported, "settings"), *unseen_settings(known, BOUNDS)]
    return replace(facts, settings=known, unseen=tuple(unseen))


def _silent(answers: Mapping[int, object], what: str) -> list[Unseen]:
    """The brokers that did not respond, those with one reason in one sentence."""
    by_reason: dict[tuple[str, str | None], list[int]] = {}
    for broker, answer in sorted(answers.items()):
        if isinstance(answer, ConnectctlError):
            by_reason.setdefault((reason(answer), answer.next_step), []).append(broker)
    return [
        Unseen(f"the {what} of broker {', '.join(map(str, brokers))}", why, hint)
        for (why, hint), brokers in by_reason.items()
    ]


def _by_cluster(context: CheckContext) -> tuple[list[Connector], list[Unseen]]:
    """The connectors whose producers write to these brokers, and what is not known of the brokers of others."""
    here: list[Connector] = []
    others: dict[str, list[str]] = {}
    for each in context.sources:
        if connects_to(each.config, "producer", context.edges.bootstrap):
            here.append(each)
        else:
            there = client_bootstrap(each.config, "producer", context.edges.bootstrap)
            others.setdefault(there, []).append(each.name)
    return here, [
        Unseen(f"the brokers at {there}", f"{', '.join(names)} writes to another Kafka cluster", _LOOK_THERE)
        for there, names in sorted(others.items())
    ]


def sessions_of(
    sinks: Sequence[Connector], worker_property: Callable[[str], str | None], bootstrap: str
) -> tuple[tuple[ClientTimeout, ...], tuple[Unseen, ...]]:
    """The session time-outs that sinks request (``GroupCoordinator``, classic groups), and what is not known of other
    clusters.

    Java's default of 45 s is not among them: the brokers' own bounds take it. With the protocol of KIP-848 the brokers
    alone decide about sessions.
    """
    found: list[ClientTimeout] = []
    unseen: list[Unseen] = []
    for each in sinks:
        protocol = each.config.get(f"consumer.override.{_PROTOCOL}") or worker_property(f"consumer.{_PROTOCOL}")
        alone = (protocol or "").strip().lower() == "consumer"
        if alone or (given := _layered(each, "consumer", _SESSION, worker_property)) is None:
            continue
        if connects_to(each.config, "consumer", bootstrap):
            found.append(given)
        else:
            there = client_bootstrap(each.config, "consumer", bootstrap)
            why = f"{each.name} reads from another Kafka cluster"
            unseen.append(Unseen(f"{MOST} of the brokers at {there}", why, _LOOK_THERE))
    return tuple(found), tuple(unseen)


def unseen_settings(settings: Mapping[int, Mapping[str, str]], names: Sequence[str]) -> Iterator[Unseen]:
    """Those of ``names`` that brokers leave out of their settings: not the same as their default."""
    for name in names:
        silent = [broker for broker, values in sorted(settings.items()) if name not in values]
        if silent:
            brokers = ", ".join(map(str, silent))
            yield Unseen(f"{name} of broker {brokers}", "it is not in the settings that the broker describes")


def _layered(
    each: Connector, client: str, name: str, worker_property: Callable[[str], str | None]
) -> ClientTimeout | None:
    """As a worker layers it: the connector's override, the worker's property for that client; None for the default."""
    own, workers = f"{client}.override.{name}", f"{client}.{name}"
    return _given(each.name, ((own, each.config.get(own)), (workers, worker_property(workers))))


def _given(name: str, values: Sequence[tuple[str, str | None]]) -> ClientTimeout | None:
    numbers = ((by, whole_number(value)) for by, value in values)
    return next((ClientTimeout(name, number, by) for by, number in numbers if number is not None), None)
