"""The configurations that a connector had, from the config topic and the journal, and when and from which file they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.masking import remember
from connectctl.ops.connect import config_topic
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.operations.connectors.config.steps import ChangeConnector, CreateConnector, DeleteConnector
from connectctl.ops.operations.connectors.config.values import Config, difference, digest, kept

if TYPE_CHECKING:
    from connectctl.ops.core.step import Step
    from connectctl.ops.kafka.records import ConsumerRecord

STEPS = (CreateConnector, ChangeConnector, DeleteConnector)
CLOCKS_MS = 60_000
"""By how much this machine's clock and that of a worker may differ, or a run be slower to write down what it did."""


@dataclass(frozen=True)
class ConfigVersion:
    """What a connector was made at ``at``, in ms since the epoch; ``config`` is None where it was deleted.

    ``offset`` is that of its record in the config topic, None where that has it no more. ``run`` made it so, or where it is
    ``until``, changed it: then ``at`` is the time of that change, and its own is unknown. None is somebody else.
    """

    at: int | None
    config: Config | None
    offset: int | None = None
    run: str | None = None
    until: bool = False


def topic_versions(records: Iterable[ConsumerRecord], name: str) -> list[ConfigVersion]:
    """What committed ``records`` of the config topic say of the connector ``name``, the oldest first. What no worker can
    read is left out, as with workers.
    """
    found = []
    for record in sorted(records, key=lambda r: r.offset):
        with suppress(ValueError):
            key, value = config_topic.read(record)
            if key == config_topic.CONNECTOR + name:
                properties = None if value is None else value["properties"]
                remember(properties or {})
                # Workers put the name where a configuration has none (ConnectorsResource.checkAndPutConnectorConfigName).
                config = None if properties is None else {"name": name, **properties}
                found.append(ConfigVersion(record.timestamp, config, record.offset))
    return found


def journal_versions(
    journal: Journal, name: str, cluster_id: str, group_id: str, kinds: Mapping[str, type[Step[Any]]]
) -> list[ConfigVersion]:
    """What runs on this Connect cluster made of the connector ``name``, and what it was before, the oldest first. ``kinds``
    are those of all steps that a journal may have.
    """
    runs = [run for run in journal.runs() if (run.cluster_id, run.group_id) == (cluster_id, group_id)]
    found: list[ConfigVersion] = []
    for run in reversed([run for run in runs if name in run.subjects and run.changed]):
        try:
            steps = journal.plan_of(run, kinds).steps
        except BadInput:
            continue  # a run of another kind
        for number, step in enumerate(steps):
            done = next((m for m in run.marks if m.step == number and m.what == "done"), None)
            if step.subject == name and isinstance(step, STEPS) and done is not None:
                found += _of_step(journal, step, run.id, int(datetime.fromisoformat(done.at).timestamp() * 1000))
    return found


def _of_step(journal: Journal, step: Step[Any], run: str, at: int) -> Iterator[ConfigVersion]:
    if isinstance(step, ChangeConnector | DeleteConnector):
        with suppress(ConnectctlError):
            yield ConfigVersion(at, kept(journal, step.before), run=run, until=True)
    if isinstance(step, DeleteConnector):
        yield ConfigVersion(at, None, run=run)
    elif isinstance(step, ChangeConnector | CreateConnector):
        with suppress(ConnectctlError):
            yield ConfigVersion(at, kept(journal, step.after), run=run)


def merged(topic: Sequence[ConfigVersion], journal: Sequence[ConfigVersion]) -> list[ConfigVersion]:
    """Both as one, the newest first, without what changed nothing. What is in both is known by its content and its time."""
    whole = list(topic)
    for each in journal:
        at = None if each.until else _same(whole, each)
        if at is None:
            whole.append(each)
        else:
            whole[at] = replace(whole[at], run=each.run)
    # What was there until a run changed it comes just before what the run made of it, whose clock may be another one.
    clock: dict[str | None, int] = {
        v.run: v.at for v in whole if v.run is not None and not v.until and v.at is not None
    }
    ordered = sorted(whole, key=lambda v: (clock.get(v.run, v.at or 0) if v.until else v.at or 0, not v.until))
    found: list[ConfigVersion] = []
    for each in ordered:
        if not found or _content(found[-1]) != _content(each):
            found.append(each)
        elif found[-1].until and not each.until:
            found[-1] = each
    return found[::-1]


