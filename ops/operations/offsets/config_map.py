"""Offsets in ConfigMaps, as Strimzi's operator lists them (``spec.listOffsets``) and reads them
(``spec.alterOffsets``). Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from connectctl.ops.config import yaml_text
from connectctl.ops.config.json_shape import Malformed, an_object, anything, array, mapping
from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.core.errors import BadInput

DATA = "offsets.json"
"""The member of a ConfigMap with a connector's offsets, in the format of Connect's REST API."""
CONNECTOR = "connectctl/connector"
"""The annotation with the connector's name, which a ConfigMap's own name may not hold."""
_BEGINNINGS = (b"apiVersion:", b"kind:", b"---", b"data:", b"{\n", b"{\r\n")
_OBJECT = mapping(anything)
_SHAPE = an_object(
    {},
    {"metadata": an_object({}, {"ownerReferences": array(_OBJECT), "annotations": _OBJECT})},
)
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9.-]+")


def config_map(connector: str, entries: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return the ConfigMap with source partitions and offsets of ``connector``. Raises ``BadInput``
    without any.
    """
    offsets = [{"partition": partition, "offset": offset} for partition, offset in entries]
    if not offsets:
        raise BadInput(f"{connector} has no offsets for a ConfigMap")
    name = _NOT_IN_A_NAME.sub("-", connector.lower()).strip("-.") or "connector"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-offsets", "annotations": {CONNECTOR: connector}},
        "data": {DATA: json.dumps({"offsets": offsets}, indent=2)},
    }


def check_names(maps: Sequence[dict[str, Any]]) -> None:
    """Raise ``BadInput`` if two ConfigMaps have one name: the second would replace the first."""
    owners: dict[str, str] = {}
    for each in maps:
        name, connector = each["metadata"]["name"], each["metadata"]["annotations"][CONNECTOR]
        if name in owners:
            raise BadInput(
                f"The ConfigMaps of {owners[name]} and {connector} would both be {name}",
                next_step="Name one of the connectors.",
            )
        owners[name] = connector


def is_config_map(data: Any) -> bool:
    return isinstance(data, dict) and data.get("kind") == "ConfigMap"


def offsets_of(data: dict[str, Any], connector: str | None, source: str) -> Any:
    """Return the offsets in a ConfigMap, as Connect's REST API has them. Raises ``BadInput``.

    That of a KafkaMirrorMaker2 has a member for each connector, ``a--b.MirrorSourceConnector.json``.
    """
    members = data.get("data") if isinstance(data.get("data"), dict) else {}
    texts = {name: text for name, text in (members or {}).items() if isinstance(text, str)}
    wanted = f"{(connector or '').replace('->', '--')}.json"
    listed = [name for name in texts if name.endswith(".json")]
    name = next((name for name in (DATA, wanted) if name in texts), None)
    name = listed[0] if name is None and len(listed) == 1 else name
    if name is None:
        why = f"it has {', '.join(listed)}" if listed else f"it has no {DATA}"
        raise BadInput(f"The ConfigMap in {source} has no offsets", why=why)
    try:
        return read_json(texts[name])
    except ValueError as e:
        raise BadInput(f"{name} of the ConfigMap in {source} is not JSON", why=str(e)) from e


def as_lines(blocks: Iterator[bytes], source: str) -> Iterator[bytes]:
    """Yield ``blocks`` of a file, those of a ConfigMap as the lines of a dump. Raises ``BadInput``
    if it does not name its connector.
    """
    first = next(blocks, b"")
    if not first.lstrip(b"\xef\xbb\xbf").startswith(_BEGINNINGS):
        yield first
        yield from blocks
        return
    whole = b"".join((first, *blocks))
    data = _yaml(whole)
    if not is_config_map(data):
        yield whole
        return
    try:
        _SHAPE(data)
    except Malformed as e:
        raise BadInput(f"{source} is not a ConfigMap", why=str(e)) from e
    connector = _owner(data)
    if connector is None:
        raise BadInput(
            f"The ConfigMap in {source} does not name its connector",
            why=f"it has neither a KafkaConnector in ownerReferences nor the annotation {CONNECTOR}",
            next_step=f"To write its offsets: connectctl offsets set NAME -f {source}",
        )
    found = offsets_of(data, connector, source)
    entries = found.get("offsets") if isinstance(found, dict) else found
    for entry in entries if isinstance(entries, list) else ():
        yield _line(connector, entry, source)


def _line(connector: str, entry: Any, source: str) -> bytes:
    partition = entry.get("partition") if isinstance(entry, dict) else None
    if not isinstance(partition, dict) or "kafka_topic" in partition:
        raise BadInput(
            f"The ConfigMap in {source} has no source offsets",
            next_step=f"To write those of a sink: connectctl offsets set {connector} -f {source}",
        )
    offset = entry.get("offset")
    line = {
        "key": connect_json([connector, partition]),
        "value": None if offset is None else connect_json(offset),
    }
    return msgspec.json.encode(line) + b"\n"


def _yaml(raw: bytes) -> Any:
    import yaml

    try:
        return yaml_text.read_yaml(raw.decode("utf-8-sig"))
    except (yaml.YAMLError, UnicodeDecodeError):
        return None


def _owner(data: dict[str, Any]) -> str | None:
    metadata = data.get("metadata") or {}
    owners = [
        owner.get("name")
        for owner in metadata.get("ownerReferences") or ()
        if owner.get("kind") == "KafkaConnector"
    ]
    found = (metadata.get("annotations") or {}).get(CONNECTOR) or next(iter(owners), None)
    return found if isinstance(found, str) else None
