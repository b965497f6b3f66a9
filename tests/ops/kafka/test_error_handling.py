"""Every error code that a transaction request can return, and the move it leads to."""

from __future__ import annotations

import pytest
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.kafka.error_handling import (
    DESCRIBE,
    FENCE,
    LOOKUP,
    MARKER,
    PRODUCERS,
    Code,
    ErrorAction,
    ErrorVerdict,
    failure,
    name_of,
    verdict,
)

C, M = Code, ErrorAction
ANYWHERE = {
    C.NONE: M.DONE,
    C.NOT_SENT: M.RETRY,
    C.UNKNOWN_SERVER_ERROR: M.FAIL,
    C.UNSUPPORTED_VERSION: M.FAIL,
    C.INVALID_REQUEST: M.FAIL,
    C.CLUSTER_AUTHORIZATION_FAILED: M.FAIL,
}
READ_ONLY = ANYWHERE | {
    C.NO_ANSWER: M.RETRY,
    C.NETWORK_EXCEPTION: M.RETRY,
    C.REQUEST_TIMED_OUT: M.RETRY,
}
EXPECTED = {
    "FindCoordinator": (
        LOOKUP,
        READ_ONLY
        | {
            C.COORDINATOR_LOAD_IN_PROGRESS: M.RETRY,
            C.COORDINATOR_NOT_AVAILABLE: M.RETRY,
            C.LEADER_NOT_AVAILABLE: M.RETRY,
            C.NOT_COORDINATOR: M.RETRY,
            C.GROUP_AUTHORIZATION_FAILED: M.FAIL,
            C.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: M.FAIL,
            C.TRANSACTION_ABORTABLE: M.FAIL,
        },
    ),
    "InitProducerId": (
        FENCE,
        ANYWHERE
        | {
            C.NO_ANSWER: M.UNKNOWN_OUTCOME,
            C.NETWORK_EXCEPTION: M.UNKNOWN_OUTCOME,
            C.REQUEST_TIMED_OUT: M.UNKNOWN_OUTCOME,
            C.COORDINATOR_NOT_AVAILABLE: M.UNKNOWN_OUTCOME,
            C.COORDINATOR_LOAD_IN_PROGRESS: M.RETRY,
            C.CONCURRENT_TRANSACTIONS: M.RETRY,
            C.NOT_COORDINATOR: M.REDISCOVER,
            C.TRANSACTION_COORDINATOR_FENCED: M.REDISCOVER,
            C.KAFKA_STORAGE_ERROR: M.REDISCOVER,
            C.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: M.FAIL,
            C.INVALID_TRANSACTION_TIMEOUT: M.FAIL,
            C.INVALID_PRODUCER_EPOCH: M.FAIL,
            C.PRODUCER_FENCED: M.FAIL,
            C.INVALID_PRODUCER_ID_MAPPING: M.FAIL,
            C.INVALID_TXN_STATE: M.FAIL,
            C.TRANSACTION_ABORTABLE: M.FAIL,
        },
    ),
    "DescribeTransactions": (
        DESCRIBE,
        READ_ONLY
        | {
            C.COORDINATOR_LOAD_IN_PROGRESS: M.RETRY,
            C.COORDINATOR_NOT_AVAILABLE: M.REDISCOVER,
            C.NOT_COORDINATOR: M.REDISCOVER,
            C.TRANSACTIONAL_ID_NOT_FOUND: M.ABSENT,
            C.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: M.FAIL,
        },
    ),
    "DescribeProducers": (
        PRODUCERS,
        READ_ONLY
        | {
            C.UNKNOWN_TOPIC_OR_PARTITION: M.ABSENT,
            C.INVALID_TOPIC_EXCEPTION: M.ABSENT,
            C.NOT_LEADER_OR_FOLLOWER: M.REDISCOVER,
            C.LEADER_NOT_AVAILABLE: M.REDISCOVER,
            C.KAFKA_STORAGE_ERROR: M.REDISCOVER,
            C.TOPIC_AUTHORIZATION_FAILED: M.FAIL,
        },
    ),
    "WriteTxnMarkers": (
        MARKER,
        READ_ONLY
        | {
            C.UNKNOWN_TOPIC_OR_PARTITION: M.ABSENT,
            C.INVALID_TOPIC_EXCEPTION: M.ABSENT,
            C.NOT_LEADER_OR_FOLLOWER: M.REDISCOVER,
            C.LEADER_NOT_AVAILABLE: M.REDISCOVER,
            C.KAFKA_STORAGE_ERROR: M.REDISCOVER,
            C.NOT_COORDINATOR: M.REDISCOVER,
            C.TOPIC_AUTHORIZATION_FAILED: M.FAIL,
            C.INVALID_PRODUCER_EPOCH: M.FAIL,
            C.TRANSACTION_COORDINATOR_FENCED: M.FAIL,
            C.INVALID_TXN_STATE: M.FAIL,
            C.INVALID_PRODUCER_ID_MAPPING: M.FAIL,
            C.UNSUPPORTED_FOR_MESSAGE_FORMAT: M.FAIL,
            C.CORRUPT_MESSAGE: M.FAIL,
            C.MESSAGE_TOO_LARGE: M.FAIL,
            C.RECORD_LIST_TOO_LARGE: M.FAIL,
            C.INVALID_REQUIRED_ACKS: M.FAIL,
            C.NOT_ENOUGH_REPLICAS: M.RETRY,
            C.NOT_ENOUGH_REPLICAS_AFTER_APPEND: M.RETRY,
            C.COORDINATOR_NOT_AVAILABLE: M.RETRY,
            C.COORDINATOR_LOAD_IN_PROGRESS: M.RETRY,
        },
    ),
}
ROWS = [
    (request, code, move)
    for request, (_, moves) in EXPECTED.items()
    for code, move in moves.items()
]


