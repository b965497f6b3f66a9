"""Offsets that a change of configuration moves to other source partitions: copied before the
change, deleted after it.

A connector that is resumed during the run does not lose its offsets: the former configuration reads
the former source partitions, which are unchanged, and the new configuration reads the new ones,
which already have their offsets.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.connector import State
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.finding import counted
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.operations.connectors.config.outlook import Entries, named
from connectctl.ops.operations.connectors.config.steps import (
    RestoreOffsets,
    by_partition,
    compared,
    stored_offsets,
    write_offsets,
)
from connectctl.ops.operations.connectors.config.values import digest, read_config, stored_config
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.steps import Await, ConnectorStep, SetTargetState
from connectctl.ops.operations.offsets.validity import refuse_invalid_offsets

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal, Run


@dataclass(frozen=True)
class CarryOffsets(ResourceStep[StepContext]):
    """Copy source offsets of a stopped connector from the first to the second source partition of
    each pair in ``pairs``.

    The configuration ``before`` reads the first ones, ``after`` the second ones; both are digests.
    ``force``: offsets that the connector would refuse are copied as well. ``was`` is the state of
    the connector before the run stopped it; a refusal restores it.
    """

    pairs: Entries
    before: str
    after: str
    was: str | None = None
    force: bool = False

    def describe(self) -> str:
        texts = named([f"{source} to {target}" for source, target in self.pairs])
        return f"carry {counted(len(self.pairs), 'source offset')} of {self.subject} over: {texts}"

    def is_done(self, context: StepContext) -> str | None:
        found = read_config(context.calls, self.subject)
        changed = found is not None and digest(found) == self.after
        return "its configuration is changed already" if changed else None

    def apply(self, context: StepContext) -> str | None:
        stored = stored_offsets(context.calls, self.subject)
        found = by_partition(stored)
        copies = [(target, found[source]) for source, target in self.pairs if source in found]
        try:
            compared(context, self.subject, self.before)
            config, stored_pairs = (
                stored_config(context.journal, self.after),
                [(offset["partition"], offset["offset"]) for offset in stored],
            )
            refuse_invalid_offsets(self.subject, config, copies, stored_pairs, force=self.force)
        except Refused as e:
            raise context.with_state_restored(self.subject, self.was, e) from e
        self._keep(context, found)
        # The first request fences tasks that have not stopped yet, so it is sent even if no offset
        # differs.
        result = write_offsets(
            context, self.subject, lambda: self._different(context), first=dict(copies)
        )
        self._keep(context, by_partition(stored_offsets(context.calls, self.subject)))
        return result

    def _different(self, context: StepContext) -> dict[str, str]:
        found = by_partition(stored_offsets(context.calls, self.subject))
        expected = {target: found.get(source, "null") for source, target in self.pairs}
        return {key: value for key, value in expected.items() if found.get(key, "null") != value}

    def _keep(self, context: StepContext, found: dict[str, str]) -> None:
        """Store the current offsets of both source partitions of each pair, for
        ``DeleteCarried``.
        """
        journal, run = context.journal_and_run()
        values = {
            key: found.get(source, "null")
            for source, target in self.pairs
            for key in (source, target)
        }
        journal.write(run.id, carried_file(self.subject), json.dumps(values).encode())


@dataclass(frozen=True)
class DeleteCarried(ResourceStep[StepContext]):
    """Delete the offsets of the first source partition of each pair in ``pairs``, which the stopped
    connector no longer reads.

    The second one has the same offset, by the ``CarryOffsets`` of this run or of ``run``, and is
    read by the configuration ``config``, a digest. Without fencing, a task that had not stopped may
    have committed to the first one since. This offset is carried over as well, unless the connector
    has committed to the second one.
    """

    pairs: Entries
    config: str
    run: str | None = None

    def describe(self) -> str:
        texts = named([source for source, _ in self.pairs])
        return (
            f"delete {counted(len(self.pairs), 'source offset')} of {self.subject} that it no "
            f"longer reads: {texts}"
        )

    def is_done(self, context: StepContext) -> str | None:
        found = by_partition(stored_offsets(context.calls, self.subject))
        return None if any(source in found for source, _ in self.pairs) else "none is there"

    def apply(self, context: StepContext) -> str | None:
        compared(context, self.subject, self.config)
        return write_offsets(context, self.subject, lambda: self._remaining(context))

    def _remaining(self, context: StepContext) -> dict[str, str]:
        found, (journal, run) = (
            by_partition(stored_offsets(context.calls, self.subject)),
            context.journal_and_run(),
        )
        carried = read_json(journal.read(self.run or run.id, carried_file(self.subject)))
        stored = [(source, target) for source, target in self.pairs if source in found]
        late = [
            pair for pair in stored if found[pair[0]] not in (carried[pair[0]], found.get(pair[1]))
        ]
        if moved := [
            target for source, target in late if found.get(target, "null") != carried[source]
        ]:
            raise Refused(
                f"{counted(len(moved), 'source partition')} of {self.subject} moved under both "
                "names since the offsets were carried over; nothing was deleted",
                why=f"two tasks have read the same; the connector now reads {named(moved)}",
                next_step=f"See connectctl offsets show {self.subject}.",
                code="moved",
            )
        return {target: found[source] for source, target in late} | {
            source: "null" for source, _ in stored
        }


def carried_file(connector: str) -> str:
    """Return the name of the file with the offsets that a run carried over for a connector."""
    return f"carried-{sha256(connector.encode()).hexdigest()[:16]}.json"


def was_carried(journal: Journal, run: str, connector: str) -> bool:
    """Return whether the run may have copied offsets of the connector."""
    return journal.path(run, carried_file(connector)).exists()


def reversed_pairs(pairs: Entries) -> Entries:
    return tuple((target, source) for source, target in pairs)


_AT_REST = (CarryOffsets, DeleteCarried, RestoreOffsets)
_REPEATED = (SetTargetState, Await, CarryOffsets)


def to_repeat(run: Run, steps: Sequence[ConnectorStep]) -> frozenset[int]:
    """Return the steps that a resumed run executes again: before it writes offsets of a connector,
    its stop and its copies.

    The connector may have been resumed in the meantime.
    """
    undone = [n for n, step in enumerate(steps) if isinstance(step, _AT_REST) and not run.done(n)]
    last = {steps[n].subject: n for n in undone}
    return frozenset(
        n
        for n, step in enumerate(steps)
        if run.done(n)
        and n < last.get(step.subject, 0)
        and isinstance(step, _REPEATED)
        and _is_stop(step)
    )


def _is_stop(step: ConnectorStep) -> bool:
    if isinstance(step, SetTargetState):
        return step.verb == "stop"
    return not isinstance(step, Await) or step.wanted is State.STOPPED
