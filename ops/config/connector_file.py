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
from typing import Any

from connectctl.ops.config import foreign_file, strimzi
from connectctl.ops.config.documents import (
    JSON,
    PROPERTIES,
    SHAPES,
    Pairs,
    read_documents,
    with_values,
)
from connectctl.ops.config.masking import remember
from connectctl.ops.config.settings import SECRET_KINDS, SecretSource
from connectctl.ops.core.errors import BadInput

_AROUND = frozenset(
    {"name", "config", "initial_state", "offsets", "apiVersion", "kind", "type", "tasks"}
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
class Contents:
    """What a file has: configurations, and the names of its other resources of Kubernetes.
    ``refused`` is the error of a file that has only these.
    """

    given: tuple[Given, ...]
    skipped: tuple[str, ...] = ()
    refused: BadInput | None = None


def read_contents(raw: bytes, file: str, values: Mapping[str, str] | None = None) -> Contents:
    """Return the contents of a file; see ``read_documents``.

    JSON and YAML may be a list of configurations, YAML several documents. Raises ``BadInput`` with
    file and line.
    """
    documents = read_documents(raw, file, template=values is not None)
    items = [item for document in documents.items for item in _items(document)]
    if not items:
        raise BadInput(f"{file} is empty", next_step=SHAPES)
    others = [i for i in items if isinstance(i, Pairs) and foreign_file.is_other_resource(i.last)]
    ignored = set(map(id, others))
    own = [item for item in items if id(item) not in ignored]
    own = own if values is None else with_values(own, values, file)
    refused = None
    try:
        given = [_given(i, documents.text, file, documents.form) for i in own or others[:1]]
    except BadInput as e:
        if own:
            raise
        given, refused = [], e
    for each in given:
        remember({name: value for name, value in each.config.items() if name not in each.secrets})
    skipped = tuple(foreign_file.name_of(other.last) for other in others)
    return Contents(tuple(given), skipped, refused)


# --------------------------------------------------------------------------------------- the shapes


def _items(document: Any) -> Sequence[Any]:
    """Return the manifests of a list, as ``kubectl get -o yaml`` prints them; any other value by
    itself.
    """
    members = document.last if isinstance(document, Pairs) else {}
    listed = members.get("items") if str(members.get("kind")).endswith("List") else None
    return listed if isinstance(listed, list) else [document]


def _given(document: Any, text: str, file: str, form: str) -> Given:
    if not isinstance(document, Pairs):
        kind = {list: "a list in a list", type(None): "null"}.get(type(document), "a single value")
        raise BadInput(
            f"{file} is not a connector configuration", why=f"it contains {kind}", next_step=SHAPES
        )
    foreign_file.refuse(document.last, file)
    if form == PROPERTIES:
        name = document.last.get("name") or ""
        return Given(name, document.last, file, dict(_repeated(document, text, form)))
    if strimzi.is_manifest(document.last) or foreign_file.is_other_resource(document.last):
        return _from_manifest(document, text, file, form)
    if isinstance(document.last.get("connectors"), list) and "connector.class" not in document.last:
        raise BadInput(
            f"{file} is not a connector configuration",
            why="it is what connectors list prints, which has no configurations",
            next_step="Use connectctl connectors show NAME -o json.",
        )
    outer, inner = document, document
    if isinstance(config := document.last.get("config"), Pairs):
        inner = config
        if not document.last.keys() & {"kind", "apiVersion"}:
            _refuse_unknown_members(document, file)
    elif "config" in document.last and document.last.keys() <= _AROUND:
        raise BadInput(
            f"{file} is not a connector configuration",
            why="config is not an object",
            next_step=SHAPES,
        )
    if not inner.members:
        raise BadInput(
            f"{file} is not a connector configuration",
            why="it has no properties",
            next_step=SHAPES,
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


def _from_manifest(manifest: Pairs, text: str, file: str, form: str) -> Given:
    parts = {name: value.last for name, value in manifest.last.items() if isinstance(value, Pairs)}
    metadata, spec = parts.get("metadata", {}), parts.get("spec", {})
    name, state = strimzi.read(manifest.last.get("kind"), metadata, spec, file)
    inner = spec.get("config") or Pairs(())
    if not isinstance(inner, Pairs):
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


def _secrets(inner: Pairs) -> dict[str, SecretSource]:
    """Return the properties that refer to secrets as in contexts.

    References are ``{env: NAME}``, ``{file: PATH}`` and ``{command: LINE}``. References to Kafka's
    config providers, such as ``${file:…}``, are text: workers resolve them.
    """
    found = {}
    for name, value, _ in inner.members:
        for kind, location in (
            value.last.items() if isinstance(value, Pairs) and len(value.last) == 1 else ()
        ):
            if kind in SECRET_KINDS and isinstance(location, str) and location:
                found[name] = SecretSource(kind, location)
    return found


def _refuse_unknown_members(whole: Pairs, file: str) -> None:
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
    if name == "<<":
        raise BadInput(f"{where} is not a connector configuration", why="a name must be a string")
    kind = "a list" if isinstance(value, list) else "an object"
    raise BadInput(
        f"{where}: {name} is {kind}",
        why="Connect accepts strings, numbers, true and false",
        next_step="Write a list as one string, separated by commas; a secret may be {env: NAME}, "
        "{file: PATH} or {command: LINE}.",
    )


def _repeated(whole: Pairs, text: str, form: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the members that occur more than once, with their lines."""
    for name, count in Counter(name for name, _, _ in whole.members).items():
        if count < 2:
            continue
        lines = [line for member, _, line in whole.members if member == name and line is not None]
        if form == JSON:
            pattern = re.compile(re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:")
            lines = [text.count("\n", 0, found.start()) + 1 for found in pattern.finditer(text)]
        yield name, lines
