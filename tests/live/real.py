"""What live tests do to a real cluster besides running connectctl."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from connectctl.cli.main import app
from nextsteps import command_of, commands_in, complaint
from typer.testing import CliRunner

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SHORTEST, LONGEST = 0.05, 1.0
"""Seconds between two questions."""
DEADLINE = 900.0
"""Seconds for what is to come: nothing that works is late by as much on a slow machine."""
QUIET = 240.0
"""The same for a machine that does nothing else, on which a hang is to be told soon. Where its
processors are shared by ten, one of these seconds lasts five.
"""


@dataclass(frozen=True)
class Ran:
    """A run of connectctl: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def connectctl(*args: str, stdin: str | None = None) -> Ran:
    """Run connectctl in this process."""
    result = CliRunner().invoke(app, list(args), input=stdin)
    return Ran(result.exit_code, result.stdout, result.stderr)


def next_commands(text: str) -> list[list[str]]:
    """The commands that ``text`` names, as they would be pasted; those that change something only
    as far as their plan.
    """
    found = []
    for typed, words in commands_in(text):
        plans = any("--dry-run" in each.opts for each in command_of(words)[0].params)
        found.append(
            [
                *(word for option in typed for word in option),
                *words,
                *(["--dry-run"] if plans else []),
            ]
        )
    return found


def follow_next_commands(text: str) -> None:
    """Run the commands that ``text`` names, until each works where it was printed: a cluster may
    still be settling.
    """
    commands = next_commands(text)
    assert commands, text
    for words in commands:

        def works(words: list[str] = words) -> bool:
            ran = connectctl(*words)
            why = complaint(text, {"code": ran.code, "err": ran.err})
            if why:
                print(f"connectctl {' '.join(words)}: {why}: {ran.err}")
            return why is None

        eventually(works)


def eventually(what: Callable[[], Any], deadline: float | None = None) -> Any:
    """The first truthy answer of ``what``; an assertion error where none comes in time: within
    ``deadline``, or within ``DEADLINE`` and ``QUIET`` seconds of a machine without other load.

    It is asked often at first, and the more seldom the longer it takes: to ask costs what it waits
    for.
    """
    began = last = time.monotonic()
    quiet = 0.0
    while True:
        answer = what()
        if answer:
            return answer
        now = time.monotonic()
        quiet, last = quiet + (now - last) / slowdown(), now
        passed = now - began
        late = passed >= (deadline or DEADLINE) or (deadline is None and quiet >= QUIET)
        assert not late, f"still {answer!r} after {passed:.0f} s"
        time.sleep(min(max(passed / 10, SHORTEST), LONGEST))


