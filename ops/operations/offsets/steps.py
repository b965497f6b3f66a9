"""The steps of a change of source offsets: back up, create, change, configure, check.

Every step reads the topics again when it is executed; the records to write are decided from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from connectctl.ops.connect.connector import State, at_rest, judge, path_of
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Refused
from connectctl.ops.core.step import Step
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.operations.connectors.steps import POLL, StepContext
from connectctl.ops.operations.offsets import changes, rest_api
from connectctl.ops.operations.offsets.backup_file import backup_lines
from connectctl.ops.operations.offsets.changes import MergeOffsets, OffsetRequest, RestoreOffsets
from connectctl.ops.operations.offsets.digest import digest
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.engine import Asked, Engine, Local, View
from connectctl.ops.operations.offsets.key_filter import AllKeys, MisreadKeys
from connectctl.ops.operations.offsets.record_changes import OffsetChanges, OffsetsTopicState, RecordChange, decide
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery
from connectctl.ops.operations.offsets.task_producers import in_use, moved

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ClusterLock, KafkaWrites
    from connectctl.ops.connect.run_presence import Holder
    from connectctl.ops.core.journal import Journal
    from connectctl.ops.operations.offsets.observe import Sources
    from connectctl.ops.operations.offsets.task_producers import Who

SETTLING = 10.0
"""Seconds that a rebalance may keep a connector UNASSIGNED before that counts."""
ATTEMPTS = 3
"""Attempts to write a transaction that turns out not to be committed."""
TOPIC_CONFIG = {"cleanup.policy": "compact"}
REST_PATIENCE = 10.0
"""Seconds within which workers write to the second topic after their response."""
REST_POLL = 0.3


@dataclass
class OffsetContext(StepContext):
    """The context of steps that change offsets. ``lock`` is the cluster's, for the executor."""

    sources: Sources | None = None
    group_id: str = ""
    journal: Journal | None = None
    others: dict[str, KafkaWrites] = field(default_factory=dict)
    engine: Engine = field(default_factory=Local)
    fenced: dict[str, Who] = field(default_factory=dict)
    """Producer id and epoch of the task's ids after fencing in this run, by connector."""
    lock: ClusterLock = field(default=None)  # type: ignore[assignment]

    def view(self, asked: Asked) -> View:
        """One connector's topics now. Raises if they cannot be read completely."""
        assert self.sources is not None
        connector = asked.purpose.connector
        found = self.engine.view(self.sources, [asked])
        if problems := [at.problem for at in found.places[connector] if at.problem]:
            hint = "See connectctl transactions hanging." if any("transaction" in p for p in problems) else None
            raise ConnectctlError(
                f"Could not read all offsets of {connector}",
                why="; ".join(problems),
                next_step=hint,
                code="hidden",
            )
        store = found.snapshot.stores.get(connector)
        if store is not None and store.bootstrap is not None and store.bootstrap not in self.others:
            self.others[store.bootstrap] = self.sources.writes(store.bootstrap, store.overrides)
        return found

    def running(self, connector: str) -> str | None:
        """Evidence that a task of ``connector`` may be writing offsets, None if none can."""
        assert self.sources is not None
        if not self.sources.kafka.group(self.group_id).members:
            return None
        began = self.now()
        while True:
            try:
                found = self.read(connector)
            except ConnectctlError as e:
                if e.code == "not-found":
                    return None
                raise
            if at_rest(found):
                return None
            verdict = judge(found, found.owners)
            # One that is stopped is not at rest before its tasks have left the assignment, nor seen so in a rebalance.
            settling = found.target_state == "STOPPED" or verdict.state is State.UNASSIGNED
            if not settling or self.now() - began > SETTLING:
                return str(verdict) if verdict.state is not State.STOPPED else "STOPPED with tasks still stopping"
            self.sleep(POLL)

    def refuse_while_running(self, connector: str) -> None:
        """Raises ``Refused`` where a task of ``connector`` may be writing offsets, on a worker or in a run of connectctl."""
        assert self.sources is not None
        if state := self.running(connector):
            hint = f"connectctl connectors stop {connector} --wait"
            raise Refused(f"{connector} is {state}; it must be stopped while its offsets are changed", next_step=hint)
        holders: tuple[Holder, ...] = ()
        with suppress(NotAuthorized):  # the plan was made because fencing is sufficient
            holders = self.sources.kafka.holders(self.group_id, connector)
        if holders:
            raise in_use(connector, holders)

    def kafka(self, bootstrap: str | None) -> KafkaWrites:
        """The cluster at ``bootstrap``, the workers' own for None."""
        assert self.sources is not None
        if bootstrap is None:
            return self.sources.writes()
        if bootstrap not in self.others:
            self.others[bootstrap] = self.sources.writes(bootstrap)
        return self.others[bootstrap]


