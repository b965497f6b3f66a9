"""Tests of offsets in ConfigMaps, and of outputs of other tools."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from connectctl.cli.output import terminal
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.offsets.config_map import as_lines, check_names, config_map
from connectctl.ops.operations.offsets.foreign_dump import foreign_form
from connectctl.ops.operations.offsets.input_file import read_entries
from connectctl.ops.operations.offsets.topic_dump import read_file
from fakes.anyjson import mutated
from hypothesis import given

LISTED = """apiVersion: v1
kind: ConfigMap
metadata:
  name: my-offsets
  ownerReferences:
  - {apiVersion: kafka.strimzi.io/v1, kind: KafkaConnector, name: orders, uid: 637e}
data:
  offsets.json: |-
    {
      "offsets" : [ {
        "partition" : { "b" : "x", "a" : 1 },
        "offset" : { "lsn" : 63619219552, "done" : true }
      }, {
        "partition" : { "b" : "y" },
        "offset" : null
      } ]
    }
"""
PARTITION = '{"b": "x", "a": 1}'


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "offsets.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("as_json", [False, True])
def test_offsets_that_strimzi_lists_are_read_as_offsets_and_as_a_dump(
    tmp_path: Path, as_json: bool
) -> None:
    text = json.dumps(yaml.safe_load(LISTED), indent=4) if as_json else LISTED
    path = file(tmp_path, text)
    entries = read_entries(path, "orders")
    assert entries[0] == (PARTITION, '{"lsn": 63619219552, "done": true}')
    assert entries[1][1] == "null"
    (records,) = read_file(path).values()
    assert [(record.key, record.value) for record in records] == [
        (b'["orders",{"b":"x","a":1}]', b'{"lsn":63619219552,"done":true}'),
        (b'["orders",{"b":"y"}]', None),
    ]


def test_what_is_written_is_yaml_that_is_read_again_with_the_order_of_members(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [({"z": "é ✓", "a": 1}, {"pos": 2}), ({"z": "'\"#: "}, {"pos": 1 << 60})]
    terminal.documents([config_map("Orders->x", entries), config_map("b", entries[:1])])
    text = capsys.readouterr().out
    first, second = yaml.safe_load_all(text)
    assert first["metadata"]["name"] == "orders--x-offsets"
    assert second["metadata"]["name"] == "b-offsets"
    assert '\n    {\n      "offsets"' in text, "a block that people can read"
    assert json.loads(first["data"]["offsets.json"])["offsets"] == [
        {"partition": partition, "offset": offset} for partition, offset in entries
    ]
    path = file(tmp_path, text.split("---\n")[0])
    assert [json.loads(partition) for partition, _ in read_entries(path, "Orders->x")] == [
        partition for partition, _ in entries
    ]
    (records,) = read_file(path).values()
    assert [json.loads(record.key or b"")[0] for record in records] == ["Orders->x", "Orders->x"]


def test_a_mirror_has_a_member_for_each_connector(tmp_path: Path) -> None:
    members = {
        f"a--b.{kind}Connector.json": json.dumps({"offsets": [{"partition": {"k": kind}}]})
        for kind in ("MirrorSource", "MirrorCheckpoint")
    }
    path = file(tmp_path, yaml.safe_dump({"kind": "ConfigMap", "data": members}))
    assert read_entries(path, "a->b.MirrorSourceConnector")[0][0] == '{"k": "MirrorSource"}'
    with pytest.raises(BadInput, match=r"has no offsets: it has a--b\.MirrorCheck"):
        read_entries(path, "other")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"kind": "ConfigMap"}, "does not name its connector"),
        (
            config_map("s", [({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": 1})]),
            "has no source offsets. To write those of a sink: connectctl offsets set s -f",
        ),
    ],
)
def test_a_config_map_that_cannot_be_shown_says_why(
    tmp_path: Path, data: dict[str, Any], said: str
) -> None:
    path = file(tmp_path, "apiVersion: v1\n" + yaml.safe_dump(data))
    with pytest.raises(BadInput) as e:
        read_file(path)
    assert said in str(e.value)


def test_two_config_maps_of_one_name_are_refused() -> None:
    maps = [config_map(name, [({}, {})]) for name in ("A_b", "a_b")]
    with pytest.raises(BadInput, match="of A_b and a_b would both be a-b-offsets"):
        check_names(maps)


KEY = '["pg-dr",{"server":"pgdev"}]'


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        (f'{KEY}\t{{"lsn":1}}', "kafka-console-consumer"),
        (f'CreateTime:17\tPartition:6\tOffset:0\t{KEY}\t{{"lsn":1}}', "kafka-console-consumer"),
        (f'Partition(6) {KEY} {{"lsn":1}}', "kcat without -J"),
        ("% Reached end of topic connect-offsets [0] at offset 3", "kcat without -J"),
        (KEY, "keys alone"),
        (json.dumps({"topic": "o", "key": KEY, "payload": None}), None),
    ],
)
def test_the_tool_that_printed_a_line_is_named_with_the_call_that_helps(
    tmp_path: Path, line: str, tool: str | None
) -> None:
    assert (tool is None) is (foreign_form(line) is None)
    if tool is None:
        return
    path = file(tmp_path, f"{line}\n")
    for read in (lambda: read_file(path), lambda: read_entries(path, "pg-dr")):
        with pytest.raises(BadInput) as e:
            read()
        assert tool in str(e.value)
        assert "kcat -C -J -e -t TOPIC -b HOST:PORT" in str(e.value)


def test_records_given_as_offsets_are_told_how_to_become_some(tmp_path: Path) -> None:
    line = json.dumps({"topic": "o", "key": KEY, "payload": '{"lsn":1}'})
    for text in (f"{line}\n", f"{line}\n{line}\n"):
        with pytest.raises(
            BadInput, match=r"connectctl offsets show -f .* -o json > offsets\.json"
        ):
            read_entries(file(tmp_path, text), "pg-dr")


def test_values_without_keys_are_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"without print\.key=true"):
        read_file(file(tmp_path, '{"lsn":1}\n'))


@given(mutated(yaml.safe_load(LISTED)))
def test_whatever_a_config_map_holds_is_offsets_or_one_error(data: Any) -> None:
    with suppress(BadInput):
        list(as_lines(iter([b"---\n" + json.dumps(data).encode()]), "any.yaml"))
