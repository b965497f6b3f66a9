"""KIP-447 on a real Kafka Streams application of two instances: to group-aware producers while it
copies, and back.
"""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from confluent_kafka import Producer
from live.offsetchanges import SCHEMAS
from live.real import Ran, connectctl, eventually
from live.streamsapplication import BEFORE, VERSION, Pipe, pipe

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [pytest.mark.live, pytest.mark.versions(streams=VERSION)]
QUICK = ("--gate-timeout", "600", "--gate-checks", "2")


REFUSED = 4


def upgrade(cluster: Sandbox, application: Pipe, *args: str, code: int = 0) -> Ran:
    config = application.directory / "config.yaml"
    own = {
        "instances": application.instances,
        "driver": "properties-file",
        "file": f"{application.directory}/{{port}}.properties",
        "restart": application.restart,
    }
    entry = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "group_id": cluster.group_id,
        "rest": list(cluster.rest_urls),
        "applications": {application.name: own},
    }
    config.write_text(json.dumps({"current": "test", "contexts": {"test": entry}}))
    end = time.monotonic() + 600
    while (
        ran := connectctl("--config", str(config), *args)
    ).code == REFUSED and time.monotonic() < end:
        # Streams rebalances once more after it has started, and then nothing is begun
        time.sleep(0.5)
    assert ran.code == code, ran.out + ran.err
    return ran


def ids(cluster: Sandbox, application: Pipe) -> dict[str, str]:
    """The application's transactional ids with their states."""
    where = ("--context", f"sandbox-{cluster.spec.name}")
    listed = connectctl(
        *where, "transactions", "list", "--prefix", f"{application.name}-", "-o", "json"
    ).json
    return {each["transactionalId"]: each["state"] for each in listed["transactions"]}


def planned(cluster: Sandbox, application: Pipe, migration: str, *more: str) -> Any:
    which = ("--migration", migration, "--set", f"application={application.name}", *more)
    made = upgrade(cluster, application, "upgrade", "plan", *which, "-o", "json").json
    jsonschema.validate(made, SCHEMAS["Plan"])
    return made


@pytest.mark.slow  # two JVMs of Kafka Streams, whose session time-out every restart waits for
def test_an_application_is_switched_while_it_copies_and_taken_back(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name = f"switched-{uuid.uuid4().hex[:6]}"
    with pipe(name, tmp_path, cluster.bootstrap_servers) as application:
        which = ("--set", f"application={name}", "--yes", *QUICK)
        eventually(lambda: f"{name}-0_3" in ids(cluster, application))
        eventually(lambda: len(planned_or_none(cluster, application)) > 0)
        made = planned(cluster, application, "group-aware-producers")
        kinds = [step["step"] for step in made["steps"]]
        turn = ["SetGuarantee", "RestartInstance", "AwaitInstance", "ApplicationGate"]
        # 3.9 is group-aware already
        assert kinds == ["ApplicationGate", *turn, *turn, "FenceUnusedIds"]
        assert any("4 transactional ids are per-partition" in line for line in made["warnings"])

        # a task of old whose transaction nobody would end
        zombie = producer_of(cluster, f"{name}-0_9")
        upgrade(
            cluster, application, "upgrade", "apply", "--migration", "group-aware-producers", *which
        )
        assert [application.guarantee(port) for port in application.ports] == [
            "exactly_once_v2"
        ] * 2
        states = ids(cluster, application)
        assert (
            len([id_ for id_ in states if not id_.removeprefix(f"{name}-")[:2].startswith("0_")])
            >= 2
        )
        assert states[f"{name}-0_9"] in ("CompleteAbort", "Empty")
        with pytest.raises(Exception, match=r"[Ff]enced|epoch"):
            zombie.commit_transaction(10)
        assert planned(cluster, application, "group-aware-producers")["steps"] == []

        upgrade(
            cluster,
            application,
            "upgrade",
            "apply",
            "--migration",
            "per-partition-producers",
            *which,
        )
        assert [application.guarantee(port) for port in application.ports] == ["exactly_once"] * 2
        assert application.file(7001).read_text().startswith("# instance 7001\n")
    found = application.committed()
    assert sorted(found) == list(range(application.written))


@pytest.mark.versions(streams=BEFORE)
@pytest.mark.slow  # a second release of Kafka Streams, and two more waits for its session time-out
def test_a_release_that_is_not_group_aware_is_replaced_in_a_first_roll(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name = f"upgraded-{uuid.uuid4().hex[:6]}"
    with pipe(name, tmp_path, cluster.bootstrap_servers, BEFORE) as application:
        steps = eventually(lambda: planned_or_none(cluster, application))
        assert [step["step"] for step in steps].count("RestartInstance") == 4
        assert any("with Streams 3.0 or newer" in step["description"] for step in steps)
        which = (
            "--migration",
            "group-aware-producers",
            "--set",
            f"application={name}",
            "--yes",
            *QUICK,
        )
        upgrade(cluster, application, "upgrade", "apply", *which)
        assert [application.guarantee(port) for port in application.ports] == [
            "exactly_once_v2"
        ] * 2
    assert sorted(application.committed()) == list(range(application.written))


def planned_or_none(cluster: Sandbox, application: Pipe) -> list[Any]:
    """The steps of the plan, none while the group is still being formed."""
    which = ("--migration", "group-aware-producers", "--set", f"application={application.name}")
    config = application.directory / "config.yaml"
    if not config.exists():
        upgrade(cluster, application, "context", "list")
    ran = connectctl("--config", str(config), "upgrade", "plan", *which, "-o", "json")
    return list(ran.json["steps"]) if ran.code == 0 else []


def producer_of(cluster: Sandbox, id_: str) -> Producer:
    """A producer with an open transaction."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": id_})
    producer.init_transactions(120)
    producer.begin_transaction()
    producer.produce(f"{id_.rpartition('-')[0]}-out", key="zombie", value="-7")
    producer.flush(300)
    return producer