@pytest.mark.parametrize(
    ("request_", "code", "move"), ROWS, ids=[f"{r}-{c.name}" for r, c, _ in ROWS]
)
def test_each_answer_leads_to_one_move(request_: str, code: Code, move: ErrorAction) -> None:
    assert verdict(EXPECTED[request_][0], code).move is move


@pytest.mark.parametrize("request_", EXPECTED)
def test_no_row_is_without_its_test(request_: str) -> None:
    table, moves = EXPECTED[request_]
    assert table.keys() == moves.keys()


def test_a_code_that_nobody_foresaw_ends_the_matter_and_is_named() -> None:
    said = verdict(FENCE, 999)
    assert said.move is ErrorAction.FAIL
    assert "ERROR_999" in said.meaning
    assert verdict(DESCRIBE, Code.INVALID_TRANSACTION_TIMEOUT).move is ErrorAction.FAIL
    assert name_of(51) == "CONCURRENT_TRANSACTIONS"


@pytest.mark.parametrize(
    ("table", "code", "right"),
    [
        (LOOKUP, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Describe on TransactionalId x"),
        (DESCRIBE, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Describe on TransactionalId x"),
        (FENCE, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Write on TransactionalId x"),
        (PRODUCERS, Code.TOPIC_AUTHORIZATION_FAILED, "Read on Topic x"),
        (MARKER, Code.CLUSTER_AUTHORIZATION_FAILED, "Alter on Cluster kafka-cluster"),
    ],
)
def test_a_request_that_is_refused_for_a_right_names_it(
    table: dict[Code, ErrorVerdict], code: Code, right: str
) -> None:
    error = failure("Not done", verdict(table, code, "x"), code)
    assert isinstance(error, NotAuthorized)
    assert str(error).startswith(f"Not done: {right} is missing. Grant {right}")
    assert str(error.right) == right
    other = failure(
        "Not done", verdict(table, Code.UNKNOWN_SERVER_ERROR, "x"), Code.UNKNOWN_SERVER_ERROR
    )
    assert (type(other), other.code) == (ConnectctlError, "UNKNOWN_SERVER_ERROR")


def test_the_codes_have_kafkas_numbers() -> None:
    import kafka.errors as theirs

    renamed = {
        "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
        "MESSAGE_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    }
    renamed |= {
        "INVALID_TOPIC": "INVALID_TOPIC_EXCEPTION",
        "NO_ERROR": "NONE",
        "UNKNOWN": "UNKNOWN_SERVER_ERROR",
    }
    not_in_kafka_python = {Code.INVALID_REGULAR_EXPRESSION}
    for code in (c for c in Code if c > -100 and c not in not_in_kafka_python):
        message = theirs.for_code(int(code)).message
        assert renamed.get(message, message) == code.name


def test_whatever_ends_in_failure_says_what_to_do() -> None:
    for request, (table, _) in EXPECTED.items():
        for code, said in table.items():
            assert said.move is not ErrorAction.FAIL or said.advice, (request, code)
