"""What ``offsets show`` prints."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from connectctl.cli import main
from connectctl.cli.output.json_lines import json_lines
from connectctl.cli.output.terminal import Output
from connectctl.cli.views.offsets import as_json
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets.effective_offsets import assemble
from connectctl.ops.operations.offsets.snapshot import OffsetsQuery, OffsetsSnapshot
from fakes.offsettopics import record, topic
from typer.testing import CliRunner

RECORDS = [record([name, {"t": n}], {"o": n}) for name in "ab" for n in range(3)]
RECORDS += [record(["c", None], {"o": 1 << 60}), record(b"nonsense", {"o": 1})]


def printed(records: list[ConsumerRecord]) -> Any:
    seen = OffsetsSnapshot(topic("global", "global", *records), {}, None)
    data = as_json(assemble(seen, OffsetsQuery()), datetime(2026, 1, 1, tzinfo=UTC), Output.JSON)
    return json.loads("".join(json_lines(data)))


def test_every_source_partition_is_in_the_json_with_its_findings() -> None:
    found = printed(RECORDS)
    assert [(each["name"], len(each["offsets"])) for each in found["connectors"]] == [
        ("a", 3),
        ("b", 3),
        ("c", 1),
    ]
    assert len(found["findings"]) == 3
    assert printed([])["connectors"] == []


def test_a_time_that_no_calendar_has_is_given_as_it_is() -> None:
    microseconds = 1_700_000_000_000_000
    found = printed([record(["a", {"t": 1}], {"o": 1}, at=microseconds)])
    (offset,) = found["connectors"][0]["offsets"]
    assert offset["global"]["timestamp"] == "1700000000000000 ms after 1970"


def test_a_table_shows_so_many_source_partitions_and_says_how_many_more_there_are() -> None:
    lines = "\n".join(
        json.dumps({"key": f'["c",{{"p":{n}}}]', "value": '{"o":1}'}) for n in range(12)
    )
    for limit, shown, more in (("5", 5, True), ("12", 12, False), ("0", 12, False)):
        result = CliRunner().invoke(
            main.app, ["offsets", "show", "-f", "-", "--limit", limit], input=lines
        )
        assert result.exit_code == 0
        assert len(result.stdout.splitlines()) == shown + 1
        assert ("7 more source partitions" in result.stderr) == more
