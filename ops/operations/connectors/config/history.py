"""Former configurations of a connector, read from the config topic and the journal, with their times
and files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from connectctl.ops.config.masking import remember
from connectctl.ops.connect import config_topic
from connectctl.ops.core.errors import BadInput, ConnectctlError, TimedOut
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.core.step import Step
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
from connectctl.ops.operations.connectors.access import ClusterAccess
from connectctl.ops.operations.connectors.config.steps import (
    ChangeConnector,
    CreateConnector,
    DeleteConnector,
)
from connectctl.ops.operations.connectors.config.values import (
    Config,
    difference,
    digest,
    stored_config,
)

STEPS = (CreateConnector, ChangeConnector, DeleteConnector)
MOST_NAMED = 8
"""The most revisions that an error names."""
CLOCKS_MS = 60_000
"""The maximum difference between the clocks of this machine and of a worker, or delay of a journal
entry.
"""


@dataclass(frozen=True)
class ConfigVersion:
    """A configuration of a connector, written at ``at``, in ms since the epoch; ``config`` is None
    for a deletion.

    ``offset`` is the offset of its record in the config topic, None if the topic no longer has it.
    ``run`` is the run that wrote it, None for another client. With ``until``, ``run`` replaced it
    at ``at``, and its own time is unknown.
    """

    at: int | None
    config: Config | None
    offset: int | None = None
    run: str | None = None
    until: bool = False

    @property
    def revisions(self) -> tuple[str, ...]:
        """The names of the version, which no other version ever gets; the first one is shown.

        The offset of its record is the same for everybody. Compaction leaves only the name of a
        run, and of a configuration that a run replaced.
        """
        of_run = () if self.run is None else (f"before-{self.run}" if self.until else self.run,)
        return of_run if self.offset is None else (str(self.offset), *of_run)


def topic_versions(records: Iterable[ConsumerRecord], name: str) -> list[ConfigVersion]:
    """Return the versions of the connector ``name`` in committed ``records`` of the config topic,
    the oldest first.

    Records that workers cannot read are omitted.
    """
    found = []
    for record in sorted(records, key=lambda r: r.offset):
        with suppress(ValueError):
            key, value = config_topic.read(record)
            if key == config_topic.CONNECTOR + name:
                properties = None if value is None else value["properties"]
                remember(properties or {})
                # Workers add the name to a configuration without one
                # (ConnectorsResource.checkAndPutConnectorConfigName).
                config = None if properties is None else {"name": name, **properties}
                found.append(ConfigVersion(record.timestamp, config, record.offset))
    return found


def journal_versions(
    journal: Journal,
    name: str,
    cluster_id: str,
    group_id: str,
    kinds: Mapping[str, type[Step[Any]]],
) -> list[ConfigVersion]:
    """Return the configurations that runs on this Connect cluster gave the connector ``name``, and
    those before them, the oldest first.

    ``kinds`` are the classes of all steps that a journal may have.
    """
    runs = [
        run for run in journal.runs() if (run.cluster_id, run.group_id) == (cluster_id, group_id)
    ]
    found: list[ConfigVersion] = []
    for run in reversed([run for run in runs if name in run.subjects and run.changed]):
        try:
            steps = journal.plan_of(run, kinds).steps
        except BadInput:
            continue  # a run of another kind
        for number, step in enumerate(steps):
            done = next((m for m in run.marks if m.step == number and m.what == "done"), None)
            if step.subject == name and isinstance(step, STEPS) and done is not None:
                found += _of_step(
                    journal, step, run.id, int(datetime.fromisoformat(done.at).timestamp() * 1000)
                )
    return found


def _of_step(journal: Journal, step: Step[Any], run: str, at: int) -> Iterator[ConfigVersion]:
    if isinstance(step, ChangeConnector | DeleteConnector):
        with suppress(ConnectctlError):
            yield ConfigVersion(at, stored_config(journal, step.before), run=run, until=True)
    if isinstance(step, DeleteConnector):
        yield ConfigVersion(at, None, run=run)
    elif isinstance(step, ChangeConnector | CreateConnector):
        with suppress(ConnectctlError):
            yield ConfigVersion(at, stored_config(journal, step.after), run=run)


def merged(topic: Sequence[ConfigVersion], journal: Sequence[ConfigVersion]) -> list[ConfigVersion]:
    """Return both lists as one, the newest first, without repetitions. Versions in both are
    identified by content and time.
    """
    versions = list(topic)
    for version in journal:
        at = None if version.until else _same(versions, version)
        if at is None:
            versions.append(version)
        else:
            versions[at] = replace(versions[at], run=version.run)
    # A version that a run replaced precedes the version of the run, whose clock may differ.
    clock: dict[str | None, int] = {
        v.run: v.at for v in versions if v.run is not None and not v.until and v.at is not None
    }
    ordered = sorted(
        versions, key=lambda v: (clock.get(v.run, v.at or 0) if v.until else v.at or 0, not v.until)
    )
    found: list[ConfigVersion] = []
    for version in ordered:
        if not found or _content(found[-1]) != _content(version):
            found.append(version)
        elif found[-1].until and not version.until:
            found[-1] = version
    return found[::-1]


def _same(versions: Sequence[ConfigVersion], version: ConfigVersion) -> int | None:
    """Return the index of ``version`` among those of the topic without a run: the nearest in time
    with the same content.
    """
    same_content = [
        (abs((candidate.at or 0) - (version.at or 0)), number)
        for number, candidate in enumerate(versions)
        if candidate.offset is not None
        and candidate.run is None
        and _content(candidate) == _content(version)
    ]
    distance, number = min(same_content, default=(CLOCKS_MS + 1, None))
    return number if distance <= CLOCKS_MS else None


def _content(version: ConfigVersion) -> str | None:
    return None if version.config is None else digest(version.config)


def changes(version: ConfigVersion, former: ConfigVersion | None) -> dict[str, str | None]:
    """Return the changes of ``version`` to the one before, by property; all properties for the
    first, none for a deletion.
    """
    if version.config is None:
        return {}
    return difference((former.config or {}) if former else {}, version.config)


def index_of(found: Sequence[ConfigVersion], name: str, revision: str, unseen: str | None) -> int:
    """Return the index of the version ``revision``. Raises ``BadInput`` if it is unknown.

    ``unseen`` is why the config topic was not read, None if it was.
    """
    for number, each in enumerate(found):
        if revision in each.revisions:
            return number
    known = some_of([each.revisions[0] for each in found], MOST_NAMED)
    raise BadInput(
        f"{name} has no revision {revision}",
        why=f"known are {known}" + (f"; the config topic was not read: {unseen}" if unseen else ""),
        next_step=f"See connectctl connectors history {name}.",
        code="unknown-revision",
    )


WRITES = (CreateConnector.__name__, ChangeConnector.__name__)


@dataclass(frozen=True)
class Write:
    """The digest of a configuration that the run ``run`` wrote at ``at``, in ms since the epoch;
    from ``file``, if any.
    """

    digest: str
    at: int
    run: str
    file: str | None = None


@dataclass
class ConfigOrigin:
    """The writes of runs to a connector since its last deletion by a run, the oldest first."""

    writes: list[Write] = field(default_factory=list)

    @property
    def applied(self) -> Write | None:
        """Return the newest write from a file."""
        return next((write for write in reversed(self.writes) if write.file is not None), None)


def origins(
    journal: Journal, cluster_id: str, group_id: str, names: Collection[str]
) -> Mapping[str, ConfigOrigin]:
    """Return the writes to the connectors ``names`` of this Connect cluster. Runs that were undone
    are ignored.
    """
    found: dict[str, ConfigOrigin] = {}
    requested = frozenset(names)
    for run in reversed(journal.runs()):
        of_cluster = (run.cluster_id, run.group_id) == (cluster_id, group_id)
        if (
            not of_cluster
            or run.state is RunState.UNDONE
            or not run.changed
            or requested.isdisjoint(run.subjects)
        ):
            continue
        for step, at in _done(journal, run):
            name, kind = step.get("subject"), step.get("step")
            if name not in requested:
                continue
            if kind == DeleteConnector.__name__:
                found.pop(name, None)
            elif kind in WRITES:
                found.setdefault(name, ConfigOrigin()).writes.append(
                    Write(step["after"], at, run.id, step.get("file"))
                )
    return found


def _done(journal: Journal, run: Run) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield the steps that ``run`` executed, from its plan, with their times. Steps that it found
    done are omitted.
    """
    try:
        steps = journal.plan(run.id)["steps"]
    except (BadInput, KeyError):
        return  # a run of another kind, or one whose directory was removed
    for number, step in enumerate(steps):
        mark = next(
            (m for m in run.marks if m.step == number and m.what in ("done", "already")), None
        )
        if mark is not None and run.did(number):
            yield step, int(datetime.fromisoformat(mark.at).timestamp() * 1000)


