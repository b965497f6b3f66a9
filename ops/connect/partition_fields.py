"""How source partitions follow from a configuration: a class's rule, as data with the page that says so, and its fields."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect.config_topic import MOST_TASKS

Config = Mapping[str, str]
SourcePartition = Mapping[str, Any]
_NAME = re.compile(r"[\w.-]+")
"""What names one thing: with anything else in it, it is a regular expression."""


@dataclass(frozen=True)
class FieldRule:
    """How one field of a source partition follows from the configuration. ``keys`` are the properties, newest name first;
    ``reads`` says whether a task of ``config`` asks for ``value``, None where that cannot be known; ``values`` are those
    that it certainly asks for; ``patterns`` name others, which only the source knows. ``same`` says whether two values
    mean one thing. ``renames``: another value may be another name of the same source.
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
        """The name that the same source has by ``config``; None where another value is another source."""
        return next(iter(self.values(config)), None) if self.renames else None

    def shown(self, config: Config) -> str:
        values = {key: "(masked)" if key.endswith(".masked") else config[key] for key in self.keys if config.get(key)}
        text = ", ".join(f"{key} {value}" for key, value in values.items())
        return text or f"{self.keys[0]}, which is not set"


@dataclass(frozen=True)
class PartitionRule:
    """Source partitions of connector ``classes``; ``source`` is where that is written.

    ``fields`` are those that a configuration decides, ``whole`` where a source partition has no other. ``form`` says, of
    classes whose fields have no fixed names, why one is not read. ``offset_fields`` are fields of the source offset of
    which a task of a configuration needs at least one, None where any will do; ``offset_keys`` decide on them. ``where``
    are properties that say which source is read, ``inherits`` others that say what is read of it: none is in the source
    partition, so that the offsets stay when they change. ``older``: a form that is only read, and written no more.
    ``telling``: two connectors with the same source partition read the same.
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
    telling: bool = True

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(key for each in self.fields for key in each.keys) | {
            *self.offset_keys,
            *self.where,
            *self.inherits,
        }


def exactly(name: str, *keys: str) -> FieldRule:
    """The field is the value of the first of ``keys`` that is set."""

    def values(config: Config) -> tuple[str, ...]:
        return tuple(config[key].strip() for key in keys if config.get(key, "").strip())[:1]

    return FieldRule(name, keys, lambda config, given: given in values(config), values, renames=True)


def constantly(name: str, constant: str, *keys: str) -> FieldRule:
    """The field is ``constant`` wherever one of ``keys`` is set."""

    def values(config: Config) -> tuple[str, ...]:
        return (constant,) if any(config.get(key, "").strip() for key in keys) else ()

    return FieldRule(name, keys, lambda config, given: given in values(config), values)


def listed(name: str, *keys: str) -> FieldRule:
    """The field is one of those that the first of ``keys`` that is set names; without any, none is known to be left out."""

    def values(config: Config) -> tuple[str, ...]:
        return next((tuple(entries(config[key])) for key in keys if entries(config.get(key, ""))), ())

    return FieldRule(name, keys, lambda config, given: given in values(config) or not values(config), values)


def counted(name: str, key: str) -> FieldRule:
    """The field is the number of a task, of as many as ``key`` says; one where it says nothing."""

    def values(config: Config) -> tuple[int, ...]:
        return tuple(range(whole_number(config.get(key, "1"), MOST_TASKS) or 0))

    return FieldRule(name, (key,), lambda config, given: given in values(config), values, is_not="is beyond")


def is_named(path: str, classes: Iterable[str]) -> bool:
    """Whether ``connector.class`` ``path`` names one of ``classes``: by the whole name, or by the last part as an alias."""
    simple = path.rpartition(".")[2]
    short = {simple, f"{simple}Connector"} if "." not in path else set()
    return any(each == path or each.rpartition(".")[2] in short for each in classes)


@lru_cache(256)
def entries(text: str) -> tuple[str, ...]:
    """A list of a configuration, which commas separate."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


def names_of(patterns: Iterable[str]) -> tuple[list[str], list[str]]:
    """Those that name one thing, and those that are regular expressions."""
    found = list(patterns)
    return [each for each in found if _NAME.fullmatch(each)], [each for each in found if not _NAME.fullmatch(each)]


def matches(patterns: Sequence[str], value: str) -> bool | None:
    """Whether one of ``patterns`` matches all of ``value``; None where one has a form that only Java knows."""
    return _matches(tuple(patterns), value)


@lru_cache(4096)
def _matches(patterns: tuple[str, ...], value: str) -> bool | None:
    found = [_compiled(each) for each in patterns]
    if any(each is not None and each.fullmatch(value) for each in found):
        return True
    return None if None in found else False


@lru_cache(4096)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error:
        return None


def both(included: bool | None, excluded: bool | None) -> bool | None:
    """Whether something is read that is ``included`` and not ``excluded``, as far as either is known."""
    if included is False or excluded is True:
        return False
    return None if included is None or excluded is None else True
