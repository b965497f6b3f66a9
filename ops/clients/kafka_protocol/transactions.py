"""Transaction coordinators and partition leaders through kafka-python: what librdkafka has no
requests for.

FindCoordinator (batched since KIP-699), InitProducerId, ListTransactions, DescribeTransactions,
DescribeProducers, WriteTxnMarkers (KIP-664). Answers come as values and error codes; what a code
means is for ``ops/kafka/error_handling.py``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from connectctl.ops.clients.kafka_protocol import init_producer_ids
from connectctl.ops.clients.kafka_protocol.acls import Namespaces
from connectctl.ops.clients.kafka_protocol.broker_fanout import BrokerFanout
from connectctl.ops.clients.kafka_protocol.client import ClusterClient, batches, code_of, known_code
from connectctl.ops.clients.kafka_protocol.leaders import Leaders
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.kafka.acls import Resource
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import InitProducerIdResponse
from connectctl.ops.kafka.sentinels import number_of
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Listing, Transaction
from connectctl.ops.kafka.visibility import (
    DESCRIBE_CLUSTER,
    Gap,
    Observation,
    Reason,
    observation_of,
)

GROUP, _TRANSACTION = 0, 1
"""The key types of FindCoordinator."""


def find_request(id: str, kind: int = _TRANSACTION) -> Any:
    """Return the FindCoordinator request for ``id``, to any broker."""
    from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest

    return FindCoordinatorRequest(key=id, key_type=kind, max_version=3)


def init_request(id: str, timeout_ms: int, who: tuple[int, int] = (-1, -1)) -> Any:
    """Return the InitProducerId request. Without a producer id and an epoch the current producer of
    ``id`` is fenced; with those of ``who`` it is refused if another producer was initialised after
    it (KIP-360).
    """
    from kafka.protocol.producer.transaction import InitProducerIdRequest

    # Version 6 is KIP-939's.
    return InitProducerIdRequest(
        transactional_id=id,
        transaction_timeout_ms=timeout_ms,
        producer_id=who[0],
        producer_epoch=who[1],
        min_version=0 if who == (-1, -1) else 3,
        max_version=5,
    )


class TransactionClient(ClusterClient, Leaders):
    """See ``TransactionCalls``. ``properties`` are librdkafka's; ``timeout`` is in seconds."""

    def __init__(self, properties: Mapping[str, Any], *, timeout: float) -> None:
        super().__init__(properties, timeout=timeout)
        self._names = Namespaces(self._wire)
        self._coordinators: dict[str, int] = {}

    # --------------------------------------------------------------------------------- coordinators

    def describe(self, ids: Sequence[str]) -> dict[str, Transaction | Code]:
        from kafka.protocol.admin.transactions import DescribeTransactionsRequest

        found: dict[str, Transaction | Code] = {}

        async def one(broker: int, some: Sequence[str]) -> None:
            answer = await self._wire.ask(
                DescribeTransactionsRequest(transactional_ids=list(some)), broker
            )
            for state in answer.transaction_states:
                found[state.transactional_id] = _transaction(state, broker)

        async def all_of_them() -> None:
            found.update(await self._find(ids))
            parts = [
                (b, some)
                for b, known in self._by_coordinator(ids, found)
                for some in batches(known)
            ]
            results = await self._wire.each(one(broker, some) for broker, some in parts)
            for (_, some), result in zip(parts, results, strict=True):
                if isinstance(result, Exception):
                    found.update(dict.fromkeys(some, code_of(result)))

        self._wire.run("describe transactions", all_of_them)
        for id, what in found.items():
            if not isinstance(what, Transaction):
                self._coordinators.pop(id, None)
        return found

    def fence(
        self,
        timeouts: Mapping[str, int],
        patience: float,
        on_result: Callable[[str, InitProducerIdResponse], None],
    ) -> None:
        from kafka.protocol.producer.transaction import InitProducerIdRequest

        def on_answer(id: str, code: Code, answer: Any) -> None:
            if answer is None or answer.error_code:
                self._coordinators.pop(id, None)
            on_result(id, InitProducerIdResponse(code) if answer is None else _answer(answer))

        async def ask(broker: int, ids: Sequence[str]) -> None:
            requests = ((id, init_request(id, timeouts[id])) for id in ids)
            await self._wire.pipeline(broker, requests, patience, on_answer)

        async def each(parts: Iterable[tuple[int, Sequence[str]]]) -> None:
            for result in await self._wire.each(ask(*part) for part in parts):
                if isinstance(result, Exception):
                    raise result

        lost = self._wire.run("find coordinators", lambda: self._find(list(timeouts)))
        for id, code in lost.items():
            on_result(id, InitProducerIdResponse(code, lookup=True))
        parts = self._by_coordinator(timeouts, lost)
        version = min(self._wire.newest(InitProducerIdRequest), init_producer_ids.NEWEST)
        enough = init_producer_ids.MANY if version >= init_producer_ids.OLDEST else math.inf
        many = [part for part in parts if len(part[1]) >= enough]
        init_producer_ids.init_many(
            self._wire, version, many, timeouts, on_answer, patience=patience
        )
        self._wire.run(
            "fence transactional ids", lambda: each(part for part in parts if part not in many)
        )

    async def _find(self, ids: Sequence[str]) -> dict[str, Code]:
        """Look up the coordinators that are not known yet; gives the ids for which none was found,
        and why.
        """
        from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest

        missing = [id for id in ids if id not in self._coordinators]
        lost: dict[str, Code] = {}

        def on_answer(id: str, code: Code, answer: Any) -> None:
            broker = None if answer is None else number_of(answer.node_id)
            if answer is not None and not answer.error_code and broker is not None:
                self._coordinators[id] = broker
            else:
                lost[id] = (
                    code
                    if answer is None
                    else known_code(answer.error_code or Code.COORDINATOR_NOT_AVAILABLE)
                )

        async def batch(some: Sequence[str]) -> None:
            request = FindCoordinatorRequest(
                key_type=_TRANSACTION, coordinator_keys=list(some), min_version=4
            )
            answer = await self._wire.ask(request)
            for each in answer.coordinators:
                on_answer(each.key, Code.NONE, each)

        if not missing:
            return lost
        if self._wire.newest(FindCoordinatorRequest) < 4:
            # Brokers before 3.0 look up one id per request.
            requests = ((id, find_request(id)) for id in missing)
            broker = self._wire.manager.least_loaded_node()
            await self._wire.pipeline(broker, requests, self._wire.timeout, on_answer)
            return lost
        parts = list(batches(missing))
        for some, result in zip(parts, await self._wire.each(map(batch, parts)), strict=True):
            if isinstance(result, Exception):
                lost.update(dict.fromkeys(some, code_of(result)))
        return lost

    def _by_coordinator(
        self, ids: Iterable[str], lost: Mapping[str, Any]
    ) -> list[tuple[int, list[str]]]:
        parts: dict[int, list[str]] = defaultdict(list)
        for id in ids:
            if id not in lost:
                parts[self._coordinators[id]].append(id)
        return list(parts.items())

    # ------------------------------------------------------------------------------------- listings

    def listed(
        self,
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        prefixes: Sequence[str] = (),
    ) -> Observation[tuple[Listing, ...]]:
        from kafka.protocol.admin.transactions import ListTransactionsRequest

        filters: dict[str, Any] = {
            "state_filters": list(states),
            "producer_id_filters": list(producer_ids),
        }

        async def one(broker: int) -> Any:
            if prefixes and self._wire.newest(ListTransactionsRequest) >= 2:
                filters["transactional_id_pattern"] = "|".join(
                    f"{_quoted(prefix)}.*" for prefix in prefixes
                )
            return await self._wire.ask(ListTransactionsRequest(**filters), broker)

        answers, gaps = self._of_brokers("list transactions", one, "broker")
        listings: list[Listing] = []
        for broker, answer in answers.items():
            for state in answer.transaction_states:
                id = state.transactional_id
                if not prefixes or id.startswith(tuple(prefixes)):
                    listings.append(Listing(id, state.transaction_state, state.producer_id, broker))
        if answers:
            gaps += self._names.gaps(
                "transactional ids", Resource.TRANSACTIONAL_ID, prefixes, self._hidden
            )
        return observation_of(tuple(sorted(listings, key=lambda listing: listing.id)), gaps)

    def _hidden(self, ids: Sequence[str]) -> list[str]:
        """Return those of ``ids`` that this principal may not describe. Raises ``Unreachable`` if
        one has no response.
        """
        found = self.describe(ids)
        lost = next(
            (code for code in found.values() if code in (Code.NO_ANSWER, Code.NOT_SENT)), None
        )
        if lost is not None:
            raise Unreachable(
                "Not every coordinator answers", why=lost.name, next_step="Try again."
            )
        return [id for id in ids if found[id] is Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]

    def connect_groups(self) -> Observation[frozenset[str]]:
        from kafka.protocol.admin.groups import ListGroupsRequest

        async def one(broker: int) -> Any:
            return await self._wire.ask(ListGroupsRequest(), broker)

        answers, gaps = self._of_brokers("list groups", one, "groups of broker")
        groups = [group for answer in answers.values() for group in answer.groups]
        if not BrokerFanout(self._wire).lists_every_group():
            gaps.append(
                Gap("other groups of Connect workers", Reason.NOT_AUTHORIZED, DESCRIBE_CLUSTER)
            )
        return observation_of(
            frozenset(g.group_id for g in groups if g.protocol_type == "connect"), gaps
        )

    def _of_brokers(
        self, doing: str, one: Callable[[int], Awaitable[Any]], subject: str
    ) -> tuple[dict[int, Any], list[Gap]]:
        """Return the response of every broker, and a gap for each without one."""
        brokers = self._wire.brokers()
        answers = self._wire.run(doing, lambda: self._wire.each(map(one, brokers)))
        found: dict[int, Any] = {}
        gaps: list[Gap] = []
        for broker, answer in zip(brokers, answers, strict=True):
            if isinstance(answer, Exception) or answer.error_code:
                code = (
                    code_of(answer)
                    if isinstance(answer, Exception)
                    else known_code(answer.error_code)
                )
                gaps.append(Gap(f"{subject} {broker}", Reason.NO_ANSWER, None, code.name))
            else:
                found[broker] = answer
        return found, gaps

    def all_topic_partitions(self) -> Observation[list[TopicPartition]]:
        gaps = self._names.gaps("topics", Resource.TOPIC, (), self.hidden)
        return observation_of(sorted(self.leaders(None)), gaps)


