"""Every error code that a transaction request can return, and the move it leads to."""

from __future__ import annotations

import pytest
from connectctl.ops.kafka.error_handling import (
    DESCRIBE,
    FENCE,
    LIST,
    LOOKUP,
    MARKER,
    PRODUCERS,
    Code,
    ErrorAction,
    name_of,
    verdict,
)

C, M = Code, ErrorAction
ANYWHERE = {
    C.NONE: M.DONE,
    C.NOT_SENT: M.AGAIN,
    C.UNKNOWN_SERVER_ERROR: M.GIVE_UP,
    C.UNSUPPORTED_VERSION: M.GIVE_UP,
    C.INVALID_REQUEST: M.GIVE_UP,
    C.CLUSTER_AUTHORIZATION_FAILED: M.GIVE_UP,
}
READ_ONLY = ANYWHERE | {C.NO_ANSWER: M.AGAIN, C.NETWORK_EXCEPTION: M.AGAIN, C.REQUEST_TIMED_OUT: M.AGAIN}
EXPECTED = {
    "FindCoordinator": (
        LOOKUP,
        READ_ONLY
        | {
            C.COORDINATOR_LOAD_IN_PROGRESS: M.AGAIN,
            C.COORDINATOR_NOT_AVAILABLE: M.AGAIN,
            C.LEADER_NOT_AVAILABLE: M.AGAIN,
            C.NOT_COORDINATOR: M.AGAIN,
            C.GROUP_AUTHORIZATION_FAILED: M.GIVE_UP,
            C.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: M.GIVE_UP,
            C.TRANSACTION_ABORTABLE: M.GIVE_UP,
        },
    ),
    "InitProducerId": (
        FENCE,
        ANYWHERE
        | {
            C.NO_ANSWER: M.DOUBT,
            C.NETWORK_EXCEPTION: M.DOUBT,
            C.REQUEST_TIMED_OUT: M.DOUBT,
            C.COORDINATOR_NOT_AVAILABLE: M.DOUBT,
            C.COORDINATOR_LOAD_IN_PROGRESS: M.AGAIN,
            C.CONCURRENT_TRANSACTIONS: M.AGAIN,
            C.NOT_COORDINATOR: M.MOVED,
            C.TRANSACTION_COORDINATOR_FENCED: M.MOVED,
            C.KAFKA_STORAGE_ERROR: M.MOVED,
            C.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: M.GIVE_UP,
            C.INVALID_TRANSACTION_TIMEOUT: M.GIVE_UP,
            C.INVALID_PRODUCER_EPOCH: M.GIVE_UP,
            C.PRODUCER_FENCED: M.GIVE_UP,
            C.INVALID_PRODUCER_ID_MAPPING: M.GIVE_UP,
            C.INVALID_TXN_STATE: M.GIVE_UP,
            C.TRANSACTION_ABORTABLE: M.GIVE_UP,
        },
    ),
    "DescribeTransactions": (
        DESCRIBE,
        READ_ONLY
        | {
            C.COORDINATOR_LOAD_IN_PROGRESS: M.AGAIN,
            C.COORDINATOR_NOT_AVAILABLE: M.MOVED,
            C.NOT_COORDINATOR: M.MOVED,
            C.TRANSACTIONAL_ID_NOT_FOUND: M.ABSENT,
            C.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: M.GIVE_UP,
        },
    ),
    "ListTransactions": (
        LIST,
        READ_ONLY
        | {
            C.COORDINATOR_LOAD_IN_PROGRESS: M.AGAIN,
            C.COORDINATOR_NOT_AVAILABLE: M.AGAIN,
            C.NOT_COORDINATOR: M.AGAIN,
            C.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: M.GIVE_UP,
            C.INVALID_REGULAR_EXPRESSION: M.GIVE_UP,
        },
    ),
    "DescribeProducers": (
        PRODUCERS,
        READ_ONLY
        | {
            C.UNKNOWN_TOPIC_OR_PARTITION: M.ABSENT,
            C.INVALID_TOPIC_EXCEPTION: M.ABSENT,
            C.NOT_LEADER_OR_FOLLOWER: M.MOVED,
            C.LEADER_NOT_AVAILABLE: M.MOVED,
            C.KAFKA_STORAGE_ERROR: M.MOVED,
            C.TOPIC_AUTHORIZATION_FAILED: M.GIVE_UP,
        },
    ),
    "WriteTxnMarkers": (
        MARKER,
        READ_ONLY
        | {
            C.UNKNOWN_TOPIC_OR_PARTITION: M.ABSENT,
            C.INVALID_TOPIC_EXCEPTION: M.ABSENT,
            C.NOT_LEADER_OR_FOLLOWER: M.MOVED,
            C.LEADER_NOT_AVAILABLE: M.MOVED,
            C.KAFKA_STORAGE_ERROR: M.MOVED,
            C.NOT_COORDINATOR: M.MOVED,
            C.TOPIC_AUTHORIZATION_FAILED: M.GIVE_UP,
            C.INVALID_PRODUCER_EPOCH: M.GIVE_UP,
            C.TRANSACTION_COORDINATOR_FENCED: M.GIVE_UP,
            C.INVALID_TXN_STATE: M.GIVE_UP,
            C.INVALID_PRODUCER_ID_MAPPING: M.GIVE_UP,
            C.UNSUPPORTED_FOR_MESSAGE_FORMAT: M.GIVE_UP,
            C.CORRUPT_MESSAGE: M.GIVE_UP,
            C.MESSAGE_TOO_LARGE: M.GIVE_UP,
            C.RECORD_LIST_TOO_LARGE: M.GIVE_UP,
            C.INVALID_REQUIRED_ACKS: M.GIVE_UP,
            C.NOT_ENOUGH_REPLICAS: M.AGAIN,
            C.NOT_ENOUGH_REPLICAS_AFTER_APPEND: M.AGAIN,
            C.COORDINATOR_NOT_AVAILABLE: M.AGAIN,
            C.COORDINATOR_LOAD_IN_PROGRESS: M.AGAIN,
        },
    ),
}
ROWS = [(request, code, move) for request, (_, moves) in EXPECTED.items() for code, move in moves.items()]


