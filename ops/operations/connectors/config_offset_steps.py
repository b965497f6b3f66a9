"""Source offsets after a change of configuration: as workers give them then, and back when the change is undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.connector import path_of
from connectctl.ops.connect.partition_changes import reads
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.step import Step
from connectctl.ops.operations.connectors.config_outlook import Entries, named, read_offsets, text_of
from connectctl.ops.operations.connectors.config_values import kept, read_config
from connectctl.ops.operations.connectors.context import POLL, StepContext

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls

WAIT = 10.0
"""Seconds in which workers write what they have accepted, also to the second topic."""


@dataclass(frozen=True)
class ReadOffsets(Step[StepContext]):
    """Read the offsets that workers give a connector, and which of them its tasks ask for: none of those in ``left``."""

    subject: str
    left: tuple[Mapping[str, Any], ...] = ()
    now: str = ""
    read_only = True

    def describe(self) -> str:
        return f"read the offsets of {self.subject} from the workers"

    def apply(self, context: StepContext) -> str | None:
        seen = read_offsets(context.calls, self.subject)
        if isinstance(seen, str):
            return f"could not be read ({seen})"
        try:
            config = read_config(context.calls, self.subject) or {}
        except ConnectctlError as e:
            return f"could not be read ({e.what})"
        gone = {text_of(each) for each in self.left}
        left, used = list[str](), list[str]()
        for partition, offset in seen:
            unread = text_of(partition) in gone or reads(config, partition) is False
            (left if unread else used).append(f"{text_of(partition)} at {text_of(offset)}")
        texts = [named(used)] if used else []
        return "; ".join([*texts, f"not read: {named(left)}"] if left else texts) or "none"


def stored_offsets(calls: ConnectCalls, name: str) -> Any:
    return calls.get(path_of("connectors", name, "offsets"))["offsets"]


def by_partition(offsets: Any) -> dict[str, str]:
    return {text_of(each["partition"]): text_of(each["offset"]) for each in offsets}


def write_offsets(
    context: StepContext,
    name: str,
    left: Callable[[], Mapping[str, str]],
    *,
    first: Mapping[str, str] | None = None,
    every: bool = False,
    or_else: str = "",
) -> str:
    """Write ``first`` and what is ``left``, or delete ``every`` offset. Raises ``ConnectctlError`` if others are there then.

    Offsets are set first, and others deleted by a second request: the first one fences tasks that did not hear of the stop,
    and what they committed until then is in ``left`` again.
    """
    path, wrong = path_of("connectors", name, "offsets"), left()
    if every:
        context.calls.send("DELETE", path)
    elif request := first or {key: value for key, value in wrong.items() if value != "null"} or wrong:
        _patch(context, path, request)
        if (request.keys() != wrong.keys() or first) and (again := left()):
            _patch(context, path, again)
    if not context.until(lambda: None if left() else True, WAIT, POLL):
        raise ConnectctlError(
            f"Offsets of {name} differ from those written; another writer is active{or_else}",
            next_step=f"See connectctl offsets show {name}.",
        )
    return f"{len(first or wrong)} written and read back"


def _patch(context: StepContext, path: str, offsets: Mapping[str, str]) -> None:
    body = [{"partition": read_json(key), "offset": read_json(value)} for key, value in offsets.items()]
    context.calls.send("PATCH", path, {"offsets": body})


@dataclass(frozen=True)
class RestoreOffsets(Step[StepContext]):
    """Set the offsets of a stopped connector that a change made, to what they were before it.

    These are the source partitions that ``begun`` names, by all of their fields or by some, and those that the
    configuration ``config``, by its digest, does not read. ``former`` has those that had an offset; the others had none.
    Whatever else the connector has read since stays read.
    """

    subject: str
    config: str
    begun: tuple[Mapping[str, Any], ...] = ()
    former: Entries = ()
    now: str = ""

    def describe(self) -> str:
        return f"restore the offsets that the change of {self.subject} replaced"

    def is_done(self, context: StepContext) -> str | None:
        return None if self._wrong(context) else "none to restore"

    def apply(self, context: StepContext) -> str | None:
        return write_offsets(context, self.subject, lambda: self._wrong(context))

    def _wrong(self, context: StepContext) -> dict[str, str]:
        config, former = kept(context.journal, self.config), dict(self.former)
        seen = stored_offsets(context.calls, self.subject)
        found = by_partition(seen)
        whole = {text_of(each) for each in self.begun} & found.keys()
        parts = [each for each in self.begun if text_of(each) not in whole]

        def made(key: str, partition: Mapping[str, Any]) -> bool:
            return (
                key in whole
                or reads(config, partition) is False
                or any(each.items() <= partition.items() for each in parts)
            )

        keys = {key for key, each in zip(found, seen, strict=True) if made(key, each["partition"])} | former.keys()
        wanted = {key: former.get(key, "null") for key in sorted(keys)}
        return {key: value for key, value in wanted.items() if found.get(key, "null") != value}
