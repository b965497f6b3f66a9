"""A context's topics, workers and drivers are those of its own group; a mistyped group changes
nothing of another's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol.coordinator_loaded import classic
from connectctl.ops.config import context_file
from connectctl.ops.config.settings import Settings, merge
from fakes.kafkareads import FakeKafka
from fakes.kafkawrites import FakeKafkaWrites
from fakes.offsetworld import World
from fakes.runner import invoke
from fakes.session import FakeSession

CONTEXT = """\
contexts:
  prod:
    bootstrap_servers: fake:9092
    group_id: connect
    rest: [http://one:8083]
    rest_auth: {username: ops}
    topics: {config: cfg, offsets: "off", status: sta}
    workers: {driver: strimzi, resource: connect, namespace: kafka}
"""
OFFSETS = json.dumps({"offsets": [{"partition": {"table": "a"}, "offset": {"lsn": 0}}]})


def settings(
    tmp_path: Path, text: str = CONTEXT, env: Mapping[str, str] | None = None, **flags: Any
) -> Settings:
    (tmp_path / "config.yaml").write_text(text)
    return merge(flags, env or {}, context_file.read(tmp_path / "config.yaml"), "prod")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The group ``connect`` lives; ``spark-jobs`` is a group of ``connectctl run``, with a
    connector of the same name.
    """
    made = World(tmp_path)
    for topic, partitions in (
        ("spark-jobs-configs", 1),
        ("spark-jobs-offsets", 3),
        ("spark-jobs-status", 5),
    ):
        made.kafka.create_topic(topic, partitions, 1, {"cleanup.policy": "compact"})
    plain = {"properties": {"connector.class": "x.y.Source", "name": "plain"}}
    made.kafka.append("spark-jobs-configs", b"connector-plain", json.dumps(plain).encode())
    return made


def run(world: World, found: Settings, *args: str, stdin: str | None = None) -> Any:
    session = FakeSession(reads=world.kafka, calls=world.workers)
    session.__dict__["settings"] = found
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONNECTCTL_JOURNAL", str(world.journal))
        return invoke(list(args), obj=session, input=stdin)


def written(kafka: FakeKafkaWrites, topic: str) -> list[Any]:
    return [json.loads(r.value or b"null") for r in kafka.records[topic]]


@pytest.mark.parametrize(
    ("flags", "env"), [({"group_id": "other"}, {}), ({}, {"CONNECTCTL_GROUP_ID": "other"})]
)
def test_what_a_context_says_of_its_group_does_not_count_for_another(
    tmp_path: Path, flags: dict[str, Any], env: dict[str, str]
) -> None:
    found = settings(tmp_path, env=env, **flags)
    assert (found.section("topics"), found.get("rest"), found.section("workers")) == ({}, None, {})
    assert found.get("rest_auth.username") == "ops"
    aside = {"rest", "topics.config", "topics.offsets", "topics.status", "workers.driver"}
    assert aside <= set(found.set_aside)


def test_the_contexts_own_group_may_be_named_and_other_topics_too(tmp_path: Path) -> None:
    assert settings(tmp_path, group_id="connect").section("topics")["offsets"] == "off"
    topics: dict[str, Any] = {"topics.offsets": "mine"}
    found = settings(tmp_path, group_id="other", **topics)
    assert found.section("topics") == {"offsets": "mine"}
    env = {"CONNECTCTL_GROUP_ID": "a", "CONNECTCTL_OFFSETS_TOPIC": "a-offsets"}
    assert settings(tmp_path, env=env).section("topics") == {"offsets": "a-offsets"}
    assert settings(tmp_path, env=env, group_id="b").section("topics") == {}


def test_a_context_that_names_topics_and_no_group_does_not_say_whose_they_are(
    tmp_path: Path,
) -> None:
    text = CONTEXT.replace("    group_id: connect\n", "")
    found = settings(tmp_path, text, group_id="connect")
    assert (found.section("topics"), found.get("rest")) == ({}, ["http://one:8083"])


def test_context_show_tells_what_is_not_used(tmp_path: Path) -> None:
    session = FakeSession()
    session.__dict__["settings"] = settings(tmp_path, group_id="other")
    shown = invoke(["context", "show"], obj=session)
    assert "another group than other: rest, topics.config, topics.offsets" in shown.stderr


def test_offsets_of_another_group_are_set_in_its_own_topic_and_never_in_the_contexts(
    world: World, tmp_path: Path
) -> None:
    # The most dangerous case: the guard looks at the other group, where nothing runs, and the write
    # would go under the running connector of the context's group.
    before = written(world.kafka, "off")
    done = run(
        world,
        settings(tmp_path, group_id="spark-jobs"),
        "offsets",
        "set",
        "plain",
        "-f",
        "-",
        "--yes",
        stdin=OFFSETS,
    )
    assert done.exit_code == 0, done.stderr
    assert written(world.kafka, "off") == before
    assert written(world.kafka, "spark-jobs-offsets") == [{"lsn": 0}]


@pytest.mark.parametrize(
    "change",
    [
        ["set", "plain", "-f", "-"],
        ["reset", "plain"],
        ["copy", "plain", "plain-v2"],
        ["merge", "moved", "--into", "global", "--unset-topic", "--stop"],
    ],
)
@pytest.mark.parametrize("how", [["--dry-run"], ["--yes"]])
def test_a_mistyped_group_does_not_change_the_only_cluster_that_is_there(
    world: World, tmp_path: Path, change: list[str], how: list[str]
) -> None:
    found = settings(tmp_path, group_id="conect")
    for topic in [name for name in world.kafka.records if name.startswith("spark-jobs")]:
        del world.kafka.records[topic]
    before = world.state()
    done = run(world, found, "offsets", *change, *how, stdin=OFFSETS)
    assert done.exit_code == 4, done.stderr
    assert "cfg may be another group's" in done.stderr
    assert "--config-topic" in done.stderr
    assert world.state() == before


def test_named_topics_are_written_to_with_every_worker_down(world: World, tmp_path: Path) -> None:
    world.kafka.groups.clear()
    done = run(
        world, settings(tmp_path), "offsets", "set", "plain", "-f", "-", "--yes", stdin=OFFSETS
    )
    assert done.exit_code == 0, done.stderr
    assert written(world.kafka, "off")[-1] == {"lsn": 0}


def test_the_offsets_of_a_run_are_shown_without_workers(world: World, tmp_path: Path) -> None:
    found = settings(tmp_path, group_id="spark-jobs")
    world.put("spark-jobs-offsets", '["plain",{"table":"a"}]', '{"lsn":77}')
    shown = json.loads(run(world, found, "offsets", "show", "-o", "json").stdout)
    assert [topic["topic"] for topic in shown["topics"]] == ["spark-jobs-offsets"]
    assert shown["connectors"][0]["offsets"][0]["effective"] == {"lsn": 77}


class OfANewerProtocol(FakeKafka):
    """A Kafka whose coordinator knows no classic group of any name, and lists one of ``kind``."""

    kind = ""

    def group(self, group_id: str) -> Any:
        coordinator: Any = SimpleNamespace(
            group=group_id, describe=lambda: None, kind=lambda: self.kind
        )
        return classic(coordinator)


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_a_group_of_todays_protocols_is_not_taken_for_workers_that_are_down(kind: str) -> None:
    kafka = OfANewerProtocol()
    kafka.kind = kind
    done = invoke(["cluster", "show"], obj=FakeSession(told={"group_id": "readers"}, reads=kafka))
    assert (done.exit_code, f"it is a {kind} group" in done.stderr) == (2, True), done.stderr
