"""``Filter``, ``Map`` and ``Route``: transforms by expressions, for jobs without Python code."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.task_runtime.connectors.expression.records import SETTINGS, RowReader
from connectctl.ops.task_runtime.connectors.expression.task import (
    ExpressionConnector,
    ExpressionTask,
    failed,
    is_true,
)
from connectctl.ops.task_runtime.spi.connector import Setting
from connectctl.ops.task_runtime.spi.converters import text_encoding
from connectctl.ops.task_runtime.spi.subscription import REGEX, input_topics
from connectctl.ops.task_runtime.spi.transform import OUTPUT, Record

CONDITION, KEY, VALUE, FIELD = "condition", "key", "value", "field."
ROUTE, RULES, OTHERWISE = "route", "rules", "otherwise"
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_OUTPUT = Setting(OUTPUT, "Topic to write to.", required=True)


class FilterTask(ExpressionTask):
    """Keeps the records for which ``condition`` is true, unchanged."""

    settings = (
        *SETTINGS,
        _OUTPUT,
        Setting(CONDITION, "Expression: which records are kept.", required=True),
    )

    @classmethod
    def expressions(cls, configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        if configs.get(CONDITION):
            yield CONDITION, configs[CONDITION]

    def make(self, record: Record, results: Mapping[str, Any]) -> Record | None:
        return record if is_true(CONDITION, record, results[CONDITION]) else None


class MapTask(ExpressionTask):
    """Writes a new value, new fields of a JSON object, or a new key."""

    writes_text = True

    settings = (
        *SETTINGS,
        _OUTPUT,
        Setting(
            VALUE, "Expression: the new value. Text is written as it is, numbers as JSON has them."
        ),
        Setting(f"{FIELD}NAME", "Expression: the field NAME of the JSON object that is the value."),
        Setting(KEY, "Expression: the new key."),
    )

    @classmethod
    def expressions(cls, configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        return (
            (n, v)
            for n, v in configs.items()
            if n in (VALUE, KEY) or (n.startswith(FIELD) and n != FIELD)
        )

    @classmethod
    def problems(cls, configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Value or fields, and fields only of JSON without a schema."""
        yield from super().problems(configs)
        names = [name for name, _ in cls.expressions(configs)]
        fields = [name for name in names if name.startswith(FIELD)]
        if not names:
            yield VALUE, f"Must configure {VALUE}, {KEY} or {FIELD}NAME"
        if fields and VALUE in names:
            yield VALUE, f"Must configure only one of {VALUE} and {fields[0]}"
        plain = configs.get("value.converter.schemas.enable", "true").lower() != "true"
        if fields and not (plain and RowReader(configs).has_fields):
            yield (
                fields[0],
                f"{fields[0]} needs value.converter=JsonConverter and "
                "value.converter.schemas.enable=false",
            )

    def start(self, configs: Mapping[str, str]) -> None:
        super().start(configs)
        self._encodings = {n: text_encoding(configs, f"{n}.converter") for n in (KEY, VALUE)}

    def make(self, record: Record, results: Mapping[str, Any]) -> Record | None:
        """Its headers and timestamp stay, and what has no expression."""
        key = self._bytes(KEY, record, results[KEY]) if KEY in results else record.key
        value = self._bytes(VALUE, record, results[VALUE]) if VALUE in results else record.value
        fields = {
            n.removeprefix(FIELD): _finite(n, record, each)
            for n, each in results.items()
            if n.startswith(FIELD)
        }
        if fields and (value_fields := self.reader.fields(record)) is not None:
            if not isinstance(value_fields, dict):
                raise failed(FIELD + next(iter(fields)), record, "its value is not a JSON object")
            value = connect_json(value_fields | fields).encode()
        return Record(value, key, headers=record.headers, timestamp=record.timestamp)

    def _bytes(self, name: str, record: Record, result: Any) -> bytes | None:
        """Return text in the encoding of its converter, and a number or boolean as in JSON."""
        if result is None:
            return None
        text = result if isinstance(result, str) else connect_json(_finite(name, record, result))
        encoding = self._encodings[name]
        try:
            return encoding.encode(text)[0]
        except UnicodeEncodeError as e:
            why = f"its text is not in the encoding {encoding.name}: {e.reason}"
            raise failed(name, record, why) from e


