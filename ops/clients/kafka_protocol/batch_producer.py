"""A transactional producer of whole record batches, through kafka-python's connections.

It speaks transaction version 2 (KIP-890's second part) where the cluster has it: a Produce adds its
partition, and each commit or abort gives the producer its next epoch, so that no late request can
touch a later transaction. Elsewhere it uses the older requests, which every broker from 2.5 on
accepts: partitions are added before they are written to.

It never repeats a request that may have been performed, except a commit under version 2, which its
epoch makes safe to repeat. A request to a busy coordinator is repeated. After any other failure
only an abort or ``close`` is possible. So it needs no retries, reordering or recovery of sequence
numbers, which make producers large.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from connectctl.ops.clients.kafka_protocol import transaction_requests as requests
from connectctl.ops.clients.kafka_protocol.batch_sender import BatchSender, Parts
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.direct_requests import DirectRequests
from connectctl.ops.clients.kafka_protocol.leaders import Leaders
from connectctl.ops.clients.kafka_protocol.partition_leaders import PartitionLeaders
from connectctl.ops.clients.kafka_protocol.raw_connection import SHORTEST
from connectctl.ops.clients.kafka_protocol.refusals import Named, Refusal, check, pauses
from connectctl.ops.clients.kafka_protocol.transaction_requests import (
    ASK_AGAIN,
    NEW_END,
    NEW_OFFSET_COMMIT,
    OLD_END,
    has_version_2,
)
from connectctl.ops.clients.kafka_protocol.transactions import GROUP, find_request, init_request
from connectctl.ops.core.errors import NotAuthorized, Unreachable
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.group_positions import GroupMembership, GroupOffset
from connectctl.ops.kafka.record_batch_encoder import ProducerState
from connectctl.ops.kafka.sentinels import number_of
from connectctl.ops.kafka.topic_partition import TopicPartition

_LAST_SEQUENCE = 0x7FFFFFFF
_BUSY = (Code.CONCURRENT_TRANSACTIONS,)
"""Markers are still being written, or the coordinator is about to fence this producer."""
_NOT_ADDED = (
    Code.UNKNOWN_TOPIC_OR_PARTITION,
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.GROUP_AUTHORIZATION_FAILED,
)
"""Errors that exclude the topic or group from a transaction."""


class BatchProducer:
    """One producer of the transactional id ``id_``. ``properties`` are librdkafka's; ``timeout`` in
    seconds bounds every wait for an answer. Raises ``Refusal``, ``Unreachable``, ``NotAuthorized``
    and ``OSError``.
    """

    def __init__(
        self,
        properties: Mapping[str, Any],
        id_: str,
        *,
        transaction_timeout_ms: int,
        timeout: float,
    ):
        self._wire = KafkaProtocolClient(properties, timeout=timeout)
        self._timeout, self._timeout_ms = timeout, transaction_timeout_ms
        self._leaders = PartitionLeaders(self._wire)
        self._added: set[TopicPartition] = set()
        self._groups: set[str] = set()
        """Consumer groups whose offsets are in the transaction, or may be."""
        self._has_begun = False
        """True if a coordinator has confirmed an addition to the transaction;
        ``BatchSender.opened`` has further confirmations.
        """
        self._sequences: dict[TopicPartition, int] = defaultdict(int)
        self._sender = BatchSender(self._wire, id_, timeout)
        self._direct = DirectRequests(self._wire, timeout)
        self._group_coordinators: dict[str, int] = {}
        self._coordinator: int | None = -1
        """The coordinator's broker id; None after a request without an answer."""
        self._deadline: float | None = None
        """The end of requests to coordinators, if it is before their own time-outs."""
        self.who = (-1, -1)
        """The producer id and the epoch of the transaction that is open, or of the next one."""
        self.id = id_

    def close(self) -> None:
        """Close the connections. A transaction that is open stays so, until the id is initialised
        again or it expires.
        """
        self._sender.close()
        self._direct.close()
        self._wire.close()

    @property
    def bumps_epoch(self) -> bool:
        """Return whether each transaction has an epoch of its own (transaction version 2). Known
        after initialisation.
        """
        return self._sender.adds_partitions

    def initialise(self, patience: float) -> None:
        """Send InitProducerId: fence older producers of the id, and wait up to ``patience`` seconds
        for the end of their transactions.
        """
        self._initialise(patience, (-1, -1))

    @contextmanager
    def _until(self, deadline: float) -> Iterator[None]:
        before, self._deadline = self._deadline, deadline
        try:
            yield
        finally:
            self._deadline = before

    def _initialise(self, patience: float, who: tuple[int, int]) -> None:
        deadline = time.monotonic() + patience
        for pause in pauses():
            try:
                with self._until(deadline):
                    self._coordinator = self._find()
                    answer = self._ask(
                        "initialise its producer", init_request(self.id, self._timeout_ms, who)
                    )
                check(answer.error_code)
                if (next_epoch := _state(answer)) is None:
                    raise Refusal(Code.COORDINATOR_NOT_AVAILABLE)
                self._sender.adds_partitions = has_version_2(self._wire)
                # Address, encryption and login are right: a request that fails is repeated without
                # a diagnosis.
                self._wire.explains = False
                self._begin(next_epoch)
                return
            except Refusal as e:
                if e.code not in ASK_AGAIN or time.monotonic() > deadline:
                    raise
            except Unreachable as e:
                # A login that was right before may fail while a broker starts.
                refused = isinstance(e, NotAuthorized) and self._wire.explains
                if refused or time.monotonic() > deadline:
                    raise
            time.sleep(pause)

    def _begin(self, who: tuple[int, int]) -> None:
        """Continue with a new epoch, of which no partition has a record yet."""
        self.who = who
        self._sequences.clear()
        self._forget()

    def _forget(self) -> None:
        self._added.clear()
        self._groups.clear()
        self._has_begun = False
        self._sender.begin()
        self._leaders.forget_if_old()

    def partitions(self, topic: str, patience: float) -> int:
        """Return the number of partitions of ``topic``; see ``PartitionLeaders``."""
        return self._leaders.partitions(topic, patience)

    def leaders(self, topics: Sequence[str]) -> Mapping[TopicPartition, int | Code]:
        """Return the current leader of each partition of ``topics``, or the error if it has none.
        Creates no topic.
        """
        return Leaders(self._wire).leaders(topics)

    def led(self, topic: str) -> Sequence[int]:
        """Return the partitions of a topic that was looked up that can be written to without
        waiting for a leader.
        """
        return self._leaders.led(topic)

    def await_leader(self, topic_partition: TopicPartition) -> None:
        """Wait until a partition has a leader, and everything that was sent to others is
        acknowledged.
        """
        self._sender.flush()
        self._leaders.leader(topic_partition)

    def add(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Send AddPartitionsToTxn for partitions that are not in the transaction yet. Under version
        2 their first Produce adds them. Only for partitions with a leader: without one, a
        transaction does not end.
        """
        missing = (
            []
            if self.bumps_epoch
            else [partition for partition in topic_partitions if partition not in self._added]
        )
        if not missing:
            return
        request = requests.add_partitions_request(self.id, self.who, missing)
        self._ask_until_ready(
            lambda: requests.partition_codes(
                self._ask("add partitions to its transaction", request)
            )
        )
        self._added.update(missing)

    def send(
        self,
        topic_partition: TopicPartition,
        records: int,
        made: Callable[[ProducerState], Parts],
        named: Named | None = None,
    ) -> None:
        """Produce a batch of ``records`` records to a partition that was added. ``made`` returns
        its encoded parts for a producer state.
        """
        self._added.add(topic_partition)
        sequence = self._sequences[topic_partition]
        batch = made(ProducerState(*self.who, sequence))
        self._sender.send(
            self._leaders.leader(topic_partition), topic_partition, batch, named, records
        )
        self._sequences[topic_partition] = (sequence + records) & _LAST_SEQUENCE

    def flush(self) -> None:
        """Wait until everything that was sent is acknowledged. The limit is one time-out for each
        request.
        """
        self._sender.flush()

    def settle(self) -> None:
        """Wait until everything that was sent is answered, successfully or not."""
        self._sender.settle()

    def drop_unanswered(self) -> None:
        """Stop waiting for answers. Only under version 2, and before an abort, which ends the epoch
        of late records.
        """
        self._sender.drop_unanswered()

    def send_group_offsets(
        self,
        member: GroupMembership,
        offsets: Mapping[TopicPartition, GroupOffset],
        patience: float,
    ) -> None:
        """Send AddOffsetsToTxn and TxnOffsetCommit: ``offsets`` of the group of ``member``. Raises
        ``Refusal`` with ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID if another
        member has its partitions. While the group's coordinator moves, the request is repeated for
        ``patience`` seconds.
        """
        if member.group not in self._groups and not self.bumps_epoch:
            add = requests.add_offsets_request(self.id, self.who, member.group)
            doing = "add a consumer group to its transaction"
            self._ask_until_ready(lambda: requests.group_codes(self._ask(doing, add)))
        self._groups.add(member.group)
        version = NEW_OFFSET_COMMIT if self.bumps_epoch else requests.TXN_OFFSET_COMMIT
        request = requests.txn_offset_commit_request(self.id, self.who, member, offsets, version)
        if self._wire.newest(request) < version:
            raise Refusal(Code.UNSUPPORTED_VERSION)
        self._ask_until_ready(
            lambda: self._commit_group_offsets(member.group, request), ASK_AGAIN, patience
        )
        self._has_begun = True

    def _commit_group_offsets(self, group: str, request: Any) -> set[int]:
        """Send ``request`` to the coordinator of ``group``, and return the errors in its answer."""
        coordinator = self._group_coordinators.pop(group, None)
        if coordinator is None:
            found = self._ask(
                "find the coordinator of a group", find_request(group, GROUP), anywhere=True
            )
            if found.error_code:
                return {found.error_code}
            coordinator = found.node_id
        codes = requests.codes_of(
            self._direct.ask("commit offsets of a consumer group", request, coordinator, self._left)
        )
        if not codes:  # after an error it may have moved
            self._group_coordinators[group] = coordinator
        return codes

    def end(self, *, commit: bool, patience: float) -> None:
        """Send EndTxn, if anything was added, and return when the coordinator has decided.
        ``patience`` limits the wait in seconds and, for a commit under version 2, its repetition.
        """
        if not self._added and not self._groups:
            return
        if not self.bumps_epoch:
            self._ask_until_ready(
                lambda: {self._end(commit, OLD_END).error_code}, patience=patience
            )
            self._forget()
            return
        self._has_begun = bool(self._has_begun or self._sender.opened or self._add_again(patience))
        next_epoch = self._end_epoch(commit, patience)
        if self._has_begun and next_epoch is not None:
            self._begin(next_epoch)
        else:
            # The epoch of the response may be one that another producer was given. InitProducerId
            # gives it only to the producer of the epoch before.
            self._initialise(self._timeout, self.who)

    def _add_again(self, patience: float) -> bool:
        """Add a partition or a group to the transaction with a request of its own; False where none
        may be added.

        Nothing else shows that a transaction without acknowledged records has begun, and EndTxn
        does not compare epochs where it has not. InitProducerId does not show it either: a
        coordinator keeps the epoch before only in memory, and the next coordinator refuses the
        producer that holds the id as fenced.
        """
        for request, codes in self._additions():
            ask = partial(
                self._codes_of, "add to its transaction what may be in it", request, codes
            )
            if not (refused := self._codes_when_ready(ask, ASK_AGAIN, patience)):
                return True
            if not refused.issubset(_NOT_ADDED):
                check(*refused)
        return False

    def _codes_of(self, doing: str, request: Any, codes: Callable[[Any], set[int]]) -> set[int]:
        """Return the errors in the response of its coordinator, or why the coordinator was not
        found.
        """
        try:
            refused = codes(self._ask(doing, request))
        except Refusal as e:
            return {e.code}
        self._look_again(refused)
        return refused

    def _look_again(self, refused: Collection[int]) -> None:
        """Let the next request find the coordinator, where the errors of the last one may mean that
        it has moved.
        """
        if any(code in ASK_AGAIN and code != Code.CONCURRENT_TRANSACTIONS for code in refused):
            self._coordinator = None

    def _additions(self) -> Iterator[tuple[Any, Callable[[Any], set[int]]]]:
        """Yield a request for one partition of each topic, and for each group, with the function
        that reads its response.
        """
        for partition in {partition.topic: partition for partition in self._added}.values():
            yield (
                requests.add_partitions_request(self.id, self.who, [partition]),
                requests.partition_codes,
            )
        for group in self._groups:
            yield requests.add_offsets_request(self.id, self.who, group), requests.group_codes

    def _end_epoch(self, commit: bool, patience: float) -> tuple[int, int] | None:
        """End the transaction of this epoch, and return the next epoch. A commit is repeated until
        it is answered or time is up: a coordinator that has performed it gives the same answer, and
        never that of a later epoch.
        """
        deadline = time.monotonic() + patience
        for pause in pauses():
            try:
                with self._until(deadline):
                    answer = self._end(commit, NEW_END)
                if commit and answer.error_code == Code.INVALID_TXN_STATE:
                    # It had begun, so it was aborted: by a producer that fenced this one, or
                    # because it was open for too long.
                    raise Refusal(Code.PRODUCER_FENCED)
                if answer.error_code not in ASK_AGAIN or time.monotonic() > deadline:
                    check(answer.error_code)
                    return _state(answer)
                self._look_again({answer.error_code})
            except Refusal as e:
                if e.code not in ASK_AGAIN or time.monotonic() > deadline:
                    raise
            except Unreachable:
                if not commit or time.monotonic() > deadline:
                    raise
            time.sleep(pause)
        raise AssertionError("pauses have no end")

    def _end(self, commit: bool, version: int) -> Any:
        return self._ask(
            "end its transaction", requests.end_request(self.id, self.who, commit, version)
        )

    def _ask_until_ready(
        self,
        ask: Callable[[], set[int]],
        busy: Collection[int] = _BUSY,
        patience: float | None = None,
    ) -> None:
        """Call ``ask`` as ``_codes_when_ready`` does. Raises ``Refusal`` for any other code, and
        when time is up.
        """
        check(*self._codes_when_ready(ask, busy, patience))

    def _codes_when_ready(
        self, ask: Callable[[], set[int]], busy: Collection[int], patience: float | None = None
    ) -> set[int]:
        """Repeat ``ask`` while all its codes are ``busy``, for ``patience`` seconds, one time-out
        if None. Return the last codes. A coordinator has performed nothing of a request that it
        refused with these.
        """
        deadline = time.monotonic() + (self._timeout if patience is None else patience)
        for pause in pauses():
            with self._until(deadline):
                codes = ask()
            if not codes or not codes.issubset(busy) or time.monotonic() > deadline:
                return codes
            time.sleep(pause)
        raise AssertionError("pauses have no end")

    @property
    def _left(self) -> float:
        """Return the seconds that the next request may take."""
        remaining = self._timeout if self._deadline is None else self._deadline - time.monotonic()
        return min(self._timeout, max(remaining, SHORTEST))

    def _find(self) -> int:
        answer = self._ask("find its coordinator", find_request(self.id), anywhere=True)
        check(answer.error_code)
        coordinator = number_of(answer.node_id)
        if coordinator is None:
            raise Refusal(Code.COORDINATOR_NOT_AVAILABLE)
        return coordinator

    def _ask(self, doing: str, request: Any, *, anywhere: bool = False) -> Any:
        if anywhere:
            return self._wire.run(doing, lambda: self._wire.ask(request, patience=self._left))
        if self._coordinator is None:
            self._coordinator = self._find()
        try:
            return self._direct.ask(doing, request, self._coordinator, self._left)
        except Unreachable:
            self._coordinator = None
            raise


def _state(answer: Any) -> tuple[int, int] | None:
    """Return the producer id and the epoch in an answer; None if it has none."""
    who, epoch = number_of(answer.producer_id), number_of(answer.producer_epoch)
    return None if who is None or epoch is None else (who, epoch)
