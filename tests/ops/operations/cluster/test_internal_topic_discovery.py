from __future__ import annotations

from dataclasses import replace

import pytest
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.group_mark import GroupMark
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.cluster.internal_topic_discovery import (
    InternalTopics,
    find_internal_topics,
)
from fakes.kafkareads import FakeKafka, connect_group, records

NOBODY: dict[str, str | None] = {"config": None, "offsets": None, "status": None}


def status(worker: str) -> dict[str, object]:
    return {"state": "RUNNING", "trace": None, "worker_id": f"{worker}:8083", "generation": 1}


def two_clusters() -> FakeKafka:
    """Two Connect clusters on one Kafka whose connectors have the same names, a dedicated topic,
    and bystanders.
    """
    dedicated = {"properties": {"name": "b", "offsets.storage.topic": "b-offsets"}}
    return FakeKafka(
        records={
            "prod-cfg": records(("connector-a", {"properties": {}}), ("connector-b", dedicated)),
            "prod-off": records(('["a",{"p":1}]', {"o": 1}), ('["b",{"p":1}]', {"o": 1})),
            "prod-sta": records(("status-connector-a", status("one"))),
            "b-offsets": records(('["b",{"p":1}]', {"o": 1})),
            "test-cfg": records(("connector-x", {"properties": {}})),
            "test-off": records(('["x",{"p":1}]', {"o": 1})),
            "test-sta": records(("status-connector-x", status("far"))),
            "users": records(("user-1", {"name": "x"})),
            "empty": [],
        },
        groups={
            "prod": connect_group("prod", one=[("a", -1), ("b", -1), ("b", 0)]),
            "test": connect_group("test", far=[("x", -1)]),
        },
    )


@pytest.mark.parametrize("name", ["prod", "test"])
def test_each_of_two_clusters_on_one_kafka_finds_its_own_topics(name: str) -> None:
    kafka = two_clusters()
    found = find_internal_topics(kafka, kafka.group(name), NOBODY)
    assert found == InternalTopics(f"{name}-cfg", f"{name}-off", f"{name}-sta")


def test_topics_that_are_all_named_are_not_sampled() -> None:
    kafka = two_clusters()
    named = {"config": "prod-cfg", "offsets": "empty", "status": "users"}
    assert find_internal_topics(kafka, kafka.group("prod"), named) == InternalTopics(
        "prod-cfg", "empty", "users"
    )
    assert kafka.read == set()


def test_only_what_is_needed_is_looked_for() -> None:
    kafka = two_clusters()
    found = find_internal_topics(
        kafka, kafka.group("prod"), {"config": "prod-cfg"}, needed=["config"]
    )
    assert found == InternalTopics("prod-cfg", None, None)
    assert kafka.read == set()


def test_a_named_topic_that_does_not_exist_is_told_with_the_nearest_name() -> None:
    kafka = two_clusters()
    with pytest.raises(BadInput, match=r"Topic not found: prod-conf.*Did you mean prod-"):
        find_internal_topics(kafka, kafka.group("prod"), {"config": "prod-conf"})


def test_a_named_config_topic_tells_the_others_apart_with_every_worker_down() -> None:
    kafka = two_clusters()
    found = find_internal_topics(kafka, kafka.group("down"), {"config": "test-cfg"})
    assert (found.offsets, found.status) == ("test-off", "test-sta")


def test_with_every_worker_down_two_clusters_cannot_be_told_apart() -> None:
    kafka = two_clusters()
    with pytest.raises(BadInput, match=r"prod-cfg, test-cfg.*--config-topic") as caught:
        find_internal_topics(kafka, kafka.group("down"), NOBODY)
    assert caught.value.code == "ambiguous-topic"


def test_with_every_worker_down_a_lone_cluster_is_found() -> None:
    kafka = two_clusters()
    for topic in ("test-cfg", "test-off", "test-sta", "empty"):
        del kafka.records[topic]
    found = find_internal_topics(kafka, kafka.group("down"), NOBODY)
    assert (found.config, found.offsets, found.status) == ("prod-cfg", "prod-off", "prod-sta")