def versions_of(
    cluster: ClusterAccess, name: str, kinds: Mapping[str, type[Any]]
) -> tuple[list[ConfigVersion], str | None]:
    """Return the versions of ``name``, and why the config topic was not read, None if it was.

    ``kinds`` are the steps of the journal's plans. Raises ``BadInput`` for a connector without any
    version.
    """
    unseen: ConnectctlError | None = None
    topic: list[ConfigVersion] = []
    try:
        topic = topic_versions(config_records(cluster), name)
    except ConnectctlError as e:
        unseen = e
    journal = cluster.clients.journal(read_only=True)
    found = merged(
        topic, journal_versions(journal, name, cluster.cluster_id(), cluster.group_id, kinds)
    )
    if not found and unseen is not None:
        raise unseen
    if not found:
        raise BadInput(
            f"No configuration of {name} is known",
            why="neither the config topic nor the journal of this machine has one",
            next_step="See connectctl connectors list.",
            code="unknown-connector",
        )
    return found, unseen.what if unseen is not None else None


def config_records(cluster: ClusterAccess) -> list[ConsumerRecord]:
    """Return all committed records of the config topic. Raises ``ConnectctlError`` if it is not
    read to its end.
    """
    if cluster.kafka is None or cluster.group is None:
        raise BadInput(
            "The config topic was not read: the brokers are not given",
            next_step="Add --bootstrap-servers.",
        )
    topic = str(
        find_internal_topics(
            cluster.kafka, cluster.group, cluster.clients.named_topics, needed=("config",)
        ).config
    )
    image = cluster.kafka.image([topic], patience=cluster.clients.timeout, superseded=True)[topic]
    if image.held_back:
        raise TimedOut(f"{topic} was not read to its end", why="a transaction is open on it")
    return [*image.superseded, *image.latest]
