"""The source offsets that a connector accepts: the one validation for everything that writes source
offsets.

Types are those of ``OffsetUtils.validateFormat``. Members and ranges are those of
``SourceConnector.alterOffsets``, as Kafka's own connectors implement it. The offsets of any other
connector must have the shape of those that it has stored itself (``offset_shapes``). A worker calls
the connector for ``PATCH /connectors/NAME/offsets`` only; a task reads the records of the topic
unchanged.

This validation is stricter than ``alterOffsets`` in one respect: it refuses a source partition that
no task of the connector looks up, such as one with an additional member. A task that does not find
its source partition starts over.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from connectctl.ops.connect.offset_shapes import Pair, Shapes, described, members_of
from connectctl.ops.connect.partition_fields import Config, is_named
from connectctl.ops.connect.source_keys import connect_json

_MIRROR = "org.apache.kafka.connect.mirror"
_INT, _LONG = (1 << 31) - 1, (1 << 63) - 1


# -------------------------------------------------------------------------------------------- types


def format_problems(what: str, value: Any) -> list[str]:
    """Return the reasons why Connect does not write ``value`` as a source partition or offset;
    ``what`` is its name.
    """
    if not isinstance(value, Mapping):
        return [f"{what} is not a JSON object"]
    found = [
        f"{what} has a key that is not a string: {name!r}"
        for name in value
        if not isinstance(name, str)
    ]
    return found + [
        problem
        for name, member in value.items()
        for problem in _member_problems(what, str(name), member)
    ]


_PLAIN = {int, str, float, bool, bytes, type(None)}


def are_plain(offsets: Sequence[Any]) -> bool:
    """Return whether all ``offsets`` are dicts without ``format_problems``; False if in doubt. Its
    time for many offsets is a fraction of that of ``format_problems``.
    """
    try:
        names = {*chain.from_iterable(offsets)}
        values = list(chain.from_iterable(map(dict.values, offsets)))
    except TypeError:
        return False
    kinds = {*map(type, values)}
    if not kinds <= _PLAIN or not {*map(type, names)} <= {str}:
        return False
    integers = values if kinds == {int} else [each for each in values if type(each) is int]
    floats = [each for each in values if type(each) is float] if float in kinds else []
    texts = [each for each in values if type(each) is str] if str in kinds else []
    return (
        min(integers, default=0) >= -_LONG - 1
        and max(integers, default=0) <= _LONG
        and all(map(math.isfinite, floats))
        and _is_text("".join(texts))
        and _is_text("".join(names))
    )


def _member_problems(what: str, name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list | tuple):
        yield nested_problem(what, name, value)
    elif isinstance(value, str) and not _is_text(value):
        yield f"{what}: {name} is half of a surrogate pair, which UTF-8 cannot encode"
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{what}: {name} is {value}, which JSON does not have"
    elif value is not None and not isinstance(value, str | int | float | bool | bytes):
        yield f"{what}: {name} is a {type(value).__name__}, which JSON does not have"
    elif isinstance(value, int) and not -_LONG - 1 <= value <= _LONG:
        yield f"{what}: {name} does not fit 64 bits"
    if not _is_text(name):
        yield (
            f"{what} has a key that is half of a surrogate pair, which UTF-8 cannot encode: "
            f"{name!r}"
        )


def nested_problem(what: str, name: str, value: Any) -> str:
    """Return the sentence about a member that holds an object or an array."""
    kind = "an object" if isinstance(value, Mapping) else "an array"
    return f"{what} may hold primitive values only, and {name} is not one: it is {kind}"


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def stored_form(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return a source partition or offset as ``JsonConverter`` stores it: bytes become base64."""
    return {
        name: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for name, value in members.items()
    }


# ------------------------------------------------------------------ the rules of Kafka's connectors


@dataclass(frozen=True)
class Text:
    """A member that is a string."""

    wants = "a string"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str)


@dataclass(frozen=True)
class Whole:
    """A member that is a whole number from 0 to ``most``."""

    most: int = _LONG

    @property
    def wants(self) -> str:
        if self.most == 0:
            return "the integer 0"
        return (
            "an integer that is not negative"
            if self.most == _LONG
            else f"an integer from 0 to {self.most}"
        )

    def accepts(self, value: Any) -> bool:
        return type(value) is int and 0 <= value <= self.most


