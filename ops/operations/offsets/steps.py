"""The steps of a change of source offsets: back up, create, change, configure, check.

Every step reads the topics again when it is executed; the records to write are decided from them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import TYPE_CHECKING, Any, ClassVar

from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.core.finding import counted
from connectctl.ops.core.journal import KEPT
from connectctl.ops.core.step import OBSERVED, Step
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.operations.connectors.configure import ChangeConfig, words
from connectctl.ops.operations.offsets import changes, rest_api, validity
from connectctl.ops.operations.offsets.backup_file import read_backup
from connectctl.ops.operations.offsets.backup_renewal import renewed
from connectctl.ops.operations.offsets.begun import change_begun
from connectctl.ops.operations.offsets.changes import Ends, MergeOffsets, OffsetRequest, RestoreBackup
from connectctl.ops.operations.offsets.dump_lines import lines_of
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.ends import later_records, write_ends
from connectctl.ops.operations.offsets.engine import Asked
from connectctl.ops.operations.offsets.last_commits import stale
from connectctl.ops.operations.offsets.obstacles import obstacles, overruled
from connectctl.ops.operations.offsets.purpose import AllKeys, DifferingKeys
from connectctl.ops.operations.offsets.record_changes import OffsetChanges, RecordChange, digest
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery
from connectctl.ops.operations.offsets.task_producers import moved
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal
    from connectctl.ops.operations.offsets.context import OffsetContext
    from connectctl.ops.operations.offsets.engine import View

ATTEMPTS = 3
"""Attempts to write a transaction that turns out not to be committed."""
TOPIC_CONFIG = {"cleanup.policy": "compact"}
REST_PATIENCE = 10.0
"""Seconds within which workers write to the second topic after their response."""
REST_POLL = 0.3


@dataclass(frozen=True)
class Backup(Step["OffsetContext"]):
    """Save every offset record of the connector, keys and values byte for byte, before anything is written."""

    subject: str
    topics: tuple[str, ...]
    dedicated_topic: str | None = None
    now: str = ""
    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        return f"back up the offsets of {self.subject} in {' and '.join(self.topics)}"

    def apply(self, context: OffsetContext) -> str | None:
        journal, run = context.journal_and_run()
        file = backup_file(context.step)
        change = change_begun(journal, run, self.subject, Change.__name__)
        if change is not None and journal.path(run.id, file).exists():
            return self._renew(context, change)
        view = context.view(Asked(AllKeys(self.subject), self.dedicated_topic, streamed=True))
        written = count()
        content = (f"{line}\n".encode() for line in view.lines(self.subject) if next(written) >= 0)
        path = journal.write_all(run.id, lambda: file, content)
        write_ends(journal, run, context.step, view.places[self.subject])
        return f"{next(written)} records in {path}"

    def _renew(self, context: OffsetContext, change: Mapping[str, Any]) -> str:
        """Take what was committed since an earlier attempt, which may have written, into the backup that it made."""
        journal, run = context.journal_and_run()
        request, path = changes.from_data(change["request"]), journal.path(run.id, backup_file(context.step))
        asked = asked_by(request, journal)
        places = context.view(Asked(AllKeys(self.subject), self.dedicated_topic)).places[self.subject]
        restored = {self.subject: read_backup(asked.backup)} if asked.backup else {}
        found = renewed(places, read_backup(path), request, restored.get(self.subject))
        if not found.committed:
            return "already backed up"
        lines = (f"{line}\n".encode() for place in found.records for line in lines_of(*place))
        journal.write_all(run.id, lambda: backup_file(context.step), lines)
        write_ends(journal, run, context.step, places)
        return f"{counted(found.committed, 'record')} committed since the first attempt added to {path}"


def backup_file(step: int) -> str:
    """The name of the backup that step ``step`` of a run writes, in the run's directory."""
    return f"backup-{step}.jsonl"


@dataclass(frozen=True)
class CreateTopic(Step["OffsetContext"]):
    """Create a dedicated offsets topic with the settings that workers give it: those of the global one."""

    subject: str
    topic: str
    bootstrap: str | None = None
    now: str = ""

    def describe(self) -> str:
        return f"create topic {self.topic} (compacted, same number of partitions as the global one)"

    def rights(self, context: OffsetContext) -> Iterator[Right]:
        if self.bootstrap is None:
            yield Right(Operation.CREATE, Resource.TOPIC, self.topic)

    def is_done(self, context: OffsetContext) -> str | None:
        return f"{self.topic} exists" if those_that_exist(context.kafka(self.bootstrap), self.topic) else None

    def apply(self, context: OffsetContext) -> str | None:
        context.refuse_while_running(self.subject)
        model = context.sources.kafka.topics([context.sources.offsets_topic])[context.sources.offsets_topic]
        replicas = max(model.replicas.values(), default=1)
        context.kafka(self.bootstrap).create_topic(self.topic, model.partitions, replicas, TOPIC_CONFIG)
        return None


