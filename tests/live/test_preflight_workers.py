"""The workers area of preflight, with each kind of trouble made on real workers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from connectctl.cli.session import Session
from connectctl.ops.checks.workers import rules as area
from connectctl.ops.checks.workers.observe import Proof, WorkersSeen, observe
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.transactional_ids import leader_id
from connectctl.ops.core.rule import check
from connectctl.ops.operations.cluster.observe import observe_cluster
from connectctl.ops.sandbox.cluster import Group, Sandbox, SandboxSpec, down
from fakes.sandboxes import add_worker, extra_group
from live.real import Workers, connector, create_topic, eventually, workers
from otherbrokers import up_as_asked

if TYPE_CHECKING:
    from connectctl.ops.core.finding import Finding

pytestmark = pytest.mark.live
VERIFIABLE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
SOURCE = {
    "connector.class": VERIFIABLE,
    "tasks.max": "1",
    "topic": "workers-area",
    "throughput": "1",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One enabled worker; what the tests add to it they take away, or only look beside it."""
    yield up_as_asked(SandboxSpec(name="workersarea", workers=1, support="enabled"))
    down("workersarea")


def seen(sandbox: Sandbox, group: Group | None = None) -> WorkersSeen:
    """The sandbox's main group, or another on the same broker."""
    chosen = group or sandbox.group
    flags = {"group_id": chosen.group_id} | {
        f"topics.{role}": topic for role, topic in chosen.topics.items()
    }
    with closing(Session(flags=flags, context=f"sandbox-{sandbox.spec.name}")) as session:
        known = session.group()
        calls = session.connect_to(known)
        view = observe_cluster(session.kafka, calls, known, session.named_topics)
        return observe(view, session.kafka, session.transactions, time.time())


def found(view: WorkersSeen, goal: Goal = Goal.NOW) -> dict[str, Finding]:
    return {finding.id: finding for finding in check(area, view, goal)}


def shows(
    sandbox: Sandbox, *ids: str, group: Group | None = None, goal: Goal = Goal.NOW
) -> dict[str, Finding]:
    """What is found once all of ``ids`` are among it."""

    def all_of_them() -> dict[str, Finding] | None:
        findings = found(seen(sandbox, group), goal)
        return findings if findings.keys() >= set(ids) else None

    return dict(eventually(all_of_them))


@contextmanager
def connector_at_last(sandbox: Sandbox, name: str) -> Iterator[None]:
    """A connector that the leader may fail to write at first."""
    rest = workers(sandbox)
    eventually(
        lambda: rest.call("PUT", f"/connectors/{name}/config", SOURCE).status_code in (200, 201)
    )
    try:
        yield
    finally:
        rest.delete(name)


def test_an_enabled_worker_is_clean_for_every_wish(sandbox: Sandbox) -> None:
    with connector(sandbox, "workers-clean", SOURCE):
        view = eventually(lambda: v if (v := seen(sandbox)).proof is Proof.PREPARING else None)
        assert {goal: list(check(area, view, goal)) for goal in Goal} == {goal: [] for goal in Goal}
        assert view.unseen == ()


def test_modes_and_releases_are_judged_by_the_wish(sandbox: Sandbox) -> None:
    group = extra_group(sandbox, "modes", support="disabled")
    for goal in (Goal.NOW, Goal.PREPARING, Goal.DOWNGRADE):
        assert found(seen(sandbox, group), goal) == {}
    assert (
        "transactional id connect-cluster-modes, which a preparing leader would have, does not "
        "exist" in shows(sandbox, "WORKER005", group=group, goal=Goal.ENABLED)["WORKER005"].message
    )

    add_worker(group, support="enabled")
    leader, enabled = (url.removeprefix("http://") for url in group.rest_urls)
    behind = shows(sandbox, "WORKER004", group=group)["WORKER004"]
    assert (behind.subject, f"and {enabled} enabled" in behind.message) == (leader, True)

    group.stop_worker(2)
    group.start_worker(2, support="disabled", properties={"connect.protocol": "eager"})
    eager = shows(sandbox, "WORKER003", group=group)["WORKER003"]
    assert eager.subject == "modes"
    group.stop_worker(2)
    group.stop_worker(1)


ANCIENT = "3.2.3"


@pytest.mark.versions(workers=ANCIENT)
def test_a_worker_without_exactly_once_support_is_too_old(sandbox: Sandbox) -> None:
    group = extra_group(sandbox, "ancient", kafka_version=ANCIENT)
    assert found(seen(sandbox, group)) == {}
    told = shows(sandbox, "WORKER001", group=group, goal=Goal.PREPARING)["WORKER001"]
    assert f"Kafka Connect {ANCIENT}" in told.message
    group.stop_worker(1)


