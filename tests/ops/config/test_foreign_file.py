"""Tests of files that are no configurations of connectors."""

from __future__ import annotations

from pathlib import Path

import pytest
from connectctl.ops.config.connector_file import read_contents
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.connectors.config.reading import Reading, read
from fakes.connectorfiles import parse

CONNECTOR = """apiVersion: kafka.strimzi.io/v1
kind: KafkaConnector
metadata: {name: a}
spec: {class: S, config: {topic: t}}
"""
CONNECT = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaConnect\nmetadata: {name: my-connect}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: pw}\ndata: {a: [b]}\n"
COMPOSE = """x-common: &common {A: b}
services:
  connect:
    environment: {<<: *common, CONNECT_BOOTSTRAP_SERVERS: "kafka:9092"}
"""


@pytest.mark.parametrize(
    ("file", "text", "why", "step"),
    [
        (
            "t.yaml",
            "apiVersion: template.openshift.io/v1\nkind: Template\nobjects: []\n",
            "it is a Template of OpenShift",
            "Render it first: oc process -f t.yaml | connectctl validate -f -",
        ),
        ("Chart.yaml", "apiVersion: v2\nname: x\n", "Helm chart", "helm template . |"),
        ("kustomization.yaml", "resources: [a.yaml]\n", "kustomization", "kubectl kustomize . |"),
        ("c.json", '{"name": "{{ .Values.name }}"}', "it is a template", "helm template CHART"),
        ("c.json", '{{- range .Values.x }}{"a": 1}', "it is a template", "helm template CHART"),
        ("compose.yml", COMPOSE, "a compose file", "context add NAME --from compose.yml"),
        ("k.yaml", CONNECT, "it is a KafkaConnect", "context add NAME --from k.yaml"),
        ("s.yaml", SECRET, "it is a Secret, not a KafkaConnector", "Give KafkaConnector"),
        (
            "w.properties",
            "bootstrap.servers=a:1\ngroup.id=g\nconfig.storage.topic=c\n",
            "the configuration of a worker",
            "context add NAME --from w.properties",
        ),
        (
            "connect.env",
            "CONNECT_GROUP_ID=g\n",
            "the configuration of a worker",
            "--from connect.env",
        ),
        (
            "group_vars.yml",
            "kafka_connect_connectors:\n- {name: a, config: {connector.class: S}}\n",
            "they are variables of Ansible",
            "yq .kafka_connect_connectors group_vars.yml | connectctl validate -f -",
        ),
        (
            "p.yml",
            "- hosts: all\n  tasks: [{name: a}]\n",
            "a playbook of Ansible",
            "Give the configurations",
        ),
    ],
)
def test_a_file_that_is_no_configuration_is_named_with_what_to_do(
    file: str, text: str, why: str, step: str
) -> None:
    with pytest.raises(BadInput) as e:
        parse(text.encode(), file)
    assert why in str(e.value)
    assert step in str(e.value)
    assert "Write a list" not in str(e.value)


@pytest.mark.parametrize(
    "text",
    [
        "---\n".join((CONNECT, CONNECTOR, SECRET)),
        "apiVersion: v1\nkind: List\nitems:\n"
        + "".join(
            "- " + each.replace("\n", "\n  ").rstrip() + "\n"
            for each in (CONNECT, CONNECTOR, SECRET)
        ),
    ],
)
def test_other_resources_beside_connectors_are_ignored_and_named(text: str) -> None:
    found = read_contents(text.encode(), "bundle.yaml")
    assert [given.name for given in found.given] == ["a"]
    assert found.skipped == ("KafkaConnect my-connect", "Secret pw")


def test_a_list_as_a_value_of_a_configuration_is_written_as_one_string() -> None:
    with pytest.raises(BadInput, match="Write a list as one string"):
        parse(b"connector.class: S\ntopics: [a, b]\n", "c.yaml")


def test_directories_are_read_with_their_subdirectories_only_if_asked(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    for name in ("a.json", "deep/b.json", "deep/er/c.json", ".git/d.json"):
        (tmp_path / name).write_text('{"connector.class": "S"}')
    (tmp_path / "connect.yaml").write_text(CONNECT)
    told: list[str] = []

    def names(*, recursive: bool) -> list[str]:
        reading = Reading(recursive, None, told.append)
        return [given.name for given in read([tmp_path], None, reading)]

    assert names(recursive=False) == ["a"]
    ignored = f"{tmp_path / 'connect.yaml'}: ignored KafkaConnect my-connect: no KafkaConnector"
    assert told == [f"{tmp_path}: subdirectories are read with --recursive only: deep", ignored]
    told.clear()
    assert names(recursive=True) == ["a", "b", "c"]
    assert told == [ignored]
    (tmp_path / "deep" / "b.json").unlink()
    with pytest.raises(BadInput, match="read with --recursive: er"):
        read([tmp_path / "deep"])


def test_a_directory_that_is_rendered_first_is_named(tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text("name: x\n")
    with pytest.raises(BadInput, match=r"is a Helm chart\. Render it first: helm template "):
        read([tmp_path])
