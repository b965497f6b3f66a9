"""Single message transformations of ``connectctl run`` and of a real worker, on the same file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from live.real import connector, eventually
from live.rundirectory import Place, well

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
PACKAGE = "org.apache.kafka.connect.transforms."
LINES = ("12", "-7", "2024-02-29", "7")
CHAIN: dict[str, dict[str, str]] = {
    "amount": {"type": "Cast$Value", "spec": "int8"},
    "hoist": {"type": "HoistField$Value", "field": "amount"},
    "insert": {"type": "InsertField$Value", "static.field": "currency!", "static.value": "EUR"},
    "where": {"type": "InsertField$Value", "topic.field": "from"},
    "key": {"type": "ValueToKey", "fields": "currency,amount"},
    "replace": {"type": "ReplaceField$Value", "exclude": "from", "renames": "amount:cents"},
    "schema": {"type": "SetSchemaMetadata$Value", "schema.name": "com.example.Amount"},
}
"""With a line that fails in it."""


def transformed(place: Place, schemas: str, topic: str) -> dict[str, str]:
    stages = {f"transforms.{t}.{k}": v for t, of in CHAIN.items() for k, v in of.items()}
    stages |= {f"transforms.{t}.type": PACKAGE + of["type"] for t, of in CHAIN.items()}
    parts = ("key.converter", "value.converter")
    return (
        place.config
        | dict.fromkeys(parts, "org.apache.kafka.connect.json.JsonConverter")
        | {f"{name}.schemas.enable": schemas for name in parts}
        | stages
        | {"transforms": ",".join(CHAIN), "errors.tolerance": "all", "topic": topic}
        | {"errors.log.enable": "true"}
    )


def records(place: Place, topic: str) -> list[tuple[Any, Any]]:
    image = place.kafka.image([topic], patience=30, superseded=True)[topic]
    found = sorted((*image.latest, *image.superseded), key=lambda record: record.offset)
    return [(record.key, record.value) for record in found]


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("schemas", ["true", "false"])
def test_a_worker_and_a_run_write_the_same_bytes_and_the_run_has_dead_letters(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schemas: str
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    place = Place(cluster, tmp_path)
    place.file.write_text("".join(f"{line}\n" for line in LINES))
    with connector(cluster, f"{place.name}-w", transformed(place, schemas, place.topic)):
        eventually(lambda: len(records(place, place.topic)) == 3)
    expected = records(place, place.topic)
    # the workers' topic, under the name that the run's records have in them
    other, letters = f"{place.topic}-run", f"{place.name}-letters"
    place.config = transformed(place, schemas, other)
    place.config["errors.deadletterqueue.topic.name"] = letters
    ran = well(place.run(idle="3s"))
    assert records(place, other) == expected
    assert records(place, letters) == [(None, b"2024-02-29")]
    (metrics,) = [task["metrics"] for task in ran["tasks"]]
    assert (metrics["total-records-skipped"], metrics["deadletterqueue-produce-requests"]) == (1, 1)
