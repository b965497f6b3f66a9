"""What is written down about a sandbox."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from connectctl.ops.config import context_file
from connectctl.ops.sandbox import record
from connectctl.ops.sandbox.context import write_context
from connectctl.ops.sandbox.launch import new_cluster_id
from connectctl.ops.sandbox.layout import SandboxLayout
from connectctl.ops.sandbox.record import Node, SandboxRecord
from connectctl.ops.sandbox.spec import SandboxSpec

RECORD = SandboxRecord(
    SandboxSpec(name="x", extra_broker_properties={"a": "b"}),
    "id",
    {"PLAINTEXT": 1, "CONTROLLER": 2},
    nodes=(Node("broker", 1, "4.3.1", pid=5, created=1.5), Node("worker-1", 3, "3.9.2", "g")),
)


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    layout = SandboxLayout(tmp_path)
    assert record.load(layout) is None
    record.save(RECORD, layout)
    assert record.load(layout) == RECORD
    assert RECORD.ports() == {1, 2, 3}


def test_a_record_knows_the_ports_of_every_broker(tmp_path: Path) -> None:
    peers = {
        "broker-2": {"PLAINTEXT": 4, "CONTROLLER": 5},
        "broker-3": {"PLAINTEXT": 6, "CONTROLLER": 7},
    }
    three = replace(RECORD, peers=peers)
    record.save(three, SandboxLayout(tmp_path))
    assert record.load(SandboxLayout(tmp_path)) == three
    assert three.ports() == {1, 2, 3, 4, 5, 6, 7}
    assert three.addresses("PLAINTEXT") == "127.0.0.1:1,127.0.0.1:4,127.0.0.1:6"


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"nodes": [{"x": 1}]}', '{"nodes": [], "spec": {"name": "A"}}']
)
def test_what_is_no_record_means_start_over(tmp_path: Path, text: str) -> None:
    layout = SandboxLayout(tmp_path)
    layout.record.write_text(text)
    assert record.load(layout) is None


def test_a_node_takes_the_place_of_its_namesake() -> None:
    broker = replace(RECORD.node("broker"), pid=None)
    assert RECORD.with_node(broker).nodes == (broker, RECORD.nodes[1])
    added = Node("worker-2", 4, "4.3.1", "g")
    assert RECORD.with_node(added).workers("g") == (RECORD.nodes[1], added)
    with pytest.raises(KeyError):
        RECORD.node("nobody")


def test_the_context_file_is_one_that_the_program_reads(tmp_path: Path) -> None:
    layout = SandboxLayout(tmp_path / "x")
    layout.root.mkdir()
    write_context(layout, RECORD)
    entry = context_file.read(layout.context).content.contexts["sandbox-x"]
    assert entry.bootstrap_servers == "127.0.0.1:1"
    assert entry.group_id == "connect-sandbox-x"
    assert entry.topics.offsets == "connect-sandbox-x-offsets"
    assert yaml.safe_load(layout.context.read_text())["current"] == "sandbox-x"


def test_cluster_ids_have_kafkas_form() -> None:
    ids = {new_cluster_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(each) == 22 and not each.startswith("-") for each in ids)
