"""Connector configurations from files: JSON, YAML and Java properties, in every shape that Connect
has.

The shapes are those of ``POST /connectors`` (``name`` and ``config``) and of ``PUT …/config`` (a
flat object), the output of ``connectctl connectors show -o json``, and a manifest of Strimzi.
Values become text as in Connect's REST API: numbers as written, ``true`` and ``false``. Objects and
lists are refused as values, as by Connect.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, NoReturn

from connectctl.ops.config import java_properties, strimzi, yaml_text
from connectctl.ops.config.json_text import read_json
from connectctl.ops.config.masking import remember
from connectctl.ops.config.settings import SECRET_KINDS, SecretSource
from connectctl.ops.core.errors import BadInput

JSON, YAML, PROPERTIES = "JSON", "YAML", "properties"
FORMS = {".json": JSON, ".yaml": YAML, ".yml": YAML, ".properties": PROPERTIES}
_AROUND = frozenset(
    {"name", "config", "initial_state", "offsets", "apiVersion", "kind", "type", "tasks"}
)
_TEMPLATE = re.compile(r"\{\{.*?\}\}")
_SHAPES = (
    "Write an object with name and config, or a flat object of properties, as Connect's "
    "REST API accepts them."
)


@dataclass(frozen=True)
class Given:
    """A configuration from a file. ``name`` is empty if the file has none; the value None is null.

    ``repeated`` are the properties that occur more than once, with their lines. ``initial_state``
    is the state to create the connector in (KIP-980); ``with_offsets``: the file also has initial
    offsets (KIP-995). ``kept_state`` is the state in which a manifest always keeps it. ``secrets``
    are the references to secrets, whose values in ``config`` only describe the reference.
    ``doubled`` are the properties that a manifest sets twice: see ``strimzi.doubled``.
    """

    name: str
    config: Mapping[str, str | None]
    file: str
    repeated: Mapping[str, Sequence[int]] = field(default_factory=dict)
    initial_state: str | None = None
    with_offsets: bool = False
    kept_state: str | None = None
    secrets: Mapping[str, SecretSource] = field(default_factory=dict)
    doubled: Mapping[str, strimzi.Doubled] = field(default_factory=dict)


@dataclass(frozen=True)
class _Pairs:
    """An object with its members in order, repeated ones included, each with its line if that is
    known.
    """

    members: tuple[tuple[str, Any, int | None], ...]

    @property
    def last(self) -> dict[str, Any]:
        return {name: value for name, value, _ in self.members}


def parse(raw: bytes, file: str) -> tuple[Given, ...]:
    """Return the configurations in ``raw``; the format follows from the extension of ``file``, else
    from the content.

    JSON and YAML may be a list of configurations, YAML several documents. Raises ``BadInput`` with
    file and line.
    """
    form = FORMS.get(PurePath(file).suffix.lower()) or _detected_format(
        _text(raw, file, strict=False)
    )
    if form == PROPERTIES:
        return (_from_properties(raw.decode(java_properties.ENCODING), file),)
    text = _text(raw, file)
    documents = _json(text, file) if form == JSON else _yaml(text, file)
    found = tuple(
        _given(item, text, file, form) for document in documents for item in _items(document)
    )
    for given in found:
        remember({name: value for name, value in given.config.items() if name not in given.secrets})
    if not found:
        raise BadInput(f"{file} is empty", next_step=_SHAPES)
    return found


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


# ---------------------------------------------------------------------------------------- the forms


def _json(text: str, file: str) -> list[Any]:
    def refuse(word: str) -> NoReturn:
        raise BadInput(f"{file} is not JSON", why=f"{word} is not a JSON number")

    def pairs(members: list[tuple[str, Any]]) -> _Pairs:
        return _Pairs(tuple((name, value, None) for name, value in members))

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
        raise BadInput(f"{file}, line {e.lineno} is not JSON", why=e.msg, next_step=_SHAPES) from e
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
            hint = (
                "Render it first, for example with helm template CHART, and give the result: -f -."
            )
            raise BadInput(
                f"{file} is not YAML", why="it is a template: it has {{ … }}", next_step=hint
            ) from e
        line = f", line {e.problem_mark.line + 1}" if e.problem_mark else ""
        raise BadInput(f"{file}{line} is not YAML", why=e.problem, next_step=_SHAPES) from e
    except (yaml.YAMLError, RecursionError) as e:
        raise BadInput(
            f"{file} is not YAML", why=" ".join(str(e).split()), next_step=_SHAPES
        ) from e
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
            if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":merge"):
                raise BadInput(
                    f"{file}, line {line} is not a connector configuration",
                    why="a name must be a string",
                )
            members.append((key.value, _plain(value, file), line))
        return _Pairs(tuple(members))
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, file) for item in node.value]
    if node.tag.endswith(":null"):
        return None
    if node.tag.endswith(":bool"):
        return node.value.lower() in ("true", "yes", "on")
    return node.value


def _from_properties(text: str, file: str) -> Given:
    try:
        found = list(java_properties.properties(text))
    except java_properties.Malformed as e:
        why = "\\u must be followed by four hexadecimal digits"
        raise BadInput(f"{file}, line {e.line} cannot be read", why=why) from e
    if not found:
        raise BadInput(f"{file} is empty", next_step="Write one property on a line: name=value.")
    for property_ in found:
        if not property_.separated:
            line = _line_of(text, property_.begin)
            raise BadInput(f"{file}, line {line} is not a property", why="it has no value")
    lines: dict[str, list[int]] = {}
    for property_ in found:
        lines.setdefault(property_.key, []).append(_line_of(text, property_.begin))
    config: dict[str, str | None] = {property_.key: property_.value for property_ in found}
    return Given(
        config.get("name") or "",
        config,
        file,
        {name: at for name, at in lines.items() if len(at) > 1},
    )


def _line_of(text: str, at: int) -> int:
    return len(re.findall(r"\r\n|\r|\n", text[:at])) + 1


# --------------------------------------------------------------------------------------- the shapes


def _items(document: Any) -> Sequence[Any]:
    """Return the manifests of a list, as ``kubectl get -o yaml`` prints them; any other value by
    itself.
    """
    members = document.last if isinstance(document, _Pairs) else {}
    listed = members.get("items") if str(members.get("kind")).endswith("List") else None
    return listed if isinstance(listed, list) else [document]


def _given(document: Any, text: str, file: str, form: str) -> Given:
    if not isinstance(document, _Pairs):
        kind = {list: "a list in a list", type(None): "null"}.get(type(document), "a single value")
        raise BadInput(
            f"{file} is not a connector configuration", why=f"it contains {kind}", next_step=_SHAPES
        )
    if strimzi.is_manifest(document.last):
        return _from_manifest(document, text, file, form)
    if isinstance(document.last.get("connectors"), list) and "connector.class" not in document.last:
        raise BadInput(
            f"{file} is not a connector configuration",
            why="it is what connectors list prints, which has no configurations",
            next_step="Use connectctl connectors show NAME -o json.",
        )
    lists = [name for name, value in document.last.items() if _is_list_of_objects(value)]
    if lists and not document.last.keys() & {"connector.class", "config"}:
        raise BadInput(
            f"{file} is not a connector configuration",
            why=f"it has no connector.class; {lists[0]} is a list of objects",
            next_step=f"Give the list by itself, for example: yq .{lists[0]} {file} | connectctl "
            "validate -f -",
        )
    outer, inner = document, document
    if isinstance(config := document.last.get("config"), _Pairs):
        inner = config
        if not document.last.keys() & {"kind", "apiVersion"}:
            _refuse_unknown_members(document, file)
    elif "config" in document.last and document.last.keys() <= _AROUND:
        raise BadInput(
            f"{file} is not a connector configuration",
            why="config is not an object",
            next_step=_SHAPES,
        )
    if not inner.members:
        raise BadInput(
            f"{file} is not a connector configuration",
            why="it has no properties",
            next_step=_SHAPES,
        )
    secrets = _secrets(inner)
    config = {
        name: _value(name, secrets.get(name, value), line, file)
        for name, value, line in inner.members
    }
    outer_name = outer.last.get("name") if outer is not inner else None
    # Workers strip the name of a request, but not the name in the configuration.
    name = outer_name.strip() if isinstance(outer_name, str) else config.get("name") or ""
    if outer is inner and "name" not in config:
        # PUT …/config has the name in its path; here the file's name replaces it.
        name = PurePath(file).stem.removeprefix("-") or "stdin"
    request = outer.last if outer is not inner else {}
    state = request.get("initial_state")
    return Given(
        name,
        config,
        file,
        dict(_repeated(inner, text, form)),
        None if state is None else str(state),
        # The output of connectors show is not a request: its offsets are the offsets topic.
        "offsets" in request and "kind" not in request,
        secrets=secrets,
    )


def _is_list_of_objects(value: Any) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(item, _Pairs) for item in value)
    )


def _from_manifest(manifest: _Pairs, text: str, file: str, form: str) -> Given:
    parts = {name: value.last for name, value in manifest.last.items() if isinstance(value, _Pairs)}
    metadata, spec = parts.get("metadata", {}), parts.get("spec", {})
    name, state = strimzi.read(manifest.last.get("kind"), metadata, spec, file)
    inner = spec.get("config") or _Pairs(())
    if not isinstance(inner, _Pairs):
        raise BadInput(
            f"{file} is not a connector configuration", why="spec.config is not an object"
        )
    secrets = _secrets(inner)
    config = {
        name: _value(name, secrets.get(name, value), line, file)
        for name, value, line in inner.members
    }
    doubled = strimzi.doubled(spec, config)
    config |= {name: _value(name, value, None, file) for name, value in strimzi.properties(spec)}
    repeated = dict(_repeated(inner, text, form))
    return Given(
        name, config, file, repeated, state, kept_state=state, secrets=secrets, doubled=doubled
    )


def _secrets(inner: _Pairs) -> dict[str, SecretSource]:
    """Return the properties that refer to secrets as in contexts.

    References are ``{env: NAME}``, ``{file: PATH}`` and ``{command: LINE}``. References to Kafka's
    config providers, such as ``${file:…}``, are text: workers resolve them.
    """
    found = {}
    for name, value, _ in inner.members:
        for kind, location in (
            value.last.items() if isinstance(value, _Pairs) and len(value.last) == 1 else ()
        ):
            if kind in SECRET_KINDS and isinstance(location, str) and location:
                found[name] = SecretSource(kind, location)
    return found


def _refuse_unknown_members(whole: _Pairs, file: str) -> None:
    """Raise ``BadInput`` for an unknown member, as ``POST /connectors`` refuses it."""
    unknown = [name for name in whole.last if name not in _AROUND]
    if unknown:
        why = f"Connect accepts name, config and initial_state side by side, but not {unknown[0]}"
        raise BadInput(
            f"{file} is not a connector configuration", why=why, next_step="Move it into config."
        )


def _value(name: str, value: Any, line: int | None, file: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, SecretSource):
        return str(value)
    where = f"{file}, line {line}" if line else file
    kind = "a list" if isinstance(value, list) else "an object"
    raise BadInput(
        f"{where}: {name} is {kind}",
        why="Connect accepts strings, numbers, true and false",
        next_step="Write a list as one string, separated by commas; a secret may be {env: NAME}, "
        "{file: PATH} or {command: LINE}.",
    )


def _repeated(whole: _Pairs, text: str, form: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the members that occur more than once, with their lines."""
    for name, count in Counter(name for name, _, _ in whole.members).items():
        if count < 2:
            continue
        lines = [line for member, _, line in whole.members if member == name and line is not None]
        if form == JSON:
            pattern = re.compile(re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:")
            lines = [text.count("\n", 0, found.start()) + 1 for found in pattern.finditer(text)]
        yield name, lines
