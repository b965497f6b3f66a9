"""Transaction coordinators that are a dictionary, and answer as they are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import InitProducerIdResponse
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Bounds, Listing, PartitionProducer, Transaction
from connectctl.ops.kafka.visibility import Gap, Observation, Reason, observation_of

MAX_EPOCH = 32_766
MAX_TIMEOUT_MS = 900_000
"""``transaction.max.timeout.ms`` as brokers have it by default."""


@dataclass
class FakeCoordinators:
    """Keeps ``TransactionCalls``. InitProducerId works as the coordinator's does, after the codes
    in ``script`` for an id. An abort takes until it is seen ``aborting_looks`` times.
    ``without_ids`` is how many requests come before the controller has given producer ids to the
    broker: those for new ids are answered as if its log was being loaded.

    ``NO_ANSWER`` in a script loses the answer of a request that was performed; the other codes
    stand for one that was not.
    """

    known: dict[str, Transaction] = field(default_factory=dict)
    script: dict[str, list[Code]] = field(default_factory=dict)
    denied: dict[str, Code] = field(default_factory=dict)
    partitions: dict[TopicPartition, tuple[PartitionProducer, ...] | Code] = field(
        default_factory=dict
    )
    asked: list[str] = field(default_factory=list)
    groups: frozenset[str] = frozenset()
    problems: dict[int, Code] = field(default_factory=dict)
    marked: list[tuple[TopicPartition, int, bool]] = field(default_factory=list)
    marking: list[Code] = field(default_factory=list)
    aborting_looks: int = 0
    without_ids: int = 0
    gaps: tuple[Gap, ...] = ()
    """What may be hidden of the transactional ids."""
    group_gaps: tuple[Gap, ...] = ()
    _aborting: dict[str, int] = field(default_factory=dict)
    topic_gaps: tuple[Gap, ...] = ()

    def cluster_id(self) -> str:
        return "fake-cluster"

    def describe(self, ids: Sequence[str]) -> dict[str, Transaction | Code]:
        return {
            id: self.denied.get(id) or self._seen(id) or Code.TRANSACTIONAL_ID_NOT_FOUND
            for id in ids
        }

    def _seen(self, id: str) -> Transaction | None:
        found = self.known.get(id)
        if found is not None and found.state == "PrepareAbort" and id in self._aborting:
            self._aborting[id] -= 1
            if self._aborting[id] < 0:
                del self._aborting[id]
                self.known[id] = replace(found, state="CompleteAbort", partitions=())
        return found

    def fence(
        self,
        timeouts: Mapping[str, int],
        patience: float,
        told: Callable[[str, InitProducerIdResponse], None],
    ) -> None:
        for id, timeout in timeouts.items():
            self.asked.append(id)
            told(id, self._init(id, timeout))

    def _init(self, id: str, timeout: int) -> InitProducerIdResponse:
        scripted = self.script.get(id)
        code = scripted.pop(0) if scripted else Code.NONE
        if code not in (Code.NONE, Code.NO_ANSWER):
            return InitProducerIdResponse(code)
        if timeout > MAX_TIMEOUT_MS:
            return InitProducerIdResponse(Code.INVALID_TRANSACTION_TIMEOUT)
        if id not in self.known and self.without_ids > 0:
            self.without_ids -= 1
            return InitProducerIdResponse(Code.COORDINATOR_LOAD_IN_PROGRESS)
        now = self.known.get(id, Transaction(id, "Empty", len(self.known), -1))
        if now.state == "Ongoing":
            self.known[id] = replace(now, state="CompleteAbort", epoch=now.epoch + 1, partitions=())
            if self.aborting_looks:
                self.known[id] = replace(now, state="PrepareAbort", epoch=now.epoch + 1)
                self._aborting[id] = self.aborting_looks
            return InitProducerIdResponse(code or Code.CONCURRENT_TRANSACTIONS)
        if now.is_open:
            return InitProducerIdResponse(code or Code.CONCURRENT_TRANSACTIONS)
        if now.epoch >= MAX_EPOCH:
            now = replace(now, producer_id=now.producer_id + 1000, epoch=-1)
        self.known[id] = replace(
            now, state="Empty", epoch=now.epoch + 1, timeout_ms=timeout, started_ms=None
        )
        return (
            InitProducerIdResponse(code, self.known[id].producer_id, self.known[id].epoch)
            if code is Code.NONE
            else InitProducerIdResponse(code)
        )

    def listed(
        self,
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        prefixes: Sequence[str] = (),
    ) -> Observation[tuple[Listing, ...]]:
        found = [
            Listing(t.id, t.state, t.producer_id, 1)
            for t in self.known.values()
            if (not states or t.state in states)
            and (not producer_ids or t.producer_id in producer_ids)
            and (not prefixes or t.id.startswith(tuple(prefixes)))
        ]
        silent = [
            Gap(f"broker {n}", Reason.NO_ANSWER, None, code.name)
            for n, code in self.problems.items()
        ]
        return observation_of(tuple(found), (*silent, *self.gaps))

    def connect_groups(self) -> Observation[frozenset[str]]:
        return observation_of(self.groups, self.group_gaps)

    def topic_partitions(self, topics: Sequence[str]) -> list[TopicPartition]:
        return sorted(place for place in self.partitions if place.topic in topics)

    def all_topic_partitions(self) -> Observation[list[TopicPartition]]:
        return observation_of(sorted(self.partitions), self.topic_gaps)

    def producers(
        self, places: Sequence[TopicPartition]
    ) -> dict[TopicPartition, tuple[PartitionProducer, ...] | Code]:
        return {
            place: self.partitions.get(place, Code.UNKNOWN_TOPIC_OR_PARTITION) for place in places
        }

    def bounds(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, Bounds | Code]:
        return {
            place: self._bounds(self.partitions.get(place, Code.UNKNOWN_TOPIC_OR_PARTITION))
            for place in places
        }

    def _bounds(self, known: tuple[PartitionProducer, ...] | Code) -> Bounds | Code:
        if isinstance(known, Code):
            return known
        return Bounds(
            min((p.start_offset for p in known if p.start_offset is not None), default=100), 100
        )

    def mark(self, place: TopicPartition, producer: PartitionProducer, *, commit: bool) -> Code:
        scripted = self.marking.pop(0) if self.marking else Code.NONE
        if scripted:
            return scripted
        known = self.partitions.get(place, Code.UNKNOWN_TOPIC_OR_PARTITION)
        if isinstance(known, Code):
            return known
        if any(p.producer_id == producer.producer_id and p.epoch > producer.epoch for p in known):
            return Code.INVALID_PRODUCER_EPOCH
        self.partitions[place] = tuple(
            replace(p, start_offset=None) if p.producer_id == producer.producer_id else p
            for p in known
        )
        self.marked.append((place, producer.producer_id, commit))
        return Code.NONE
