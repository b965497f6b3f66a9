"""``connectctl preflight`` whole, on a real cluster: nothing where all is well, and each area's
word where it is not.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from live.real import FILE_SOURCE, Ran, connectctl, connector, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/preflight.json").read_text())


def preflight(*args: str) -> Ran:
    return connectctl("--context", "sandbox-tests", "preflight", *args)


def found(ran: Ran) -> dict[str, Any]:
    jsonschema.validate(ran.json, SCHEMA)
    return {finding["id"]: finding for finding in ran.json["findings"]}


@pytest.fixture
def name(tmp_path: Path) -> str:
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    return f"preflight-{secrets.token_hex(4)}"


@pytest.fixture
def config(name: str, tmp_path: Path) -> dict[str, str]:
    return {
        "connector.class": FILE_SOURCE,
        "file": str(tmp_path / "in.txt"),
        "topic": f"{name}-data",
    }


@pytest.fixture
def well(cluster: Sandbox, name: str, config: dict[str, str]) -> Iterator[str]:
    with connector(cluster, name, config) as rest:
        eventually(lambda: rest.state(name) == ["RUNNING", "RUNNING"])
        yield name


@pytest.mark.parametrize("wish", ["now", "preparing", "enabled", "downgrade"])
def test_a_clean_cluster_has_no_finding(well: str, wish: str) -> None:
    # A cluster that was just used settles for a moment: what others did to it is not this
    # connector's.
    def clean() -> bool:
        ran = preflight(well, "--for", wish, "-o", "json")
        mine = [
            f
            for f in ran.json["findings"]
            if well in json.dumps(f) or f["id"].startswith(("BROKER", "CLUSTER"))
        ]
        assert ran.code in (0, 1), ran.err
        return not mine

    eventually(clean)


def test_findings_of_many_areas_come_in_one_answer(
    cluster: Sandbox, name: str, config: dict[str, str]
) -> None:
    bad = config | {
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "90000",
        "producer.override.enable.idempotence": "false",
        "producer.override.transaction.timeout.ms": "80000",
        "offsets.storage.topic": f"{name}-offsets",
    }
    with connector(cluster, name, bad, "STOPPED"):
        ran = preflight(name, "--for", "enabled", "-o", "json")
    assert ran.code == 1
    assert {"TXN005", "CONFIG020", "STORE012"} <= found(ran).keys()
    assert found(ran)["TXN005"]["why"]
    order = [f["severity"] for f in ran.json["findings"]]
    assert order == sorted(order, key=["error", "warning", "info"].index)


def test_a_sink_is_said_to_be_untouched_once_and_is_no_finding_that_fails(
    cluster: Sandbox, name: str, tmp_path: Path
) -> None:
    sink = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "file": str(tmp_path / "out.txt"),
        "topics": f"{name}-data",
    }
    with connector(cluster, name, sink):
        ran = preflight(name, "--for", "enabled", "-o", "json")
    mine = [f for f in ran.json["findings"] if f["id"].startswith("SINK")]
    assert [f["severity"] for f in mine] == ["info"]


def test_what_ci_reads_tells_the_same(well: str) -> None:
    sarif = json.loads(preflight(well, "--for", "enabled", "-o", "sarif").out)
    assert sarif["version"] == "2.1.0"
    assert preflight(well, "--for", "enabled", "-o", "junit").out.startswith("<?xml")


def test_a_connector_that_is_not_there_is_one_line() -> None:
    ran = preflight("nobody-has-this")
    assert ran.code == 2
    assert ran.err.startswith("error: Connector not found: nobody-has-this")


def test_the_long_story_needs_no_cluster() -> None:
    ran = connectctl("preflight", "--explain", "store001")
    assert ran.code == 0
    assert "not seeded" in ran.out
    assert "Source: KIP-618" in ran.out
    assert connectctl("preflight", "--explain", "STORE1").code == 2
