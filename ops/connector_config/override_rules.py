"""Rules about client overrides, and about the topics of a connector, by Kafka's clients. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.offset_store import TOPIC
from connectctl.ops.connect.sink_group import DEAD_LETTERS
from connectctl.ops.connector_config.property_values import (
    FLIGHT,
    client_problem,
    listed,
    topic_problem,
)
from connectctl.ops.connector_config.subject import (
    SINK,
    SOURCE,
    PropertyCase,
    Subject,
    of_source,
    refused,
)
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule, rule
from connectctl.ops.kafka.bootstrap import share_a_server

NOT_ALLOWED = Rule("CONFIG025", Severity.ERROR)

EMPTY_ALLOWLIST = (5, 0)
"""The first release whose workers allow no override by default (KIP-1188)."""
POLICY, ALLOWLIST = (
    "connector.client.config.override.policy",
    "connector.client.config.override.allowlist",
)
_KAFKAS = ("org.apache.kafka.connect.", "FileStream", "Verifiable", "Mock", "Schema")
_DROPPED = "will be ignored as it cannot be overridden"
_FOR = {
    "producer": " for connectors when exactly-once source support is enabled",
    "consumer": " for source connectors' offset consumers when exactly-once source support is "
    "enabled",
}


def _clients(subject: Subject) -> Iterator[str]:
    """Yield the clients that the connector certainly has (``connectorUses…`` of the herder)."""
    if subject.kind == SINK:
        yield "consumer"
        if (subject.text(DEAD_LETTERS) or "") != "":
            yield from ("producer", "admin")
    elif subject.kind == SOURCE:
        yield "producer"
        dedicated = bool(subject.text(TOPIC))
        if dedicated or True in subject.modes:
            yield "consumer"
        if (
            dedicated
            or True in subject.modes
            or any(name.startswith("topic.creation.") for name in subject.config)
        ):
            yield "admin"


@rule("CONFIG024", Severity.ERROR)
def bad_override(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG024 for values that a client does not accept."""
    every = (
        (client, *override)
        for client in _clients(subject)
        for override in subject.overrides(client).items()
    )
    for client, name, value in every:
        if client == "consumer" and subject.kind == SOURCE and name == "isolation.level":
            continue
        found = client_problem(name, value)
        if found is None:
            continue
        step = f"Correct {client}.override.{name}, or leave it out."
        text = found if "Not a number" in found or "true or false" in found else None
        yield PropertyCase(f"{client}.override.{name}", found, step, text=text)


