"""Tests of placeholders in files of connectors, and of environment files."""

from __future__ import annotations

import pytest
from connectctl.ops.config.connector_file import read_contents
from connectctl.ops.config.placeholders import assignments, read_environment
from connectctl.ops.core.errors import BadInput

VALUES = {"T": 'a "b" ${U}', "N": "3"}
JSON = '{"name": "c-${N}", "config": {"connector.class": "S", "tasks.max": ${N}, "a.${N}": "${T}"}}'
YAML = 'name: "c-${N}"\nconfig:\n  connector.class: S\n  tasks.max: ${N}\n  a.${N}: ${T}\n'
PROPERTIES = "name=c-${N}\nconnector.class=S\ntasks.max=${N}\na.${N}=${T}\n"
MANIFEST = """apiVersion: kafka.strimzi.io/v1
kind: KafkaConnector
metadata: {name: "c-${N}"}
spec: {class: S, tasksMax: "${N}", config: {"a.${N}": "${T}"}}
---
apiVersion: v1
kind: Service
metadata: {name: "${NOT_GIVEN}"}
"""


@pytest.mark.parametrize(
    ("text", "file"),
    [(JSON, "c.json"), (YAML, "c.yaml"), (PROPERTIES, "c.properties"), (MANIFEST, "m.yaml")],
)
def test_placeholders_are_replaced_in_names_and_values_of_every_form(text: str, file: str) -> None:
    (given,) = read_contents(text.encode(), file, VALUES).given
    expected = {"connector.class": "S", "tasks.max": "3", "a.3": 'a "b" ${U}'}
    assert given.name == "c-3"
    assert {name: given.config[name] for name in expected} == expected


def test_references_to_config_providers_are_never_replaced() -> None:
    kept = {"a": "${file:/run/${N}:k}", "b": "${env:N}", "c": "${dir:N}", "d": "$N", "e": "$${x:N}"}
    lines = "\n".join(f"{name}: '{value}'" for name, value in kept.items())
    raw = f"connector.class: S\n{lines}\n".encode()
    (given,) = read_contents(raw, "c.yaml", {"N": "1", "file": "2"}).given
    assert given.config == {"connector.class": "S", **kept, "a": "${file:/run/1:k}"}


def test_a_placeholder_that_is_left_is_an_error_that_names_all() -> None:
    with pytest.raises(BadInput) as e:
        read_contents(JSON.encode(), "c.json", {})
    assert e.value.why == "${N}, ${T}"
    assert "--set 'N=${N}'" in str(e.value)


def test_a_file_is_kept_as_it_is_unless_values_are_given() -> None:
    (given,) = read_contents(YAML.encode(), "c.yaml").given
    assert (given.name, given.config["tasks.max"]) == ("c-${N}", "${N}")


def test_an_environment_file_is_read_as_a_shell_reads_it() -> None:
    text = '# comment\nA=1\n\nexport B=\'x # y\'\nC="a\\"b"\nD=\nE=a=b\n'
    expected = {"A": "1", "B": "x # y", "C": 'a"b', "D": "", "E": "a=b"}
    assert read_environment(text, "e") == expected
    with pytest.raises(BadInput, match="e, line 2 is not NAME=VALUE"):
        read_environment("A=1\nsecret words\n", "e")


@pytest.mark.parametrize("text", ["a", "a.b=c", "=c", "1=2"])
def test_an_assignment_needs_a_name(text: str) -> None:
    with pytest.raises(BadInput, match="--set requires NAME=VALUE"):
        assignments([text])