def test_a_leader_that_is_preparing_proves_nothing_of_the_others(sandbox: Sandbox) -> None:
    group = extra_group(sandbox, "half", support="preparing", workers=2)
    assert list(shows(sandbox, "WORKER006", group=group, goal=Goal.ENABLED)) == ["WORKER006"]
    assert found(seen(sandbox, group)) == {}
    group.stop_worker(2)
    group.stop_worker(1)


def test_a_worker_that_reads_another_config_topic_is_told(sandbox: Sandbox) -> None:
    create_topic(sandbox.bootstrap_servers, "workers-elsewhere", partitions=1)
    with connector(sandbox, "workers-mixed", SOURCE):
        stray = {"config.storage.topic": "workers-elsewhere", "connect.protocol": "compatible"}
        number = add_worker(sandbox.group, properties=stray, wait=False)
        try:
            told = shows(sandbox, "WORKER002", "WORKER012")
            assert "does not list workers-mixed" in told["WORKER012"].message
        finally:
            sandbox.group.stop_worker(number, kill=True)


def test_another_group_on_the_same_topics_is_told(sandbox: Sandbox) -> None:
    topics = sandbox.topics
    shared = {"config.storage.topic": topics["config"], "status.storage.topic": topics["status"]}
    with connector(sandbox, "workers-shared", SOURCE):
        other = extra_group(sandbox, "double", support="enabled", properties=shared)
        try:
            told = shows(sandbox, "WORKER013", "WORKER014")
            assert told["WORKER013"].message == "double runs workers-shared of this topic, too."
            assert told["WORKER013"].severity == "error"
            # The other leader writes what it is asked to write, to the same topic and with an id of
            # its own.
            Workers(other.rest_urls[0]).call(
                "PUT", "/connectors/workers-shared/config", SOURCE | {"throughput": "2"}
            )
            told = shows(sandbox, "WORKER010")
            assert "That is the leader of the group double." in told["WORKER010"].message
            assert told["WORKER010"].severity == "error"
        finally:
            other.stop_worker(1)


def test_a_transactional_producer_on_the_config_topic_is_told(sandbox: Sandbox) -> None:
    client = {"bootstrap.servers": sandbox.bootstrap_servers, "transactional.id": "intruder"}
    producer = Producer(client)
    producer.init_transactions(120)
    producer.begin_transaction()
    producer.produce(
        sandbox.topics["config"], key=b"logger-cluster-nobody", value=b'{"level":"INFO"}'
    )
    producer.commit_transaction(30)
    writers = [f for f in check(area, seen(sandbox), Goal.NOW) if f.id == "WORKER010"]
    assert any("the transactional id intruder wrote to it just now" in f.message for f in writers)


def test_the_leaders_id_in_other_hands_is_told(sandbox: Sandbox) -> None:
    topic = create_topic(sandbox.bootstrap_servers, "workers-stolen", partitions=1, policy="delete")
    id_ = leader_id(sandbox.group_id)
    thief = Producer({"bootstrap.servers": sandbox.bootstrap_servers, "transactional.id": id_})
    thief.init_transactions(120)
    thief.begin_transaction()
    try:
        thief.produce(topic, value=b"mine")
        assert thief.flush(300) == 0
        view = seen(sandbox)
        told = found(replace(view, now=view.now + 120))
        assert "Its transaction writes to workers-stolen-0" in told["WORKER009"].message
        assert "WORKER008" in told
        assert "WORKER008" not in found(view)
    finally:
        thief.abort_transaction(30)
        # The leader was fenced: its next write fails, then it takes its id back.
        with connector_at_last(sandbox, "workers-healed"):
            pass


def test_a_leaders_record_outside_transactions_is_told(sandbox: Sandbox) -> None:
    eventually(lambda: seen(sandbox).proof is Proof.PREPARING)
    plain = Producer({"bootstrap.servers": sandbox.bootstrap_servers})
    soon = int((time.time() + 600) * 1000)  # beyond what clocks may differ by
    key, value = b"tasks-fencing-nobody", b'{"task-count":1}'
    plain.produce(sandbox.topics["config"], key=key, value=value, timestamp=soon)
    assert plain.flush(300) == 0
    told = shows(sandbox, "WORKER011")["WORKER011"]
    assert "The record tasks-fencing-nobody" in told.message
