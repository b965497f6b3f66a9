"""JSON by lines: what is long is made while it is written."""

from __future__ import annotations

import json

import pytest
from connectctl.cli.output.json_lines import json_lines
from connectctl.cli.output.terminal import Output, each


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_items_that_are_made_when_they_are_written_are_written_as_those_that_were_made_before(
    count: int,
) -> None:
    def envelope(output: Output) -> dict[str, object]:
        return {
            "kind": "X",
            "connectors": [
                {"name": "a", "offsets": each(range(count), lambda n: {"n": n}, output)}
            ],
        }

    lazily, before = (
        "".join(json_lines(envelope(output))) for output in (Output.JSON, Output.YAML)
    )
    assert lazily == before
    assert json.loads(lazily)["connectors"][0]["offsets"] == [{"n": n} for n in range(count)]


def test_of_many_items_one_is_made_at_a_time() -> None:
    made: list[int] = []

    def make(n: int) -> dict[str, int]:
        made.append(n)
        return {"n": n}

    lines = json_lines(
        {"connectors": [{"name": "a", "offsets": each(range(1_000), make, Output.JSON)}]}
    )
    ahead = [
        len(made) - number for number, line in enumerate(line for line in lines if '"n"' in line)
    ]
    assert (len(ahead), max(ahead)) == (1_000, 1)
