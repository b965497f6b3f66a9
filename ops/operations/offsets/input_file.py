"""Source offsets in a file of the user, in the format of ``offsets show -o json`` or of Connect's
REST API.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from connectctl.ops.config import yaml_text
from connectctl.ops.config.json_text import read_json
from connectctl.ops.config.yaml_text import repeated
from connectctl.ops.connect.offset_rules import format_problems
from connectctl.ops.connect.source_offsets import UNKNOWN
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.offsets.config_map import is_config_map, offsets_of
from connectctl.ops.operations.offsets.foreign_dump import CALL, foreign_form, is_record

LONGEST = 200
"""Characters of an input that a message quotes."""
FORM = 'It should be like {"offsets": [{"partition": {…}, "offset": {…}}]}.'


def read_entries(path: Path, connector: str) -> tuple[tuple[str, str], ...]:
    """Return partitions and offsets, as JSON texts, from a JSON or YAML file. Raises ``BadInput``
    with all invalid entries.
    """
    source = "standard input" if str(path) == "-" else str(path)
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as e:
        raise BadInput(f"{source} cannot be read", why=e.strerror) from e
    text = raw.decode(errors="replace")
    try:
        data = _parse(raw.decode())
    except ValueError as e:
        _refuse_dump(text, source)
        raise BadInput(
            f"{source} is neither JSON nor YAML", why=str(e).split("\n", 1)[0], next_step=FORM
        ) from e
    if is_config_map(data):
        data = offsets_of(data, connector, source)
    parts = data if isinstance(data, list) else [data]
    known = isinstance(data, dict) and data.keys() & {"offsets", "kind"}
    if not known and not all(isinstance(part, dict) and "partition" in part for part in parts):
        _refuse_dump(text, source)
    if twice := repeated(text):
        raise BadInput(
            f"{source} sets a name more than once", why=twice, next_step="Leave one of them out."
        )
    entries = _entries(data, connector, source)
    if not entries:
        raise BadInput(f"{source} names no source partition", next_step=FORM)
    problems = [
        p
        for n, (partition, offset) in enumerate(entries, 1)
        for p in _problems(n, partition, offset)
    ]
    problems = problems or list(_repeated(entries))
    if problems:
        raise BadInput(
            f"{source} holds offsets that Connect would not accept",
            why="; ".join(problems),
            next_step=FORM,
        )
    return tuple((json.dumps(partition), json.dumps(offset)) for partition, offset in entries)


def _refuse_dump(text: str, source: str) -> None:
    """Raise ``BadInput`` for the records of an offsets topic."""
    lines = [line for line in text.splitlines() if line.strip()][:3]  # a backup begins with a seal
    form = foreign_form(lines[0]) if lines else None
    if form is None and not any(map(is_record, lines)):
        return
    step = f"connectctl offsets show -f {'FILE' if form else source} -o json > offsets.json"
    raise BadInput(
        f"{source} has records of an offsets topic, and not a connector's offsets",
        why=form,
        next_step=f"Make them with: {CALL} > FILE, then: {step}"
        if form
        else f"Make them with: {step}",
    )


def partition_text(text: str) -> str:
    """Return a source partition from the command line as JSON text. Raises ``BadInput``."""
    try:
        partition = read_json(text)
    except ValueError as e:
        raise BadInput(
            f"{_short(text)} is not JSON",
            why=str(e),
            next_step='Quote it for the shell: \'{"table": "t"}\'.',
        ) from e
    if twice := repeated(text):
        raise BadInput(
            f"{_short(text)} sets a name more than once",
            why=twice,
            next_step="Leave one of them out.",
        )
    if problems := format_problems("the source partition", partition):
        raise BadInput(f"{_short(text)} is not a source partition", why="; ".join(problems))
    return json.dumps(partition)


def _short(text: str) -> str:
    return repr(text) if len(text) <= LONGEST else f"{text[:LONGEST]!r}…"


def _parse(text: str) -> Any:
    try:
        return read_json(text, parse_constant=float)  # reported below, with its path
    except ValueError:
        import yaml

        try:
            return yaml_text.read_yaml(text)
        except yaml.YAMLError as e:
            raise ValueError(str(e)) from e


def _entries(data: Any, connector: str, source: str) -> list[tuple[Any, Any]]:
    if isinstance(data, dict) and data.get("kind") == "SourceOffsets":
        connector_data = _chosen(data.get("connectors", []), connector, source)
        if any(entry.get("origin") == UNKNOWN for entry in connector_data["offsets"]):
            raise BadInput(
                f"{source} does not say which offsets of {connector} are effective",
                why="its dedicated offsets topic was not read (OFFSETS011)",
                next_step=f"Run connectctl offsets show {connector} where the topic can be read.",
            )
        return [
            (entry["partition"], entry["effective"])
            for entry in connector_data["offsets"]
            if entry["effective"] is not None
        ]
    if isinstance(data, dict) and data.get("kind") == "SinkOffsets":
        data = _chosen(data.get("connectors", []), connector, source)
    offsets = data.get("offsets") if isinstance(data, dict) else data
    if not isinstance(offsets, list) or not all(
        isinstance(entry, dict) and "partition" in entry for entry in offsets
    ):
        raise BadInput(f"{source} holds no source offsets", next_step=FORM)
    return [(entry["partition"], entry.get("offset")) for entry in offsets]


def _chosen(shown: list[dict[str, Any]], connector: str, source: str) -> dict[str, Any]:
    matching = [c for c in shown if c.get("name") == connector] or (
        shown if len(shown) == 1 else []
    )
    if not matching:
        raise BadInput(
            f"{source} has no offsets of {connector}", why=f"it has {len(shown)} other connectors"
        )
    return matching[0]


def _problems(number: int, partition: Any, offset: Any) -> list[str]:
    """Return the reasons why Connect would not write an entry."""
    found = [] if partition is None else format_problems("the partition", partition)
    found += [] if offset is None else format_problems("the offset", offset)
    return [f"entry {number}: {problem}" for problem in found]


def _repeated(entries: list[tuple[Any, Any]]) -> Iterator[str]:
    """Yield a message for each source partition that occurs twice: its offset is ambiguous."""
    first_entries: dict[str, int] = {}
    for number, (partition, _) in enumerate(entries, 1):
        first_number = first_entries.setdefault(json.dumps(partition, sort_keys=True), number)
        if first_number != number:
            yield f"entry {number} names the source partition of entry {first_number} again"