def _transaction(state: Any, coordinator: int) -> Transaction | Code:
    if state.error_code:
        return known_code(state.error_code)
    return Transaction(
        id=state.transactional_id,
        state=state.transaction_state,
        producer_id=state.producer_id,
        epoch=state.producer_epoch,
        timeout_ms=state.transaction_timeout_ms,
        started_ms=number_of(state.transaction_start_time_ms),
        partitions=tuple(
            sorted(TopicPartition(t.topic, p) for t in state.topics for p in t.partitions)
        ),
        coordinator=coordinator,
    )


def _answer(answer: Any) -> InitProducerIdResponse:
    code, who, epoch = (
        known_code(answer.error_code),
        number_of(answer.producer_id),
        number_of(answer.producer_epoch),
    )
    if code is Code.NONE and (who is None or epoch is None):
        # which may have been performed: look before asking again
        return InitProducerIdResponse(Code.NO_ANSWER)
    return InitProducerIdResponse(code, -1 if who is None else who, -1 if epoch is None else epoch)


def _quoted(text: str) -> str:
    """``text`` as itself in the brokers' regular expressions (RE2/J, KIP-1152)."""
    return "".join(c if c.isalnum() or c == "_" or ord(c) > 127 else f"\\{c}" for c in text)


def written_by(
    kafka: Connection, ids: Sequence[str], topic_partitions: Sequence[TopicPartition]
) -> frozenset[str]:
    """Return the topics of ``topic_partitions`` whose leaders remember the producer of one of
    ``ids``.

    The coordinator of an id knows its producer id, and the leader of each partition remembers the
    producers that wrote there lately. What may not be seen is left out: it proves nothing.
    """
    with closing(TransactionClient(kafka.client, timeout=kafka.timeout)) as calls:
        described = calls.describe(ids).values()
        producers = {found.producer_id for found in described if isinstance(found, Transaction)}
        remembered = calls.producers(topic_partitions) if producers else {}
    return frozenset(
        partition.topic
        for partition, found in remembered.items()
        if not isinstance(found, Code) and any(each.producer_id in producers for each in found)
    )
