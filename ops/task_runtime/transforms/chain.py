"""The transformations of a configuration, in their order (``TransformationChain``), and their
predicates.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from connectctl.ops.connector_config.property_values import listed
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.transforms.casts import cast
from connectctl.ops.task_runtime.transforms.fields import (
    extract_field,
    hoist_field,
    replace_field,
    set_schema_metadata,
    value_to_key,
)
from connectctl.ops.task_runtime.transforms.flatten import flatten
from connectctl.ops.task_runtime.transforms.insert_field import insert_field
from connectctl.ops.task_runtime.transforms.masks import mask_field
from connectctl.ops.task_runtime.transforms.patterns import java_pattern
from connectctl.ops.task_runtime.transforms.properties import Change, Properties
from connectctl.ops.task_runtime.transforms.timestamps import timestamp_converter
from connectctl.ops.task_runtime.transforms.topics import regex_router, timestamp_router

Apply = Callable[[Any], Any]
"""Changes a record of its own and returns it; None leaves it out. Raises ``DataError``."""
Test = Callable[[Any], bool]
"""Returns whether a transformation is applied to a record."""
PACKAGE = "org.apache.kafka.connect.transforms."


def _on_key(change: Change) -> Apply:
    def apply(record: Any) -> Any:
        record.key, record.key_schema = change(record.key, record.key_schema, record)
        return record

    return apply


def _on_value(change: Change) -> Apply:
    def apply(record: Any) -> Any:
        record.value, record.value_schema = change(record.value, record.value_schema, record)
        return record

    return apply


def _filter(properties: Properties) -> Apply:
    return lambda record: None


_OF_PARTS: Mapping[str, Callable[[Properties], Change]] = {
    "Cast": cast,
    "ExtractField": extract_field,
    "Flatten": flatten,
    "HoistField": hoist_field,
    "InsertField": insert_field,
    "MaskField": mask_field,
    "ReplaceField": replace_field,
    "SetSchemaMetadata": set_schema_metadata,
    "TimestampConverter": timestamp_converter,
}
_OF_RECORDS: Mapping[str, Callable[[Properties], Apply]] = {
    "Filter": _filter,
    "RegexRouter": regex_router,
    "TimestampRouter": timestamp_router,
    "ValueToKey": value_to_key,
}
_SIDES = {"Key": _on_key, "Value": _on_value}
TRANSFORMS: Mapping[str, Callable[[Properties], Apply]] = {
    PACKAGE + name: make for name, make in _OF_RECORDS.items()
} | {
    f"{PACKAGE}{name}${side}": lambda properties, make=make, on=on: on(make(properties))
    for name, make in _OF_PARTS.items()
    for side, on in _SIDES.items()
}
"""Java's classes, each with the function that makes its transformation."""


def _topic_name_matches(properties: Properties) -> Test:
    pattern = java_pattern(properties, "pattern")
    return lambda record: pattern.fullmatch(record.topic) is not None


def _has_header_key(properties: Properties) -> Test:
    name = properties.required("name")
    return lambda record: any(each == name for each, _ in record.headers)


def _record_is_tombstone(properties: Properties) -> Test:
    return lambda record: record.value is None


PREDICATES: Mapping[str, Callable[[Properties], Test]] = {
    f"{PACKAGE}predicates.TopicNameMatches": _topic_name_matches,
    f"{PACKAGE}predicates.HasHeaderKey": _has_header_key,
    f"{PACKAGE}predicates.RecordIsTombstone": _record_is_tombstone,
}
"""Java's predicates, each with the function that makes its test."""


@dataclass(frozen=True)
class TransformationStage:
    """``name`` is Java's class; without ``test`` it is applied to each record."""

    name: str
    transform: Apply
    test: Test | None = None


@dataclass(frozen=True)
class TransformationChain:
    stages: tuple[TransformationStage, ...]

    def apply(self, record: Any, executing: Callable[[str], None] = lambda name: None) -> Any:
        """Return a changed copy of ``record``; None if one of them leaves it out. ``executing`` is
        called with each class before it is applied. Raises what the class raises, mostly ``DataError``.
        """
        changed = copy.copy(record)
        for stage in self.stages:
            executing(stage.name)
            if (stage.test is None or stage.test(changed)) and stage.transform(changed) is None:
                return None
        return changed


def transformation_chain(configs: Mapping[str, str]) -> TransformationChain | None:
    """Return the transformations of ``transforms``, None without any. Raises ``BadInput`` for one
    that is not known here, and for its invalid properties.
    """
    stages = []
    for alias in listed(configs.get("transforms")):
        prefix = f"transforms.{alias}."
        name, properties = _named(prefix, configs, TRANSFORMS, "transformation")
        apply = TRANSFORMS[name](properties)
        properties.check_unknown(name)
        stages.append(TransformationStage(name, apply, _test(properties, configs)))
    return TransformationChain(tuple(stages)) if stages else None


def _test(properties: Properties, configs: Mapping[str, str]) -> Test | None:
    predicate = properties.text("predicate")
    negate = properties.flag("negate", default=False)
    if predicate is None:
        return None
    if predicate not in listed(configs.get("predicates")):
        raise properties.invalid("predicate", predicate, "predicates does not list it")
    name, of_predicate = _named(f"predicates.{predicate}.", configs, PREDICATES, "predicate")
    test = PREDICATES[name](of_predicate)
    of_predicate.check_unknown(name)
    return (lambda record: not test(record)) if negate else test


def _named(
    prefix: str, configs: Mapping[str, str], known: Mapping[str, Any], kind: str
) -> tuple[str, Properties]:
    """Return Java's class that ``type`` names, in full or by its last part, and the properties."""
    properties = Properties(prefix, configs)
    given = properties.required("type").strip()
    if given in known:
        return given, properties
    short = {name.rpartition(".")[2]: name for name in known}
    if given in short:
        return short[given], properties
    names = [*short, *known]
    similar = difflib.get_close_matches(given, names, n=1, cutoff=0.6)
    hint = f"Did you mean {similar[0]}? " if similar else ""
    raise BadInput(
        f"Unknown {kind} {given} ({prefix}type)",
        next_step=f"{hint}Use one of {', '.join(sorted(short))}, or run the connector on a worker.",
        code="unknown-class",
    )
