"""The documents of a user's file in JSON, YAML or Java properties, with the lines of their members.

Scalars are text as Connect's REST API has them: numbers as written, ``true`` and ``false``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NoReturn

from connectctl.ops.config import java_properties, placeholders, yaml_text
from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput

JSON, YAML, PROPERTIES = "JSON", "YAML", "properties"
FORMS = {".json": JSON, ".yaml": YAML, ".yml": YAML, ".properties": PROPERTIES}
SHAPES = (
    "Write an object with name and config, or a flat object of properties, as Connect's "
    "REST API accepts them."
)
_TEMPLATE = re.compile(r"\{\{.*?\}\}")
_HELM = re.compile(r"\{\{-?\s*(?:\$?\.(?:Values|Release|Chart|Files)\b|(?:include|tpl|toYaml)\s)")


@dataclass(frozen=True)
class Pairs:
    """An object with its members in order, repeated ones included, each with its line if that is
    known.
    """

    members: tuple[tuple[str, Any, int | None], ...]

    @property
    def last(self) -> dict[str, Any]:
        """Return the members; of a repeated one, the last."""
        return {name: value for name, value, _ in self.members}


@dataclass(frozen=True)
class Documents:
    """The documents of a file: ``Pairs``, lists and scalars. ``text`` is the text of the file."""

    items: tuple[Any, ...]
    text: str
    form: str


def read_documents(raw: bytes, file: str, *, template: bool = False) -> Documents:
    """Return the documents in ``raw``; the format follows from the extension of ``file``, else from
    the content.

    In JSON that is a ``template``, placeholders may stand without quotes. Raises ``BadInput`` with
    file and line.
    """
    form = FORMS.get(PurePath(file).suffix.lower()) or _detected_format(
        _text(raw, file, strict=False)
    )
    if form == PROPERTIES:
        text = raw.decode(java_properties.ENCODING)
        items: list[Any] = [_properties(text, file)]
    else:
        text = _text(raw, file)
        source = placeholders.quoted(text) if template and form == JSON else text
        items = _json(source, file) if form == JSON else _yaml(text, file)
    if _HELM.search(text) and any(map(_has_helm, items)):
        raise _is_template(file)
    return Documents(tuple(items), text, form)


def with_values(items: Sequence[Any], values: Mapping[str, str], file: str) -> list[Any]:
    """Return ``items`` with ``values`` for their placeholders. Raises ``BadInput`` for those that
    are left.
    """
    missing: dict[str, None] = {}
    found = [_replaced(item, values, missing) for item in items]
    if missing:
        raise placeholders.left(file, list(missing))
    return found


def _replaced(value: Any, values: Mapping[str, str], missing: dict[str, None]) -> Any:
    if isinstance(value, str):
        return placeholders.replaced(value, values, missing)
    if isinstance(value, list):
        return [_replaced(item, values, missing) for item in value]
    if isinstance(value, Pairs):
        return Pairs(
            tuple(
                (_replaced(name, values, missing), _replaced(inner, values, missing), line)
                for name, inner, line in value.members
            )
        )
    return value


def _is_template(file: str) -> BadInput:
    return BadInput(
        f"{file} is not a connector configuration",
        why="it is a template: it has {{ … }}",
        next_step="Render it first, for example with helm template CHART, and give the result: -f -.",
    )


def _has_helm(value: Any) -> bool:
    if isinstance(value, Pairs):
        return any(_has_helm(inner) for _, inner, _ in value.members)
    if isinstance(value, list):
        return any(map(_has_helm, value))
    return isinstance(value, str) and _HELM.search(value) is not None


def _text(raw: bytes, file: str, *, strict: bool = True) -> str:
    try:
        return raw.decode("utf-8-sig", "strict" if strict else "replace")
    except UnicodeDecodeError as e:
        line = raw.count(b"\n", 0, e.start) + 1
        raise BadInput(
            f"{file}, line {line} is not UTF-8", next_step="Save the file as UTF-8."
        ) from e


def _detected_format(text: str) -> str:
    """Return the format by the first line that is neither empty nor a comment."""
    for line in map(str.strip, text.splitlines()):
        if not line or line[0] in "#!":
            continue
        if line[0] in "{[":
            return JSON
        sign = re.search(r"[=:]", line)
        return PROPERTIES if sign and sign.group() == "=" else YAML
    return YAML


def _json(text: str, file: str) -> list[Any]:
    def refuse(word: str) -> NoReturn:
        raise BadInput(f"{file} is not JSON", why=f"{word} is not a JSON number")

    def pairs(members: list[tuple[str, Any]]) -> Pairs:
        return Pairs(tuple((name, value, None) for name, value in members))

    try:
        value = read_json(
            text,
            object_pairs_hook=pairs,
            parse_int=str,
            parse_float=str,
            parse_constant=refuse,
            strict=False,
        )
    except json.JSONDecodeError as e:
        if _TEMPLATE.search(text):
            raise _is_template(file) from e
        raise BadInput(f"{file}, line {e.lineno} is not JSON", why=e.msg, next_step=SHAPES) from e
    except RecursionError as e:
        raise BadInput(
            f"{file} is not a connector configuration", why="it is nested too deeply"
        ) from e
    return value if isinstance(value, list) else [value]


def _yaml(text: str, file: str) -> list[Any]:
    import yaml

    try:
        nodes = [
            node
            for node in yaml_text.compose_all(text)
            if node.value != "" or not node.tag.endswith(":null")
        ]
        documents = [_plain(node, file) for node in nodes]
    except yaml.MarkedYAMLError as e:
        if _TEMPLATE.search(text):
            raise _is_template(file) from e
        line = f", line {e.problem_mark.line + 1}" if e.problem_mark else ""
        raise BadInput(f"{file}{line} is not YAML", why=e.problem, next_step=SHAPES) from e
    except (yaml.YAMLError, RecursionError) as e:
        raise BadInput(f"{file} is not YAML", why=" ".join(str(e).split()), next_step=SHAPES) from e
    return [
        item
        for document in documents
        for item in (document if isinstance(document, list) else [document])
    ]


def _plain(node: Any, file: str) -> Any:
    """Return a YAML node with scalars as written text; null is None, booleans are as Connect writes
    them.
    """
    import yaml

    if isinstance(node, yaml.MappingNode):
        members = []
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise BadInput(
                    f"{file}, line {line} is not a connector configuration",
                    why="a name must be a string",
                )
            members.append((key.value, _plain(value, file), line))
        return Pairs(tuple(members))
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, file) for item in node.value]
    if node.tag.endswith(":null"):
        return None
    if node.tag.endswith(":bool"):
        return node.value.lower() in ("true", "yes", "on")
    return node.value


def _properties(text: str, file: str) -> Pairs:
    try:
        found = list(java_properties.properties(text))
    except java_properties.Malformed as e:
        why = "\\u must be followed by four hexadecimal digits"
        raise BadInput(f"{file}, line {e.line} cannot be read", why=why) from e
    if not found:
        raise BadInput(f"{file} is empty", next_step="Write one property on a line: name=value.")
    members = []
    for property_ in found:
        line = _line_of(text, property_.begin)
        if not property_.separated:
            raise BadInput(f"{file}, line {line} is not a property", why="it has no value")
        members.append((property_.key, property_.value, line))
    return Pairs(tuple(members))


def _line_of(text: str, at: int) -> int:
    return len(re.findall(r"\r\n|\r|\n", text[:at])) + 1
