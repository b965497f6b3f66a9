"""``doctor --heal`` and ``bundle`` on a real cluster whose tasks fail of what passes and of what
does not.
"""

from __future__ import annotations

import json
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live.faults import Faults
from live.real import connectctl, eventually, slowdown
from live.standins import cluster_with_faults

pytestmark = pytest.mark.live

SECRETS = {
    "connection.password": "planted-Secret-01",
    "pin.of.the.vault": "planted-Secret-02",
    "door": "planted-Secret-03",
    "api.key": "planted-Secret-04",
    "connection.url": "jdbc:postgresql://ops:planted-Secret-05@db/x?password=planted-Secret-06",
    "producer.override.sasl.jaas.config": "org.apache.kafka.common.security.plain."
    'PlainLoginModule required username="ops" password="planted-Secret-07";',
    "settings": '{"user": "ops", "credentials": {"password": "planted-Secret-08"}}',
    "webhook": "https://hooks.example.com/services/T0/planted-Secret-09",
    "headers": "Authorization: Bearer planted-Secret-10",
}
"""Secrets of a connector by the property, one for each way in which one is recognised."""
QUOTED = "planted-Secret-03"
"""The secret that the trace of a task quotes, and that no form tells."""


@pytest.fixture(scope="module")
def faults(state_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    directory = tmp_path_factory.mktemp("faults")
    with cluster_with_faults(directory) as cluster:
        made = Faults(cluster, directory)
        made.create("transient", 12)
        made.create("lasting", 3, **SECRETS)
        made.create("well", 1)
        yield made


def findings(data: dict[str, Any]) -> list[tuple[str, ...]]:
    """The findings of a report or a bundle, without what is only formatted."""
    return [(f["severity"], f["id"], f["subject"], f["message"]) for f in data["findings"]]


def test_what_passes_is_cured_once_and_what_lasts_is_left_alone_and_said(faults: Faults) -> None:
    for task in range(3):
        faults.plant("lasting", task, f"lasting row {task} of door {QUOTED}")
    faults.plant("transient", 0, "passing")
    faults.plant("transient", 1, "passing org.apache.kafka.common.errors.NotCoordinatorException")
    faults.plant("transient", 2, "stubborn")
    lasting = {f"lasting/{task}" for task in range(3)}
    eventually(lambda: faults.failed() == lasting | {"transient/0", "transient/1", "transient/2"})

    plan = faults.run("doctor", "--heal", "--dry-run", "-o", "json").json
    assert [(step["step"], step["task"]) for step in plan["steps"]] == [
        ("RestartPart", task) for task in range(3)
    ]
    assert {noop["subject"] for noop in plan["unchanged"]} == lasting
    assert all("not transient" in noop["why"] for noop in plan["unchanged"])

    # The stubborn one is waited for to the end; the others need longer on a busy machine.
    seconds = str(round(20 * slowdown()))
    healed = faults.run("doctor", "--heal", "--yes", "--timeout", seconds, "-o", "json")
    assert healed.code == 1, healed.err
    outcomes = [each["outcome"] for each in healed.json["results"]]
    assert sorted(outcomes) == ["already"] * 3 + ["done", "done", "failed"], healed.out
    assert faults.failed() == lasting | {"transient/2"}

    again = faults.run("doctor", "--heal", "--yes", "-o", "json")
    assert again.code == 0, again.err
    whys = faults.run("doctor", "--heal", "--dry-run", "-o", "json").json["unchanged"]
    (in_vain,) = (noop["why"] for noop in whys if noop["subject"] == "transient/2")
    assert "did not help" in in_vain
    run = faults.run("runs", "list", "-o", "json").json["runs"][0]
    assert run["operation"] == "doctor --heal"
    undone = faults.run("runs", "undo", run["id"], "--yes")
    assert (undone.code, "cannot be undone" in undone.err) == (4, True)


def test_a_bundle_has_the_verdict_of_the_cluster_and_none_of_its_secrets(
    faults: Faults, tmp_path: Path
) -> None:
    eventually(lambda: {"lasting/0", "lasting/1", "lasting/2"} <= faults.failed())
    file = tmp_path / "bundle.zip"
    made = faults.run("bundle", "--out", str(file), "-o", "json")
    assert made.code == 0, made.err
    assert made.json["leftOut"] == []
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    live = faults.run("doctor", "-o", "json").json

    repeated = connectctl("doctor", "-f", str(file), "-o", "json")
    assert repeated.code in (0, 1), repeated.err
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name).decode() for name in archive.namelist()}
    told = json.loads(content["verdict.json"])
    assert [(f["id"], f["subject"]) for f in repeated.json["findings"]]
    assert sorted(findings(repeated.json)) == sorted(findings(told))
    assert {f[1:3] for f in findings(repeated.json)} == {f[1:3] for f in findings(live)}
    assert "planted-Secret" not in "".join(content.values()) + repeated.out + live["groupId"]

    html = tmp_path / "doctor.html"
    assert connectctl("doctor", "-f", str(file), "--html", str(html)).code in (0, 1)
    page = html.read_text()
    assert '<rect class="bad"' in page
    assert "planted-Secret" not in page


def test_names_are_replaced_alike_everywhere(faults: Faults, tmp_path: Path) -> None:
    file = tmp_path / "bundle.zip"
    made = faults.run("bundle", "--out", str(file), "--redact-names", "-o", "json")
    assert made.code == 0, made.err
    with zipfile.ZipFile(file) as archive:
        content = "".join(archive.read(name).decode() for name in archive.namelist())
    assert not {name for name in ("transient", "lasting") if f"{name}/" in content}
    names = json.loads(file.with_name("bundle.zip.names.json").read_text())
    assert {"transient", "lasting", "well"} <= set(names.values())
    pseudonyms = {name: new for new, name in names.items()}
    live = faults.run("doctor", "-o", "json").json
    repeated = connectctl("doctor", "-f", str(file), "-o", "json").json

    def renamed(subject: str) -> str:
        for name, new in pseudonyms.items():
            subject = subject.replace(name, new)
        return subject

    assert {(*f[1:2], renamed(f[2])) for f in findings(live)} == {
        f[1:3] for f in findings(repeated)
    }
