"""The steps of a change of source offsets: back up, create, change, configure, check.

Every step reads the topics again when it is executed, and decides the records to write from them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any, ClassVar

from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.core.finding import counted
from connectctl.ops.core.journal import KEPT, Journal
from connectctl.ops.core.step import OBSERVED, ResourceStep
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.operations.connectors.configure import ChangeConfig, words
from connectctl.ops.operations.offsets import changes, rest_api, validity
from connectctl.ops.operations.offsets.backup_renewal import renewed
from connectctl.ops.operations.offsets.changes import (
    Ends,
    MergeOffsets,
    OffsetRequest,
    RestoreBackup,
)
from connectctl.ops.operations.offsets.context import OffsetContext, change_begun
from connectctl.ops.operations.offsets.dump_lines import lines_of
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.ends import later_records, write_ends
from connectctl.ops.operations.offsets.engine import AllKeys, DifferingKeys, ReadRequest, View
from connectctl.ops.operations.offsets.record_changes import OffsetChanges, RecordChange, digest
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery
from connectctl.ops.operations.offsets.task_producers import reinitialized_id
from connectctl.ops.operations.offsets.topic_dump import read_backup
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, stale
from connectctl.ops.operations.offsets.validity import obstacles, overruled

ATTEMPTS = 3
"""Attempts to write a transaction that turns out not to be committed."""
TOPIC_CONFIG = {"cleanup.policy": "compact"}
REST_PATIENCE = 10.0
"""Seconds within which workers write to the second topic after their response."""
REST_POLL = 0.3


@dataclass(frozen=True)
class Backup(ResourceStep["OffsetContext"]):
    """Save every offset record of the connector, keys and values byte for byte, before the
    change.
    """

    topics: tuple[str, ...]
    dedicated_topic: str | None = None
    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        return f"back up the offsets of {self.subject} in {' and '.join(self.topics)}"

    def apply(self, context: OffsetContext) -> str | None:
        journal, run = context.journal_and_run()
        file = backup_file(context.step)
        change = change_begun(journal, run, self.subject, Change.__name__)
        if change is not None and journal.path(run.id, file).exists():
            return self._renew(context, change)
        view = context.view(ReadRequest(AllKeys(self.subject), self.dedicated_topic, streamed=True))
        written = count()
        content = (f"{line}\n".encode() for line in view.lines(self.subject) if next(written) >= 0)
        path = journal.write_all(run.id, lambda: file, content)
        write_ends(journal, run, context.step, view.topic_states[self.subject])
        return f"{counted(next(written), 'record')} in {path}"

    def _renew(self, context: OffsetContext, change: Mapping[str, Any]) -> str:
        """Add the records that were committed since an earlier attempt to its backup. The attempt
        may have written offsets.
        """
        journal, run = context.journal_and_run()
        request, path = (
            changes.from_data(change["request"]),
            journal.path(run.id, backup_file(context.step)),
        )
        reading = read_request(request, journal)
        states = context.view(
            ReadRequest(AllKeys(self.subject), self.dedicated_topic)
        ).topic_states[self.subject]
        restored = {self.subject: read_backup(reading.backup)} if reading.backup else {}
        found = renewed(states, read_backup(path), request, restored.get(self.subject))
        if not found.committed:
            return "already backed up"
        lines = (
            f"{line}\n".encode()
            for topic_records in found.records
            for line in lines_of(*topic_records)
        )
        journal.write_all(run.id, lambda: backup_file(context.step), lines)
        write_ends(journal, run, context.step, states)
        return (
            f"{counted(found.committed, 'record')} committed since the first attempt added to "
            f"{path}"
        )


def backup_file(step: int) -> str:
    """Return the file name of the backup that step ``step`` of a run writes to the run's
    directory.
    """
    return f"backup-{step}.jsonl"


@dataclass(frozen=True)
class CreateTopic(ResourceStep["OffsetContext"]):
    """Create a dedicated offsets topic with the settings of the global one, as workers do."""

    topic: str
    bootstrap: str | None = None

    def describe(self) -> str:
        return f"create topic {self.topic} (compacted, same number of partitions as the global one)"

    def rights(self, context: OffsetContext) -> Iterator[Right]:
        if self.bootstrap is None:
            yield Right(Operation.CREATE, Resource.TOPIC, self.topic)

    def is_done(self, context: OffsetContext) -> str | None:
        return (
            f"{self.topic} exists"
            if those_that_exist(context.kafka(self.bootstrap), self.topic)
            else None
        )

    def apply(self, context: OffsetContext) -> str | None:
        context.refuse_while_running(self.subject)
        model = context.sources.kafka.topics([context.sources.offsets_topic])[
            context.sources.offsets_topic
        ]
        replicas = max(model.replicas.values(), default=1)
        context.kafka(self.bootstrap).create_topic(
            self.topic, model.partitions, replicas, TOPIC_CONFIG
        )
        return None


@dataclass(frozen=True)
class Change(ResourceStep["OffsetContext"]):
    """Write the changes of a request, in one transaction per Kafka cluster, and read them back.

    ``agreed`` is the digest of the confirmed changes, and ``since`` has the end offsets of the
    topics then; None and empty if the connector was running, because its offsets advance. ``via``
    is ``kafka``, or ``rest`` for the workers' endpoint. ``was`` is the state of the connector
    before the run stopped it, None if it did not; a refusal restores it. ``overruled`` identifies
    the source partitions for which the selected policy overrules the commits of tasks; the user has
    confirmed these only. ``topics`` are the topics of the workers' cluster to which connectctl
    itself writes.
    """

    request: dict[str, Any]
    agreed: str | None
    summary: str
    dedicated_topic: str | None = None
    via: str = "kafka"
    was: str | None = None
    overruled: str | None = None
    since: Ends = field(default=(), metadata=OBSERVED)
    topics: tuple[str, ...] = field(default=(), metadata=OBSERVED)

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
        write_ends(*context.journal_and_run(), context.step, view.topic_states[self.subject])
        return "already set"

    def apply(self, context: OffsetContext) -> str | None:
        view, decision = self._decided(context)
        number = len(decision.writes)
        if self.via == "rest":
            self._by_rest(context, view.topic_states[self.subject], decision)
        else:
            self._by_kafka(context, decision)
            self._check_unmoved(context)
        write_ends(
            *context.journal_and_run(),
            context.step,
            self._decide_again(context)[0].topic_states[self.subject],
        )
        return f"{counted(number, 'record')} written and read back"

    def _decided(self, context: OffsetContext) -> tuple[View, OffsetChanges]:
        """Return the changes, from records that are read after the last possible commit. Raises
        ``Refused`` like a plan.
        """
        context.refuse_while_running(self.subject)
        self._refuse_if_moved(context)
        view, decision = self._decide_again(context)
        try:
            self._check_confirmed(context, view.topic_states[self.subject], decision)
            self._refuse_invalid(view, decision)
        except Refused as e:
            raise context.with_state_restored(self.subject, self.was, e) from e
        return view, decision

    def _refuse_if_moved(self, context: OffsetContext) -> None:
        if id_ := reinitialized_id(context, self.subject):
            raise Refused(
                f"A task of {self.subject} started after it was fenced; no offsets were written",
                why=f"the transactional id {id_} was initialized again",
                next_step="Stop the connector on the workers or the connectctl run, and try again.",
                code="in-use",
            )

    def _check_unmoved(self, context: OffsetContext) -> None:
        if id_ := reinitialized_id(context, self.subject):
            raise ConnectctlError(
                f"A task of {self.subject} started while its offsets were written, and may resume "
                "from the old offsets",
                why=f"the transactional id {id_} was initialized again",
                next_step=f"Stop it, check connectctl offsets show {self.subject}, and try again.",
                code="in-use",
            )

    def _decide_again(self, context: OffsetContext) -> tuple[View, OffsetChanges]:
        request = self._request(context)
        view = context.view(read_request(request, context.journal, self.dedicated_topic))
        return view, view.decide(request)

    def _request(self, context: OffsetContext) -> OffsetRequest:
        """Return the request; in a resumed run it is unknown to which topic tasks committed in the
        meantime.
        """
        request = changes.from_data(self.request)
        return (
            replace(request, running=False)
            if isinstance(request, MergeOffsets) and context.resumed
            else request
        )

    def _check_confirmed(
        self, context: OffsetContext, states: Sequence[OffsetsTopicState], decision: OffsetChanges
    ) -> None:
        """Raise ``Refused`` if the changes differ from the confirmed ones, or there are reasons
        against them.
        """
        request = self._request(context)
        if reasons := [*obstacles(request, states, decision), *context.obstacles(request)]:
            what = f"Offset change of {self.subject} refused"
            raise Refused(what, why="; ".join(reasons), next_step="Make a new plan.", code="stale")
        if (
            self.overruled is not None
            and (now := overruled(states, decision.conflicts)) != self.overruled
        ):
            count, planned = (text.partition(":")[0] for text in (now, self.overruled))
            raise Refused(
                f"Tasks of {self.subject} committed offsets since the plan was made, which it "
                "would set back; nothing was written",
                why=f"its policy takes another offset than was committed for {count} source "
                f"partitions, and the plan for {planned}",
                next_step=f"Stop it first: connectctl connectors stop {self.subject} --wait. Then "
                "make a new plan.",
                code="stale",
            )
        if (
            self.agreed is not None
            and not context.resumed
            and decision.writes
            and digest(decision.writes) != self.agreed
        ):
            moved_keys = {key for state in states for key, _ in later_records(state, self.since)}
            what = (
                f"{counted(len(moved_keys), 'source partition')} of {self.subject} moved"
                if moved_keys
                else ""
            )
            raise Refused(
                f"{what or f'The offsets of {self.subject} changed'} since the plan was made; "
                "nothing was written",
                next_step="Make a new plan.",
                code="stale",
            )

    def _refuse_invalid(self, view: View, decision: OffsetChanges) -> None:
        """Raise ``Refused`` for offsets that the connector would refuse with its current
        configuration.
        """
        config = view.config_of(self.subject)
        if config is None:
            return  # The plan has validated them for the class of the new connector.
        found = validity.validated(
            changes.from_data(self.request),
            config,
            view.topic_states[self.subject],
            decision.writes,
        )
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
            decision = self._decide_again(context)[1]
            if not decision.writes:
                return
            if failed is not None and attempt == ATTEMPTS:
                raise failed
        raise self._other_writer()

    def _by_rest(
        self, context: OffsetContext, states: Sequence[OffsetsTopicState], decision: OffsetChanges
    ) -> None:
        if why := rest_api.obstacles(decision, states, context.sources.workers()):
            raise Refused(
                "The workers' REST API cannot make this change",
                why="; ".join(why),
                next_step="Omit --via rest.",
            )
        rest_request = rest_api.request(changes.from_data(self.request), decision)
        failed: ConnectctlError | None = None
        try:
            context.calls.send(
                rest_request.method,
                path_of("connectors", self.subject, "offsets"),
                rest_request.body,
            )
        except ConnectctlError as e:
            failed = e
        # Workers write to the second topic after their response.
        seconds = 0 if failed else REST_PATIENCE
        if not context.until(
            lambda: None if self._decide_again(context)[1].writes else True, seconds, REST_POLL
        ):
            raise failed or self._other_writer()

    def _other_writer(self) -> ConnectctlError:
        return ConnectctlError(
            f"Offsets of {self.subject} changed after the write; another writer is active"
        )


def writer_id(context: OffsetContext) -> str:
    """Return the transactional id of the producer that writes offsets."""
    return f"connectctl-offsets-{context.group_id}"


def _write(context: OffsetContext, writes: Collection[RecordChange]) -> ConnectctlError | None:
    """Write to each cluster, and return the error. The outcome of the commit is unknown then, and
    the caller reads it back.
    """
    id_ = writer_id(context)
    for bootstrap in dict.fromkeys(write.bootstrap for write in writes):
        kafka = context.kafka(bootstrap)
        try:
            kafka.transact(
                id_,
                (
                    (w.topic, w.partition, w.key, w.value)
                    for w in writes
                    if w.bootstrap == bootstrap
                ),
            )
        except ConnectctlError as e:
            # A new producer aborts the open transaction; until then the topic cannot be read to its
            # end.
            with suppress(ConnectctlError):
                kafka.transact(id_, [])
            return e
    return None


def read_request(
    request: OffsetRequest, journal: Journal | None, dedicated_topic: str | None = None
) -> ReadRequest:
    """Return the read request from which the changes of ``request`` are decided."""
    if not isinstance(request, RestoreBackup):
        return ReadRequest(
            request if isinstance(request, MergeOffsets) else AllKeys(request.connector),
            dedicated_topic,
        )
    assert journal is not None
    path = journal.verified(request.run or KEPT, request.file.rpartition("/")[2])
    return ReadRequest(request, dedicated_topic, path)


@dataclass(frozen=True)
class Configure(ChangeConfig):
    """Set a property of a connector's configuration, or remove it with ``value`` None. ``was`` is
    the value to restore.
    """

    name: str
    value: str | None
    was: str | None = None

    def describe(self) -> str:
        return f"{words(self.properties)} of {self.subject}"

    @property
    def properties(self) -> dict[str, str | None]:
        return {self.name: self.value}


@dataclass(frozen=True)
class Check(ResourceStep["OffsetContext"]):
    """Verify that workers resume every source partition from the last committed offset with the
    dedicated topic.

    ``chosen``: the user selected the topic with the last commits, or tasks already commit to the
    dedicated one. Then only lost offsets are an error.
    """

    chosen: bool = False
    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        return f"verify the offsets that workers will resume {self.subject} from"

    def apply(self, context: OffsetContext) -> str | None:
        if id_ := reinitialized_id(context, self.subject):
            raise ConnectctlError(
                f"A task of {self.subject} started: the transactional id {id_} was initialized "
                "again"
            )
        view = context.view(ReadRequest(DifferingKeys(self.subject)))
        if not self.chosen and (older := stale(view.topic_states[self.subject], running=False)):
            raise ConnectctlError(f"Verification failed: {older}", why="another writer is active")
        found = assemble(view.snapshot, OffsetsQuery((self.subject,)))
        entries = (entry for connector in found.connectors for entry in connector.offsets)
        lost = (entry.key.text for entry in entries if entry.lost and entry.origin == "global")
        if lost_keys := list(islice(lost, 5)):
            raise ConnectctlError(
                "Verification failed: workers would resume from the wrong offset for "
                f"{', '.join(lost_keys)}"
            )
        return "every source partition resumes from its previous offset"
