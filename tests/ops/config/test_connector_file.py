"""Configurations from files, in every form and shape, and what becomes of files that are none."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from connectctl.ops.config import java_properties
from connectctl.ops.config.connector_file import Given
from connectctl.ops.core.errors import BadInput
from fakes.connectorfiles import parse
from hypothesis import given
from hypothesis import strategies as st

CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def only(text: str, file: str) -> Given:
    (found,) = parse(text.encode(), file)
    return found


FLAT = {"connector.class": CLASS, "tasks.max": "1", "name": "a"}
POSTED = {"name": "a", "config": {"connector.class": CLASS, "tasks.max": "1"}}


@pytest.mark.parametrize(
    ("text", "file"),
    [
        (json.dumps(FLAT), "a.json"),
        (json.dumps(POSTED), "a.json"),
        (json.dumps(POSTED | {"initial_state": "STOPPED"}), "-"),
        (json.dumps([POSTED]), "-"),
        (
            json.dumps(
                {
                    "apiVersion": "connectctl/v1",
                    "kind": "Connector",
                    "state": "RUNNING",
                    "owner": "x",
                }
                | POSTED
            ),
            "-",
        ),
        (f"name: a\nconfig:\n  connector.class: {CLASS}\n  tasks.max: 1\n", "a.yaml"),
        (f"# a comment\nconnector.class: {CLASS}\ntasks.max: 1\nname: a\n", "-"),
        (f"---\n- name: a\n  config: {{connector.class: {CLASS}, tasks.max: 1}}\n", "a.yml"),
        (f"name=a\nconnector.class={CLASS}\ntasks.max = 1\n", "a.properties"),
        (f"! a comment\nname : a\nconnector.class {CLASS}\ntasks.\\\n   max=1\n", "A.PROPERTIES"),
        (f"#c\nname=a\nconnector.class={CLASS}\ntasks.max=1", "-"),
        ("\ufeff" + json.dumps(FLAT), "a.json"),
    ],
)
def test_every_form_and_shape_gives_name_and_properties(text: str, file: str) -> None:
    found = only(text, file)
    assert found.name == "a"
    assert {k: v for k, v in found.config.items() if k != "name"} == {
        "connector.class": CLASS,
        "tasks.max": "1",
    }
    assert not found.repeated


@pytest.mark.parametrize(
    ("text", "file", "values"),
    [
        (
            '{"a": 1.50, "b": 1E3, "c": true, "d": null, "e": -0, "f": "", "g": '
            "100000000000000000000}",
            "x.json",
            {
                "a": "1.50",
                "b": "1E3",
                "c": "true",
                "d": None,
                "e": "-0",
                "f": "",
                "g": "100000000000000000000",
            },
        ),
        (
            "a: 1.50\nb: True\nc: ~\nd: '1'\ne: 0x10\nf: 2020-01-01\ng: ''\nh: no\ni: null\nj: "
            "'no'",
            "x.yaml",
            {
                **{
                    "a": "1.50",
                    "b": "true",
                    "c": None,
                    "d": "1",
                    "e": "0x10",
                    "f": "2020-01-01",
                    "g": "",
                    "h": "false",
                },
                **{"i": None, "j": "no"},
            },
        ),
        (
            "a=\\u00e9\nb=x\\\n   y\nc:\nd= \\ z\ne=\xe9",
            "x.properties",
            {"a": "é", "b": "xy", "c": "", "d": " z"},
        ),
    ],
)
def test_values_become_text_as_connect_makes_them(
    text: str, file: str, values: Mapping[str, str | None]
) -> None:
    found = parse(text.encode("latin-1"), file)[0].config
    assert {name: found[name] for name in values} == values


def test_bytes_of_a_properties_file_are_iso_8859_1_as_for_kafka() -> None:
    assert parse("name=\xfc".encode("latin-1"), "x.properties")[0].name == "ü"


@pytest.mark.parametrize(
    ("text", "file", "lines"),
    [
        ('{"a": "1",\n "b": "2",\n "a": "3"}', "x.json", [1, 3]),
        ("a: 1\nb: 2\na: 3\n", "x.yaml", [1, 3]),
        ("a=1\n\na=3\n", "x.properties", [1, 3]),
        ("name: n\nconfig:\n  a: 1\n  a: 3\n", "x.yaml", [3, 4]),
    ],
)
def test_properties_that_are_there_twice_are_told_with_their_lines(
    text: str, file: str, lines: list[int]
) -> None:
    found = only(text, file)
    assert {name: list(at) for name, at in found.repeated.items()} == {"a": lines}
    assert found.config["a"] == "3"


def test_several_configurations_may_be_in_one_file() -> None:
    text = (
        f"name: a\nconfig: {{connector.class: {CLASS}}}\n---\nname: b\nconnector.class: {CLASS}\n"
    )
    assert [each.name for each in parse(text.encode(), "x.yaml")] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "file", "said"),
    [
        ("", "x.json", "x.json, line 1 is not JSON"),
        ("", "x.yaml", "x.yaml is empty"),
        ("", "-", "- is empty"),
        ("# only\n", "x.properties", "x.properties is empty"),
        ('{"a": 1,\n}', "x.json", "x.json, line 2 is not JSON"),
        ('{"a": NaN}', "x.json", "NaN is not a JSON number"),
        ("[]", "x.json", "x.json is empty"),
        ("3", "x.json", "a single value"),
        ("{}", "x.json", "it has no properties"),
        ("[[1]]", "x.json", "a list in a list"),
        ('{"a": {"b": 1}}', "x.json", "a is an object"),
        ('{"name": "x", "config": "y"}', "x.json", "config is not an object"),
        ('{"name": "x", "config": {"a": 1}, "extra": 2}', "x.json", "but not extra"),
        ('{"kind": "Connectors", "connectors": []}', "x.json", "connectors list"),
        ("a: [1, 2]\n", "x.yaml", "x.yaml, line 1: a is a list"),
        ("a: 1\nb: {c: 1}\n", "x.yaml", "x.yaml, line 2: b is an object"),
        ("a: 1\n b: 2\n", "x.yaml", "x.yaml, line 2 is not YAML"),
        ("a: 1\n? [x]\n: 2\n", "x.yaml", "a name must be a string"),
        ("just words", "x.yaml", "a single value"),
        ("a=1\nb\n", "x.properties", "x.properties, line 2 is not a property"),
        ("a=1\nb=\\u12\n", "x.properties", "x.properties, line 2 cannot be read"),
        ("[" * 100_000, "x.json", "x.json"),
        ("[" * 20_000, "x.yaml", "x.yaml"),
    ],
)
def test_what_is_no_configuration_is_refused_in_one_line(text: str, file: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(text.encode(), file)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_text_that_is_not_utf_8_is_refused_with_its_line() -> None:
    with pytest.raises(BadInput, match=r"x\.json, line 2 is not UTF-8"):
        parse(b'{"a":\n"\xff"}', "x.json")


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1),
        st.text(st.characters(codec="utf-8")),
        min_size=1,
    )
)
def test_json_comes_back_as_it_was_written(config: dict[str, str]) -> None:
    config.pop("config", None)
    config.pop("connectors", None)
    if config:
        assert only(json.dumps(config), "x.json").config == config


@given(st.dictionaries(st.from_regex(r"[a-z.]{1,12}", fullmatch=True), st.text(), min_size=1))
def test_properties_come_back_as_they_were_written(config: dict[str, str]) -> None:
    text = ""
    for name, value in config.items():
        text = java_properties.with_value(text, name, value)
    assert parse(text.encode(java_properties.ENCODING), "x.properties")[0].config == config


@given(st.binary(max_size=200), st.sampled_from(["x.json", "x.yaml", "x.properties", "-"]))
def test_any_bytes_are_read_or_refused(raw: bytes, file: str) -> None:
    said = ""
    try:
        parse(raw, file)
    except BadInput as refused:
        said = str(refused)
    assert "\n" not in said