@pytest.mark.parametrize(("request_", "code", "move"), ROWS, ids=[f"{r}-{c.name}" for r, c, _ in ROWS])
def test_each_answer_leads_to_one_move(request_: str, code: Code, move: ErrorAction) -> None:
    assert verdict(EXPECTED[request_][0], code).move is move


@pytest.mark.parametrize("request_", EXPECTED)
def test_no_row_is_without_its_test(request_: str) -> None:
    table, moves = EXPECTED[request_]
    assert table.keys() == moves.keys()


def test_a_code_that_nobody_foresaw_ends_the_matter_and_is_named() -> None:
    said = verdict(FENCE, 999)
    assert said.move is ErrorAction.GIVE_UP
    assert "ERROR_999" in said.meaning
    assert verdict(DESCRIBE, Code.INVALID_TRANSACTION_TIMEOUT).move is ErrorAction.GIVE_UP
    assert name_of(51) == "CONCURRENT_TRANSACTIONS"


def test_the_codes_have_kafkas_numbers() -> None:
    import kafka.errors as theirs

    renamed = {"NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER", "MESSAGE_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE"}
    renamed |= {"INVALID_TOPIC": "INVALID_TOPIC_EXCEPTION", "NO_ERROR": "NONE", "UNKNOWN": "UNKNOWN_SERVER_ERROR"}
    not_in_kafka_python = {Code.INVALID_REGULAR_EXPRESSION}
    for code in (c for c in Code if c > -100 and c not in not_in_kafka_python):
        message = theirs.for_code(int(code)).message
        assert renamed.get(message, message) == code.name


def test_whatever_ends_in_failure_says_what_to_do() -> None:
    for request, (table, _) in EXPECTED.items():
        for code, said in table.items():
            assert said.move is not ErrorAction.GIVE_UP or said.advice, (request, code)
