"""The converters that an audit finds in a configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.clients.secrets import reveal
from connectctl.ops.core.errors import BadInput
from connectctl.ops.jobs.audit_converters import converters_in

URL = "value.converter.schema.registry.url"


def given(directory: Path, *configs: dict[str, Any]) -> Path:
    path = directory / "orders.json"
    made = [{"name": f"c{n}", "config": config} for n, config in enumerate(configs)]
    path.write_text(json.dumps(made if len(made) > 1 else made[0]))
    return path


def test_converters_come_with_their_properties_alone(tmp_path: Path) -> None:
    own = {"value.converter": "AvroConverter", URL: "http://localhost:1"}
    others = {"connector.class": "x", "value.converters": "y", "topic": "orders"}
    assert converters_in(given(tmp_path, own | others), reveal) == own


@pytest.mark.parametrize(
    ("configs", "why"),
    [
        ([{"topic": "orders"}], "has neither value.converter nor key.converter"),
        ([{"value.converter": "AvroConverter"}], f'required configuration "{URL}"'),
        ([{"value.converter": "Avro"}], "Unsupported converter Avro"),
        (
            [{"value.converter": "AvroConverter", URL: "${env:URL}"}],
            f"{URL} refers to a config provider",
        ),
        ([{"value.converter": "AvroConverter"}] * 2, "has 2 configurations"),
    ],
)
def test_a_file_that_names_none_is_refused(
    tmp_path: Path, configs: list[dict[str, Any]], why: str
) -> None:
    with pytest.raises(BadInput, match=why.replace("(", r"\(")):
        converters_in(given(tmp_path, *configs), reveal)
