"""Answers of clients as JSON values, and back. Only the kinds of values that are listed here are
decoded.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from connectctl.ops.clients.protocols import ConfiguredValue, PrecedingLog, RestartMode
from connectctl.ops.connect import cluster_lock, connect_protocol, run_presence, worker
from connectctl.ops.core import rights
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.kafka import (
    acls,
    batch_headers,
    brokers,
    consumer_group,
    error_handling,
    fence_attempt,
    offset_commits,
    records,
    rhythm,
    topic_partition,
    topics,
    transactions,
    visibility,
)
from connectctl.ops.operations.upgrade import run_state

_MODULES = (
    *(acls, batch_headers, brokers, cluster_lock, connect_protocol, consumer_group),
    *(error_handling, fence_attempt, records, rhythm, rights, run_presence, run_state),
    *(topic_partition, topics, transactions, visibility, worker),
)
_OF_CLIENTS = (ConfiguredValue, PrecedingLog, RestartMode)
KIND = "$"
"""The member of a JSON object that names the kind of its value."""
_LIST, _SET, _MAP, _BYTES, _LATIN, _FLOAT = "$list", "$set", "$map", "$bytes", "$latin1", "$float"
_COMMIT_KEY, _COMMIT_VALUE = "$commit-key", "$commit-value"
_FIELDS_OF_ERRORS = ("what", "why", "next_step", "code", "right")


@cache
def _kinds() -> dict[str, type[Any]]:
    """Return the frozen values that clients return, by name."""
    found = {
        name: kind
        for module in _MODULES
        for name, kind in vars(module).items()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and _is_value(kind)
    }
    return found | {kind.__name__: kind for kind in _OF_CLIENTS}


def _is_value(kind: type[Any]) -> bool:
    return is_dataclass(kind) or issubclass(kind, Enum) or hasattr(kind, "_fields")


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields that make the value; derived values are not compared."""
    if is_dataclass(kind):
        return tuple(each.name for each in fields(kind) if each.init and each.compare)
    return tuple(getattr(kind, "_fields", ()))


def encode(value: Any) -> Any:
    """Return ``value`` as JSON values. Raises ``TypeError`` for a kind that is not known."""
    kind: Any = type(value)
    if value is None or kind in (str, int, bool):
        return value
    if kind is float:
        return value if math.isfinite(value) else {_FLOAT: str(value)}
    if isinstance(value, ConnectctlError):
        return _encoded_error(value)
    if isinstance(value, Enum):
        return {KIND: _listed(kind), "value": value.value}
    if names := _names(kind):
        return {KIND: _listed(kind)} | {name: encode(getattr(value, name)) for name in names}
    if kind is bytes:
        return _encoded_bytes(value)
    if isinstance(value, Mapping):
        if all(type(key) is str and not key.startswith(KIND) for key in value):
            return {key: encode(each) for key, each in value.items()}
        return {_MAP: [[encode(key), encode(each)] for key, each in value.items()]}
    if isinstance(value, AbstractSet):
        return {_SET: sorted((encode(each) for each in value), key=repr)}
    if kind is tuple:
        return {_LIST: [encode(each) for each in value]}
    if hasattr(value, "__iter__"):
        return [encode(each) for each in value]
    raise TypeError(f"{kind.__name__} cannot be recorded")


def _listed(kind: type[Any]) -> str:
    if _kinds().get(kind.__name__) is not kind:
        raise TypeError(f"{kind.__name__} cannot be recorded")
    return sys.intern(kind.__name__)


def _encoded_bytes(value: bytes) -> dict[str, str]:
    try:
        return {_BYTES: value.decode()}
    except UnicodeDecodeError:
        return {_LATIN: value.decode("latin-1")}


def encode_commit(commit: offset_commits.OffsetCommit) -> dict[str, Any]:
    """Return key and value of a commit's record, with its names as texts, and without metadata."""
    return {
        "key": {_COMMIT_KEY: [commit.group, *commit.partition]},
        "value": {_COMMIT_VALUE: commit.offset},
    }


def _encoded_error(error: ConnectctlError) -> dict[str, Any]:
    bases = [kind.__name__ for kind in type(error).__mro__ if issubclass(kind, ConnectctlError)]
    found = {name: encode(getattr(error, name, None)) for name in _FIELDS_OF_ERRORS}
    return {KIND: "error", "kinds": bases, **found}


def decode(data: Any) -> Any:
    """Return the value of ``data``, the inverse of ``encode``. Raises ``BadInput``."""
    try:
        return _decoded(data)
    except (TypeError, ValueError, KeyError, AttributeError) as e:
        raise BadInput(
            "The bundle has a value that this version does not know",
            why=str(e),
            next_step="Use the version of connectctl that wrote it; its manifest.json names it.",
        ) from e


def _decoded(data: Any) -> Any:
    if isinstance(data, list):
        return [_decoded(each) for each in data]
    if not isinstance(data, dict):
        return data
    if KIND in data:
        return _value(data)
    if len(data) != 1 or not (tag := next(iter(data))).startswith(KIND):
        return {key: _decoded(each) for key, each in data.items()}
    content = data[tag]
    if tag == _BYTES:
        return content.encode()
    if tag == _LATIN:
        return content.encode("latin-1")
    if tag == _COMMIT_KEY:
        return offset_commits.key_of_commit(*content)
    if tag == _COMMIT_VALUE:
        return offset_commits.value_of_commit(content)
    if tag == _FLOAT:
        return float(content)
    if tag == _MAP:
        return {_decoded(key): _decoded(each) for key, each in content}
    values = [_decoded(each) for each in content]
    return {_LIST: tuple, _SET: frozenset}[tag](values)


def _value(data: Mapping[str, Any]) -> Any:
    members = {name: each for name, each in data.items() if name != KIND}
    if data[KIND] == "error":
        return _error(members)
    kind = _kinds()[data[KIND]]
    if issubclass(kind, Enum):
        return kind(members["value"])
    return kind(**{name: _decoded(each) for name, each in members.items()})


def _error(members: Mapping[str, Any]) -> ConnectctlError:
    """Return the error of the nearest kind that is known. Its texts are masked already."""
    known = {kind.__name__: kind for kind in _kinds_of_errors(ConnectctlError)}
    kind = next((known[name] for name in members["kinds"] if name in known), ConnectctlError)
    error = kind.__new__(kind, members["what"])
    for name in _FIELDS_OF_ERRORS:
        setattr(error, name, _decoded(members[name]))
    return error


def _kinds_of_errors(kind: type[ConnectctlError]) -> Iterator[type[ConnectctlError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds_of_errors(each)
