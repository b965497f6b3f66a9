"""The derivation of source partitions from a configuration: class rules as data with their source,
and fields.
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect.config_topic import MOST_TASKS

Config = Mapping[str, str]
SourcePartition = Mapping[str, Any]
_NAME = re.compile(r"[\w.-]+")
"""A text that is a plain name; any other text is a regular expression."""


@dataclass(frozen=True)
class FieldRule:
    """The derivation of one field of a source partition from the configuration.

    ``keys`` are the properties, newest name first. ``reads`` returns whether a task of ``config``
    looks up ``value``, None if that is unknown. ``values`` are those that it certainly looks up;
    ``patterns`` name others, which only the source knows. ``same`` compares two values.
    ``renames``: another value may be another name of the same source.
    """

    name: str
    keys: tuple[str, ...]
    reads: Callable[[Config, Any], bool | None]
    values: Callable[[Config], tuple[Any, ...]] = lambda config: ()
    patterns: Callable[[Config], tuple[str, ...]] = lambda config: ()
    same: Callable[[Any, Any], bool] = operator.eq
    is_not: str = "is not in"
    renames: bool = False

    def value(self, config: Config) -> Any:
        """Return the name of the same source in ``config``; None if another value is another
        source.
        """
        return next(iter(self.values(config)), None) if self.renames else None

    def shown(self, config: Config) -> str:
        values = {
            key: "(masked)" if key.endswith(".masked") else config[key]
            for key in self.keys
            if config.get(key)
        }
        text = ", ".join(f"{key} {value}" for key, value in values.items())
        return text or f"{self.keys[0]}, which is not set"


@dataclass(frozen=True)
class PartitionRule:
    """The source partitions of connector ``classes``; ``source`` is the page that specifies them.

    ``fields`` are those that the configuration determines; ``whole``: a source partition has no
    other fields. ``form`` returns why a source partition is not read, for classes whose fields have
    no fixed names. ``offset_fields`` are fields of the source offset of which a task needs at least
    one, None if it needs none of them; they depend on ``offset_keys``. ``where`` are properties
    that select the source, ``inherits`` properties that select its data: neither is in the source
    partition, so that the offsets are kept when they change. ``older``: a form that is still read,
    and no longer written. ``identifies_source``: two connectors with the same source partition read
    the same data.
    """

    classes: tuple[str, ...]
    fields: tuple[FieldRule, ...]
    source: str
    whole: bool = True
    form: Callable[[Config, SourcePartition], str | None] = lambda config, partition: None
    offset_fields: Callable[[Config], frozenset[str] | None] = lambda config: None
    offset_keys: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    inherits: tuple[str, ...] = ()
    older: bool = False
    identifies_source: bool = True

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(key for field in self.fields for key in field.keys) | {
            *self.offset_keys,
            *self.where,
            *self.inherits,
        }


def exactly(name: str, *keys: str) -> FieldRule:
    """Return the rule of a field that is the value of the first of ``keys`` that is set."""

    def values(config: Config) -> tuple[str, ...]:
        return tuple(config[key].strip() for key in keys if config.get(key, "").strip())[:1]

    return FieldRule(
        name, keys, lambda config, value: value in values(config), values, renames=True
    )


def constantly(name: str, constant: str, *keys: str) -> FieldRule:
    """Return the rule of a field that is ``constant`` wherever one of ``keys`` is set."""

    def values(config: Config) -> tuple[str, ...]:
        return (constant,) if any(config.get(key, "").strip() for key in keys) else ()

    return FieldRule(name, keys, lambda config, value: value in values(config), values)


def listed(name: str, *keys: str) -> FieldRule:
    """Return the rule of a field that is in the list of the first of ``keys`` that is set.

    Without such a list any value may be read.
    """

    def values(config: Config) -> tuple[str, ...]:
        return next(
            (tuple(entries(config[key])) for key in keys if entries(config.get(key, ""))), ()
        )

    return FieldRule(
        name, keys, lambda config, value: value in values(config) or not values(config), values
    )


def counted(name: str, key: str) -> FieldRule:
    """Return the rule of a field that is a task number below the value of ``key``; 1 if it is not
    set.
    """

    def values(config: Config) -> tuple[int, ...]:
        return tuple(range(whole_number(config.get(key, "1"), MOST_TASKS) or 0))

    return FieldRule(
        name, (key,), lambda config, value: value in values(config), values, is_not="is beyond"
    )


def is_named(path: str, classes: Iterable[str]) -> bool:
    """Return whether the ``connector.class`` ``path`` names one of ``classes``, by the full name or
    by an alias.
    """
    simple = path.rpartition(".")[2]
    short = {simple, f"{simple}Connector"} if "." not in path else set()
    return any(class_ == path or class_.rpartition(".")[2] in short for class_ in classes)


@lru_cache(256)
def entries(text: str) -> tuple[str, ...]:
    """Return the entries of a list, which commas separate."""
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


def names_of(patterns: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the plain names, and the regular expressions."""
    found = list(patterns)
    return [pattern for pattern in found if _NAME.fullmatch(pattern)], [
        pattern for pattern in found if not _NAME.fullmatch(pattern)
    ]


def matches(patterns: Sequence[str], value: str) -> bool | None:
    """Return whether one of ``patterns`` matches all of ``value``; None if one has a syntax that
    only Java supports.
    """
    return _matches(tuple(patterns), value)


@lru_cache(4096)
def _matches(patterns: tuple[str, ...], value: str) -> bool | None:
    found = [_compiled(text) for text in patterns]
    if any(pattern is not None and pattern.fullmatch(value) for pattern in found):
        return True
    return None if None in found else False


@lru_cache(4096)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        with warnings.catch_warnings():
            # Java's intersections of character classes are something else in Python, which warns of
            # them.
            warnings.simplefilter("error", FutureWarning)
            return re.compile(pattern)
    except (re.error, FutureWarning):
        return None


def both(included: bool | None, excluded: bool | None) -> bool | None:
    """Return whether a value is read that is ``included`` and not ``excluded``; None if that is
    unknown.
    """
    if included is False or excluded is True:
        return False
    return None if included is None or excluded is None else True