def test_a_lone_clusters_topics_are_proven_to_be_the_groups_only_by_its_workers_or_its_names() -> (
    None
):
    kafka = two_clusters()
    assert find_internal_topics(kafka, kafka.group("prod"), NOBODY).unproven == {}
    for topic in ("test-cfg", "test-off", "test-sta", "empty"):
        del kafka.records[topic]
    found = find_internal_topics(kafka, kafka.group("mistyped"), NOBODY)
    assert found.unproven == {"config": "prod-cfg", "offsets": "prod-off", "status": "prod-sta"}
    named = find_internal_topics(
        kafka, kafka.group("down"), {"config": "prod-cfg", "offsets": "prod-off"}
    )
    assert named.unproven == {}


def test_the_topics_of_a_group_without_workers_are_those_called_after_it() -> None:
    kafka = two_clusters()
    kafka.records |= {
        "jobs-configs": [],
        "jobs-offsets": records(('["z",{"p":1}]', {"o": 1})),
        "jobs-status": [],
    }
    found = find_internal_topics(kafka, kafka.group("jobs"), NOBODY)
    assert found == InternalTopics("jobs-configs", "jobs-offsets", "jobs-status")


def test_a_topic_called_after_a_group_that_is_something_else_is_not_taken() -> None:
    kafka = two_clusters()
    kafka.records |= {
        "jobs-configs": [],
        "jobs-offsets": records(("user-1", {"name": "x"})),
        "jobs-status": [],
    }
    kafka.config["jobs-status"] = {"cleanup.policy": "delete"}
    found = find_internal_topics(kafka, kafka.group("jobs"), NOBODY, needed=("config", "offsets"))
    assert found.config == "jobs-configs"
    assert found.unproven == {"offsets": "empty"}


def test_workers_know_better_than_a_name() -> None:
    kafka = two_clusters()
    kafka.records |= {"prod-configs": [], "prod-offsets": [], "prod-status": []}
    found = find_internal_topics(kafka, kafka.group("prod"), NOBODY)
    assert (found.config, found.offsets, found.status) == ("prod-cfg", "prod-off", "prod-sta")


def test_an_empty_topic_is_taken_as_the_last_one_left_and_said_so() -> None:
    kafka = two_clusters()
    kafka.records["prod-off"] = []
    del kafka.records["empty"]
    found = find_internal_topics(kafka, kafka.group("prod"), NOBODY)
    assert found.offsets == "prod-off"
    assert [f.id for f in found.findings] == ["TOPIC001"]


def test_of_two_empty_topics_none_is_taken() -> None:
    kafka = two_clusters()
    kafka.records["prod-off"] = []
    with pytest.raises(BadInput, match=r"empty, prod-off.*--offsets-topic"):
        find_internal_topics(kafka, kafka.group("prod"), NOBODY)


def test_nothing_found_names_the_flag() -> None:
    kafka = FakeKafka(records={"users": records(("user-1", {}))})
    with pytest.raises(BadInput, match=r"--config-topic TOPIC.*no members"):
        find_internal_topics(kafka, kafka.group("prod"), NOBODY)


def test_a_topic_that_may_not_be_read_does_not_hide_the_others() -> None:
    kafka = two_clusters()
    kafka.forbidden = {"users"}
    assert find_internal_topics(kafka, kafka.group("prod"), NOBODY).config == "prod-cfg"


def commit(tasks: int, mark: GroupMark) -> dict[str, object]:
    return {"tasks": tasks, **mark.members()}


def beside_a_report() -> FakeKafka:
    """``two_clusters``, and the topics of a report: its group has no workers, and its connector a
    name that prod has too.
    """
    kafka = two_clusters()
    mark = GroupMark("reports", "totals", None)
    kafka.records |= {
        "report-cfg": records(
            ("connector-a", {"properties": {}}),
            ("connector-b", {"properties": {}}),
            ("commit-a", commit(1, mark)),
        ),
        "totals": records(('["a",{"day":1}]', {"row": 1})),
    }
    return kafka


def test_a_report_on_the_same_kafka_is_not_taken_for_the_groups_topics() -> None:
    kafka = beside_a_report()
    found = find_internal_topics(kafka, kafka.group("prod"), NOBODY)
    assert found == InternalTopics("prod-cfg", "prod-off", "prod-sta")


def test_a_report_finds_its_own_topics_by_its_mark_whatever_they_are_called() -> None:
    kafka = beside_a_report()
    found = find_internal_topics(
        kafka, kafka.group("reports"), NOBODY, needed=("config", "offsets")
    )
    assert (found.config, found.offsets, found.unproven) == ("report-cfg", "totals", {})


