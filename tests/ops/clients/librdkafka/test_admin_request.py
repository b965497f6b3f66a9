"""Admin requests whose controller died after the handle read its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from connectctl.ops.clients.librdkafka import connection
from connectctl.ops.clients.librdkafka.connection import ADMIN_PATIENCE, Connection

NOT_SENT = KafkaError(KafkaError._TIMED_OUT, "Failed while waiting for controller: Timed out")
NO_ANSWER = KafkaError(KafkaError._TIMED_OUT, "Failed while waiting for response")
REFUSED = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "denied")


class Handle:
    """A handle, whose only request ends with ``error``, or with an answer."""

    def __init__(self, error: KafkaError | None):
        self.error = error
        self.seconds: list[float] = []

    def request(self, seconds: float) -> Mapping[str, Future[Any]]:
        self.seconds.append(seconds)
        future: Future[Any] = Future()
        if self.error is None:
            future.set_result("answer")
        else:
            future.set_exception(KafkaException(self.error))
        return {"topic": future}


@pytest.fixture
def handles(monkeypatch: pytest.MonkeyPatch) -> list[Handle]:
    """The handles that connections get, the next one first."""
    made: list[Handle] = []
    remaining = iter(made)
    monkeypatch.setattr(connection, "AdminClient", lambda properties: next(remaining))
    return made


def ask(timeout: float = 30.0, *, repeats: bool = True) -> Future[Any]:
    kafka = Connection({"bootstrap.servers": "b:1"}, timeout=timeout)
    answers = kafka.admin_request(
        lambda admin, seconds: admin.request(seconds),
        repeats=repeats,
    )
    return answers["topic"]


@pytest.mark.parametrize(
    ("late", "longer"), [(NOT_SENT, 1), (NO_ANSWER, 2)], ids=["not sent", "no answer"]
)
def test_a_request_without_an_answer_is_sent_again_with_a_new_handle(
    handles: list[Handle], late: KafkaError, longer: int
) -> None:
    """One that was sent gets more time: its broker may be slow."""
    handles += [Handle(late), Handle(late), Handle(None)]
    assert ask().result() == "answer"
    assert [each.seconds for each in handles[:2]] == [[ADMIN_PATIENCE], [longer * ADMIN_PATIENCE]]


def test_it_ends_with_the_timeout(handles: list[Handle]) -> None:
    handles += [Handle(NO_ANSWER), Handle(None)]
    assert isinstance(ask(ADMIN_PATIENCE).exception(), KafkaException)
    assert handles[1].seconds == []


def test_a_change_is_sent_again_only_if_it_was_not_sent(handles: list[Handle]) -> None:
    handles += [Handle(NOT_SENT), Handle(NO_ANSWER), Handle(None)]
    assert isinstance(ask(repeats=False).exception(), KafkaException)
    assert [len(each.seconds) for each in handles] == [1, 1, 0]


def test_an_answer_that_refuses_is_an_answer(handles: list[Handle]) -> None:
    handles += [Handle(REFUSED), Handle(None)]
    assert isinstance(ask().exception(), KafkaException)
    assert handles[1].seconds == []