def _finite(name: str, record: Record, result: Any) -> Any:
    if isinstance(result, float) and not math.isfinite(result):
        raise failed(name, record, f"it gives {result}, which JSON does not have")
    return result


class RouteTask(ExpressionTask):
    """Writes each record unchanged to the topic that ``route`` returns, or that of the first of
    ``rules`` that is true.
    """

    settings = (
        *SETTINGS,
        Setting(ROUTE, "Expression: the name of the topic."),
        Setting(RULES, "Lines TOPIC: CONDITION; the first that is true counts."),
        Setting(OTHERWISE, "Topic of all other records; without it they fail the task."),
    )

    @classmethod
    def expressions(cls, configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        if configs.get(ROUTE):
            yield ROUTE, configs[ROUTE]
        for line in configs.get(RULES, "").splitlines():
            if line.strip():
                topic, _, condition = line.partition(":")
                yield f"{RULES} {topic.strip()}", condition.strip()

    @classmethod
    def problems(cls, configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the errors of the configuration: records go to valid topics, and never to input
        topics.
        """
        yield from super().problems(configs)
        if bool(configs.get(ROUTE)) == bool(configs.get(RULES, "").strip()):
            yield ROUTE, f"Must configure only one of {ROUTE} and {RULES}"
        if configs.get(OUTPUT):
            why = (
                f"Route writes to the topics that it names: remove {OUTPUT}, or use {OTHERWISE} "
                "for the others"
            )
            yield OUTPUT, why
        names = [
            name.removeprefix(f"{RULES} ") for name, _ in cls.expressions(configs) if name != ROUTE
        ]
        if twice := {name for name in names if names.count(name) > 1}:
            yield (
                RULES,
                f"The topic {min(twice)} has several {RULES}: join their conditions with or",
            )
        regex = configs.get(REGEX, "").strip()
        for name in dict.fromkeys([*names, *filter(None, [configs.get(OTHERWISE)])]):
            if not _TOPIC.fullmatch(name):
                yield RULES, f"Invalid topic {name}: {RULES} are lines TOPIC: CONDITION"
            elif name in input_topics(configs) or (regex and re.fullmatch(regex, name)):
                yield RULES, f"The output topic {name} is an input topic, too"

    def make(self, record: Record, results: Mapping[str, Any]) -> Record | None:
        """Return the record for its topic; Java's partitioner chooses the partition by its key."""
        topic = self._topic(record, results) or self.configs.get(OTHERWISE)
        if topic is None:
            why = "it gives null" if ROUTE in results else "none is true"
            raise failed(
                ROUTE if ROUTE in results else RULES, record, f"{why}, and {OTHERWISE} is not set"
            )
        return Record(
            record.value, record.key, topic, headers=record.headers, timestamp=record.timestamp
        )

    def _topic(self, record: Record, results: Mapping[str, Any]) -> str | None:
        if ROUTE not in results:
            true = (name for name, result in results.items() if is_true(name, record, result))
            found = next(true, None)
            return found and found.removeprefix(f"{RULES} ")
        topic = results[ROUTE]
        if topic is None or (isinstance(topic, str) and _TOPIC.fullmatch(topic)):
            return topic
        raise failed(ROUTE, record, f"it gives {topic!r}, which is not the name of a topic")


class Filter(ExpressionConnector):
    """Records for which an expression is true."""

    task = FilterTask


class Map(ExpressionConnector):
    """Records with values that expressions compute."""

    task = MapTask


class Route(ExpressionConnector):
    """Records to topics that an expression names."""

    task = RouteTask