@dataclass(frozen=True)
class Change(Step["OffsetContext"]):
    """Write the changes of a request, in one transaction per Kafka cluster, and read them back.

    ``agreed`` is the digest of the confirmed changes, and ``since`` where the topics ended then; None and empty
    if it was still running, so that its offsets advance.
    ``via`` is ``kafka``, or ``rest`` for the workers' own endpoint. ``was`` is the state in which the run stopped the
    connector, None where it did not; a refusal brings that back. ``overruled`` are the source partitions for which the
    chosen policy takes another offset than tasks committed: others are not agreed upon. ``topics`` of the workers' cluster
    are those that it would write to now, without the workers.
    """

    subject: str
    request: dict[str, Any]
    agreed: str | None
    summary: str
    dedicated_topic: str | None = None
    via: str = "kafka"
    was: str | None = None
    overruled: str | None = None
    since: Ends = field(default=(), metadata=OBSERVED)
    topics: tuple[str, ...] = field(default=(), metadata=OBSERVED)
    now: str = ""

    def describe(self) -> str:
        return self.summary

    def rights(self, context: OffsetContext) -> Iterator[Right]:
        if self.topics:
            yield Right(Operation.WRITE, Resource.TRANSACTIONAL_ID, writer_id(context))
        for topic in self.topics:
            yield Right(Operation.WRITE, Resource.TOPIC, topic)

    def is_done(self, context: OffsetContext) -> str | None:
        view, decision = self._decided(context)
        if decision.writes:
            return None
        write_ends(*context.journal_and_run(), context.step, view.places[self.subject])
        return "already set"

    def apply(self, context: OffsetContext) -> str | None:
        view, decision = self._decided(context)
        number = len(decision.writes)
        if self.via == "rest":
            self._by_rest(context, view.places[self.subject], decision)
        else:
            self._by_kafka(context, decision)
            self._check_unmoved(context)
        write_ends(*context.journal_and_run(), context.step, self._look(context)[0].places[self.subject])
        return f"{number} records written and read back"

    def _decided(self, context: OffsetContext) -> tuple[View, OffsetChanges]:
        """The changes, on fresh records, once nothing can commit any more. Raises ``Refused`` as the plan would be."""
        context.refuse_while_running(self.subject)
        self._refuse_if_moved(context)
        view, decision = self._look(context)
        try:
            self._agree(context, view.places[self.subject], decision)
            self._refuse_invalid(view, decision)
        except Refused as e:
            raise context.brought_back(self.subject, self.was, e) from e
        return view, decision

    def _refuse_if_moved(self, context: OffsetContext) -> None:
        if id_ := moved(context, self.subject):
            raise Refused(
                f"A task of {self.subject} started after it was fenced; no offsets were written",
                why=f"the transactional id {id_} was initialized again",
                next_step="Stop the connector on the workers or the connectctl run, and try again.",
                code="in-use",
            )

    def _check_unmoved(self, context: OffsetContext) -> None:
        if id_ := moved(context, self.subject):
            raise ConnectctlError(
                f"A task of {self.subject} started while its offsets were written, and may resume from the old offsets",
                why=f"the transactional id {id_} was initialized again",
                next_step=f"Stop it, check connectctl offsets show {self.subject}, and try again.",
                code="in-use",
            )

    def _look(self, context: OffsetContext) -> tuple[View, OffsetChanges]:
        request = self._request(context)
        view = context.view(asked_by(request, context.journal, self.dedicated_topic))
        return view, view.decide(request)

    def _request(self, context: OffsetContext) -> OffsetRequest:
        """The request; of a resumed run it is unknown to which topic tasks committed meanwhile."""
        request = changes.from_data(self.request)
        return replace(request, running=False) if isinstance(request, MergeOffsets) and context.resumed else request

    def _agree(self, context: OffsetContext, places: Sequence[OffsetsTopicState], decision: OffsetChanges) -> None:
        """Raises ``Refused`` if the changes differ from the confirmed ones, or something speaks against them."""
        request = self._request(context)
        if reasons := [*obstacles(request, places, decision), *context.obstacles(request)]:
            what = f"Offset change of {self.subject} refused"
            raise Refused(what, why="; ".join(reasons), next_step="Make a new plan.", code="stale")
        if self.overruled is not None and (now := overruled(places, decision.conflicts)) != self.overruled:
            count, planned = (text.partition(":")[0] for text in (now, self.overruled))
            raise Refused(
                f"Tasks of {self.subject} committed offsets since the plan was made, which it would set back; nothing was "
                "written",
                why=f"its policy takes another offset than was committed for {count} source partitions, and the plan for "
                f"{planned}",
                next_step=f"Stop it first: connectctl connectors stop {self.subject} --wait. Then make a new plan.",
                code="stale",
            )
        if (
            self.agreed is not None
            and not context.resumed
            and decision.writes
            and digest(decision.writes) != self.agreed
        ):
            moved = {key for at in places for key, _ in later_records(at, self.since)}
            what = f"{counted(len(moved), 'source partition')} of {self.subject} moved" if moved else ""
            raise Refused(
                f"{what or f'The offsets of {self.subject} changed'} since the plan was made; nothing was written",
                next_step="Make a new plan.",
                code="stale",
            )

    def _refuse_invalid(self, view: View, decision: OffsetChanges) -> None:
        """Raises ``Refused`` for offsets that the connector would refuse, as it is configured now."""
        config = view.config_of(self.subject)
        if config is None:
            return  # the plan validated them for the class that it is to get
        found = validity.validated(changes.from_data(self.request), config, view.places[self.subject], decision.writes)
        if found.problem:
            raise Refused(
                f"Offset change of {self.subject} refused; nothing was written",
                why=found.problem,
                next_step=validity.FORCE,
                code="invalid-offset",
            )

    def _by_kafka(self, context: OffsetContext, decision: OffsetChanges) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            failed = _write(context, decision.writes)
            decision = self._look(context)[1]
            if not decision.writes:
                return
            if failed is not None and attempt == ATTEMPTS:
                raise failed
        raise self._otherwise()

    def _by_rest(self, context: OffsetContext, places: Sequence[OffsetsTopicState], decision: OffsetChanges) -> None:
        if why := rest_api.obstacles(decision, places, context.sources.workers()):
            raise Refused(
                "The workers' REST API cannot make this change", why="; ".join(why), next_step="Omit --via rest."
            )
        asked = rest_api.request(changes.from_data(self.request), decision)
        failed: ConnectctlError | None = None
        try:
            context.calls.send(asked.method, path_of("connectors", self.subject, "offsets"), asked.body)
        except ConnectctlError as e:
            failed = e
        # Workers write to the second topic after their response.
        seconds = 0 if failed else REST_PATIENCE
        if not context.until(lambda: None if self._look(context)[1].writes else True, seconds, REST_POLL):
            raise failed or self._otherwise()

    def _otherwise(self) -> ConnectctlError:
        return ConnectctlError(f"Offsets of {self.subject} changed after the write; another writer is active")


