"""A context from the files with which workers are started: their properties, the variables of a
container's image, a compose file, Strimzi's KafkaConnect.

Secrets become references. What a context cannot have of a file is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from connectctl.ops.config import java_properties, strimzi, yaml_text
from connectctl.ops.config.compose_source import SERVICE, ComposeFile
from connectctl.ops.config.json_shape import Malformed, Shape
from connectctl.ops.config.placeholders import read_environment
from connectctl.ops.config.strimzi_source import KAFKA_CONNECT, METADATA, of_strimzi
from connectctl.ops.config.worker_source import Source, is_of_worker, of_worker, properties_of
from connectctl.ops.core.errors import BadInput

EXPECTED = (
    "Give worker.properties, a file of CONNECT_… variables, a compose file, or a KafkaConnect of "
    "Strimzi."
)


def read_source(location: str, context: str) -> Source:
    """Return the context ``context`` from the file at ``location``: a path, or
    ``PATH:SERVICE`` of a compose file, ``PATH:NAME`` of a KafkaConnect. Raises ``BadInput``.
    """
    path, part = Path(location), None
    if not path.exists() and ":" in location:
        before, _, part = location.rpartition(":")
        path = Path(before)
    try:
        raw = path.read_bytes()
    except OSError as e:
        raise BadInput(f"{path} cannot be read", why=e.strerror) from e
    if path.suffix.lower() in (".yaml", ".yml"):
        return _of_yaml(_documents(_text(raw, path), path), part, context, path)
    try:
        properties = java_properties.read(raw.decode(java_properties.ENCODING))
    except java_properties.Malformed as e:
        raise BadInput(f"{path} cannot be read", why=str(e)) from e
    if "bootstrap.servers" in properties:
        return of_worker(properties, context)
    text = _text(raw, path)
    try:
        variables = read_environment(text, str(path))
    except BadInput:
        variables = {}
    if not is_of_worker(variables):
        raise BadInput(
            f"{path} is not a configuration of a worker",
            why="it has neither bootstrap.servers nor CONNECT_BOOTSTRAP_SERVERS",
            next_step=EXPECTED,
        )
    return of_worker(properties_of(variables), context, variables)


def _text(raw: bytes, path: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise BadInput(f"{path} is not UTF-8", next_step=EXPECTED) from e


def _documents(text: str, path: Path) -> list[Any]:
    import yaml

    try:
        yaml_text.check(text)
        return list(yaml.safe_load_all(text))
    except yaml.YAMLError as e:
        mark, problem = getattr(e, "problem_mark", None), getattr(e, "problem", None)
        line = f", line {mark.line + 1}" if mark else ""
        why = problem or " ".join(str(e).split())
        raise BadInput(f"{path}{line} is not YAML", why=why, next_step=EXPECTED) from e


def _of_yaml(documents: list[Any], part: str | None, context: str, path: Path) -> Source:
    objects = [each for each in documents if isinstance(each, dict)]
    items = [i for each in objects for i in _items(each) if isinstance(i, dict)]
    found = [i for i in items if i.get("kind") == "KafkaConnect" and strimzi.is_manifest(i)]
    if found:
        for each in found:
            _check(each, METADATA, path)
        clusters = {str((each.get("metadata") or {}).get("name")): each for each in found}
        name = _one(list(clusters), part, "KafkaConnect", path)
        _check(clusters[name], KAFKA_CONNECT, path)
        return of_strimzi(name, clusters[name], context)
    services = next((each["services"] for each in objects if each.get("services")), None)
    if isinstance(services, dict):
        known = {name: each for name, each in services.items() if isinstance(each, dict)}
        for name, each in known.items():
            _check(each, SERVICE, path, f".services.{name}")
        file = ComposeFile(known, path)
        return file.context_of(_one(file.workers, part, "service of a worker", path), context)
    raise BadInput(
        f"{path} has no configuration of a worker",
        why="it is neither a compose file nor a KafkaConnect of Strimzi"
        if documents
        else "it is empty",
        next_step=EXPECTED,
    )


def _items(document: Mapping[str, Any]) -> list[Any]:
    """Return the resources of a list of Kubernetes, or the document itself."""
    listed = document.get("items")
    return listed if isinstance(listed, list) and listed else [document]


def _check(value: Any, shape: Shape, path: Path, within: str = "") -> None:
    try:
        shape(value)
    except Malformed as e:
        raise BadInput(
            f"{path} is not a configuration of a worker", why=str(e.within(within))
        ) from e


def _one(found: Sequence[str], part: str | None, kind: str, path: Path) -> str:
    if part is not None and part in found:
        return part
    if part is None and len(found) == 1:
        return found[0]
    what = f"{path} has no {kind}{f' {part}' if part else ''}"
    what = what if part or not found else f"{path} has more than one {kind}"
    if not found:
        raise BadInput(what, next_step=EXPECTED)
    step = f"Name one: --from {path}:{found[0]}"
    raise BadInput(what, why=f"it has {', '.join(found)}", next_step=step)
