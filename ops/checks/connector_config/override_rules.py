"""Client overrides, and the topics that a connector names, against what Kafka's clients make of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.connector_config.observe import (
    SINK,
    SOURCE,
    PropertyCase,
    Subject,
    listed,
    of_source,
    refused,
    topic_problem,
)
from connectctl.ops.checks.connector_config.properties import FLIGHT, client_problem
from connectctl.ops.checks.types import Goal
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Rule, rule
from connectctl.ops.kafka.bootstrap import share_a_server

NOT_ALLOWED = Rule("CONFIG025", Severity.ERROR)

EMPTY_ALLOWLIST = (5, 0)
"""The first release whose workers allow no override unless they are told to (KIP-1188)."""
POLICY, ALLOWLIST = "connector.client.config.override.policy", "connector.client.config.override.allowlist"
_KAFKAS = ("org.apache.kafka.connect.", "FileStream", "Verifiable", "Mock", "Schema")
_DROPPED = "will be ignored as it cannot be overridden"
_FOR = {
    "producer": " for connectors when exactly-once source support is enabled",
    "consumer": " for source connectors' offset consumers when exactly-once source support is enabled",
}


def _clients(subject: Subject) -> Iterator[str]:
    """The clients that the connector certainly has (``connectorUses…`` of the herder)."""
    if subject.kind == SINK:
        yield "consumer"
        if (subject.text("errors.deadletterqueue.topic.name") or "") != "":
            yield from ("producer", "admin")
    elif subject.kind == SOURCE:
        yield "producer"
        own = bool(subject.text("offsets.storage.topic"))
        if own or True in subject.modes:
            yield "consumer"
        if own or True in subject.modes or any(name.startswith("topic.creation.") for name in subject.config):
            yield "admin"


@rule("CONFIG024", Severity.ERROR)
def bad_override(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """CONFIG024: values that a client does not accept."""
    every = ((client, *each) for client in _clients(subject) for each in subject.overrides(client).items())
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
    """CONFIG028: overrides that the default policy of 5.0 refuses, where none is known to be set."""
    if subject.release is None or subject.release < EMPTY_ALLOWLIST or subject.policy is not None:
        return
    names = [
        name
        for client in _clients(subject)
        for name in sorted(subject.config)
        if name.startswith(f"{client}.override.")
    ]
    if names:
        wanted = ",".join(dict.fromkeys(name.partition(".override.")[2] for name in names))
        message = f"{', '.join(names)}: refused, unless the workers set {POLICY}; whether they do is unknown."
        step = f"Set {POLICY}=Allowlist and {ALLOWLIST}={wanted} on every worker (4.2 or newer), or {POLICY}=All."
        yield PropertyCase(tuple(names), message, step)


@rule("CONFIG020", Severity.WARNING, when=of_source)
def ignored(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """CONFIG020: what a worker that is enabled sets itself."""
    if subject.modes == {False}:
        return
    producer, consumer = subject.overrides("producer"), subject.overrides("consumer")
    forced = {
        "producer.override.enable.idempotence": (producer.get("enable.idempotence"), "true"),
        "producer.override.transactional.id": (producer.get("transactional.id"), f"<group.id>-{subject.name}-<task>"),
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
        message = f"The value '{value}' for the '{short}' property {_DROPPED}{_FOR[client]}. The value '{used}' will be"
        yield PropertyCase(name, f"{message} used instead.", f"Leave out {name}.")


def _soft(subject: Subject) -> Severity | None:
    """Return WARNING if it is unknown whether the producer is to be idempotent."""
    return None if subject.modes or _is_idempotent(subject) else Severity.WARNING


def _is_idempotent(subject: Subject) -> bool:
    return subject.overrides("producer").get("enable.idempotence", "").lower() == "true"


@rule("CONFIG021", Severity.ERROR, when=of_source)
def breaks(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """CONFIG021: overrides that an idempotent producer does not accept."""
    if subject.modes != {False} or _is_idempotent(subject):
        for name, problem in _not_idempotent(subject.overrides("producer")):
            step = f"Leave out producer.override.{name}."
            yield PropertyCase(f"producer.override.{name}", problem, step, _soft(subject))


@rule("CONFIG022", Severity.ERROR, when=of_source)
def never_starts(subject: Subject, goal: Goal) -> PropertyCase | None:
    """CONFIG022: a timeout that a transactional producer does not accept."""
    name, timeout = "transaction.timeout.ms", subject.overrides("producer").get("transaction.timeout.ms")
    if subject.modes == {False} or not timeout or client_problem(name, timeout) or int(timeout) > 0:
        return None
    message = f"transaction timeout value is not positive: {int(timeout)}"
    step = f"Leave out producer.override.{name}, or raise it."
    return PropertyCase(f"producer.override.{name}", message, step, _soft(subject))


@rule("CONFIG023", Severity.ERROR, when=of_source)
def id_without_idempotence(subject: Subject, goal: Goal) -> PropertyCase | None:
    """CONFIG023: a transactional id without an idempotent producer."""
    if False not in subject.modes or "transactional.id" not in subject.overrides("producer"):
        return None
    name = "producer.override.transactional.id"
    message = "Cannot set a transactional.id without also enabling idempotence."
    return PropertyCase(name, message, f"Leave out {name}.")


def _not_idempotent(own: dict[str, str]) -> Iterator[tuple[str, str]]:
    fine = {name: value for name, value in own.items() if client_problem(name, value) is None}
    if fine.get("acks", "all") not in ("all", "-1"):
        yield (
            "acks",
            (
                "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence."
            ),
        )
    if "retries" in fine and int(fine["retries"]) == 0:
        yield "retries", "Must set retries to non-zero when using the idempotent producer."
    if int(fine.get(FLIGHT, 1)) > 5:
        at_hand = f"must be set to at most 5. Current value is {int(fine[FLIGHT])}."
        yield FLIGHT, f"To use the idempotent producer, {FLIGHT} {at_hand}"


@rule("CONFIG026", Severity.ERROR, when=of_source)
def bad_offsets_topic(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """CONFIG026: a dedicated offsets topic that cannot be."""
    name = "offsets.storage.topic"
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
    """CONFIG029: offsets on servers that only the connector's own configuration names."""
    name, topic = "producer.override.bootstrap.servers", "offsets.storage.topic"
    servers = subject.overrides("producer").get("bootstrap.servers")
    if not servers or (subject.text(topic) is None and True not in subject.modes):
        return
    if any(share_a_server(servers, known) for known in subject.named_servers):
        return
    login = any(key.startswith(("sasl.", "security.", "ssl.")) for key in subject.overrides("producer"))
    how = "with the connector's own login only" if login else "without a login"
    message = (
        f"It writes its source offsets to {servers}, servers that only its own configuration names. The context's "
        f"credentials are not sent to them: connections are made {how}, or the offsets are reported as not seen."
    )
    step = f"If these servers are meant, name them under clusters: in the context; else leave out {name}."
    yield PropertyCase((name, topic), message, step)


@rule("CONFIG027", Severity.ERROR)
def bad_target(subject: Subject, goal: Goal) -> Iterator[PropertyCase]:
    """CONFIG027: topics to read from or to write to that cannot be."""
    for name in ("topic", "kafka.topic", "topics", "errors.deadletterqueue.topic.name"):
        if (name in ("topic", "kafka.topic")) == (subject.kind == SINK):
            continue
        value = subject.text(name)
        parts = listed(value) if name == "topics" else [value] if value else []
        for part in parts:
            if part and (problem := topic_problem(part)):
                message = f"{name}: Topic name is invalid: {problem}"
                yield PropertyCase(name, message, f"Correct {name}.", severity=_sure(subject, name))


def _sure(subject: Subject, name: str) -> Severity:
    """A property ``topic`` is Kafka's in the connectors that come with Kafka; in others it may be another system's."""
    known = (subject.config.get("connector.class") or "").startswith(_KAFKAS) or name != "topic"
    return Severity.ERROR if known else Severity.WARNING
