"""The requested properties of a sandbox."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from connectctl.ops.core.errors import BadInput
from connectctl.ops.sandbox.jars.versions import LATEST, KafkaVersion, parse_version

SUPPORT = ("disabled", "preparing", "enabled")
MOST_WORKERS = 9
MOST_BROKERS = 3

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """An embedded cluster: ``brokers`` brokers, and ``workers`` Connect workers of
    ``kafka_version`` in one group.

    With three brokers, any one of them may fail: all are controllers, and every internal topic has
    three replicas. ``workers`` may be 0, for a broker to which connectors of another sandbox write.
    ``support`` is the workers' ``exactly.once.source.support``. ``extra_worker_properties`` and
    ``extra_broker_properties`` override the sandbox's own. ``extra_listeners`` adds broker
    listeners, name to security protocol (``{"SASL": "SASL_PLAINTEXT"}``), on free ports; the
    sandbox itself always uses the listener PLAINTEXT, as ``User:ANONYMOUS``. ``secured`` has TLS,
    logins and ACLs everywhere instead, without a PLAINTEXT listener: see ``security``. ``registry``
    adds a Schema Registry. Raises BadInput for an impossible combination.
    """

    name: str = "default"
    workers: int = 2
    support: str = "disabled"
    kafka_version: str = LATEST
    brokers: int = 1
    extra_worker_properties: Mapping[str, str] = field(default_factory=dict)
    extra_broker_properties: Mapping[str, str] = field(default_factory=dict)
    extra_listeners: Mapping[str, str] = field(default_factory=dict)
    secured: bool = False
    registry: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "kafka_version", str(parse_version(self.kafka_version)))
        if not 0 <= self.workers <= MOST_WORKERS:
            raise BadInput(
                f"Invalid number of workers {self.workers}: must be 0 to {MOST_WORKERS}",
                code="bad-workers",
            )
        if not 1 <= self.brokers <= MOST_BROKERS:
            raise BadInput(
                f"Invalid number of brokers {self.brokers}: must be 1 to {MOST_BROKERS}",
                code="bad-brokers",
            )
        check_support(self.support, self.version)

    @property
    def version(self) -> KafkaVersion:
        return parse_version(self.kafka_version)

    @property
    def group_id(self) -> str:
        return f"connect-sandbox-{self.name}"

    def differences(self, other: SandboxSpec) -> list[str]:
        """In what ``other`` differs, one phrase for each option, for the message that refuses to
        change it.
        """
        pairs = [(f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return [
            f"{name.replace('_', ' ')} is {mine}, not {other_value}"
            for name, mine, other_value in pairs
            if mine != other_value
        ]


def check_name(name: str) -> None:
    """Raise BadInput unless ``name`` can be part of a directory, a group id and a context name."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"Invalid sandbox name '{name}'",
            next_step="Use at most 40 lower-case letters, digits and dashes, with no dash at "
            "either end.",
            code="bad-sandbox-name",
        )


def check_support(support: str, version: KafkaVersion) -> None:
    """Raise BadInput unless workers of ``version`` can have this
    ``exactly.once.source.support``.
    """
    if support not in SUPPORT:
        raise BadInput(
            f"Invalid value '{support}' of exactly.once.source.support",
            next_step=f"Use {', '.join(SUPPORT)}.",
            code="bad-support",
        )
    if support != "disabled" and not version.has_exactly_once_source:
        raise BadInput(
            f"Kafka Connect {version} has no exactly-once source support",
            why="added in 3.3.0 (KIP-618)",
            next_step="Use --support disabled, or --kafka-version 3.5.2 or later.",
            code="no-exactly-once-source",
        )
