"""A KafkaConnect resource is patched, or its patch told, and the operator's roll is waited for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from connectctl.ops.clients.drivers.command_runner import Commands
from connectctl.ops.clients.drivers.strimzi import Strimzi
from connectctl.ops.clients.protocols import ConfiguredValue, RestartMode
from connectctl.ops.core.errors import BadInput, ConnectctlError, TimedOut
from fakes.kubectl import FakeKubectl

KEY = "exactly.once.source.support"
WORKER = "10.1.2.3:8083"


@pytest.fixture
def kubectl(tmp_path: Path) -> FakeKubectl:
    return FakeKubectl.made(tmp_path, namespace="kafka")


def driver(fake: FakeKubectl, **told: Any) -> Strimzi:
    given: dict[str, Any] = {
        "namespace": "kafka",
        "kubectl": str(fake.path),
        "pause": 0.01,
        "roll_timeout": 60.0,
        "instruct": print,
    }
    return Strimzi("connect", Commands(60.0), **(given | told))


def test_all_workers_are_restarted_together(kubectl: FakeKubectl) -> None:
    assert driver(kubectl).restart_mode(WORKER) == RestartMode(
        together="KafkaConnect kafka/connect"
    )
    assert "Strimzi then restarts all its workers in turn" in driver(kubectl).describe(
        WORKER, KEY, "preparing"
    )


def test_the_change_is_a_patch_and_the_restart_waits_for_the_roll(kubectl: FakeKubectl) -> None:
    found = driver(kubectl)
    assert found.change(WORKER, KEY, "preparing") == "patched KafkaConnect kafka/connect"
    assert found.configured(WORKER, KEY) == ConfiguredValue(
        "preparing", "KafkaConnect kafka/connect"
    )
    assert kubectl.read()["rolled"] == []
    assert (
        found.restart(WORKER) == "Strimzi has restarted the workers of KafkaConnect kafka/connect"
    )
    assert [config[KEY] for config in kubectl.read()["rolled"]] == ["preparing"]
    assert kubectl.config == {
        "group.id": "connect",
        "offset.flush.interval.ms": 1000,
        KEY: "preparing",
    }


def test_the_second_worker_finds_it_done(kubectl: FakeKubectl) -> None:
    found = driver(kubectl)
    for worker in (WORKER, "10.1.2.4:8083"):
        found.change(worker, KEY, "preparing")
        found.restart(worker)
    assert kubectl.patches == 1
    assert len(kubectl.read()["rolled"]) == 1


def test_a_restart_without_a_change_is_asked_for_once_for_all_workers(kubectl: FakeKubectl) -> None:
    found = driver(kubectl)
    for _ in range(2):
        for worker in (WORKER, "10.1.2.4:8083"):
            found.change(worker, "group.id", "connect")
        for worker in (WORKER, "10.1.2.4:8083"):
            found.restart(worker)
    assert len(kubectl.read()["rolled"]) == 2
    assert kubectl.patches == 0


def test_a_roll_that_was_over_before_it_was_waited_for_is_not_asked_for_again(
    kubectl: FakeKubectl,
) -> None:
    found = driver(kubectl)
    found.change(WORKER, KEY, "preparing")
    for _ in range(5):
        found.configured(WORKER, KEY)
    assert len(kubectl.read()["rolled"]) == 1
    found.restart(WORKER)
    assert len(kubectl.read()["rolled"]) == 1


def test_without_leave_to_apply_a_person_asks_for_the_roll(kubectl: FakeKubectl) -> None:
    heard: list[str] = []
    assert driver(kubectl, apply=False, instruct=heard.append).restart(WORKER) == "requested"
    assert (
        "annotate strimzipodsets.core.strimzi.io/connect-connect "
        "strimzi.io/manual-rolling-update=true" in heard[0]
    )
    assert kubectl.read()["rolled"] == []


def test_another_process_waits_for_a_roll_that_was_begun(kubectl: FakeKubectl) -> None:
    driver(kubectl).change(WORKER, KEY, "preparing")
    driver(kubectl).restart(WORKER)
    assert [config[KEY] for config in kubectl.read()["rolled"]] == ["preparing"]


def test_a_patch_for_git_is_told_and_waited_for(kubectl: FakeKubectl) -> None:
    heard: list[str] = []

    def tell(text: str) -> None:
        heard.append(text)

    found = driver(kubectl, apply=False, instruct=tell, roll_timeout=0.05)
    found.change(WORKER, KEY, "preparing")
    patch = yaml.safe_load(heard[0].partition("\n")[2])
    assert patch["metadata"] == {"name": "connect", "namespace": "kafka"}
    assert patch["spec"] == {"config": {KEY: "preparing"}}
    with pytest.raises(TimedOut, match=f"does not have {KEY}=preparing"):
        found.restart(WORKER)
    kubectl.edit(config={KEY: "preparing"})
    found.roll_timeout = 60.0
    assert found.restart(WORKER)
    assert [config[KEY] for config in kubectl.read()["rolled"]] == ["preparing"]
    assert kubectl.patches == 0


def test_a_roll_that_does_not_end_is_told_with_what_strimzi_says(kubectl: FakeKubectl) -> None:
    kubectl.edit(stuck=True)
    found = driver(kubectl, roll_timeout=0.05)
    found.change(WORKER, KEY, "preparing")
    with pytest.raises(
        TimedOut, match="generation 2 is not applied yet, the last applied one is 1"
    ):
        found.restart(WORKER)
    state = kubectl.read()
    condition = {
        "type": "NotReady",
        "status": "True",
        "reason": "TimeoutException",
        "message": "pod is not ready",
    }
    state["resource"]["status"] = {"observedGeneration": 2, "conditions": [condition]}
    kubectl.write(state)
    with pytest.raises(
        TimedOut, match="it is not ready; its condition is TimeoutException: pod is not ready"
    ):
        found.restart(WORKER)


def test_an_api_server_that_is_away_for_a_moment_does_no_harm(kubectl: FakeKubectl) -> None:
    found = driver(kubectl)
    found.change(WORKER, KEY, "preparing")
    kubectl.edit(unanswered=3)
    assert found.restart(WORKER)
    kubectl.edit(unanswered=100)
    with pytest.raises(ConnectctlError, match="connection refused"):
        found.restart(WORKER)


def test_what_stands_in_the_way_is_told_before(kubectl: FakeKubectl) -> None:
    assert driver(kubectl).check(WORKER) is None
    assert driver(kubectl).check("connect-connect-0.connect-connect.kafka.svc:8083") is None
    assert "is not a worker of" in str(
        driver(kubectl).check("other-connect-0.other-connect.kafka.svc:8083")
    )
    assert "NotFound" in str(driver(kubectl, namespace="else").check(WORKER))
    assert "cannot be started" in str(driver(kubectl, kubectl="/no/kubectl").check(WORKER))
    kubectl.edit(may_patch=False)
    assert "whether it may be patched failed" in str(driver(kubectl).check(WORKER))
    assert driver(kubectl, apply=False).check(WORKER) is None
    state = kubectl.read()
    state["resource"]["metadata"]["annotations"] = {"strimzi.io/pause-reconciliation": "true"}
    kubectl.write(state)
    assert "is not reconciled" in str(driver(kubectl, apply=False).check(WORKER))


def test_a_worker_of_another_resource_is_refused(kubectl: FakeKubectl) -> None:
    with pytest.raises(BadInput, match="is not a worker of"):
        driver(kubectl).change(
            "connect2-connect-0.connect2-connect.kafka.svc:8083", KEY, "preparing"
        )
    assert kubectl.patches == 0


@pytest.mark.parametrize(
    "said", ["nothing", "[]", '{"metadata": {}}', '{"metadata": [], "spec": {}}']
)
def test_a_kubectl_that_prints_something_else_is_told(tmp_path: Path, said: str) -> None:
    program = tmp_path / "kubectl"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    with pytest.raises(ConnectctlError, match="returned no such resource"):
        driver(FakeKubectl(program, program)).configured(WORKER, KEY)


def test_kubectl_may_have_options_of_its_own(tmp_path: Path) -> None:
    kubectl = FakeKubectl.made(tmp_path)
    words = Strimzi(
        "connect", Commands(60.0), kubectl=f"env A=b {kubectl.path}", pause=0.01, instruct=print
    )
    assert words.configured(WORKER, "offset.flush.interval.ms") == ConfiguredValue(
        "1000", "KafkaConnect connect"
    )
    assert words.configured(WORKER, KEY) == ConfiguredValue(None, "KafkaConnect connect")
