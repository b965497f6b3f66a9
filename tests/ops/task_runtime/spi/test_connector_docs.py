"""What docstrings of the interface promise about values and exceptions is what happens."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from connectctl.source import SourceConnector, SourceRecord, SourceTask
from connectctl.testing import run_source

SHORT = {"String": "StringConverter", "Json": "JsonConverter", "Bytes": "ByteArrayConverter"}


def written(converter: str, *values: Any) -> list[bytes | None]:
    class Once(SourceTask):
        def start(self, configs: Any) -> None:
            self.left = [
                SourceRecord({"s": 1}, {"n": n}, "t", value) for n, value in enumerate(values)
            ]

        def poll(self) -> Any:
            found, self.left = self.left, []
            return found

    def task_configs(self: Any, most: int) -> list[dict[str, str]]:
        return [{}]

    kind = type("Kind", (SourceConnector,), {"task": Once, "task_configs": task_configs})
    return run_source(
        kind, {"value.converter": SHORT[converter], "value.converter.schemas.enable": "false"}
    ).values()


def test_values_that_a_converter_takes() -> None:
    nested = {"a": [1, 2.5, True, None]}
    assert written("String", "ä", 1, True, nested, b"\xff", None) == [
        "ä".encode(),
        b"1",
        b"true",
        b'{"a":[1,2.5,true,null]}',
        b"\xff",
        None,
    ]
    assert written("Json", "x", 1, nested, (1, 2), b"a", None) == [
        b'"x"',
        b"1",
        b'{"a":[1,2.5,true,null]}',
        b"[1,2]",
        b'"YQ=="',
        None,
    ]
    assert written("Bytes", b"a", None) == [b"a", None]


@pytest.mark.parametrize("converter", SHORT)
@pytest.mark.parametrize(
    "value", [Decimal("1.5"), datetime.now(UTC), {1, 2}, object()], ids=lambda v: type(v).__name__
)
def test_values_that_no_converter_takes_fail_the_task(converter: str, value: Any) -> None:
    with pytest.raises(Exception, match=r".+"):
        written(converter, value)
