"""Each release of Kafka that the sandbox knows, as workers and as brokers: what people do every day,
and a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.sandbox.jars.versions import TRIED, KafkaVersion, parse_version
from live.real import FILE_SOURCE, Ran, connectctl, eventually, workers
from live.rundirectory import Place, well

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
NAME, TOPIC = "releases", "releases-lines"
WITH_STOPPED, WITH_OFFSETS = (3, 5), (3, 6)
"""The releases whose workers have the state STOPPED, and the offsets of a connector (KIP-875)."""
OWN = "3.6.2", "3.7.2", "3.8.1", "3.9.2"
"""Releases whose brokers are tried, too: by default their workers get newer ones."""


def cell(release: str, brokers: str) -> Any:
    declared = pytest.mark.versions(workers=release, brokers=brokers)
    return pytest.param(release, brokers, marks=declared, id=f"{release} on {brokers}")


CELLS = [
    *(cell(release, str(parse_version(release).broker)) for release in TRIED),
    *(cell(release, release) for release in OWN),
]


@contextmanager
def sandbox_of(release: str, brokers: str) -> Iterator[Sandbox]:
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    newer = parse_version(release).has_exactly_once_source
    spec = SandboxSpec(
        NAME, kafka_version=release, workers=1, support="enabled" if newer else "disabled"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KafkaVersion, "broker", property(lambda self: parse_version(brokers)))
        try:
            yield up(spec)
        finally:
            down(NAME)


def do(*args: str, code: int = 0) -> Ran:
    ran = connectctl("--context", f"sandbox-{NAME}", *args)
    assert ran.code == code, ran.out + ran.err
    return ran


def position() -> Any:
    """Return the offset from which the connector resumes, None where it has none."""
    (shown,) = do("offsets", "show", TOPIC, "-o", "json").json["connectors"]
    return next((offset["effective"] for offset in shown["offsets"]), None)


@pytest.mark.drawn
@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize(("release", "brokers"), CELLS)
def test_a_connector_its_offsets_and_a_run_on_each_release(
    release: str, brokers: str, tmp_path: Path
) -> None:
    version = parse_version(release)
    known = version.major, version.minor
    file, config = tmp_path / "lines.txt", tmp_path / f"{TOPIC}.json"
    file.write_text("a\nb\n")
    wanted = {"connector.class": FILE_SOURCE, "topic": TOPIC, "file": str(file)}
    config.write_text(json.dumps({"name": TOPIC, "config": wanted}))
    with sandbox_of(release, brokers) as sandbox:
        assert workers(sandbox).call("GET", "/").json()["version"] == release
        assert sandbox.record.nodes[0].kafka_version == brokers

        do("validate", "-f", str(config))
        do("connectors", "create", "-f", str(config), "--wait", "--yes")
        eventually(lambda: position() == {"position": 4})
        assert workers(sandbox).state(TOPIC) == ["RUNNING", "RUNNING"]
        if known >= WITH_STOPPED:
            change = tmp_path / "offsets.json"
            partition = {"partition": {"filename": str(file)}, "offset": {"position": 2}}
            change.write_text(json.dumps({"offsets": [partition]}))
            do("offsets", "set", TOPIC, "-f", str(change), "--stop", "--yes")
            eventually(lambda: position() == {"position": 4})
        if known >= WITH_OFFSETS:
            do("connectors", "stop", TOPIC, "--wait", "--yes")
            assert workers(sandbox).offsets(TOPIC)[0]["offset"] == {"position": 4}
        assert do("doctor", "-o", "json").json["findings"] is not None
        do("connectors", "delete", TOPIC, "--yes")

        place = Place(sandbox, tmp_path)
        place.append(100)
        assert well(place.run())["records"] == 100
        place.all_there()
