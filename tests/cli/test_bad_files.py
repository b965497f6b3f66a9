"""Files that stand for something without end are one line and an exit code for bad input, for every
command that reads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from connectctl.cli.main import app
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.fencing.id_file import parse_ids
from connectctl.ops.operations.offsets.input_file import partition_text, read_entries
from connectctl.ops.operations.offsets.topic_dump import read_file
from typer.testing import CliRunner

DEEP = 100_000
FILES = {
    "deep json": "[" * DEEP + "]" * DEEP,
    "deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
    "deep yaml": "- " * DEEP,
    "recursive": "&a {contexts: *a, config: *a, offsets: *a}",
    "laughs": "\n".join(
        [
            'a: &a ["x"]',
            *(
                f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]"
                for n in range(12)
            ),
        ]
    ),
    "no date": "contexts: 2026-13-45\nconfig: 2026-13-45",
    "control": "a: \x00",
}
COMMANDS = {
    "--config": ("--config", "FILE", "context", "show"),
    "run": ("run", "FILE", "--yes"),
    "validate": ("validate", "--offline", "-f", "FILE"),
}


@pytest.mark.parametrize("content", FILES)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_a_command_ends_in_one_line(
    command: str, content: str, suffix: str, tmp_path: Path
) -> None:
    file = tmp_path / f"f.{suffix}"
    file.write_text(FILES[content])
    result = CliRunner().invoke(
        app, [str(file) if word == "FILE" else word for word in COMMANDS[command]]
    )
    assert result.exit_code in (1, 2), result.output
    if (command, content, suffix) == ("validate", "no date", "yaml"):
        return  # There a value is the text that it is written with.
    (line,) = result.stderr.strip().split("\n")
    assert line.startswith("error: "), line
    assert str(file) in line
    assert len(line) < 500


@pytest.mark.parametrize("content", FILES)
def test_a_reader_of_a_file_refuses_it(content: str, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text(FILES[content])
    readers: dict[str, Callable[[], object]] = {
        "offsets": lambda: read_entries(file, "x"),
        "dump": lambda: read_file(file),
        "partition": lambda: partition_text(FILES[content]),
    }
    for name, read in readers.items():
        with pytest.raises(BadInput) as caught:
            read()
        assert "\n" not in str(caught.value), name


@pytest.mark.parametrize("content", ["deep json", "deep object"])
def test_a_file_of_transactional_ids_is_refused(content: str) -> None:
    with pytest.raises(BadInput, match="nested deeper"):
        parse_ids(FILES[content], "ids.json")
