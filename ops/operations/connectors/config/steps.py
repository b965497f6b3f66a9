"""The steps that create, change and delete connectors, and read and restore their source offsets.

Plans have masked configurations and their digests. Each step reads the connector again, compares it
with the digest in the plan, and refuses the change if it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.connector import Connector, path_of
from connectctl.ops.connect.partition_changes import reads
from connectctl.ops.core.errors import ConnectctlError, Refused, TimedOut
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.operations.connectors.config.outlook import (
    Entries,
    Partitions,
    named,
    read_offsets,
    text_of,
)
from connectctl.ops.operations.connectors.config.values import (
    Changes,
    difference,
    digest,
    read_config,
    stored_config,
)
from connectctl.ops.operations.connectors.configure import ChangeConfig
from connectctl.ops.operations.connectors.context import POLL, StepContext
from connectctl.ops.operations.connectors.drift import Drift
from connectctl.ops.operations.connectors.observe import read_one


@dataclass(frozen=True)
class CreateConnector(ResourceStep["StepContext"]):
    """Create a connector, in ``state`` if it is set (KIP-980). ``config`` is masked; ``after`` is
    its digest.

    The effects on source offsets are in ``offsets`` as text, and in ``partitions`` and ``shares``
    as data.
    """

    config: Mapping[str, str | None]
    after: str
    state: str | None = None
    file: str | None = None
    offsets: tuple[str, ...] = ()
    partitions: Partitions = field(default_factory=dict)
    shares: tuple[str, ...] = ()

    def describe(self) -> str:
        state = f", {self.state}" if self.state else ""
        what = (
            f"create {self.subject} ({self.config.get('connector.class')}, {len(self.config)} "
            f"properties{state})"
        )
        return "; ".join((what, *self.offsets))

    def is_done(self, context: StepContext) -> str | None:
        found = read_config(context.calls, self.subject)
        if found is None:
            return None
        if digest(found) == self.after:
            return "already exists with this configuration"
        raise Refused(
            f"{self.subject} was created by another client since the plan was made",
            next_step=f"See connectctl connectors diff {self.subject} -f FILE.",
            code="stale",
        )

    def apply(self, context: StepContext) -> str | None:
        config = stored_config(context.journal, self.after)
        state = {"initial_state": self.state} if self.state else {}
        context.before[self.subject] = Connector(self.subject, None), context.now()
        context.calls.send("POST", "/connectors", {"name": self.subject, "config": config} | state)
        _until(
            context, self.subject, lambda found: found is not None and digest(found) == self.after
        )
        return None


@dataclass(frozen=True)
class _Set(ChangeConfig):
    values: Changes

    @property
    def properties(self) -> Changes:
        return self.values


@dataclass(frozen=True)
class ChangeConnector(ResourceStep["StepContext"]):
    """Change the properties of a connector from the configuration ``before`` to ``after``, by their
    digests.

    Workers from 3.8 on get only the changed properties (KIP-477). ``changes`` and ``was`` are
    masked. The effects on source offsets are in ``offsets`` as text, and in ``partitions`` and
    ``shares`` as data. ``former`` are offsets that an undo restores: see ``OffsetsOfChange``.
    ``restarts`` describes the restarts that the change causes.
    """

    changes: Mapping[str, str | None]
    was: Mapping[str, str | None]
    before: str
    after: str
    file: str | None = None
    offsets: tuple[str, ...] = ()
    partitions: Partitions = field(default_factory=dict)
    shares: tuple[str, ...] = ()
    former: Entries | None = None
    restarts: str = ""
    drift: Drift | None = None

    def describe(self) -> str:
        drift = self.drift.words() if self.drift else ""
        texts = (*map(self._change, self.changes), *self.offsets, self.restarts, drift)
        return f"change {self.subject}: {'; '.join(filter(None, texts))}"

    def _change(self, name: str) -> str:
        old, new = self.was.get(name), self.changes[name]
        if new is None:
            return f"remove {name} (was {old})"
        return f"{name}={new}" + (
            "" if old is None else f" (was {old})" if old != new else " (another value)"
        )

    def is_done(self, context: StepContext) -> str | None:
        found = read_config(context.calls, self.subject)
        return "already set" if found is not None and digest(found) == self.after else None

    def apply(self, context: StepContext) -> str | None:
        found = compared(context, self.subject, self.before)
        connector = read_one(context.calls, self.subject)
        _Set(self.subject, difference(found, stored_config(context.journal, self.after))).apply(
            context
        )
        context.before[self.subject] = connector, context.now()
        return None


@dataclass(frozen=True)
class DeleteConnector(ResourceStep["StepContext"]):
    """Delete a connector whose configuration is ``before``, by its digest. ``state`` is its target
    state.

    ``leaves`` are the remaining resources, as text.
    """

    before: str
    state: str | None = None
    leaves: tuple[str, ...] = ()
    drift: Drift | None = None

    def describe(self) -> str:
        stays = f"what remains: {', '.join(self.leaves)}" if self.leaves else ""
        drift = self.drift.words() if self.drift else ""
        return "; ".join(filter(None, (f"delete {self.subject}", stays, drift)))

    def is_done(self, context: StepContext) -> str | None:
        return "not there" if read_config(context.calls, self.subject) is None else None

    def apply(self, context: StepContext) -> str | None:
        compared(context, self.subject, self.before)
        try:
            context.calls.send("DELETE", path_of("connectors", self.subject))
        except ConnectctlError as e:
            if e.code != "not-found":
                raise
        _until(context, self.subject, lambda found: found is None)
        return None


@dataclass(frozen=True)
class AwaitGone(ResourceStep["StepContext"]):
    """Wait until no worker runs a part of a deleted connector."""

    def describe(self) -> str:
        return f"wait until no worker runs {self.subject}"

    def apply(self, context: StepContext) -> str | None:
        context.await_gone(self.subject)
        return None


def compared(context: StepContext, name: str, before: str) -> dict[str, str]:
    """Return the configuration of ``name``. Raises ``Refused`` if its digest is not ``before``."""
    found = read_config(context.calls, name)
    if found is not None and digest(found) == before:
        return found
    raise Refused(
        f"{name} was {'deleted' if found is None else 'changed'} since the plan was made; it is "
        "left as it is",
        next_step="Make a new plan.",
        code="stale",
    )


def _until(
    context: StepContext, name: str, enough: Callable[[dict[str, str] | None], bool]
) -> None:
    """Wait until the configuration is ``enough``: workers other than the leader read it after a
    delay.
    """
    if not context.until(
        lambda: enough(read_config(context.calls, name)) or None, context.timeout, POLL
    ):
        raise TimedOut(
            f"The change of {name} was accepted, but is not visible after {context.timeout:g} s",
            why="another client changes it, or the workers do not read their config topic",
            next_step=f"See connectctl connectors show {name} -o json.",
            code="not-configured",
        )


WAIT = 10.0
"""Seconds within which workers write accepted offsets, also to the second topic."""


@dataclass(frozen=True)
class ReadOffsets(ResourceStep[StepContext]):
    """Read the offsets of a connector from the workers, and report which of them its tasks read:
    none of those in ``left``.
    """

    left: tuple[Mapping[str, Any], ...] = ()
    read_only = True

    def describe(self) -> str:
        return f"read the offsets of {self.subject} from the workers"

    def apply(self, context: StepContext) -> str | None:
        stored = read_offsets(context.calls, self.subject)
        if isinstance(stored, str):
            return f"could not be read ({stored})"
        try:
            config = read_config(context.calls, self.subject) or {}
        except ConnectctlError as e:
            return f"could not be read ({e.what})"
        orphaned = {text_of(partition) for partition in self.left}
        unread_texts, read_texts = list[str](), list[str]()
        for partition, offset in stored:
            unread = text_of(partition) in orphaned or reads(config, partition) is False
            (unread_texts if unread else read_texts).append(
                f"{text_of(partition)} at {text_of(offset)}"
            )
        texts = [named(read_texts)] if read_texts else []
        return (
            "; ".join([*texts, f"not read: {named(unread_texts)}"] if unread_texts else texts)
            or "none"
        )


def stored_offsets(calls: ConnectCalls, name: str) -> Any:
    return calls.get(path_of("connectors", name, "offsets"))["offsets"]


def by_partition(offsets: Any) -> dict[str, str]:
    return {text_of(entry["partition"]): text_of(entry["offset"]) for entry in offsets}


def write_offsets(
    context: StepContext,
    name: str,
    remaining: Callable[[], Mapping[str, str]],
    *,
    first: Mapping[str, str] | None = None,
    every: bool = False,
    or_else: str = "",
) -> str:
    """Write ``first`` and the ``remaining`` offsets, or delete ``every`` offset. Raises
    ``ConnectctlError`` if the result differs.

    The first request sets offsets, the second deletes others: the first one fences tasks that have
    not stopped yet, and ``remaining`` includes their commits until then.
    """
    path, different = path_of("connectors", name, "offsets"), remaining()
    if every:
        context.calls.send("DELETE", path)
    elif (
        request := first
        or {key: value for key, value in different.items() if value != "null"}
        or different
    ):
        _patch(context, path, request)
        if (request.keys() != different.keys() or first) and (again := remaining()):
            _patch(context, path, again)
    if not context.until(lambda: None if remaining() else True, WAIT, POLL):
        raise ConnectctlError(
            f"Offsets of {name} differ from those written; another writer is active{or_else}",
            next_step=f"See connectctl offsets show {name}.",
        )
    return f"{len(first or different)} written and read back"


def _patch(context: StepContext, path: str, offsets: Mapping[str, str]) -> None:
    body = [
        {"partition": read_json(key), "offset": read_json(value)} for key, value in offsets.items()
    ]
    context.calls.send("PATCH", path, {"offsets": body})


@dataclass(frozen=True)
class RestoreOffsets(ResourceStep[StepContext]):
    """Restore the offsets of a stopped connector that a change of its configuration caused.

    These are the source partitions in ``begun``, by all or some of their fields, and those that the
    configuration with the digest ``config`` does not read. ``former`` has the former offsets; the
    other source partitions had none. All other offsets are kept.
    """

    config: str
    begun: tuple[Mapping[str, Any], ...] = ()
    former: Entries = ()

    def describe(self) -> str:
        return f"restore the offsets that the change of {self.subject} replaced"

    def is_done(self, context: StepContext) -> str | None:
        return None if self._different(context) else "none to restore"

    def apply(self, context: StepContext) -> str | None:
        return write_offsets(context, self.subject, lambda: self._different(context))

    def _different(self, context: StepContext) -> dict[str, str]:
        config, former = stored_config(context.journal, self.config), dict(self.former)
        stored = stored_offsets(context.calls, self.subject)
        found = by_partition(stored)
        begun_keys = {text_of(entry) for entry in self.begun} & found.keys()
        partial = [entry for entry in self.begun if text_of(entry) not in begun_keys]

        def is_from_change(key: str, partition: Mapping[str, Any]) -> bool:
            return (
                key in begun_keys
                or reads(config, partition) is False
                or any(entry.items() <= partition.items() for entry in partial)
            )

        keys = {
            key
            for key, entry in zip(found, stored, strict=True)
            if is_from_change(key, entry["partition"])
        } | former.keys()
        expected = {key: former.get(key, "null") for key in sorted(keys)}
        return {key: value for key, value in expected.items() if found.get(key, "null") != value}
