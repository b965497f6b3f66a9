"""Observes the brokers: which of them accept connections, and for transactions their versions,
features, settings and ``__transaction_state``; evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.offset_store import client_bootstrap, connects_to
from connectctl.ops.connect.source_transactions import DEFAULT_TIMEOUT_MS
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.unseen import Unseen, answer_of, reason
from connectctl.ops.kafka.brokers import BrokerVersion
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.kafka.transaction_log import TOPIC as TRANSACTION_STATE

MAX_TIMEOUT, EXPIRATION = "transaction.max.timeout.ms", "transactional.id.expiration.ms"
LOG_REPLICAS, LOG_MIN_ISR = (
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
)
VERIFICATION = "transaction.partition.verification.enable"
CLEANUP = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
LEAST, MOST = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
BOUNDS = (LEAST, MOST)
SETTINGS = (MAX_TIMEOUT, EXPIRATION, LOG_REPLICAS, LOG_MIN_ISR, VERIFICATION, CLEANUP, *BOUNDS)
TIMEOUT = "transaction.timeout.ms"
_SESSION, _PROTOCOL = "session.timeout.ms", "group.protocol"
_OTHER_CONTEXT = "Run preflight in a context whose bootstrap_servers are those."


@dataclass(frozen=True)
class ClientTimeout:
    """A producer's ``transaction.timeout.ms`` or a sink's ``session.timeout.ms``, in milliseconds.

    ``property`` is the property that sets it, None for the default.
    """

    name: str
    milliseconds: int
    property: str | None = None


@dataclass(frozen=True)
class BrokerFacts:
    """The observations of the brokers. ``versions`` and ``settings`` are of the brokers that
    reported them, by id.

    ``transaction_state`` is None if the topic does not exist yet, and if it is ``log_hidden``.
    ``sources`` are the producers of source connectors that write to these brokers, ``leader`` the
    producer of the workers' leader, ``sessions`` the session time-outs that sinks request.
    ``enabled`` is whether tasks have transactions now, None if no worker reports it. ``workers``
    are the workers' versions. ``unreachable`` are the addresses of the brokers that accept no
    connection.
    """

    brokers: int
    unreachable: Mapping[int, str] = field(default_factory=dict)
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
        """Return the topic of transactions, if it was described."""
        return () if self.transaction_state is None else (self.transaction_state,)

    def numbers(self, name: str) -> dict[int, int]:
        """Return a setting that is a whole number, by broker."""
        values = {broker: reported.get(name, "") for broker, reported in self.settings.items()}
        found = {broker: whole_number(value.removeprefix("-")) for broker, value in values.items()}
        return {
            broker: -n if values[broker].startswith("-") else n
            for broker, n in found.items()
            if n is not None
        }


def concerned(enabled: bool | None, goal: Goal) -> bool:
    """Return whether the goal, or the present cluster, has transactions; the leader has them from
    ``preparing`` on.
    """
    return goal in (Goal.PREPARING, Goal.ENABLED) or (goal is Goal.NOW and enabled is not False)


def observe(context: CheckContext, goal: Goal) -> BrokerFacts:
    """Observe which brokers accept connections, and the facts that transactions depend on,
    concurrently; without transactions send no requests for them.
    """
    reads, kafka = context.edges.brokers(), context.edges.kafka
    connections = context.connections or reads.unreachable
    sinks = [connector for connector in context.checked if connector.type == "sink"]
    worker_property = context.worker_property
    sessions, unknown_bounds = sessions_of(sinks, worker_property, context.edges.bootstrap)
    unseen: list[Unseen] = [*unknown_bounds]
    if not concerned(context.enabled, goal):
        facts = BrokerFacts(
            0,
            answer_of(connections, unseen, "the brokers' connections") or {},
            enabled=context.enabled,
            sessions=sessions,
            unseen=tuple(unseen),
        )
        return _with_bounds(context, facts) if sessions else facts
    with ThreadPoolExecutor(4) as pool:
        versions = pool.submit(reads.versions)
        settings = pool.submit(reads.settings, SETTINGS)
        hidden = pool.submit(reads.hidden, [TRANSACTION_STATE])
        log = answer_of(lambda: kafka.topics([TRANSACTION_STATE]), unseen, TRANSACTION_STATE) or {}
        count = answer_of(kafka.brokers, unseen, "the brokers") or 0
        versions_by_broker = answer_of(versions.result, unseen, "the brokers' versions") or {}
        settings_by_broker = answer_of(settings.result, unseen, "the brokers' settings") or {}
        unreachable = answer_of(connections, unseen, "the brokers' connections") or {}
        is_hidden = bool(answer_of(hidden.result, unseen, TRANSACTION_STATE))
    unseen += _silent(versions_by_broker, "version") + _silent(settings_by_broker, "settings")
    known = {
        broker: found
        for broker, found in settings_by_broker.items()
        if not isinstance(found, ConnectctlError)
    }
    unseen += unseen_settings(known, (CLEANUP, *BOUNDS) if sessions else (CLEANUP,))
    if is_hidden and not any(gap.what == TRANSACTION_STATE for gap in unseen):
        hint = (
            f"Grant this principal Describe and DescribeConfigs on the topic {TRANSACTION_STATE}."
        )
        unseen.append(Unseen(TRANSACTION_STATE, "this principal may not see the topic", hint))
    local, unknown_brokers = _by_cluster(context)
    unseen += unknown_brokers
    return BrokerFacts(
        brokers=count,
        unreachable=unreachable,
        versions={
            broker: found
            for broker, found in versions_by_broker.items()
            if isinstance(found, BrokerVersion)
        },
        settings=known,
        transaction_state=log.get(TRANSACTION_STATE),
        log_hidden=is_hidden,
        sources=tuple(
            _layered(source, "producer", TIMEOUT, worker_property)
            or ClientTimeout(source.name, DEFAULT_TIMEOUT_MS)
            for source in local
        ),
        # The leader's own producer has the worker's properties without a prefix.
        leader=_first_set("leader", ((TIMEOUT, worker_property(TIMEOUT)),))
        or ClientTimeout("leader", DEFAULT_TIMEOUT_MS),
        sessions=sessions,
        enabled=context.enabled,
        workers=context.versions,
        unseen=tuple(unseen),
    )


def _with_bounds(context: CheckContext, facts: BrokerFacts) -> BrokerFacts:
    """Return ``facts`` with the brokers' bounds of session time-outs only, for a goal without
    transactions.
    """
    unseen = [*facts.unseen]
    reads = context.edges.brokers()
    settings_by_broker = (
        answer_of(lambda: reads.settings(BOUNDS), unseen, "the brokers' settings") or {}
    )
    known = {
        broker: found
        for broker, found in settings_by_broker.items()
        if not isinstance(found, ConnectctlError)
    }
    unseen += [*_silent(settings_by_broker, "settings"), *unseen_settings(known, BOUNDS)]
    return replace(facts, settings=known, unseen=tuple(unseen))


def _silent(answers: Mapping[int, object], what: str) -> list[Unseen]:
    """Return the brokers that did not respond, those with the same reason in one sentence."""
    by_reason: dict[tuple[str, str | None], list[int]] = {}
    for broker, answer in sorted(answers.items()):
        if isinstance(answer, ConnectctlError):
            by_reason.setdefault((reason(answer), answer.next_step), []).append(broker)
    return [
        Unseen(f"the {what} of broker {', '.join(map(str, brokers))}", why, hint)
        for (why, hint), brokers in by_reason.items()
    ]


def _by_cluster(context: CheckContext) -> tuple[list[Connector], list[Unseen]]:
    """Return the connectors whose producers write to these brokers, and the unknown brokers of the
    others.
    """
    local: list[Connector] = []
    others: dict[str, list[str]] = {}
    for connector in context.sources:
        if connects_to(connector.config, "producer", context.edges.bootstrap):
            local.append(connector)
        else:
            servers = client_bootstrap(connector.config, "producer", context.edges.bootstrap)
            others.setdefault(servers, []).append(connector.name)
    return local, [
        Unseen(
            f"the brokers at {servers}",
            f"{', '.join(names)} writes to another Kafka cluster",
            _OTHER_CONTEXT,
        )
        for servers, names in sorted(others.items())
    ]


def sessions_of(
    sinks: Sequence[Connector], worker_property: Callable[[str], str | None], bootstrap: str
) -> tuple[tuple[ClientTimeout, ...], tuple[Unseen, ...]]:
    """Return the session time-outs that sinks request, and the unknown bounds of other clusters.

    Source: ``GroupCoordinator``, classic groups. Java's default of 45 s is omitted: the brokers'
    own bounds accept it. With the protocol of KIP-848 the brokers alone determine the session
    time-out.
    """
    found: list[ClientTimeout] = []
    unseen: list[Unseen] = []
    for sink in sinks:
        protocol = sink.config.get(f"consumer.override.{_PROTOCOL}") or worker_property(
            f"consumer.{_PROTOCOL}"
        )
        broker_decides = (protocol or "").strip().lower() == "consumer"
        if (
            broker_decides
            or (timeout := _layered(sink, "consumer", _SESSION, worker_property)) is None
        ):
            continue
        if connects_to(sink.config, "consumer", bootstrap):
            found.append(timeout)
        else:
            servers = client_bootstrap(sink.config, "consumer", bootstrap)
            why = f"{sink.name} reads from another Kafka cluster"
            unseen.append(Unseen(f"{MOST} of the brokers at {servers}", why, _OTHER_CONTEXT))
    return tuple(found), tuple(unseen)


def unseen_settings(
    settings: Mapping[int, Mapping[str, str]], names: Sequence[str]
) -> Iterator[Unseen]:
    """Yield those of ``names`` that brokers leave out of their settings, which does not mean their
    default.
    """
    for name in names:
        silent = [broker for broker, values in sorted(settings.items()) if name not in values]
        if silent:
            brokers = ", ".join(map(str, silent))
            yield Unseen(
                f"{name} of broker {brokers}", "it is not in the settings that the broker describes"
            )


def _layered(
    connector: Connector, client: str, name: str, worker_property: Callable[[str], str | None]
) -> ClientTimeout | None:
    """Return the effective time-out: the connector's override, else the worker's property for that
    client, else None.
    """
    override, workers = f"{client}.override.{name}", f"{client}.{name}"
    return _first_set(
        connector.name,
        ((override, connector.config.get(override)), (workers, worker_property(workers))),
    )


def _first_set(name: str, values: Sequence[tuple[str, str | None]]) -> ClientTimeout | None:
    numbers = ((name_of_property, whole_number(value)) for name_of_property, value in values)
    return next(
        (
            ClientTimeout(name, number, name_of_property)
            for name_of_property, number in numbers
            if number is not None
        ),
        None,
    )
