"""A real broker from before KIP-890: what ``connectctl run`` says to it, and that it leaves nothing
there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.spark import session
from connectctl.ops.sandbox.jars.versions import KafkaVersion
from live.real import connectctl

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

OLD = "3.5.2"
pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.versions(brokers=OLD)]


@pytest.fixture(scope="module")
def old(state_home: Path) -> Iterator[Sandbox]:
    """A broker of that release. Sandboxes have newer ones, whatever their workers are."""
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KafkaVersion, "broker", property(lambda self: self))
        yield up(SandboxSpec(name="oldbroker", workers=0, kafka_version=OLD))
        down("oldbroker")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_broker_that_does_not_verify_transactions_is_refused_with_its_release(
    old: Sandbox, cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    def opened(*args: Any, **more: Any) -> Any:
        raise AssertionError("a Spark session was opened")

    monkeypatch.setattr(session, "open_session", opened)
    home = cluster if elsewhere else old
    target = (
        f", producer.override.bootstrap.servers: '{old.bootstrap_servers}'" if elsewhere else ""
    )
    (tmp_path / "in.txt").write_text("a\n")
    job = tmp_path / "job.yaml"
    job.write_text(
        f"config: {{connector.class: FileStreamSource, file: {tmp_path}/in.txt, topic: t{target}}}"
    )
    args = ("--bootstrap-servers", home.bootstrap_servers, "--group-id", "g-old")
    ran = connectctl(*args, "run", str(job), "--yes")
    assert (ran.code, ran.out, ran.err.count("\n")) == (4, "", 1), ran.err
    assert "Brokers older than 3.6 do not guarantee exactly-once: 1 (3.5)" in ran.err
    for broker in {home.bootstrap_servers, old.bootstrap_servers}:
        topics = Kafka({"bootstrap.servers": broker}, timeout=120).topic_names()
        assert not {topic for topic in topics if topic.startswith("g-old")}
