"""Changes of the context file as text: the rest of the file is kept byte for byte.

A library that writes YAML keeps comments, but indents lists, folds lines and spaces braces in its
own way. Here the position of a change comes from the marks of PyYAML's nodes. Only the text at that
position is replaced, and the result is parsed again: nothing is written unless it has the expected
values.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.config import masking, whole_file, yaml_text
from connectctl.ops.core.errors import BadInput, Refused

if TYPE_CHECKING:
    import yaml


_PLAIN = re.compile(r"[A-Za-z_]([\w./:-]*[\w/])?")
_BY_HAND = "Change the file by hand."


def masked_text(text: str) -> str:
    """Return ``text`` without its secrets, values of several lines included. The result is valid
    YAML.
    """
    spans = sorted(_secrets(yaml_text.compose(text), ""), reverse=True)
    for start, end in spans:
        value = text[start:end]
        text = text[:start] + masking.MASK + value[len(value.rstrip()) :] + text[end:]
    return masking.masked(text)


def _secrets(node: Any, name: str) -> Iterator[tuple[int, int]]:
    """Yield the range of each scalar that is a secret, or that has one and spans several lines."""
    kind = getattr(node, "id", None)
    if kind == "mapping":
        for key, value in node.value:
            yield from _secrets(value, str(key.value))
    elif kind == "sequence":
        for item in node.value:
            yield from _secrets(item, name)
    elif kind == "scalar" and _has_secret(node, name):
        yield node.start_mark.index, node.end_mark.index


def _has_secret(node: yaml.ScalarNode, name: str) -> bool:
    value = str(node.value)
    several = node.start_mark.line != node.end_mark.line
    return (masking.is_secret(name) or several) and masking.value_of(name, value) != value


def use(text: str, name: str) -> str:
    """Return ``text`` with ``current`` set to ``name``. Raises ``BadInput`` if the file cannot be
    changed safely.
    """
    if not text.strip():
        return f"current: {scalar(name)}\n"
    root = _mapping(text)
    found = _entry(root, "current")
    if found is None:
        at = root.value[0][0].start_mark.index
        changed = (
            f"{text[:at]}current: "
            f"{scalar(name)}{', ' if root.flow_style else _newline(text)}{text[at:]}"
        )
    else:
        start, end = found[1].start_mark.index, found[1].end_mark.index
        changed = f"{text[:start]}{' ' if start == end else ''}{scalar(name)}{text[end:]}"
    return _checked(changed, {**yaml_text.read_yaml(text), "current": name})


def add(text: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return ``text`` with the context ``name`` after the others. Raises ``BadInput`` as ``use``;
    ``name`` must be new.
    """
    data = yaml_text.read_yaml(text) or {}
    expected = {**data, "contexts": {**(data.get("contexts") or {}), name: entry}}
    if not data:
        block = "\n".join(["contexts:", *_lines({name: entry}, 2)])
        return _checked(f"{_ended(text)}{block}\n", expected)
    root, newline = _mapping(text), _newline(text)
    found = _entry(root, "contexts")
    if found is None:
        lines = ["contexts:", *_lines({name: entry}, 2)]
        return _checked(_ended(text) + "".join(line + newline for line in lines), expected)
    contexts = found[1]
    if not getattr(contexts, "value", None) or contexts.flow_style:
        return _checked(_added_in_braces(text, found, name, entry), expected)
    column = contexts.start_mark.column
    at = _end_of(text, contexts.value[-1], column)
    before = text[:at] if text[:at].endswith("\n") else text[:at] + newline
    added = "".join(line + newline for line in _lines({name: entry}, column, column or 2))
    return _checked(before + added + text[at:], expected)


def remove(text: str, name: str) -> str:
    """Return ``text`` without the context ``name``, and without ``current`` if that is ``name``.

    Raises ``BadInput`` as ``use``.
    """
    data = yaml_text.read_yaml(text)
    expected = {**data, "contexts": {k: v for k, v in data["contexts"].items() if k != name}}
    found = _entry(_mapping(text), "contexts")
    entry = _entry(found[1], name) if found else None
    if found is None or entry is None:
        raise BadInput(
            f"The context {name} is not written under contexts: itself", next_step=_BY_HAND
        )
    changed = _without(text, found, entry)
    if data.get("current") == name:
        del expected["current"]
        root = _mapping(changed)
        current = _entry(root, "current")
        changed = _without_entry(changed, root, current) if current else changed
    return _checked(changed, expected)


