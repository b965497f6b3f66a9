"""A producer of batches under transaction version 2 and before it, with a coordinator in memory
that follows KIP-890.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from connectctl.ops.clients.kafka_protocol import batch_sender, direct_requests, partition_leaders
from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.kafka_protocol.batch_sender import BatchSender, Parts
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.clients.kafka_protocol.transaction_requests import finalized, has_version_2
from connectctl.ops.core.errors import NotAuthorized, Unreachable
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.group_positions import GroupMembership, GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from fakes.directrequests import SharedWire
from kafka.protocol.producer import ProduceRequest, ProduceResponse

LAST_EPOCH = 0x7FFF - 1
"""The last one that a producer is given: behind it, it is given another producer id."""
PLACE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


@dataclass
class Coordinator:
    """Takes requests in place of a connection. ``faults`` happen to those of a name: ``lost`` is
    performed and not answered, ``dropped`` is not performed, ``moved`` is answered before another
    broker becomes the coordinator, which does not know the epoch before; a code is the answer.
    """

    who: int = 7
    epoch: int = 3
    last: int = -1
    before: int = -1
    state: str = "Empty"
    level: int | None = 2
    newest: int = 12
    asked: list[str] = field(default_factory=list)
    faults: dict[str, list[str | int]] = field(default_factory=dict)
    ended: list[bool] = field(default_factory=list)
    explains: bool = True
    unknown: bool = False
    """Whether the topics are gone."""
    moved: int = 0
    """How many requests to add partitions still find another coordinator."""

    def run(self, doing: str, work: Any) -> Any:
        return work()

    def ask(self, request: Any, broker: int | None = None, patience: float | None = None) -> Any:
        name = type(request).__name__.removesuffix("Request")
        self.asked.append(name)
        faults = self.faults.get(name, [])
        fault = faults.pop(0) if faults else None
        if fault == "dropped":
            raise Unreachable("no answer")
        answer = (
            SimpleNamespace(error_code=fault)
            if isinstance(fault, int)
            else getattr(self, name)(request)
        )
        if fault == "moved":
            self.last = -1
        if fault == "lost":
            raise Unreachable("no answer")
        return answer

    def FindCoordinator(self, request: Any) -> Any:  # the request's name
        return SimpleNamespace(error_code=0, node_id=1)

    def ApiVersions(self, request: Any) -> Any:
        known = (
            []
            if self.level is None
            else [SimpleNamespace(name="transaction.version", max_version_level=self.level)]
        )
        return SimpleNamespace(error_code=0, finalized_features=known, finalized_features_epoch=9)

    def AddPartitionsToTxn(self, request: Any) -> Any:
        code = self._added(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        part = SimpleNamespace(partition_error_code=code)
        return SimpleNamespace(
            results_by_topic_v3_and_below=[SimpleNamespace(results_by_partition=[part])]
        )

    def AddOffsetsToTxn(self, request: Any) -> Any:
        return SimpleNamespace(error_code=self._added(request.producer_id, request.producer_epoch))

    def _added(self, *given: int) -> int:
        if self.moved:
            self.moved -= 1
            return int(Code.NOT_COORDINATOR)
        if self.unknown:
            return int(Code.UNKNOWN_TOPIC_OR_PARTITION)
        if given != (self.who, self.epoch):
            return int(Code.PRODUCER_FENCED)
        self.state = "Ongoing"
        return 0

    def TxnOffsetCommit(self, request: Any) -> Any:
        self.state = "Ongoing"
        return SimpleNamespace(topics=[])

    def InitProducerId(self, request: Any) -> Any:
        given = (request.producer_id, request.producer_epoch)
        if given == (-1, -1):
            self.epoch, self.last = self.epoch + 1, -1
        elif given == (self.who, self.epoch):
            self.epoch, self.last = self.epoch + 1, self.epoch
        elif given not in ((self.who, self.last), (self.before, LAST_EPOCH)) or self.last < 0:
            return SimpleNamespace(error_code=int(Code.PRODUCER_FENCED))
        self.state = "Empty"
        return SimpleNamespace(error_code=0, producer_id=self.who, producer_epoch=self.epoch)

    def EndTxn(self, request: Any) -> Any:
        given, done = (request.producer_id, request.producer_epoch), f"Complete{request.committed}"
        if self.level != 2:
            self.state, self.ended = done, [*self.ended, request.committed]
            return SimpleNamespace(error_code=0)
        again = given == (self.who, self.epoch - 1) or (
            given == (self.before, LAST_EPOCH) and self.epoch == 0
        )
        if self.state.startswith("Complete") and again:
            return self._told(Code.NONE if self.state == done else Code.INVALID_TXN_STATE)
        if given != (self.who, self.epoch):
            return self._told(Code.PRODUCER_FENCED)
        if request.committed and self.state != "Ongoing":
            return self._told(Code.INVALID_TXN_STATE)
        self.state, self.ended, self.last = done, [*self.ended, request.committed], self.epoch
        if self.epoch == LAST_EPOCH:
            self.before, self.who, self.epoch = self.who, self.who + 1, 0
        else:
            self.epoch += 1
        return self._told(Code.NONE)

    def _told(self, code: Code) -> Any:
        return SimpleNamespace(
            error_code=int(code), producer_id=self.who, producer_epoch=self.epoch
        )


class Sender(BatchSender):
    """Sends nothing; what is flushed has arrived, but for what is ``refused``."""

    def __init__(self, coordinator: Coordinator):
        super().__init__(cast(Any, coordinator), "id", 1)
        self._coordinator = coordinator
        self.sent: list[tuple[TopicPartition, Parts]] = []
        self.refused = False

    def send(
        self,
        leader: int,
        place: TopicPartition,
        batch: Parts,
        named: Any = None,
        count: int = 0,
    ) -> None:
        self.sent.append((place, batch))
        if not self.refused:
            self._coordinator.state = "Ongoing"
            self.opened.add(place)


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def made(coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> BatchProducer:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    producer = BatchProducer(
        {"bootstrap.servers": "localhost:1"}, "id", transaction_timeout_ms=500, timeout=0.2
    )
    wire: Any = coordinator
    monkeypatch.setattr(coordinator, "newest", lambda request: 12, raising=False)
    producer._wire, producer._sender = wire, Sender(coordinator)
    producer._direct = cast(Any, SharedWire(wire))
    producer._leaders._leaders = {PLACE.topic: {PLACE.partition: 1, OTHER.partition: 1}}
    return producer


def sent(made: BatchProducer) -> list[tuple[TopicPartition, bytes]]:
    return [(place, b"".join(parts)) for place, parts in cast(Sender, made._sender).sent]


def give(made: BatchProducer, *places: TopicPartition) -> None:
    made.add(places)
    for place in places:
        made.send(
            place, 5, lambda stamp: [b"%d %d %d" % (stamp.producer_id, stamp.epoch, stamp.sequence)]
        )


def test_a_transaction_costs_its_produce_requests_and_one_end_and_has_an_epoch_of_its_own(
    made: BatchProducer, coordinator: Coordinator
) -> None:
    made.initialise(1)
    del coordinator.asked[:]
    for commit in (True, False, True):
        give(made, PLACE, OTHER, PLACE)
        made.end(commit=commit, patience=0.5)
    assert coordinator.asked == ["EndTxn"] * 3
    assert [batch for place, batch in sent(made) if place == PLACE] == [
        b"7 4 0", b"7 4 5", b"7 5 0", b"7 5 5", b"7 6 0", b"7 6 5"
    ]  # fmt: skip
    assert (coordinator.ended, made.who) == ([True, False, True], (7, 7))


@pytest.mark.parametrize("level", [None, 0, 1])
def test_where_the_feature_is_off_partitions_are_added_and_the_epoch_stays_whatever_versions_are_offered(
    made: BatchProducer, coordinator: Coordinator, level: int | None
) -> None:
    coordinator.level = level
    made.initialise(1)
    assert made.bumps_epoch is False
    del coordinator.asked[:]
    give(made, PLACE)
    made.end(commit=True, patience=0.5)
    give(made, PLACE)
    assert coordinator.asked == ["AddPartitionsToTxn", "EndTxn", "AddPartitionsToTxn"]
    # sequences go on with the epoch
    assert [batch for _, batch in sent(made)] == [b"7 4 0", b"7 4 5"]


def test_brokers_without_the_versions_are_not_asked_for_the_feature(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire: Any = coordinator
    monkeypatch.setattr(coordinator, "newest", lambda request: 4, raising=False)
    assert has_version_2(wire) is False
    assert coordinator.asked == []


def test_features_that_nobody_has_agreed_on_are_none() -> None:
    features = [SimpleNamespace(name="transaction.version", max_version_level=2)]
    told: Any = SimpleNamespace(finalized_features=features, finalized_features_epoch=-1)
    assert finalized(told) == {}
    assert finalized(SimpleNamespace(finalized_features=features, finalized_features_epoch=0)) == {
        "transaction.version": 2
    }
    assert finalized(SimpleNamespace(finalized_features=None, finalized_features_epoch=None)) == {}


@pytest.mark.parametrize(
    "faults",
    [
        ["lost"],
        ["dropped"],
        ["dropped", "lost", "lost"],
        [int(Code.CONCURRENT_TRANSACTIONS)] * 3,
        ["lost", int(Code.CONCURRENT_TRANSACTIONS)],
        [
            int(Code.NOT_COORDINATOR),
            int(Code.COORDINATOR_LOAD_IN_PROGRESS),
            int(Code.COORDINATOR_NOT_AVAILABLE),
        ],
    ],
)
def test_a_commit_is_asked_for_until_it_is_answered_and_happens_once(
    made: BatchProducer, coordinator: Coordinator, faults: list[str | int]
) -> None:
    made.initialise(1)
    give(made, PLACE)
    coordinator.faults["EndTxn"] = list(faults)
    made.end(commit=True, patience=0.5)
    assert (coordinator.ended, made.who) == ([True], (7, 5))


@pytest.mark.parametrize("commit", [True, False])
def test_a_coordinator_that_does_not_answer_is_looked_up_again(
    made: BatchProducer, coordinator: Coordinator, commit: bool
) -> None:
    made.initialise(1)
    give(made, PLACE)
    coordinator.faults["EndTxn"] = ["dropped"]
    del coordinator.asked[:]
    if not commit:
        with pytest.raises(Unreachable):
            made.end(commit=False, patience=0.5)
    made.end(commit=commit, patience=0.5)
    assert coordinator.asked == ["EndTxn", "FindCoordinator", "EndTxn"]
    assert (coordinator.ended, made.who) == ([commit], (7, 5))


def test_a_login_that_is_refused_is_not_tried_until_time_is_up_but_one_that_was_right_before_is(
    made: BatchProducer, coordinator: Coordinator
) -> None:
    def refused(request: Any) -> Any:
        coordinator.tried = getattr(coordinator, "tried", 0) + 1  # type: ignore[attr-defined]
        if coordinator.tried == 3:  # type: ignore[attr-defined]
            return SimpleNamespace(error_code=0, node_id=1)
        raise NotAuthorized("the password is wrong")

    coordinator.FindCoordinator = refused  # type: ignore[method-assign]
    with pytest.raises(NotAuthorized):
        made.initialise(60)
    assert coordinator.tried == 1  # type: ignore[attr-defined]
    coordinator.explains = False  # as behind a first login
    made.initialise(60)
    assert coordinator.tried == 3  # type: ignore[attr-defined]


def test_a_commit_that_nobody_answers_is_in_doubt_once_its_time_is_up(
    made: BatchProducer, coordinator: Coordinator
) -> None:
    made.initialise(1)
    give(made, PLACE)
    coordinator.faults["EndTxn"] = ["dropped"] * 1_000_000
    with pytest.raises(Unreachable):
        made.end(commit=True, patience=0.5)


def test_a_commit_of_what_the_coordinator_has_aborted_meanwhile_says_that_the_producer_is_fenced(
    made: BatchProducer, coordinator: Coordinator
) -> None:
    made.initialise(1)
    give(made, PLACE)
    # Who fences it has the transaction aborted first, with the epoch behind ours, and then takes
    # the one behind that.
    coordinator.epoch, coordinator.last, coordinator.state = 5, -1, "CompleteFalse"
    with pytest.raises(Refusal) as told:
        made.end(commit=True, patience=0.5)
    assert told.value.code == Code.PRODUCER_FENCED


def test_before_version_2_neither_a_commit_nor_an_abort_is_repeated(
    made: BatchProducer, coordinator: Coordinator
) -> None:
    coordinator.level = 1
    made.initialise(1)
    give(made, PLACE)
    for commit in (True, False):
        coordinator.faults["EndTxn"] = ["dropped"]
        with pytest.raises(Unreachable):
            made.end(commit=commit, patience=0.5)
    assert coordinator.asked.count("EndTxn") == 2


def test_behind_the_last_epoch_comes_another_producer_id(
    made: BatchProducer, coordinator: Coordinator
) -> None:
    coordinator.epoch = LAST_EPOCH - 2
    made.initialise(1)
    states = []
    for faults in ([], ["lost"], []):
        give(made, PLACE)
        coordinator.faults["EndTxn"] = list(faults)
        made.end(commit=True, patience=0.5)
        states.append(made.who)
    assert states == [(7, LAST_EPOCH), (8, 0), (8, 1)]
    assert [batch for _, batch in sent(made)] == [b"7 32765 0", b"7 32766 0", b"8 0 0"]


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(
    ("unknown", "asked"),
    [
        (False, ["AddPartitionsToTxn", "EndTxn"]),
        (
            True,
            ["AddPartitionsToTxn", "EndTxn", "FindCoordinator", "InitProducerId", "ApiVersions"],
        ),
    ],
)
def test_an_abort_of_what_may_not_have_begun_takes_only_an_epoch_that_follows_its_own(
    made: BatchProducer, coordinator: Coordinator, begun: bool, unknown: bool, asked: list[str]
) -> None:
    made.initialise(1)
    cast(Sender, made._sender).refused = True
    give(made, PLACE)
    coordinator.state, coordinator.unknown = "Ongoing" if begun else "Empty", unknown
    del coordinator.asked[:]
    made.end(commit=False, patience=0.5)
    assert (coordinator.asked, made.who) == (asked, (7, 5))


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(
    "faults", [["moved"], ["lost", Code.NOT_COORDINATOR, "moved"], [Code.NOT_COORDINATOR]]
)
@pytest.mark.parametrize("not_found", [0, 2])
def test_another_coordinator_behind_an_abort_is_no_fence(
    made: BatchProducer,
    coordinator: Coordinator,
    begun: bool,
    faults: list[str | int],
    not_found: int,
) -> None:
    made.initialise(1)
    cast(Sender, made._sender).refused = True
    give(made, PLACE)
    coordinator.state = "Ongoing" if begun else "Empty"
    unavailable: list[str | int] = [int(Code.COORDINATOR_NOT_AVAILABLE)] * not_found
    coordinator.faults, coordinator.moved = (
        {"EndTxn": list(faults), "FindCoordinator": unavailable},
        1,
    )
    if "lost" in faults:
        with pytest.raises(Unreachable):
            made.end(commit=False, patience=0.5)
        coordinator.last = -1
    made.end(commit=False, patience=0.5)
    cast(Sender, made._sender).refused = False
    give(made, PLACE)
    made.end(commit=True, patience=0.5)
    assert (coordinator.ended, made.who) == ([False, True], (7, 6))


def test_an_abort_of_offsets_that_were_not_answered_adds_their_group(
    made: BatchProducer, coordinator: Coordinator
) -> None:
    made.initialise(1)
    coordinator.faults["TxnOffsetCommit"] = ["dropped"]
    with pytest.raises(Unreachable):
        made.send_group_offsets(
            GroupMembership("g", 7, "m-1"), {TopicPartition("in", 0): GroupOffset(2, None, "")}, 5
        )
    del coordinator.asked[:]
    made.end(commit=False, patience=0.5)
    assert (coordinator.asked, made.who) == (["AddOffsetsToTxn", "EndTxn"], (7, 5))


def test_it_never_takes_the_epoch_of_an_older_client_that_took_its_id_over(
    made: BatchProducer, coordinator: Coordinator
) -> None:
    made.initialise(1)
    cast(Sender, made._sender).refused = True
    give(made, PLACE)
    # A client of before KIP-890 initialised the id and aborted, and still has the epoch that it
    # began with. To the coordinator our abort looks like a repetition of one that it has performed.
    coordinator.epoch, coordinator.last, coordinator.state = 5, -1, "CompleteFalse"
    with pytest.raises(Refusal) as told:
        made.end(commit=False, patience=0.5)
    assert (told.value.code, coordinator.epoch) == (Code.PRODUCER_FENCED, 5)


def test_offsets_of_a_group_need_no_request_of_their_own_to_add_the_group(
    made: BatchProducer, coordinator: Coordinator
) -> None:
    made.initialise(1)
    del coordinator.asked[:]
    made.send_group_offsets(
        GroupMembership("g", 7, "m-1"), {TopicPartition("in", 0): GroupOffset(2, None, "")}, 5
    )
    made.end(commit=True, patience=0.5)
    assert coordinator.asked == ["FindCoordinator", "TxnOffsetCommit", "EndTxn"]
    assert made.who == (7, 5)


def test_partitions_and_leaders_are_looked_up_again_between_two_transactions_once_they_are_old(
    made: BatchProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    made.initialise(1)
    monkeypatch.setattr(
        partition_leaders,
        "time",
        SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: None),
    )
    known = made._leaders
    known.forget()
    for waited, kept in ((299, True), (2, False), (299, True)):
        known._leaders = {PLACE.topic: {PLACE.partition: 1}}
        give(made, PLACE)
        now[0] += waited
        assert known._leaders
        made.end(commit=True, patience=0.5)
        assert bool(known._leaders) is kept


def test_requests_take_no_longer_than_there_is_patience(
    made: BatchProducer, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    ask = coordinator.ask

    def asked(request: Any, broker: int | None = None, patience: float | None = None) -> Any:
        if type(request).__name__ != "ApiVersionsRequest":
            assert patience is not None
            given.append(patience)
        return ask(request, broker)

    monkeypatch.setattr(coordinator, "ask", asked)
    made._timeout = 10.0
    made.initialise(3.0)
    give(made, PLACE)
    made.end(commit=True, patience=2.0)
    give(made, PLACE)
    made.end(commit=False, patience=1.0)
    assert len(given) == 4
    for limit, patience in zip((3.0, 3.0, 2.0, 1.0), given, strict=True):
        assert 0 < patience <= limit


def test_a_transaction_without_anything_is_none(
    made: BatchProducer, coordinator: Coordinator
) -> None:
    made.initialise(1)
    del coordinator.asked[:]
    made.end(commit=True, patience=0.5)
    made.end(commit=False, patience=0.5)
    assert coordinator.asked == []


# --------------------------------------------------------------------------------- Produce requests


class Connection:
    """Answers Produce requests with the codes it is given, then with none."""

    wants_quiet = False

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.requests: list[Any] = []
        self.waiting: list[int] = []
        self.left = self.answered = 0
        self.allowed: list[float] = []
        self.throttles: list[int] = []
        self.closed = False

    def allow(self, seconds: float) -> None:
        self.allowed.append(seconds)

    def send_parts(
        self,
        key: int,
        version: int,
        parts: Sequence[bytes | memoryview],
        *,
        flexible: bool,
    ) -> int:
        assert (key, flexible) == (
            ProduceRequest.API_KEY,
            ProduceRequest.flexible_version_q(version),
        )
        self.requests.append(ProduceRequest[version].decode(b"".join(parts)))
        self.waiting.append(len(self.requests))
        return len(self.requests)

    def await_answer(self, number: int) -> None:
        assert self.waiting.pop(0) == number

    def bytes(self, count: int) -> bytearray:
        return self.answer(self.codes.pop(0) if self.codes else 0)

    def answer(self, code: int) -> bytearray:
        """The ``code`` for the first partition of the oldest request without an answer, none for
        its others.
        """
        topic = ProduceResponse.TopicProduceResponse
        request = self.requests[self.answered]
        self.answered += 1
        asked = [part.index for each in request.topic_data for part in each.partition_data]
        parts = [
            topic.PartitionProduceResponse(index=index, error_code=0 if n else code, base_offset=0)
            for n, index in enumerate(asked)
        ]
        version = request.API_VERSION
        throttle = self.throttles.pop(0) if self.throttles else 0
        responses = [topic(name="t", partition_responses=parts)]
        body = ProduceResponse[version](responses=responses, throttle_time_ms=throttle).encode()
        return bytearray(b"\0" if version == 12 else b"") + bytearray(body)

    def close(self) -> None:
        self.closed = True

    @property
    def versions(self) -> set[int]:
        return {request.API_VERSION for request in self.requests}

    @property
    def batches(self) -> list[Any]:
        return [
            b"+".join(part.records for part in r.topic_data[0].partition_data)
            for r in self.requests
        ]


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Connection:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return Connection()


def sender(connection: Connection, *, adds: bool = True) -> BatchSender:
    made = BatchSender(cast(Any, None), "id", 5)
    made._connections._of[1], made.adds_partitions = cast(Any, connection), adds
    made._connections.used(1)
    return made


@pytest.mark.parametrize(("adds", "version"), [(False, 8), (True, 12)])
def test_only_a_produce_of_the_newer_version_adds_its_partition(
    connection: Connection, adds: bool, version: int
) -> None:
    made = sender(connection, adds=adds)
    made.send(1, PLACE, [b"one"])
    made.flush()
    assert (connection.versions, made.opened) == ({version}, {PLACE})
    assert issubclass(type(connection.requests[0]), ProduceRequest)


def test_a_partition_that_the_coordinator_is_not_ready_for_is_asked_again_and_nothing_overtakes_its_first_batch(
    connection: Connection,
) -> None:
    made = sender(connection)
    connection.codes = [Code.CONCURRENT_TRANSACTIONS, Code.CONCURRENT_TRANSACTIONS]
    made.send(1, PLACE, [b"first"])
    made.send(1, OTHER, [b"other"])
    assert connection.batches == []
    made.send(1, PLACE, [b"second"])
    made.send(1, OTHER, [b"more"])  # which waits for nobody
    made.flush()
    assert connection.batches == [b"first+other", b"first", b"first", b"second", b"more"]


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("code", [Code.NOT_LEADER_OR_FOLLOWER, Code.UNKNOWN_TOPIC_OR_PARTITION])
def test_a_broker_that_does_not_know_yet_that_it_leads_a_new_topic_is_asked_again_for_a_moment(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, code: Code, adds: bool
) -> None:
    made = sender(connection, adds=adds)
    connection.codes = [code, code]
    made.send(1, PLACE, [b"first"])
    made.flush()
    assert connection.batches == [b"first"] * 3
    connection.codes = [code]
    made.send(1, PLACE, [b"second"])
    with pytest.raises((Refusal, OSError)):  # any other batch is not repeated
        made.flush()
    monkeypatch.setattr(batch_sender, "NEW_TOPIC_PATIENCE", 0.0)
    connection.codes = [code]
    made.send(1, OTHER, [b"first"])
    with pytest.raises((Refusal, OSError)):
        made.flush()


def test_where_a_produce_adds_no_partition_only_the_first_batch_of_all_is_waited_for(
    connection: Connection,
) -> None:
    made = sender(connection, adds=False)
    made.send(1, PLACE, [b"first"])
    made.flush()
    made.begin()
    for number in range(3):
        made.send(1, PLACE, [b"%d" % number])
    assert connection.batches == [b"first", b"0", b"1", b"2"]


def test_a_broker_that_reads_nothing_for_a_while_is_waited_for_so_much_longer(
    connection: Connection,
) -> None:
    made = sender(connection)
    connection.throttles = [2500, 0]
    made.send(1, PLACE, [b"one"])
    made.flush()
    made.send(1, PLACE, [b"two"])
    made.flush()
    assert connection.allowed == [2.5, 0.0]


def test_first_batches_that_are_large_wait_for_no_others(connection: Connection) -> None:
    made = sender(connection)
    made.send(1, PLACE, [bytes(600_000)])
    made.send(1, OTHER, [bytes(600_000)])
    assert len(connection.requests) == 1


def test_of_several_first_batches_the_one_that_is_refused_is_told_and_nothing_is_sent_again(
    connection: Connection,
) -> None:
    made = sender(connection)
    connection.codes = [Code.MESSAGE_TOO_LARGE]
    made.send(1, PLACE, [b"first"], lambda record: f"row {record}", 1)
    made.send(1, OTHER, [b"other"])
    with pytest.raises(Refusal) as told:
        made.flush()
    assert told.value.named is not None
    assert (told.value.code, told.value.named(0), made.opened) == (
        Code.MESSAGE_TOO_LARGE,
        "row 0",
        {OTHER},
    )
    assert told.value.alone == "t"
    made.settle()
    assert len(connection.requests) == 1


def test_what_waits_for_others_is_not_sent_by_an_abort(connection: Connection) -> None:
    made = sender(connection)
    made.send(1, PLACE, [b"first"])
    made.settle()
    made.begin()
    made.flush()
    assert connection.requests == []


def test_behind_its_first_batch_a_partition_has_several_on_their_way(
    connection: Connection,
) -> None:
    made = sender(connection)
    for number in range(4):
        made.send(1, PLACE, [b"%d" % number])
    assert len(connection.waiting) == 3
    made.flush()
    assert connection.batches == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("adds", [False, True])
def test_a_busy_coordinator_is_an_error_for_any_other_batch(
    connection: Connection, adds: bool
) -> None:
    made = sender(connection, adds=adds)
    connection.codes = [0, Code.CONCURRENT_TRANSACTIONS]
    made.send(1, PLACE, [b"first"])
    made.send(1, PLACE, [b"second"])
    with pytest.raises(Refusal) as told:
        made.flush()
    assert told.value.code == Code.CONCURRENT_TRANSACTIONS
    assert connection.batches == [b"first", b"second"]


def test_a_coordinator_that_stays_busy_is_an_error_in_the_end(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sender(connection)
    made._timeout = 0.05
    monkeypatch.setattr(
        connection, "bytes", lambda count: connection.answer(Code.CONCURRENT_TRANSACTIONS)
    )
    made.send(1, PLACE, [b"first"])
    with pytest.raises(Refusal):
        made.flush()
    made.send(1, PLACE, [b"of the next"])  # and nobody waits for what is not on its way


def test_a_connection_that_was_idle_for_long_or_broke_is_replaced(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, made, others = [1000.0], sender(connection), [Connection(), Connection()]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: None)
    monkeypatch.setattr(batch_sender, "time", clock)
    monkeypatch.setattr(direct_requests, "time", clock)
    monkeypatch.setattr(direct_requests, "RawConnection", lambda *_, **__: others.pop(0))
    made._connections._used[1] = 950.0
    made.send(1, PLACE, [b"soon"])
    made.flush()
    now[0] += 61
    made.send(1, PLACE, [b"late"])
    made.flush()
    other = cast(Any, made._connections._of[1])
    assert (connection.batches, connection.closed, other.batches) == ([b"soon"], True, [b"late"])

    def broken(*_: Any, **__: Any) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(other, "send_parts", broken)
    with pytest.raises(BrokenPipeError):
        made.send(1, PLACE, [b"lost"])
    made.send(1, PLACE, [b"of the next"])
    assert cast(Any, made._connections._of[1]).batches == [b"of the next"]


def test_connections_on_which_an_answer_is_missing_can_be_left_behind(
    connection: Connection,
) -> None:
    made = sender(connection)
    made.send(1, PLACE, [b"first"])
    made._open(1)
    made.drop_unanswered()
    made.settle()
    assert connection.closed
    assert made._connections._of == {}
