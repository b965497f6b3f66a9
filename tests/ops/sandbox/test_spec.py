"""What a sandbox can be asked to be."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.sandbox.spec import SandboxSpec


@pytest.mark.parametrize("name", ["default", "a", "kafka-39", "0"])
def test_names_that_do(name: str) -> None:
    assert SandboxSpec(name=name).group_id == f"connect-sandbox-{name}"


@pytest.mark.parametrize("name", ["", "Up", "a b", "../x", "-a", "a-", "a.b", "ä", "a" * 41, "a\n"])
def test_names_that_do_not(name: str) -> None:
    with pytest.raises(BadInput, match="Invalid sandbox name"):
        SandboxSpec(name=name)


@pytest.mark.parametrize("workers", [-1, 10])
def test_as_many_workers_as_a_machine_carries(workers: int) -> None:
    with pytest.raises(BadInput, match=r"number of workers -?[0-9]+: must be 0 to 9"):
        SandboxSpec(workers=workers)


@pytest.mark.parametrize("brokers", [0, 4])
def test_as_many_brokers_as_one_of_which_may_die(brokers: int) -> None:
    with pytest.raises(BadInput, match=r"number of brokers [0-9]: must be 1 to 3"):
        SandboxSpec(brokers=brokers)


@pytest.mark.parametrize("support", ["preparing", "enabled"])
def test_no_exactly_once_before_it_existed(support: str) -> None:
    with pytest.raises(BadInput, match=r"3\.2\.3 has no exactly-once source support"):
        SandboxSpec(support=support, kafka_version="3.2.3")
    assert SandboxSpec(support="disabled", kafka_version="3.2.3").support == "disabled"


def test_support_is_one_of_three_words() -> None:
    with pytest.raises(BadInput, match="Use disabled, preparing, enabled"):
        SandboxSpec(support="on")


def test_a_spec_survives_json() -> None:
    spec = SandboxSpec(
        name="x",
        workers=0,
        kafka_version="3.9",
        brokers=3,
        extra_broker_properties={"a": "b"},
        extra_listeners={"S": "SASL_SSL"},
    )
    assert SandboxSpec(**json.loads(json.dumps(asdict(spec)))) == spec


def test_differences_are_named() -> None:
    differences = SandboxSpec(workers=1).differences(SandboxSpec(workers=2, support="enabled"))
    assert differences == ["workers is 1, not 2", "support is disabled, not enabled"]
    assert SandboxSpec(kafka_version="4.3").differences(SandboxSpec(kafka_version="4.3.1")) == []