def writer_id(context: OffsetContext) -> str:
    """Return the transactional id with which offsets are written."""
    return f"connectctl-offsets-{context.group_id}"


def _write(context: OffsetContext, writes: Collection[RecordChange]) -> ConnectctlError | None:
    """Write to each cluster. After an error the outcome of the commit is unknown; the caller reads it back."""
    id_ = writer_id(context)
    for bootstrap in dict.fromkeys(write.bootstrap for write in writes):
        kafka = context.kafka(bootstrap)
        try:
            kafka.transact(id_, ((w.topic, w.partition, w.key, w.value) for w in writes if w.bootstrap == bootstrap))
        except ConnectctlError as e:
            # A new producer aborts the open transaction; until then the topic cannot be read to its end.
            with suppress(ConnectctlError):
                kafka.transact(id_, [])
            return e
    return None


def asked_by(request: OffsetRequest, journal: Journal | None, dedicated_topic: str | None = None) -> Asked:
    """What has to be read to decide the changes of ``request``."""
    if not isinstance(request, RestoreBackup):
        return Asked(request if isinstance(request, MergeOffsets) else AllKeys(request.connector), dedicated_topic)
    assert journal is not None
    path = journal.verified(request.run or KEPT, request.file.rpartition("/")[2])
    return Asked(request, dedicated_topic, path)


@dataclass(frozen=True)
class Configure(ChangeConfig):
    """Set a property of a connector's configuration, or remove it with ``value`` None. ``was`` is the value to restore."""

    subject: str
    name: str
    value: str | None
    was: str | None = None
    now: str = ""

    def describe(self) -> str:
        return f"{words(self.properties)} of {self.subject}"

    @property
    def properties(self) -> dict[str, str | None]:
        return {self.name: self.value}


@dataclass(frozen=True)
class Check(Step["OffsetContext"]):
    """Verify that workers, with the dedicated topic, resume every source partition from what was committed last.

    With ``chosen`` a person chose which topic that is, or tasks commit to the dedicated one already; then nothing but lost
    offsets is wrong.
    """

    subject: str
    chosen: bool = False
    now: str = ""
    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        return f"verify the offsets that workers will resume {self.subject} from"

    def apply(self, context: OffsetContext) -> str | None:
        if id_ := moved(context, self.subject):
            raise ConnectctlError(f"A task of {self.subject} started: the transactional id {id_} was initialized again")
        view = context.view(Asked(DifferingKeys(self.subject)))
        if not self.chosen and (older := stale(view.places[self.subject], running=False)):
            raise ConnectctlError(f"Verification failed: {older}", why="another writer is active")
        found = assemble(view.snapshot, OffsetsQuery((self.subject,)))
        entries = (entry for connector in found.connectors for entry in connector.offsets)
        lost = (entry.key.text for entry in entries if entry.lost and entry.origin == "global")
        if some := list(islice(lost, 5)):
            raise ConnectctlError(
                f"Verification failed: workers would resume from the wrong offset for {', '.join(some)}"
            )
        return "every source partition resumes from its previous offset"