def scalar(value: Any) -> str:
    """Return a value on one line of YAML, without quotes if it needs none."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and yaml_text.read_yaml(value) == value:
        return value
    return _quoted(value)


def _quoted(value: Any) -> str:
    """Return JSON, which YAML reads, with escapes for characters that only YAML treats as line
    ends.
    """
    return json.dumps(value, ensure_ascii=False).translate(
        {0x85: r"\N", 0x2028: r"\L", 0x2029: r"\P"}
    )


def _lines(entry: Mapping[str, Any], column: int, step: int = 2) -> list[str]:
    """Return a mapping as lines of YAML; a mapping of one reference (``{env: NAME}``) and lists
    stay on one line.
    """
    lines: list[str] = []
    for name, value in entry.items():
        key = " " * column + scalar(name)
        if isinstance(value, Mapping) and not (
            len(value) == 1 and value.keys() & {"env", "file", "command"}
        ):
            lines += [f"{key}:", *_lines(value, column + step, step)] if value else [f"{key}: {{}}"]
        elif isinstance(value, Mapping):
            lines.append(
                f"{key}: {{{', '.join(f'{k}: {_in_braces(v)}' for k, v in value.items())}}}"
            )
        else:
            lines.append(f"{key}: {scalar(value)}")
    return lines


def _in_braces(value: Any) -> str:
    text = scalar(value)
    return _quoted(value) if ":" in text and not text.startswith('"') else text


def _mapping(text: str) -> yaml.MappingNode:
    node: Any = yaml_text.compose(text)
    if getattr(node, "id", None) != "mapping" or not node.value:
        raise BadInput("The context file is not a mapping", next_step=_BY_HAND)
    mapping: yaml.MappingNode = node
    return mapping


def _entry(node: Any, name: str) -> tuple[Any, Any] | None:
    """Return the nodes of a key and its value, None if the key does not exist."""
    pairs = node.value if isinstance(node.value, list) else []
    return next(((key, value) for key, value in pairs if str(key.value) == name), None)


def _added_in_braces(text: str, found: tuple[Any, Any], name: str, entry: Mapping[str, Any]) -> str:
    contexts = found[1]
    start, end = contexts.start_mark.index, contexts.end_mark.index
    flow = f"{_quoted(name)}: {_quoted(entry)}"
    if contexts.value:
        comma = "" if text[: end - 1].rstrip().endswith(",") else ", "
        return f"{text[: end - 1].rstrip()}{comma}{flow}{text[end - 1 :]}"
    block = "".join(
        _newline(text) + line for line in _lines({name: entry}, found[0].start_mark.column + 2)
    )
    start = found[0].end_mark.index + text[found[0].end_mark.index :].index(":") + 1
    return text[:start] + block + text[max(start, end) :]


def _without(text: str, found: tuple[Any, Any], entry: tuple[Any, Any]) -> str:
    contexts = found[1]
    if len(contexts.value) > 1 or contexts.flow_style:
        return _without_entry(text, contexts, entry)
    remaining = _without_entry(text, contexts, entry)
    colon = found[0].end_mark.index + text[found[0].end_mark.index :].index(":") + 1
    return f"{remaining[:colon]} {{}}{remaining[colon:]}"


def _without_entry(text: str, node: Any, entry: tuple[Any, Any]) -> str:
    """Return ``text`` without one entry of a mapping: without its lines in a block, without its
    part in braces.
    """
    key, value = entry
    if not node.flow_style:
        start = text.rfind("\n", 0, key.start_mark.index) + 1
        return text[:start] + text[_end_of(text, entry, key.start_mark.column) :]
    number = next(n for n, (k, _) in enumerate(node.value) if k is key)
    if number + 1 < len(node.value):
        return text[: key.start_mark.index] + text[node.value[number + 1][0].start_mark.index :]
    start = node.value[number - 1][1].end_mark.index if number else key.start_mark.index
    return text[:start] + text[value.end_mark.index :]


def _end_of(text: str, entry: tuple[Any, Any], column: int) -> int:
    """Return the end of a block entry's lines, with the following comments that are indented deeper
    than its key.
    """
    at = _last_index(entry[1])
    at = at if text[at - 1 : at] == "\n" and at > entry[0].end_mark.index else _next_line(text, at)
    end = at
    while at < len(text):
        following = _next_line(text, at)
        line = text[at:following]
        if line.strip() and not (
            line.lstrip().startswith("#") and len(line) - len(line.lstrip()) > column
        ):
            break
        at = following
        end = at if line.strip() else end
    return end


def _next_line(text: str, index: int) -> int:
    return text.index("\n", index) + 1 if "\n" in text[index:] else len(text)


def _last_index(node: Any) -> int:
    """Return the end of a node's text; the end mark of a block is where the next token begins."""
    if getattr(node, "flow_style", None) or not isinstance(node.value, list) or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return max(_last_index(inner) for inner in (last if isinstance(last, tuple) else (last,)))


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + _newline(text)


def _checked(text: str, expected: Any) -> str:
    """Return ``text`` if it has the ``expected`` value, else raise ``BadInput``."""
    import yaml

    try:
        if yaml_text.read_yaml(text) == expected:
            return text
        why = "its other values would change"
    except yaml.YAMLError as e:
        why = getattr(e, "problem", None) or "it would no longer be YAML"
    raise BadInput(
        "The context file cannot be changed without a risk for its other contents",
        why=why,
        next_step=_BY_HAND,
    )


def replace_file(path: Path, text: str, former: bytes | None) -> None:
    """Replace ``former`` by ``text`` atomically, with the file's own mode, or 0600 for a new one.

    A link stays a link. Raises ``Refused`` if the file is no longer ``former``, ``BadInput`` if it
    cannot be written.
    """
    real = Path(os.path.realpath(path))
    try:
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with whole_file.draft(real.parent) as file:
            if former is not None:
                os.fchmod(file.fileno(), real.stat().st_mode & 0o777)
            file.write(text.encode())
            if (real.read_bytes() if real.exists() else None) != former:
                raise Refused(
                    f"{path} was changed meanwhile; nothing was written", next_step="Try again."
                )
            whole_file.put(file, real)
    except OSError as e:
        why = "its directory is a file" if isinstance(e, FileExistsError) else e.strerror
        raise BadInput(f"The file {path} cannot be written", why=why) from e
