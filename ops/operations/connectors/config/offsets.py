"""Offsets that are set when a connector is created, and deleted with it, through the workers'
endpoint (KIP-875).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.connector import State
from connectctl.ops.connect.offset_store import TOPIC
from connectctl.ops.connect.release import CHANGES_OFFSETS, INITIAL_STATE, older
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused
from connectctl.ops.core.finding import counted
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.operations.connectors.config.outlook import Entries, OffsetsOfChange, text_of
from connectctl.ops.operations.connectors.config.plan import Desired, Planner
from connectctl.ops.operations.connectors.config.steps import (
    by_partition,
    stored_offsets,
    write_offsets,
)
from connectctl.ops.operations.connectors.config.values import read_config
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.steps import Await, ConnectorStep, SetTargetState
from connectctl.ops.operations.offsets.input_file import read_entries
from connectctl.ops.operations.offsets.validity import refuse_invalid_offsets

if TYPE_CHECKING:
    from pathlib import Path

    from connectctl.ops.clients.protocols import ConnectCalls
    from connectctl.ops.core.journal import Journal
    from connectctl.ops.operations.connectors.observe import ConnectorHealth

HALF_CREATED = (
    "workers set offsets only of connectors that exist: if the run is interrupted after the "
    "creation, it is STOPPED without them, and would start from the beginning: then resume the "
    "run, not the connector"
)


@dataclass(frozen=True)
class SetConnectorOffsets(ResourceStep[StepContext]):
    """Set the offsets of a stopped connector: ``entries``, or those before the step ``of_step`` of
    the run ``run``.

    The former offsets are stored beside the journal of the run. ``every``: all other offsets are
    deleted. ``force``: offsets that the connector would refuse are set as well. ``left`` are the
    offsets after the step of ``run``; other offsets were committed since, and are not reset.
    ``was`` is the state of the connector before the run stopped it; a refusal restores it.
    """

    entries: Entries = ()
    run: str | None = None
    of_step: int = 0
    every: bool = False
    force: bool = False
    left: Entries = ()
    was: str | None = None

    def describe(self) -> str:
        if self.run:
            return f"restore the offsets of {self.subject} from run {self.run}"
        if self.every:
            return f"delete the offsets of {self.subject}"
        return f"set {counted(len(self.entries), 'offset')} of {self.subject}"

    def is_done(self, context: StepContext) -> str | None:
        if self.run is not None:
            journal, _ = context.journal_and_run()
            try:
                refuse_moved(self, journal, stored_offsets(context.calls, self.subject))
            except Refused as e:
                raise context.with_state_restored(self.subject, self.was, e) from e
        with self._half_created(context):
            return None if self._different(context) else "already set"

    def apply(self, context: StepContext) -> str | None:
        with self._half_created(context):
            if self.entries:
                stored = stored_offsets(context.calls, self.subject)
                config = read_config(context.calls, self.subject) or {}
                pairs = [(offset["partition"], offset["offset"]) for offset in stored]
                refuse_invalid_offsets(self.subject, config, self.entries, pairs, force=self.force)
            self._keep(context)
            every, more = (
                self.every and not self._wanted(context),
                ", or its dedicated topic has others",
            )
            return write_offsets(
                context, self.subject, lambda: self._different(context), every=every, or_else=more
            )

    @contextmanager
    def _half_created(self, context: StepContext) -> Iterator[None]:
        """Add to errors that the new connector has no offsets yet, and the command that
        continues.
        """
        try:
            yield
        except ConnectctlError as e:
            if self.entries and not isinstance(e, Refused):
                way = f"connectctl runs resume {context.journal_and_run()[1].id}"
                e.next_step = (
                    f"{self.subject} is STOPPED, and would start without its offsets: {way}"
                )
            raise

    def _keep(self, context: StepContext) -> None:
        """Store the current offsets; if an earlier attempt may have written, the ones that it
        stored and later commits.
        """
        (journal, run), name = context.journal_and_run(), file_of(context.step)
        path, now = journal.path(run.id, name), stored_offsets(context.calls, self.subject)
        if path.exists():
            saved, written = by_partition(read_json(path.read_bytes())), self._wanted(context)
            since = {
                key: value
                for key, value in by_partition(now).items()
                if value != written.get(key, saved.get(key))
            }
            pairs = (saved | since).items()
            now = [
                {"partition": read_json(key), "offset": read_json(value)} for key, value in pairs
            ]
        journal.write(run.id, name, json.dumps(now).encode())

    def _wanted(self, context: StepContext) -> dict[str, str]:
        if self.run is None:
            return {
                text_of(read_json(key)): text_of(read_json(value)) for key, value in self.entries
            }
        return kept_offsets(context.journal_and_run()[0], self.run, self.of_step)

    def _different(self, context: StepContext) -> dict[str, str]:
        found, expected = (
            by_partition(stored_offsets(context.calls, self.subject)),
            self._wanted(context),
        )
        if self.every:
            expected = dict.fromkeys(found, "null") | expected
        return {key: value for key, value in expected.items() if found.get(key, "null") != value}


def file_of(step: int) -> str:
    """Return the name of the file with the offsets before the step ``step`` of a run."""
    return f"offsets-{step}.json"


def kept_offsets(journal: Journal, run: str, step: int) -> dict[str, str]:
    """Return the offsets before the step ``step`` of ``run``, by source partition."""
    return by_partition(read_json(journal.read(run, file_of(step))))


def undo_of(
    step: SetConnectorOffsets, journal: Journal, run: str, number: int, was: str | None
) -> SetConnectorOffsets:
    """Return the step that undoes ``step``, the step ``number`` of ``run``.

    ``was`` is the state of the connector before the undo stops it.
    """
    before = kept_offsets(journal, run, number)
    if step.run is not None:
        written = kept_offsets(journal, step.run, step.of_step)
    else:
        wrote = {text_of(read_json(key)): text_of(read_json(value)) for key, value in step.entries}
        written = {} if step.every else before | wrote
    return SetConnectorOffsets(
        step.subject, run=run, of_step=number, every=True, left=tuple(written.items()), was=was
    )


def refuse_moved(step: SetConnectorOffsets, journal: Journal, stored: Any) -> None:
    """Raise ``Refused`` if the undo ``step`` would reset later commits in ``stored``, with their
    number.
    """
    assert step.run is not None
    found, written, former = (
        by_partition(stored),
        dict(step.left),
        kept_offsets(journal, step.run, step.of_step),
    )
    count = sum(
        found.get(key, "null") not in (written.get(key, "null"), former.get(key, "null"))
        for key in found.keys() | written.keys()
    )
    if count:
        raise Refused(
            f"{counted(count, 'source partition')} of {step.subject} moved since the run "
            f"{step.run}; nothing was undone",
            why="its records would be written again",
            next_step=f"See connectctl offsets show {step.subject}. To set them back all the "
            f"same: connectctl offsets set {step.subject} -f FILE --stop; to delete the "
            f"connector: connectctl connectors delete {step.subject}.",
            code="refused",
        )


def check_initial(connectors: Sequence[Desired], file: Path | None) -> Entries:
    """Return the offsets in ``file`` for the only connector in ``connectors``; none without a file.
    Raises ``BadInput``.
    """
    if file is None:
        return ()
    if len(connectors) != 1:
        raise BadInput(
            f"--offsets requires exactly one connector, not {len(connectors)}",
            next_step="Give one with -f.",
        )
    return read_entries(file, connectors[0].name)


def initial(
    calls: ConnectCalls,
    planner: Planner,
    connectors: Sequence[Desired],
    entries: Entries,
    effects_of: Callable[[Desired], OffsetsOfChange] = lambda desired: OffsetsOfChange(),
    *,
    force: bool = False,
) -> None:
    """Plan the creation of ``connectors``; ``effects_of`` returns its effects on source offsets.

    Raises ``Refused`` if the workers do not support the requested states or offsets, and without
    ``force`` for offsets that the connector would refuse.
    """
    version = str(calls.get("/").get("version"))
    if (entries or any(desired.state not in (None, "RUNNING") for desired in connectors)) and older(
        version, INITIAL_STATE
    ):
        raise Refused(
            f"The workers are {version}; creating a connector in a state other than RUNNING "
            "requires 3.7 (KIP-980)",
            next_step=f"Set its offsets first: connectctl offsets set {connectors[0].name} -f "
            "FILE; then create it."
            if entries
            else "Create it without --stopped, then stop it: connectctl connectors stop "
            f"{connectors[0].name}.",
            code="unsupported",
        )
    for desired in connectors:
        state = desired.state or "RUNNING"
        planner.create(
            replace(desired, state="STOPPED" if entries else desired.state, kept_state=None),
            effects_of(desired),
        )
        if entries:
            refuse_invalid_offsets(desired.name, desired.config, entries, force=force)
            planner.steps.append(SetConnectorOffsets(desired.name, entries, force=force))
            planner.warnings = (*planner.warnings, f"{desired.name}: {HALF_CREATED}")
            planner.waits[:] = [wait for wait in planner.waits if wait.subject != desired.name]
            if state != "STOPPED":
                planner.steps.append(
                    SetTargetState(
                        desired.name, "resume" if state == "RUNNING" else "pause", now="STOPPED"
                    )
                )
            if planner.wait:
                planner.waits.append(Await(desired.name, State(state)))


def check_removable(calls: ConnectCalls, connectors: Iterable[ConnectorHealth]) -> None:
    """Raise ``Refused`` if workers cannot delete offsets, or would leave contradictory topics."""
    version = str(calls.get("/").get("version"))
    hint = (
        "Delete them first: connectctl offsets reset NAME --stop; then delete it without "
        "--with-offsets."
    )
    if older(version, CHANGES_OFFSETS):
        raise Refused(
            f"The workers are {version}; deleting offsets requires 3.6",
            next_step=hint,
            code="unsupported",
        )
    if dedicated := [health.name for health in connectors if health.connector.config.get(TOPIC)]:
        raise Refused(
            f"The workers may fail to delete the offsets of {', '.join(dedicated)}",
            why="with exactly-once and a dedicated offsets topic, workers from 3.8 to 4.3 do",
            next_step=hint,
            code="unsupported",
        )


def removal(health: ConnectorHealth) -> list[ConnectorStep]:
    name = health.name
    return [
        SetTargetState(name, "stop", now=str(health.verdict)),
        Await(name, State.STOPPED),
        SetConnectorOffsets(name, every=True),
    ]
