"""Commands on a secured cluster, run as somebody who has every right, or every right but one; and
what to make of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from connectctl.ops.kafka.acls import ANY, Operation, Resource, Right
from connectctl.ops.sandbox.security import SCRAM
from fakes.runner import invoke
from live.real import eventually
from live.securedcluster import as_user, create_topic, create_user, super_user

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

USER = "matrix"
TIMEOUT = 60
SOURCE, RESTING, OWN = "matrix-source", "matrix-resting", "matrix-own"
TARGET, DEDICATED, OPEN_ID = "matrix-records", "matrix-own-offsets", "matrix-open"
_TYPES = {
    Resource.TOPIC: ResourceType.TOPIC,
    Resource.GROUP: ResourceType.GROUP,
    Resource.CLUSTER: ResourceType.BROKER,
    Resource.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
}
_KAFKA = "kafka-cluster"
_PLAIN = {kind: kind.value.replace("_", " ").lower() for kind in Resource}
_OPERATIONS = {operation.word: operation for operation in Operation}
_RESOURCES = {resource.word: resource for resource in Resource}
_AGE = re.compile(r"\b\d+ (ms|s|min|h)\b")
_SPELLED = re.compile(
    rf"\b({'|'.join(_OPERATIONS)}) on ({'|'.join(_RESOURCES)}) ([\w.*-]*[\w*-])(… \(prefixed\))?"
)


class Verdict(StrEnum):
    """What a command made of a right that was taken away."""

    TRUE = "true"
    NAMED = "named"
    KIN = "kin"
    """Another right on the same resource is named: Read where Describe is missing, for instance."""
    UNNAMED = "UNNAMED"
    LESS = "LESS"

    @property
    def is_good(self) -> bool:
        return self in (Verdict.TRUE, Verdict.NAMED, Verdict.KIN)


@dataclass(frozen=True)
class Ran:
    """What a command did: its exit code, its JSON without what differs from one run to the next,
    and all its words.
    """

    code: int
    told: Any
    words: str


@dataclass
class Matrix:
    """The commands of ``rows`` on one cluster, with connectors to look at. ``contexts`` is the file
    with all ways in.
    """

    cluster: Sandbox
    place: Path
    contexts: Path
    rows: Mapping[str, Sequence[str]]
    usual: dict[str, tuple[Ran, set[tuple[str, ...]]]] = field(default_factory=dict)

    def run(self, row: str, context: str = USER) -> Ran:
        """Run one command, in JSON."""
        args = [
            "--config",
            str(self.contexts),
            "--context",
            context,
            "--timeout",
            str(TIMEOUT),
            *self.rows[row],
        ]
        result = invoke([*args, "-o", "json"])
        # Printed commands repeat the context.
        stdout, stderr = (
            text.replace(f"--context {context} ", "") for text in (result.stdout, result.stderr)
        )
        words = stdout + stderr
        try:
            told = json.loads(stdout) if stdout.strip() else None
        except ValueError:
            told = stdout
        return Ran(result.exit_code, told, words)

    def whole(self, row: str) -> tuple[Ran, set[tuple[str, ...]]]:
        """What the command does with every right, and the places in its JSON that differ from run
        to run.
        """
        if row not in self.usual:
            first, second = self.run(row), self.run(row)
            self.usual[row] = (first, differing(first, second))
        return self.usual[row]

    def without(self, row: str, right: Right) -> tuple[Verdict, Ran]:
        """What the command makes of the right that is denied now."""
        usual, moving = self.whole(row)
        ran = self.run(row)
        return verdict(usual, ran, moving, right), ran

    def anew(self, row: str, ran: Ran, right: Right) -> Verdict:
        """The verdict against what every right shows now: an open transaction grows old, and with
        it what is said of it.
        """
        self.usual.pop(row)
        usual, moving = self.whole(row)
        return verdict(usual, ran, moving, right)

    @contextmanager
    def denied(self, right: Right) -> Iterator[None]:
        """Take one right away, for as long as this lasts."""
        admin = super_user(self.cluster)
        name = _KAFKA if right.resource is Resource.CLUSTER else right.name
        wanted = _binding(right, name)
        add_acls(admin, [wanted])
        try:
            yield
        finally:
            remove_acls(admin, [wanted])


def verdict(usual: Ran, ran: Ran, moving: set[tuple[str, ...]], right: Right) -> Verdict:
    """Whether less was shown, and if so, whether it was said why."""
    if usual.code == ran.code and differing(usual, ran) <= moving:
        return Verdict.TRUE
    if (
        right.arguments in ran.words
        or any(fits(seen, right) for seen in named(ran.words))
        or _plainly(ran.words, right)
    ):
        return Verdict.NAMED
    name = "" if right.resource is Resource.CLUSTER else re.escape(right.name)
    if re.search(rf"\w+ on {right.resource.word} {name}", ran.words):
        return Verdict.KIN
    said = (
        "uthoriz" in ran.words
        or "uthentication failed" in ran.words
        or "does not allow" in ran.words
        or "SIGHT" in ran.words
    )
    return Verdict.UNNAMED if said or ran.code in (4, 5) else Verdict.LESS


def _plainly(words: str, right: Right) -> bool:
    """Whether the right is told as people do ("Describe on the transactional id"), of what is named
    beside it.
    """
    told = f"{right.operation.word} on the {_PLAIN[right.resource]}" in words
    return told and (right.resource is Resource.CLUSTER or right.name in words)


def named(words: str) -> set[Right]:
    """The rights in what a command said, as ``Right`` spells them."""
    return {_right(*found) for found in _SPELLED.findall(words)}


def _right(operation: str, resource: str, name: str, prefixed: str) -> Right:
    return Right(_OPERATIONS[operation], _RESOURCES[resource], name, bool(prefixed))


def fits(seen: Right, right: Right) -> bool:
    """Whether ``seen`` says what is missing: all of it, or the part of a right on everything that
    the command needs.
    """
    return covers(seen, right) or (right.name == ANY and covers(right, seen))


def covers(wide: Right, right: Right) -> bool:
    """Whether who is given ``wide`` has ``right``: it is on every resource, or on all that begin
    alike.
    """
    if (wide.operation, wide.resource) != (right.operation, right.resource):
        return False
    return right.name.startswith(wide.name) if wide.prefixed else wide.name in (right.name, ANY)


def differing(one: Ran, other: Ran) -> set[tuple[str, ...]]:
    """The places in the JSON of two runs where they differ."""
    return {path for path, _ in _leaves(one.told, ()) ^ _leaves(other.told, ())}


def _leaves(value: Any, path: tuple[str, ...]) -> set[tuple[tuple[str, ...], str]]:
    """Every place in JSON with what stands there; the order of lists does not count, nor what is
    told of time.
    """
    if isinstance(value, Mapping):
        return set().union(*(_leaves(inner, (*path, str(key))) for key, inner in value.items()))
    if isinstance(value, list):
        return set().union(*(_leaves(inner, (*path, "[]")) for inner in value))
    return {(path, _AGE.sub("", repr(value)))}


def add_acls(admin: AdminClient, wanted: Sequence[AclBinding]) -> None:
    """Make ACLs, and wait until the broker has them."""
    for future in admin.create_acls(list(wanted)).values():
        future.result(300)
    eventually(lambda: set(wanted) <= _there(admin))


def remove_acls(admin: AdminClient, gone: Sequence[AclBinding]) -> None:
    """Take ACLs away, and wait until the broker has forgotten them."""
    filters = [
        AclBindingFilter(
            b.restype,
            b.name,
            b.resource_pattern_type,
            b.principal,
            b.host,
            b.operation,
            b.permission_type,
        )
        for b in gone
    ]
    for future in admin.delete_acls(filters).values():
        future.result(300)
    eventually(lambda: not set(gone) & _there(admin))


def _there(admin: AdminClient) -> set[AclBinding]:
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        f"User:{USER}",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    return set(admin.describe_acls(everything).result(300))


def _binding(
    right: Right, name: str, permission: AclPermissionType = AclPermissionType.DENY
) -> AclBinding:
    kind, operation = _TYPES[right.resource], AclOperation[right.operation.name]
    return AclBinding(
        kind, name, ResourcePatternType.LITERAL, f"User:{USER}", "*", operation, permission
    )


def allow_everything(cluster: Sandbox) -> None:
    """Give the user of the matrix every right, so that one can be taken away."""
    rights = [Right(Operation.ALL, resource, ANY) for resource in _TYPES]
    names = [_KAFKA if right.resource is Resource.CLUSTER else ANY for right in rights]
    allowed = [
        _binding(right, name, AclPermissionType.ALLOW)
        for right, name in zip(rights, names, strict=True)
    ]
    add_acls(super_user(cluster), allowed)


def contexts(cluster: Sandbox, place: Path) -> Path:
    """A context file with the sandbox's own contexts, and one for the user of the matrix."""
    data = yaml.safe_load(cluster.context_path.read_text())
    usual = data["contexts"]["sandbox-secured"]
    password = create_user(cluster, USER)
    client = dict(as_user(cluster, USER, "")) | {"sasl.password": password}
    client.pop("bootstrap.servers")
    data["contexts"][USER] = usual | {"client": client}
    file = place / "contexts.yaml"
    file.write_text(yaml.safe_dump(data))
    file.chmod(0o600)
    return file


def leave_open(cluster: Sandbox) -> Producer:
    """A transaction that stays open in the target topic until its producer is gone."""
    from live.securedcluster import as_admin

    client = as_admin(cluster, SCRAM) | {
        "transactional.id": OPEN_ID,
        "transaction.timeout.ms": 900_000,
    }
    producer = Producer(client)
    producer.init_transactions(120)
    producer.begin_transaction()
    producer.produce(TARGET, b"open")
    assert producer.flush(300) == 0
    return producer


def prepare_topics(cluster: Sandbox) -> None:
    """The topics that connectors of the matrix write to."""
    create_topic(cluster, TARGET, 1)