@rule("CONFIG028", Severity.ERROR)
def not_allowed_later(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG028 for overrides that the default policy of 5.0 refuses, if no policy is known
    to be set.
    """
    if subject.release is None or subject.release < EMPTY_ALLOWLIST or subject.policy is not None:
        return
    names = [
        name
        for client in _clients(subject)
        for name in sorted(subject.config)
        if name.startswith(f"{client}.override.")
    ]
    if names:
        properties = ",".join(dict.fromkeys(name.partition(".override.")[2] for name in names))
        message = (
            f"{', '.join(names)}: refused, unless the workers set {POLICY}; their policy is "
            "unknown."
        )
        step = (
            f"Set {POLICY}=Allowlist and {ALLOWLIST}={properties} on every worker (4.2 or "
            f"newer), or {POLICY}=All."
        )
        yield PropertyCase(tuple(names), message, step)


@rule("CONFIG020", Severity.WARNING, when=of_source)
def ignored(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG020 for overrides of values that an enabled worker sets itself."""
    if subject.modes == {False}:
        return
    producer, consumer = subject.overrides("producer"), subject.overrides("consumer")
    forced = {
        "producer.override.enable.idempotence": (producer.get("enable.idempotence"), "true"),
        "producer.override.transactional.id": (
            producer.get("transactional.id"),
            f"<group.id>-{subject.name}-<task>",
        ),
        "consumer.override.isolation.level": (consumer.get("isolation.level"), "read_committed"),
    }
    for name, (value, used) in forced.items():
        if (
            value is None
            or value.lower() == used
            or (name.endswith("idempotence") and client_problem(name[18:], value))
        ):
            continue
        client, _, short = name.partition(".override.")
        message = (
            f"The value '{value}' for the '{short}' property {_DROPPED}{_FOR[client]}. The "
            f"value '{used}' will be"
        )
        yield PropertyCase(name, f"{message} used instead.", f"Leave out {name}.")


def _unless_certain(subject: Subject) -> Severity | None:
    """Return WARNING if it is unknown whether the producer is idempotent."""
    return None if subject.modes or _is_idempotent(subject) else Severity.WARNING


def _is_idempotent(subject: Subject) -> bool:
    return subject.overrides("producer").get("enable.idempotence", "").lower() == "true"


@rule("CONFIG021", Severity.ERROR, when=of_source)
def breaks(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG021 for overrides that an idempotent producer does not accept."""
    if subject.modes != {False} or _is_idempotent(subject):
        for name, problem in _not_idempotent(subject.overrides("producer")):
            step = f"Leave out producer.override.{name}."
            yield PropertyCase(f"producer.override.{name}", problem, step, _unless_certain(subject))


@rule("CONFIG022", Severity.ERROR, when=of_source)
def never_starts(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return CONFIG022 for a time-out that a transactional producer does not accept."""
    name, timeout = (
        "transaction.timeout.ms",
        subject.overrides("producer").get("transaction.timeout.ms"),
    )
    if subject.modes == {False} or not timeout or client_problem(name, timeout) or int(timeout) > 0:
        return None
    message = f"transaction timeout value is not positive: {int(timeout)}"
    step = f"Leave out producer.override.{name}, or raise it."
    return PropertyCase(f"producer.override.{name}", message, step, _unless_certain(subject))


@rule("CONFIG023", Severity.ERROR, when=of_source)
def id_without_idempotence(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return CONFIG023 for a transactional id without an idempotent producer."""
    if False not in subject.modes or "transactional.id" not in subject.overrides("producer"):
        return None
    name = "producer.override.transactional.id"
    message = "Cannot set a transactional.id without also enabling idempotence."
    return PropertyCase(name, message, f"Leave out {name}.")


def _not_idempotent(overrides: dict[str, str]) -> Iterator[tuple[str, str]]:
    valid = {
        name: value for name, value in overrides.items() if client_problem(name, value) is None
    }
    if valid.get("acks", "all") not in ("all", "-1"):
        yield (
            "acks",
            (
                "Must set acks to all in order to use the idempotent producer. Otherwise we "
                "cannot guarantee idempotence."
            ),
        )
    if "retries" in valid and int(valid["retries"]) == 0:
        yield "retries", "Must set retries to non-zero when using the idempotent producer."
    if int(valid.get(FLIGHT, 1)) > 5:
        limit = f"must be set to at most 5. Current value is {int(valid[FLIGHT])}."
        yield FLIGHT, f"To use the idempotent producer, {FLIGHT} {limit}"


@rule("CONFIG026", Severity.ERROR, when=of_source)
def bad_offsets_topic(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG026 for a dedicated offsets topic with an invalid name."""
    name = TOPIC
    value = subject.text(name)
    if value is None:
        return
    if value == "":
        text = "Invalid value  for configuration offsets.storage.topic: String must be non-empty"
        yield refused(name, text, f"Leave out {name} for the workers' own topic.")
    elif problem := topic_problem(value):
        yield PropertyCase(name, f"Topic name is invalid: {problem}", f"Give {name} another name.")


@rule("CONFIG029", Severity.WARNING, when=of_source)
def offsets_elsewhere(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG029 for offsets on servers that only the connector's own configuration names."""
    name, topic = "producer.override.bootstrap.servers", TOPIC
    servers = subject.overrides("producer").get("bootstrap.servers")
    if not servers or (subject.text(topic) is None and True not in subject.modes):
        return
    if any(share_a_server(servers, known) for known in subject.named_servers):
        return
    login = any(
        key.startswith(("sasl.", "security.", "ssl.")) for key in subject.overrides("producer")
    )
    how = "with the connector's own login only" if login else "without a login"
    message = (
        f"It writes its source offsets to {servers}, servers that only its own configuration "
        f"names. The context's credentials are not sent to them: connections are made {how}, or "
        "the offsets are not read."
    )
    step = (
        "If these servers are meant, name them under clusters: in the context; else leave out "
        f"{name}."
    )
    yield PropertyCase((name, topic), message, step)


@rule("CONFIG027", Severity.ERROR)
def bad_target(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """Yield CONFIG027 for invalid names of the topics that it reads or writes."""
    for name in ("topic", "kafka.topic", "topics", DEAD_LETTERS):
        if (name in ("topic", "kafka.topic")) == (subject.kind == SINK):
            continue
        value = subject.text(name)
        parts = listed(value) if name == "topics" else [value] if value else []
        for part in parts:
            if part and (problem := topic_problem(part)):
                message = f"{name}: Topic name is invalid: {problem}"
                yield PropertyCase(
                    name, message, f"Correct {name}.", severity=_severity_of_target(subject, name)
                )


def _severity_of_target(subject: Subject, name: str) -> Severity:
    """Return ERROR for a Kafka topic; ``topic`` of connectors that do not come with Kafka may be
    another system's.
    """
    known = (subject.config.get("connector.class") or "").startswith(_KAFKAS) or name != "topic"
    return Severity.ERROR if known else Severity.WARNING
