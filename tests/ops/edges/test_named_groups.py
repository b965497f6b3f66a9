"""A group asked for by name while its coordinator is not there yet: it is looked at again, not said to be gone."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from connectctl.ops.edges import kafka as edge
from connectctl.ops.edges import namedgroups
from connectctl.ops.edges.namedgroups import describe
from connectctl.ops.errors import Unreachable

MOVING = (KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR)
GONE = 69  # GROUP_ID_NOT_FOUND


class Cluster:
    """Lists no group, and answers each description with the next of ``codes``; the last one stays."""

    bootstrap = "broker:9092"

    def __init__(self, *codes: int, timeout: float = 60) -> None:
        self.codes, self.timeout, self.admin = list(codes), timeout, self

    def ask(self, doing: str, call: Any) -> Any:
        return call()

    def list_groups(self, group: str, timeout: float) -> list[Any]:
        return []

    def describe_consumer_groups(self, names: list[str], request_timeout: float) -> dict[str, Future[Any]]:
        code = self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]
        answer: Future[Any] = Future()
        answer.set_exception(KafkaException(KafkaError(code, "ConsumerGroupDescribe: ")))
        return {names[0]: answer}

    def failure(self, error: KafkaError, doing: str, right: Any = None) -> Exception:
        return edge.failure(error, doing, self.bootstrap, right=right)


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The groups whose coordinator was waited for; a real one is in tests/live/test_three_brokers.py."""
    asked: list[str] = []
    monkeypatch.setattr(namedgroups, "settle", lambda kafka, group_id: asked.append(group_id))
    return asked


def look(*codes: int, **given: float) -> Any:
    kafka: Any = Cluster(*codes, **given)
    return describe(kafka, "g")


def test_a_group_whose_coordinator_comes_up_is_looked_at_until_it_can_be_asked() -> None:
    assert look(*MOVING, GONE) is None


def test_that_there_is_no_group_is_believed_of_a_coordinator_that_knows_all_of_it(settled: list[str]) -> None:
    assert look(GONE) is None
    assert settled == ["g"]


@pytest.mark.parametrize("code", MOVING)
def test_a_coordinator_that_never_comes_is_no_answer_with_what_it_said(code: int) -> None:
    with pytest.raises(Unreachable) as raised:
        look(code, timeout=0)
    assert str(raised.value.why).endswith(KafkaError(code).name())


def test_an_error_that_is_told_without_words_is_told_by_its_name() -> None:
    error: Any = SimpleNamespace(str=lambda: "ConsumerGroupDescribe: ", name=lambda: "UNKNOWN_SERVER_ERROR")
    assert edge.said(error) == "ConsumerGroupDescribe: UNKNOWN_SERVER_ERROR"
    error.str = lambda: ""
    assert edge.said(error) == "UNKNOWN_SERVER_ERROR"
    error.str = lambda: "It is so"
    assert edge.said(error) == "It is so"
