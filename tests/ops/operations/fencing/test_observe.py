"""What fencing reads of a cluster: the config topic, tasks that run, where producers write, and a
leader's own id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.transactional_ids import LeaderId, TaskRef
from connectctl.ops.core.errors import BadInput, Unreachable
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.kafka.visibility import Gap, Reason
from connectctl.ops.operations.fencing import observe
from connectctl.ops.operations.fencing.observe import (
    FencingSources,
    common_overrides,
    observe_leader_id,
    read_config_topic,
    running_tasks,
)
from connectctl.ops.operations.fencing.snapshot import TaskIdRange
from connectctl.ops.operations.transactions.abort import fence_of
from connectctl.ops.operations.transactions.lag import topic_roles
from fakes.coordinators import FakeCoordinators
from fakes.kafkareads import FakeKafka, connect_group, records
from fakes.workers import FakeConnector, FakeWorkers

NAMED = {"config": "cfg", "offsets": "ofs", "status": "sts"}
BOOTSTRAP, TOPIC = "producer.override.bootstrap.servers", "offsets.storage.topic"
GROUP = connect_group("g", one=[("orders", -1), ("orders", 0), ("orders", 1)])


def _configured(**configs: dict[str, str]) -> FakeKafka:
    cfg = records(
        *(
            (f"connector-{name}", {"properties": {"connector.class": "x.Source", **config}})
            for name, config in configs.items()
        ),
        ("tasks-fencing-orders", {"task-count": 3}),
    )
    return FakeKafka({"cfg": cfg, "ofs": [], "sts": [], "orders-offsets": []}, {"g": GROUP})


def test_the_config_topic_is_read_with_how_far_ids_reach() -> None:
    found = read_config_topic(_configured(orders={}), GROUP, NAMED)
    assert set(found.state.connectors) == {"orders"}
    assert found.reach == {"orders": TaskIdRange(record=3)}


def test_tasks_that_failed_do_not_run_and_without_an_answer_every_assigned_one_may() -> None:
    kafka = _configured(orders={})
    workers = FakeWorkers({"orders": FakeConnector(tasks=["RUNNING", "FAILED"])})
    instance = TaskRef("g", "orders", -1)
    assert running_tasks(lambda group: workers, kafka, GROUP, NAMED) == {
        instance,
        TaskRef("g", "orders", 0),
    }

    def unreachable(group: ConnectGroup) -> FakeWorkers:
        raise Unreachable("no worker answers")

    assert running_tasks(unreachable, kafka, GROUP, NAMED) == {
        TaskRef("g", "orders", n) for n in (-1, 0, 1)
    }


def test_connectors_of_one_fence_write_to_one_cluster() -> None:
    known = read_config_topic(
        _configured(orders={BOOTSTRAP: "b:1"}, more={BOOTSTRAP: "b:1"}, own={}), GROUP, NAMED
    )
    connectors = known.state.connectors
    assert common_overrides(connectors, ["orders", "more"]) == {"bootstrap.servers": "b:1"}
    assert common_overrides(connectors, ["own", "unknown"]) == {}
    with pytest.raises(BadInput, match="write to different Kafka clusters: b:1"):
        common_overrides(connectors, ["orders", "own"])


def test_a_dedicated_topic_that_exists_is_an_offsets_topic_too() -> None:
    kafka = _configured(
        orders={TOPIC: "orders-offsets"}, gone={TOPIC: "nowhere"}, own={TOPIC: "ofs"}
    )
    found = topic_roles(kafka, GROUP, NAMED)
    assert found.seen == {
        "cfg": "config",
        "ofs": "offsets",
        "sts": "status",
        "orders-offsets": "offsets",
    }
    assert found.gaps == ()


def test_dedicated_topics_that_cannot_be_read_of_are_a_gap() -> None:
    kafka = _configured(orders={TOPIC: "orders-offsets"})
    kafka.hidden.add("orders-offsets")
    found = topic_roles(kafka, GROUP, NAMED)
    assert "orders-offsets" not in found.seen
    assert [gap.subject for gap in found.gaps] == ["topic orders-offsets"]


@pytest.mark.parametrize(
    ("id", "others"), [("connect-cluster-g", ()), ("connect-cluster-other", ()), ("g-orders-0", ())]
)
def test_only_the_id_that_was_named_is_fenced(id: str, others: tuple[str, ...]) -> None:
    known = ("connect-cluster-g", "connect-cluster-other", "g-orders-0", "g-orders-1")
    calls = FakeCoordinators({name: Transaction(name, "Ongoing", 1, 0, 60_000) for name in known})
    sources = FencingSources(
        calls,
        "g",
        lambda name: GROUP if name == "g" else connect_group(name),
        lambda group: frozenset(),
    )
    assert [row.id for row in fence_of(sources, id).rows] == [id]


LEADS = Transaction("connect-cluster-g", "Empty", 7, 3)
UNREACHABLE = Unreachable("Kafka does not answer", why="timed out", next_step="Check the brokers.")


@dataclass
class Answering:
    """Coordinators that give ``answers`` one after another, the last one again and again."""

    answers: list[Transaction | Code | Unreachable]

    def describe(self, ids: Sequence[str]) -> dict[str, Transaction | Code]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Unreachable):
            raise answer
        return dict.fromkeys(ids, answer)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([LEADS], LeaderId(LEADS)),
        ([Code.TRANSACTIONAL_ID_NOT_FOUND], LeaderId(None)),
        ([Code.COORDINATOR_LOAD_IN_PROGRESS, LEADS], LeaderId(LEADS)),
        ([Code.NOT_COORDINATOR, Code.TRANSACTIONAL_ID_NOT_FOUND], LeaderId(None)),
        ([Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED], Reason.NOT_AUTHORIZED),
        ([Code.COORDINATOR_NOT_AVAILABLE], Reason.NO_ANSWER),
        ([UNREACHABLE], Reason.NO_ANSWER),
    ],
)
def test_preflight_and_rolls_have_one_answer_about_the_leaders_id(
    monkeypatch: pytest.MonkeyPatch, answers: list[Any], expected: LeaderId | Reason
) -> None:
    monkeypatch.setattr(observe, "PAUSES", (0.0, 0.0))
    found = observe_leader_id(cast("Any", Answering(answers)), "g")
    assert (found.reason if isinstance(found, Gap) else found) == expected
    if isinstance(found, Gap):
        right = expected is Reason.NOT_AUTHORIZED
        assert found.subject == "the leader's transactional id connect-cluster-g"
        assert ("Grant" if right else "Check the brokers") in found.next_step
