"""Offsets that people give in files: what is taken, and every reason why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.offsets.input_file import partition_text, read_entries

SHOWN = {
    "apiVersion": "connectctl/v1",
    "kind": "SourceOffsets",
    "connectors": [
        {
            "name": "c",
            "offsets": [
                {"partition": {"t": "a"}, "effective": {"lsn": 1}, "global": None},
                {"partition": {"t": "b"}, "effective": None, "global": None},
            ],
        },
        {"name": "d", "offsets": [{"partition": {"t": "d"}, "effective": {"lsn": 4}}]},
    ],
}


def entries(tmp_path: Path, content: Any, connector: str = "c") -> list[tuple[Any, Any]]:
    path = tmp_path / "offsets"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return [(json.loads(p), json.loads(o)) for p, o in read_entries(path, connector)]


@pytest.mark.parametrize(
    "content",
    [
        {"offsets": [{"partition": {"t": "a"}, "offset": {"lsn": 1}}]},
        [{"partition": {"t": "a"}, "offset": {"lsn": 1}}],
        "offsets:\n- partition: {t: a}\n  offset: {lsn: 1}\n",
        SHOWN,
    ],
)
def test_what_connect_returns_what_we_show_and_yaml_all_say_the_same(
    tmp_path: Path, content: Any
) -> None:
    assert entries(tmp_path, content) == [({"t": "a"}, {"lsn": 1})]


def test_offsets_of_which_one_side_was_not_read_are_not_taken_for_none(tmp_path: Path) -> None:
    unknown = {"partition": {"t": "a"}, "effective": None, "origin": "unknown"}
    with pytest.raises(BadInput, match="does not say which offsets of c are effective"):
        entries(tmp_path, SHOWN | {"connectors": [{"name": "c", "offsets": [unknown]}]})


def test_what_is_shown_of_one_connector_can_be_set_for_another(tmp_path: Path) -> None:
    alone = SHOWN | {"connectors": SHOWN["connectors"][1:]}
    assert entries(tmp_path, alone, "new") == [({"t": "d"}, {"lsn": 4})]
    with pytest.raises(BadInput, match="has no offsets of new"):
        entries(tmp_path, SHOWN, "new")


def test_an_offset_of_null_or_none_deletes_and_the_null_partition_is_one(tmp_path: Path) -> None:
    content = {"offsets": [{"partition": {"t": "a"}, "offset": None}, {"partition": None}]}
    assert entries(tmp_path, content) == [({"t": "a"}, None), (None, None)]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "neither JSON nor YAML"),
        ("just text", "no source offsets"),
        ({"offsets": {}}, "no source offsets"),
        ({"offsets": []}, "names no source partition"),
        ({"offsets": [{"offset": {}}]}, "no source offsets"),
        ([{"partition": "t", "offset": {}}], "entry 1: the partition is not a JSON object"),
        (
            [{"partition": {"t": {}}, "offset": {}}],
            "the partition may hold primitive values only, and t is not one",
        ),
        ([{"partition": {}, "offset": [1]}], "the offset is not a JSON object"),
        ([{"partition": {}, "offset": {"l": [1]}}], "the offset may hold primitive values only"),
        ([{"partition": {}, "offset": {"l": 1 << 63}}], "l does not fit 64 bits"),
        ('[{"partition": {}, "offset": {"l": NaN}}]', "l is nan, which JSON does not have"),
        ('[{"partition": {}, "offset": {"l": 1e999}}]', "l is inf, which JSON does not have"),
        ([{"partition": {"t": "\ud83d"}, "offset": {}}], "half of a surrogate pair"),
        ("- {partition: {1: a}, offset: {}}", "a key that is not a string: 1"),
        ("- {partition: {t: 2026-01-01}, offset: {}}", "t is a date, which JSON does not have"),
        (
            [{"partition": {"t": 1}}, {"partition": {"t": 1}, "offset": {}}],
            "entry 2 names the source partition of entry 1",
        ),
    ],
)
def test_what_connect_would_not_accept_is_bad_input(tmp_path: Path, content: Any, why: str) -> None:
    with pytest.raises(BadInput) as error:
        entries(tmp_path, content)
    assert why in str(error.value)


def test_every_entry_that_is_wrong_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        entries(tmp_path, [{"partition": 1, "offset": 2}, {"partition": {}, "offset": {"l": {}}}])
    assert str(error.value).count("entry ") == 3


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_entries(tmp_path / "none", "c")


def test_a_source_partition_of_the_command_line_is_json() -> None:
    assert json.loads(partition_text('{"t": "a"}')) == {"t": "a"}
    for bad, why in (
        ("t=a", "not JSON"),
        ('["t"]', "not a JSON object"),
        ('{"t": {}}', "primitive"),
    ):
        with pytest.raises(BadInput, match=why):
            partition_text(bad)