def _same(whole: Sequence[ConfigVersion], wanted: ConfigVersion) -> int | None:
    """Where ``wanted`` is among those of the topic that no run has yet: the nearest in time of the same content."""
    near = [
        (abs((v.at or 0) - (wanted.at or 0)), number)
        for number, v in enumerate(whole)
        if v.offset is not None and v.run is None and _content(v) == _content(wanted)
    ]
    apart, number = min(near, default=(CLOCKS_MS + 1, None))
    return number if apart <= CLOCKS_MS else None


def _content(version: ConfigVersion) -> str | None:
    return None if version.config is None else digest(version.config)


def changes(version: ConfigVersion, former: ConfigVersion | None) -> dict[str, str | None]:
    """What ``version`` changed of the one before, by property; everything for the first, nothing for a deletion."""
    if version.config is None:
        return {}
    return difference((former.config or {}) if former else {}, version.config)


def chosen_version(found: Sequence[ConfigVersion], name: str, number: int) -> ConfigVersion:
    """The version ``number``, from 1 for the newest. Raises ``BadInput`` for one that is not there."""
    if not 1 <= number <= len(found):
        raise BadInput(
            f"{name} has no version {number}",
            why=f"{len(found)} are known",
            next_step=f"See connectctl connectors history {name}.",
            code="unknown-version",
        )
    return found[number - 1]


WRITES = (CreateConnector.__name__, ChangeConnector.__name__)


@dataclass(frozen=True)
class Write:
    """A configuration that the run ``run`` wrote at ``at``, in ms since the epoch, by its digest; from ``file``, if any."""

    digest: str
    at: int
    run: str
    file: str | None = None


@dataclass
class ConfigOrigin:
    """The writes of runs to a connector, the oldest first, without what came before a run deleted it."""

    writes: list[Write] = field(default_factory=list)

    @property
    def applied(self) -> Write | None:
        """The newest that came from a file."""
        return next((each for each in reversed(self.writes) if each.file is not None), None)


def origins(journal: Journal, cluster_id: str, group_id: str, names: Collection[str]) -> Mapping[str, ConfigOrigin]:
    """What is known of the connectors ``names`` of this Connect cluster. Runs that were undone count for nothing."""
    found: dict[str, ConfigOrigin] = {}
    wanted = frozenset(names)
    for run in reversed(journal.runs()):
        here = (run.cluster_id, run.group_id) == (cluster_id, group_id)
        if not here or run.state is RunState.UNDONE or not run.changed or wanted.isdisjoint(run.subjects):
            continue
        for step, at in _done(journal, run):
            name, kind = step.get("subject"), step.get("step")
            if name not in wanted:
                continue
            if kind == DeleteConnector.__name__:
                found.pop(name, None)
            elif kind in WRITES:
                found.setdefault(name, ConfigOrigin()).writes.append(Write(step["after"], at, run.id, step.get("file")))
    return found


def _done(journal: Journal, run: Run) -> Iterator[tuple[Mapping[str, Any], int]]:
    """The steps that ``run`` did, as its plan has them, each with its time. What it found done is not its own."""
    try:
        steps = journal.plan(run.id)["steps"]
    except (BadInput, KeyError):
        return  # a run of another kind, or one whose directory was removed
    for number, step in enumerate(steps):
        mark = next((m for m in run.marks if m.step == number and m.what in ("done", "already")), None)
        if mark is not None and run.did(number):
            yield step, int(datetime.fromisoformat(mark.at).timestamp() * 1000)