@dataclass(frozen=True)
class Backup(Step):
    """Save every offset record of the connector, keys and values byte for byte, before anything is written."""

    subject: str
    topics: tuple[str, ...]
    dedicated_topic: str | None = None
    now: str = ""
    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        return f"back up the offsets of {self.subject} in {' and '.join(self.topics)}"

    def is_done(self, context: OffsetContext) -> str | None:
        assert context.journal is not None
        assert context.run is not None
        # Never twice: after a crash the topics may already have the new records.
        return "already backed up" if context.journal.path(context.run.id, backup_file(context.step)).exists() else None

    def apply(self, context: OffsetContext) -> str | None:
        assert context.journal is not None
        assert context.run is not None
        view = context.view(Asked(AllKeys(self.subject), self.dedicated_topic))
        lines = list(backup_lines(view.places[self.subject]))
        content = "".join(line + "\n" for line in lines).encode()
        path = context.journal.write(context.run.id, backup_file(context.step), content)
        return f"{len(lines)} records in {path}"


def backup_file(step: int) -> str:
    """The name of the backup that step ``step`` of a run writes, in the run's directory."""
    return f"backup-{step}.jsonl"


@dataclass(frozen=True)
class CreateTopic(Step):
    """Create a dedicated offsets topic with the settings that workers give it: those of the global one."""

    subject: str
    topic: str
    bootstrap: str | None = None
    now: str = ""

    def describe(self) -> str:
        return f"create topic {self.topic} (compacted, same number of partitions as the global one)"

    def is_done(self, context: OffsetContext) -> str | None:
        return f"{self.topic} exists" if those_that_exist(context.kafka(self.bootstrap), self.topic) else None

    def apply(self, context: OffsetContext) -> str | None:
        assert context.sources is not None
        model = context.sources.kafka.topics([context.sources.offsets_topic])[context.sources.offsets_topic]
        replicas = max(model.replicas.values(), default=1)
        context.kafka(self.bootstrap).create_topic(self.topic, model.partitions, replicas, TOPIC_CONFIG)
        return None


