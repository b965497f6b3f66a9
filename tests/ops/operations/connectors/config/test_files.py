"""Configurations come as JSON, YAML, properties and Strimzi's manifests, and mean the same in
each.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from connectctl.ops.clients.secrets import reveal
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.connectors.config.files import desired

CONFIG = {
    "name": "orders",
    "connector.class": "x.y.Source",
    "tasks.max": "2",
    "db.password": "${file:/a:b}",
    "q": "true",
}
FORMS = {
    "a.json": json.dumps(
        {"name": "orders", "config": {n: v for n, v in CONFIG.items() if n != "name"}}
    ),
    "orders.json": json.dumps({**CONFIG, "tasks.max": 2, "q": True}),
    "b.yaml": "\n".join(f"{name}: {value}" for name, value in CONFIG.items()),
    "c.properties": "\n".join(f"{name}={value}" for name, value in CONFIG.items()),
    "d.yml": """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata:
  name: orders
  labels: {strimzi.io/cluster: prod}
spec:
  class: x.y.Source
  tasksMax: 2
  autoRestart: {enabled: true}
  config:
    db.password: ${file:/a:b}
    q: true
""",
}


@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_the_same_configuration(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(FORMS[name])
    (found,) = desired([path], reveal)
    assert (found.name, found.config, found.file) == ("orders", CONFIG, str(path))


@pytest.mark.parametrize(
    ("said", "state"),
    [("state: paused", "PAUSED"), ("pause: true", "PAUSED"), ("state: Stopped", "STOPPED")],
)
def test_a_manifest_says_which_state_its_connector_is_kept_in(
    said: str, state: str, tmp_path: Path
) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(FORMS["d.yml"].replace("tasksMax: 2", said))
    assert desired([path], reveal)[0].kept_state == state


def test_manifests_in_several_documents_and_as_kubectl_prints_them_are_taken(
    tmp_path: Path,
) -> None:
    one, two = FORMS["d.yml"], FORMS["d.yml"].replace("name: orders", "name: users")
    several, listed = tmp_path / "several.yaml", tmp_path / "list.yaml"
    several.write_text(f"---{one}---{two}status: {{tasksMax: 2}}\n---\n# the end\n")
    assert [each.name for each in desired([several], reveal)] == ["orders", "users"]
    items = [each.strip().replace("\n", "\n  ") for each in (one, two)]
    listed.write_text(
        "apiVersion: v1\nkind: List\nitems:\n" + "".join(f"- {each}\n" for each in items)
    )
    assert [each.config for each in desired([listed], reveal)] == [
        CONFIG,
        CONFIG | {"name": "users"},
    ]


def test_a_directory_is_for_its_files_of_known_forms_in_order(tmp_path: Path) -> None:
    for name in ("b.json", "a.properties", "readme.md"):
        (tmp_path / name).write_text(
            "name=a\nconnector.class=x.Y" if name[0] == "a" else '{"connector.class": "x.Y"}'
        )
    (tmp_path / "sub.json").mkdir()
    assert [each.name for each in desired([tmp_path], reveal)] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.properties", "connector.class=x.Y", "the connector has no name"),
        ("a.json", '{"name": "a", "config": {"x": "1"}}', "a has no connector.class"),
        (
            "a.json",
            '{"name": "a", "config": {"name": "b", "connector.class": "x.Y"}}',
            "is called a and b",
        ),
        (
            "a.json",
            '{"connector.class": "x.Y", "db.password": "******"}',
            "db.password of a is masked",
        ),
        ("a.json", '{"connector.class": "x.Y", "a": 1, "a": 2}', "a is set more than once"),
        (
            "a.json",
            '{"name": "a", "initial_state": "UP", "config": {"connector.class": "x.Y"}}',
            "initial_state is UP",
        ),
        (
            "a.json",
            '{"name": "a", "offsets": [], "config": {"connector.class": "x.Y"}}',
            "no worker accepts offsets",
        ),
        (
            "a.yaml",
            "apiVersion: kafka.strimzi.io/v1\nkind: KafkaConnect\nmetadata: {name: a}",
            "it is a KafkaConnect",
        ),
        ("a.yaml", FORMS["d.yml"].replace("tasksMax", "taskMax"), "spec.taskMax is unknown"),
        ("a.yaml", FORMS["d.yml"].replace("tasksMax: 2", "state: up"), "spec.state is up"),
    ],
)
def test_what_no_worker_would_take_is_told_with_its_file(
    name: str, text: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadInput) as e:
        desired([path], reveal)
    assert words in str(e.value)
    assert str(path) in str(e.value)


def test_an_empty_directory_is_no_plan_to_do_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no configuration of a connector"):
        desired([tmp_path], reveal)