@dataclass(frozen=True)
class ClassRule:
    """The offsets of connector ``classes``. ``partition`` and ``offset`` are their members; an
    offset may have others.

    ``needs`` is a property without which the connector has no offsets.
    """

    classes: tuple[str, ...]
    partition: Mapping[str, Text | Whole]
    offset: Mapping[str, Text | Whole]
    needs: str | None = None

    def problems(
        self, config: Config, partition: Mapping[str, Any] | None, offset: Mapping[str, Any]
    ) -> Iterator[str]:
        """Yield the reasons why the connector does not accept ``offset`` for ``partition``."""
        if self.needs is not None and not config.get(self.needs):
            yield f"the connector has no offsets without the property {self.needs}"
        if partition is None:
            yield f"the partition is null, and the connector requires {members_of(self.partition)}"
            return
        yield from _unlike(self.partition, partition)
        if more := partition.keys() - self.partition.keys():
            yield (
                f"{members_of(sorted(more))} is not in the partitions of the connector; no task "
                "reads such a partition"
            )
        yield from _unlike(self.offset, offset, "the offset ")


def _unlike(
    rules: Mapping[str, Text | Whole], members: Mapping[str, Any], what: str = "the partition "
) -> Iterator[str]:
    for name, rule in rules.items():
        if name not in members:
            yield f"{what}has no {name}, and the connector requires {rule.wants}"
        elif not rule.accepts(members[name]):
            yield f"{name} is {described(members[name])}, and the connector requires {rule.wants}"


_TOPIC_PARTITION: dict[str, Text | Whole] = {"topic": Text(), "partition": Whole(_INT)}
RULES = (
    ClassRule(
        ("org.apache.kafka.connect.file.FileStreamSourceConnector",),
        {"filename": Text()},
        {"position": Whole()},
        needs="file",
    ),
    ClassRule(
        (f"{_MIRROR}.MirrorSourceConnector", "TopicCopy"),
        {"cluster": Text(), **_TOPIC_PARTITION},
        {"offset": Whole()},
    ),
    ClassRule(
        (f"{_MIRROR}.MirrorCheckpointConnector",),
        {"group": Text(), **_TOPIC_PARTITION},
        {"offset": Whole(0)},
    ),
    ClassRule(
        (f"{_MIRROR}.MirrorHeartbeatConnector",),
        {"sourceClusterAlias": Text(), "targetClusterAlias": Text()},
        {"offset": Whole(0)},
    ),
)
"""``alterOffsets`` of the connectors that come with Kafka, and of those in this package with the
same offsets.
"""


# ------------------------------------------------------------------------------------ the validator


@dataclass(frozen=True)
class OffsetValidator:
    """The validation of one connector's offsets: by the rule of its class, else by the shapes of
    its stored offsets.
    """

    config: Config
    rule: ClassRule | None
    shapes: Shapes

    @property
    def has_rules(self) -> bool:
        """Return whether there are rules or stored offsets to validate by, besides the types."""
        return self.rule is not None or bool(self.shapes)

    def problem(
        self, partition: Mapping[str, Any] | None, offset: Mapping[str, Any] | None
    ) -> str | None:
        """Return the reason why the connector does not accept ``offset`` for ``partition``; None if
        it does.

        A null offset, which deletes, is accepted for every partition: that is how unwanted offsets
        are removed.
        """
        if offset is None:
            return None
        found = [] if partition is None else format_problems("the partition", partition)
        found += format_problems("the offset", offset)
        if not found and self.rule is not None:
            found = list(self.rule.problems(self.config, partition, offset))
        elif not found and self.shapes:
            found = list(self.shapes.problems(partition, offset))
        return (
            f"{connect_json(offset)} for {connect_json(partition)}: {'; '.join(found)}"
            if found
            else None
        )


def rule_of(config: Config) -> ClassRule | None:
    """Return the rule for the class of a connector; None if it has none, or the class is not
    known.
    """
    path = config.get("connector.class", "").strip()
    return next((rule for rule in RULES if is_named(path, rule.classes)), None)


def validator_of(config: Config, stored: Iterable[Pair]) -> OffsetValidator:
    """Return the validator for a connector of ``config``; ``stored`` are its source partitions that
    have an offset.

    ``config`` is empty for a connector that is not configured.
    """
    rule = rule_of(config)
    return OffsetValidator(config, rule, Shapes.of(()) if rule else Shapes.of(stored))
