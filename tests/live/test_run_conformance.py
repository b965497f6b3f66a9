"""What Kafka's integration tests ask of a second cluster, of a principal that may not fence, and of
``tasks.max``.

Which of its methods is which test here: ``docs/conformance.md``. The second broker has an
authorizer, creates no topics by itself, and is home to nobody's workers. Whole runs, but for Spark,
in whose place this process computes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.acls import Binding, Operation, Resource
from connectctl.ops.task_runtime.job.generation import Leader
from fakes.acls import allow
from live.grants import Grants
from live.oracle import in_order
from live.real import Ran, connectctl, create_topic
from live.rundirectory import Place, well

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("without_spark")]
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORD = "correct-horse-battery"
PIA = "User:pia"


@pytest.fixture(scope="module")
def guarded(state_home: Path) -> Iterator[Sandbox]:
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    spec = SandboxSpec(
        name="guarded",
        workers=0,
        extra_listeners={"SECURED": "SASL_PLAINTEXT"},
        extra_broker_properties={
            "auto.create.topics.enable": "false",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secured.plain.sasl.jaas.config": f'{LOGIN} user_pia="{PASSWORD}";',
        },
    )
    yield up(spec)
    down("guarded")


@pytest.fixture
def place(cluster: Sandbox, tmp_path: Path) -> Place:
    return Place(cluster, tmp_path, **{"batch.size": "100"})


def kafka(broker: Sandbox) -> Kafka:
    return Kafka({"bootstrap.servers": broker.bootstrap_servers}, timeout=120)


def lines(broker: Sandbox, topic: str) -> list[str]:
    """What a reader with read_committed sees."""
    image = kafka(broker).image([topic], patience=30, superseded=True)[topic]
    assert not image.held_back
    return [(record.value or b"").decode() for record in in_order(image)]


def positions(broker: Sandbox, topic: str) -> list[int]:
    """The offsets of the one source partition, in the order of their commits."""
    image = kafka(broker).image([topic], patience=30, superseded=True)[topic]
    return [json.loads(record.value or b"{}")["position"] for record in in_order(image)]


# --------------------------------------------------------------------------------- a second cluster


def test_offsets_on_a_second_cluster_are_on_both_and_a_soft_downgrade_goes_on_behind_them(
    cluster: Sandbox, guarded: Sandbox, place: Place
) -> None:
    topic = create_topic(guarded.bootstrap_servers, f"{place.name}-there", 1, "delete")
    own = f"{place.name}-own-offsets"
    place.config |= {
        "topic": topic,
        "offsets.storage.topic": own,
        "producer.override.bootstrap.servers": guarded.bootstrap_servers,
    }
    place.append(250)
    found = well(place.run())
    assert (found["records"], found["topics"]["ownOffsets"]) == (250, own)
    text = place.file.read_bytes()
    ends = [len(b"".join(text.splitlines(keepends=True)[:n])) for n in (100, 200, 250)]
    assert positions(guarded, own) == ends
    assert positions(cluster, f"{place.group}-offsets") == ends

    place.append(50)
    place.config["exactly.once.source.support"] = "disabled"
    found = well(place.run())
    assert (found["guarantee"], found["records"]) == ("at-least-once", 50)
    assert lines(guarded, topic) == [f"line {n}" for n in range(300)]
    assert (
        positions(guarded, own)[-1]
        == positions(cluster, f"{place.group}-offsets")[-1]
        == place.file.stat().st_size
    )


def test_a_topic_that_no_broker_would_create_is_refused_before_anything_is_opened(
    guarded: Sandbox, place: Place
) -> None:
    place.config |= {
        "topic": "nowhere",
        "producer.override.bootstrap.servers": guarded.bootstrap_servers,
    }
    ran = place.run()
    assert ran.code == 4
    assert json.loads(ran.err)["error"]["code"] == "no-topic"
    assert f"{place.group}-configs" not in kafka(place.cluster).topic_names()


# ------------------------------------------------------------------------- a principal that may not


@pytest.fixture
def grants(guarded: Sandbox) -> Iterator[Grants]:
    found = Grants(guarded)
    yield found
    found.close()


def pia(guarded: Sandbox) -> dict[str, Any]:
    return {
        "bootstrap.servers": guarded.listeners["SECURED"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "pia",
        "sasl.password": PASSWORD,
    }


def run_as_pia(guarded: Sandbox, place: Place) -> Ran:
    (place.directory / "password").write_text(PASSWORD)
    client = {k: v for k, v in pia(guarded).items() if k != "bootstrap.servers"}
    client["sasl.password"] = {"file": str(place.directory / "password")}
    found = {
        "bootstrap_servers": guarded.listeners["SECURED"],
        "group_id": place.group,
        "client": client,
    }
    config = place.directory / "config.yaml"
    config.write_text(json.dumps({"contexts": {"pia": found}}))  # which is YAML, too
    job = place.job(idle="1s")
    ran = connectctl("--config", str(config), "--context", "pia", "run", job, "--yes", "-o", "json")
    assert PASSWORD not in ran.out + ran.err
    return ran


def ids(name: str) -> set[Binding]:
    return {
        allow(PIA, operation, Resource.TRANSACTIONAL_ID, name)
        for operation in (Operation.WRITE, Operation.DESCRIBE)
    }


def test_whoever_may_not_use_an_id_is_told_which_and_with_the_grant_it_works(
    guarded: Sandbox, place: Place, grants: Grants
) -> None:
    place.config["topic"] = create_topic(
        guarded.bootstrap_servers, f"{place.name}-there", 1, "delete"
    )
    place.append(30)
    grants.add({allow(PIA, Operation.ALL, Resource.TOPIC, place.name, prefixed=True)})
    grants.add({allow(PIA, Operation.ALL, Resource.TOPIC, place.group, prefixed=True)})
    grants.add({allow(PIA, Operation.DESCRIBE, Resource.GROUP, place.group)})

    ran = run_as_pia(guarded, place)
    assert ran.code == 5, ran.err
    assert f"connect-cluster-{place.group}" in ran.err

    # Nothing is fenced for the first tasks of all, so that they fail by themselves.
    grants.add(ids(f"connect-cluster-{place.group}"))
    ran = run_as_pia(guarded, place)
    assert ran.code == 1, ran.err
    (task,) = ran.json["tasks"]
    assert (ran.json["outcome"], task["state"]) == ("failed", "FAILED")
    assert f"{place.group}-{place.name}-0" in task["failure"]
    assert ran.err.count("error: ") == 1

    grants.add(ids(f"{place.group}-{place.name}-0"))
    assert well(run_as_pia(guarded, place))["records"] == 30

    # One task more, whose id cannot be fenced: nothing is started, and what stands there stands.
    calls = TransactionClient(pia(guarded), timeout=120)
    leader = Leader(
        Kafka(pia(guarded), timeout=120), calls, place.group, f"{place.group}-configs", 20
    )
    with pytest.raises(
        ConnectctlError,
        match=r"Could not fence 1 of the 2 transactional ids of tasks .*; nothing was started",
    ):
        leader.start(place.name, {}, lambda before: [{}, {}])
    assert leader.read_state(place.name).task_count == 1
    grants.add(ids(f"{place.group}-{place.name}-1"))
    leader.start(place.name, {}, lambda before: [{}, {}])
    assert leader.read_state(place.name).task_count == 2
    calls.close()


# ---------------------------------------------------------------------------------------- tasks.max


def test_more_tasks_than_tasks_max_fail_in_every_way_that_kip_1004_has(
    cluster: Sandbox, place: Place
) -> None:
    """The steps of Kafka's ``testTasksMaxEnforcement``, each with a run of its own."""
    place.config |= {"connector.class": "live.preflightplugins:Counting", "count": "30"}
    explanation = f"The connector {place.name} has generated {{}} tasks, which is greater than {{}}"

    def run(wanted: int, most: int, count: int, **more: str) -> tuple[Ran, list[str]]:
        place.config |= {"wanted": str(wanted), "tasks.max": str(most), "count": str(count), **more}
        ran = place.run(idle="1s")
        said = place.status()
        return ran, [said["connector"]["state"], *(task["state"] for task in said["tasks"])]

    # Too many are generated, where none ran before: the connector fails, and no task is there.
    ran, states = run(2, 1, 30)
    assert (ran.code, states) == (1, ["FAILED"])
    assert explanation.format(2, 1) in ran.err
    # An existing set that is too large, which somebody wrote by hand: all its tasks fail, too.
    with contextlib.closing(
        TransactionClient({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
    ) as calls:
        leader = Leader(kafka(cluster), calls, place.group, f"{place.group}-configs")
        leader.start(place.name, place.config, lambda before: [{}, {}])
    ran, states = run(2, 1, 30)
    assert (ran.code, states) == (1, ["FAILED"] * 3)
    assert "tasks.max.enforce" in place.status()["tasks"][0]["trace"]
    # Where it is not enforced, they run.
    ran, states = run(2, 1, 30, **{"tasks.max.enforce": "false"})
    assert (ran.code, states) == (0, ["STOPPED", "ENDED", "ENDED"])
    assert "warning: " in ran.err
    assert ran.json["records"] == 60
    # A set that fits is generated, enforced again.
    ran, states = run(1, 1, 40, **{"tasks.max.enforce": "true"})
    assert (ran.code, states) == (0, ["STOPPED", "ENDED"])
    # Too many again: the connector fails, and the task that it has goes on.
    ran, states = run(2, 1, 30)
    assert (ran.code, states) == (1, ["FAILED", "ENDED"])
    assert (ran.json["outcome"], ran.json["tasks"][0]["failure"]) == ("failed", None)
    assert explanation.format(2, 1) in ran.json["connectorFailure"]
    assert sorted(map(int, lines(cluster, place.topic))) == sorted([*range(40), *range(30)])