@dataclass(frozen=True)
class Change(Step):
    """Write the changes of a request, in one transaction per Kafka cluster, and read them back.

    ``agreed`` is the digest of the confirmed changes; None if the connector was still running, so that its offsets advance.
    ``via`` is ``kafka``, or ``rest`` for the workers' own endpoint.
    """

    subject: str
    wish: dict[str, Any]
    agreed: str | None
    summary: str
    dedicated_topic: str | None = None
    via: str = "kafka"
    now: str = ""

    def describe(self) -> str:
        return self.summary

    def is_done(self, context: OffsetContext) -> str | None:
        return None if self._look(context)[1].writes else "already set"

    def apply(self, context: OffsetContext) -> str | None:
        context.refuse_while_running(self.subject)
        places, decision = self._look(context)
        self._agree(context, decision)
        count = len(decision.writes)
        if self.via == "rest":
            self._by_rest(context, places, decision)
        else:
            self._refuse_if_moved(context)
            self._by_kafka(context, decision)
            self._check_unmoved(context)
        return f"{count} records written and read back"

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

    def _look(self, context: OffsetContext) -> tuple[list[OffsetsTopicState], OffsetChanges]:
        wish = changes.from_data(self.wish)
        view = context.view(asked_by(wish, context.journal, self.dedicated_topic))
        places = view.places[self.subject]
        return places, decide(wish, places, view.saved.get(self.subject))

    def _agree(self, context: OffsetContext, decision: OffsetChanges) -> None:
        """Raises ``Refused`` if the changes differ from the confirmed ones, or have refusals."""
        if decision.refusals:
            raise Refused(
                f"Offset change of {self.subject} refused", why="; ".join(decision.refusals), code="unreadable"
            )
        if self.agreed is not None and not context.resumed and digest(decision.writes) != self.agreed:
            raise Refused(
                f"The offsets of {self.subject} changed since the plan was made; nothing was written",
                next_step="Make a new plan.",
                code="stale",
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
        assert context.sources is not None
        if why := rest_api.obstacles(decision, places, context.sources.workers()):
            raise Refused(
                "The workers' REST API cannot make this change", why="; ".join(why), next_step="Omit --via rest."
            )
        asked = rest_api.request(changes.from_data(self.wish), decision)
        failed: ConnectctlError | None = None
        try:
            context.calls.send(asked.method, path_of("connectors", self.subject, "offsets"), asked.body)
        except ConnectctlError as e:
            failed = e
        # Workers write to the second topic after their response.
        deadline = context.now() + (0 if failed else REST_PATIENCE)
        while self._look(context)[1].writes:
            if context.now() >= deadline:
                raise failed or self._otherwise()
            context.sleep(REST_POLL)

    def _otherwise(self) -> ConnectctlError:
        return ConnectctlError(f"Offsets of {self.subject} changed after the write; another writer is active")


def _write(context: OffsetContext, writes: Sequence[RecordChange]) -> ConnectctlError | None:
    """Write to each cluster. After an error the outcome of the commit is unknown; the caller reads it back."""
    id_ = f"connectctl-offsets-{context.group_id}"
    for bootstrap in dict.fromkeys(write.bootstrap for write in writes):
        kafka = context.kafka(bootstrap)
        try:
            kafka.transact(id_, [(w.topic, w.partition, w.key, w.value) for w in writes if w.bootstrap == bootstrap])
        except ConnectctlError as e:
            # A new producer aborts the open transaction; until then the topic cannot be read to its end.
            with suppress(ConnectctlError):
                kafka.transact(id_, [])
            return e
    return None


def asked_by(wish: OffsetRequest, journal: Journal | None, dedicated_topic: str | None = None) -> Asked:
    """What has to be read to decide the changes of ``wish``."""
    if not isinstance(wish, RestoreOffsets):
        return Asked(wish if isinstance(wish, MergeOffsets) else AllKeys(wish.connector), dedicated_topic)
    assert journal is not None
    path = journal.path(wish.run, wish.file) if wish.run else journal.directory / wish.file
    return Asked(wish, dedicated_topic, path)


@dataclass(frozen=True)
class Configure(Step):
    """Set a property of a connector's configuration, or remove it with ``value`` None. ``was`` is the value to restore."""

    subject: str
    name: str
    value: str | None
    was: str | None = None
    now: str = ""

    def describe(self) -> str:
        return f"{'remove ' + self.name if self.value is None else f'set {self.name}={self.value}'} of {self.subject}"

    def is_done(self, context: OffsetContext) -> str | None:
        return "already set" if self._config(context).get(self.name) == self.value else None

    def apply(self, context: OffsetContext) -> str | None:
        config = {name: value for name, value in self._config(context).items() if name != self.name}
        if self.value is not None:
            config[self.name] = self.value
        context.calls.send("PUT", path_of("connectors", self.subject, "config"), config)
        return None

    def _config(self, context: OffsetContext) -> dict[str, str]:
        return dict(context.calls.get(path_of("connectors", self.subject, "config")))


@dataclass(frozen=True)
class Check(Step):
    """Verify that workers, with the dedicated topic, resume every source partition as KIP-618 specifies."""

    subject: str
    now: str = ""
    read_only: ClassVar[bool] = True

    def describe(self) -> str:
        return f"verify the offsets that workers will resume {self.subject} from"

    def apply(self, context: OffsetContext) -> str | None:
        (found,) = assemble(
            context.view(Asked(MisreadKeys(self.subject))).snapshot, OffsetsQuery((self.subject,))
        ).connectors
        lost = [entry.key.text for entry in found.offsets if entry.lost and entry.origin == "global"]
        if lost:
            raise ConnectctlError(
                f"Verification failed: workers would resume from the wrong offset for {', '.join(lost[:5])}"
            )
        return "every source partition resumes from its previous offset"