def test_a_dedicated_topic_is_not_taken_for_the_global_one_that_may_not_be_seen() -> None:
    kafka = two_clusters()
    kafka.hidden = {"prod-off"}
    for topic in ("test-cfg", "test-off", "test-sta", "empty"):
        del kafka.records[topic]
    with pytest.raises(
        BadInput, match=r"No topic that this principal may see looks like the offsets topic"
    ):
        find_internal_topics(kafka, kafka.group("prod"), NOBODY)


def group_of(name: str, worker: str) -> ConnectGroup:
    parts = [("a", -1), ("a", 0)]
    return connect_group(name, one=parts) if worker == "one" else connect_group(name, far=parts)


def twins() -> FakeKafka:
    """Two groups whose connectors have the same names, as a cluster and its stage for tests
    have.
    """
    kafka = FakeKafka()
    for name, worker in (("blue", "one"), ("green", "far")):
        kafka.groups[name] = group_of(name, worker)
        kafka.records |= {
            f"{name}-cfg": records(("connector-a", {"properties": {}})),
            f"{name}-off": records(('["a",{"p":1}]', {"o": 1})),
            f"{name}-sta": records(("status-connector-a", status(worker))),
        }
        kafka.writers |= {
            f"connect-cluster-{name}": {f"{name}-cfg"},
            f"{name}-a-0": {f"{name}-off", "a-data"},
        }
    return kafka


@pytest.mark.parametrize("name", ["blue", "green"])
def test_groups_with_connectors_of_the_same_names_are_told_apart_by_their_transactional_ids(
    name: str,
) -> None:
    kafka = twins()
    found = find_internal_topics(kafka, kafka.group(name), NOBODY)
    assert found == InternalTopics(f"{name}-cfg", f"{name}-off", f"{name}-sta")


def test_a_rebalance_does_not_hide_the_topics_of_a_group_whose_leader_writes_transactions() -> None:
    kafka = twins()
    hidden = tuple(replace(m, url="", assignment=None) for m in kafka.groups["blue"].members)
    kafka.groups["blue"] = replace(kafka.groups["blue"], state="PreparingRebalance", members=hidden)
    assert (
        find_internal_topics(kafka, kafka.group("blue"), NOBODY, needed=["config"]).config
        == "blue-cfg"
    )


def test_groups_that_nothing_tells_apart_are_not_told_apart() -> None:
    kafka = twins()
    kafka.writers.clear()
    with pytest.raises(BadInput, match="blue-cfg, green-cfg"):
        find_internal_topics(kafka, kafka.group("blue"), NOBODY)


def hub() -> FakeKafka:
    """Two MirrorMakers in dedicated mode that copy into one cluster: their connectors have the same
    names.
    """
    kafka = FakeKafka()
    for source in ("east", "west"):
        client = f"{source}->hub"
        group = connect_group(
            f"{source}-mm2", one=[("MirrorSourceConnector", -1), ("MirrorSourceConnector", 0)]
        )
        members = tuple(
            replace(m, url="", client_id=client, without_rest=True) for m in group.members
        )
        kafka.groups[group.id] = replace(group, members=members)
        said = {"state": "RUNNING", "worker_id": f"host/{client}/1e0d", "generation": 1}
        kafka.records |= {
            f"mm2-configs.{source}.internal": records(
                ("connector-MirrorSourceConnector", {"properties": {}})
            ),
            f"mm2-offsets.{source}.internal": records(
                ('["MirrorSourceConnector",{"cluster":"x"}]', {"offset": 1})
            ),
            f"mm2-status.{source}.internal": records(
                ("status-connector-MirrorSourceConnector", said)
            ),
        }
    return kafka


@pytest.mark.parametrize("source", ["east", "west"])
@pytest.mark.parametrize("runs", [True, False])
def test_mirrors_into_one_cluster_are_told_apart_by_their_names(source: str, runs: bool) -> None:
    kafka = hub()
    if not runs:
        kafka.groups.clear()
    found = find_internal_topics(kafka, kafka.group(f"{source}-mm2"), NOBODY)
    assert [found.config, found.offsets, found.status] == [
        f"mm2-{role}.{source}.internal" for role in ("configs", "offsets", "status")
    ]
    assert bool(found.unproven) is runs  # with its process stopped its offsets may be written