def slowdown() -> float:
    """How many times slower this machine is than without load: processes that want a processor, by
    processors.
    """
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Workers:
    """The workers' REST API, straight."""

    def __init__(self, url: str, **client: Any):
        self._url, self._given = url, client

    def call(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One request, sent again while workers answer that it is to be."""
        with httpx.Client(base_url=self._url, timeout=100, **self._given) as client:
            return eventually(lambda: _unless_busy(client.request(method, path, json=body)))  # type: ignore[no-any-return]

    def create(self, name: str, config: dict[str, str], state: str = "RUNNING") -> None:
        answer = self.call(
            "POST", "/connectors", {"name": name, "config": config, "initial_state": state}
        )
        assert answer.status_code == 201, answer.text
        eventually(lambda: self.call("GET", f"/connectors/{name}/status").status_code == 200)

    def delete(self, name: str) -> None:
        self.call("DELETE", f"/connectors/{name}")

    def offsets(self, name: str) -> list[dict[str, Any]]:
        answer = self.call("GET", f"/connectors/{name}/offsets")
        assert answer.status_code == 200, answer.text
        return list(answer.json()["offsets"])

    def state(self, name: str) -> list[str]:
        """The connector's state and its tasks' states.

        A task that ends late may write its status after the workers removed the statuses of a
        stopped connector: only tasks that the connector has count then.
        """
        status = self.call("GET", f"/connectors/{name}/status").json()
        state, tasks = status["connector"]["state"], status["tasks"]
        if state == "STOPPED" and tasks:
            known = self.call("GET", f"/connectors/{name}/tasks").json()
            numbers = {each["id"]["task"] for each in known}
            tasks = [task for task in tasks if task["id"] in numbers]
        return [state, *(task["state"] for task in tasks)]


def _unless_busy(answer: httpx.Response) -> httpx.Response | None:
    """None for a rebalance, and where the leader lost its producer and has written nothing."""
    busy = ("can be safely retried", "because a rebalance is expected")
    return (
        None if answer.status_code == 409 or any(words in answer.text for words in busy) else answer
    )


def workers(cluster: Sandbox) -> Workers:
    return Workers(cluster.rest_urls[0])


@contextmanager
def connector(
    cluster: Sandbox, name: str, config: dict[str, str], state: str = "RUNNING"
) -> Iterator[Workers]:
    """A connector for the time of a test."""
    rest = workers(cluster)
    rest.create(name, config, state)
    try:
        yield rest
    finally:
        rest.delete(name)


def write(
    bootstrap: str, topic: str, *records: tuple[Any, Any], partition: int | None = None
) -> None:
    """Write records where Java's partitioner puts them, or on ``partition``; keys and values as
    bytes, text or JSON.

    Those of a partition are one batch, however slow the machine is: a flush does not wait for
    ``linger.ms``.
    """
    client = {"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "linger.ms": 5_000}
    _produce(Producer(client), topic, records, partition)


def write_uncommitted(bootstrap: str, topic: str, id_: str, *records: tuple[Any, Any]) -> Producer:
    """Write records in a transaction that stays open until something is done with the producer."""
    client = {
        "bootstrap.servers": bootstrap,
        "partitioner": "murmur2_random",
        "transactional.id": id_,
    }
    producer = Producer(client)
    producer.init_transactions(120)
    producer.begin_transaction()
    _produce(producer, topic, records, None)
    return producer


def _produce(
    producer: Producer, topic: str, records: Sequence[tuple[Any, Any]], partition: int | None
) -> None:
    for key, value in records:
        where = {} if partition is None else {"partition": partition}
        producer.produce(topic, key=_raw(key), value=_raw(value), **where)
    assert producer.flush(300) == 0


def _raw(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))).encode()


def create_topic(
    bootstrap: str,
    name: str,
    partitions: int = 5,
    policy: str = "compact",
    replicas: int = 1,
    config: Mapping[str, str] | None = None,
) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(
        name, partitions, replicas, config={"cleanup.policy": policy, **(config or {})}
    )
    try:
        admin.create_topics([topic])[name].result()
    except KafkaException as e:  # the client asks again where an answer was lost
        if e.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        described = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)])
        (there,) = (future.result(120) for future in described.values())
        assert there["cleanup.policy"].value == policy, f"another test has a topic {name}"
    await_topic(admin, name)
    return name


def await_topic(admin: AdminClient, name: str) -> None:
    """Brokers know a new topic a moment after the controller said that it is there."""
    eventually(lambda: name in admin.list_topics(timeout=120).topics)


def forget_deleted_connectors(cluster: Sandbox) -> None:
    """Delete the offsets topics that deleted connectors left: on a cluster full of them none can be
    told apart.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    configs = workers(cluster).call("GET", "/connectors?expand=info").json().values()
    kept = {c["info"]["config"].get("offsets.storage.topic") for c in configs} | set(
        cluster.topics.values()
    )
    left = [
        name
        for name in admin.list_topics(timeout=120).topics
        if "-offsets" in name and name not in kept
    ]
    for future in admin.delete_topics(left).values() if left else ():
        future.result()
    eventually(lambda: not set(left) & set(admin.list_topics(timeout=120).topics))
