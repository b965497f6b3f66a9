"""Transformations of a configuration: what is refused, predicates, and tables of what they make."""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.spi.connector import SourceRecord
from connectctl.ops.task_runtime.spi.schema import DataError
from connectctl.ops.task_runtime.transforms.chain import PACKAGE, transformation_chain
from connectctl.ops.task_runtime.transforms.date_format import DateFormat


def configured(*stages: dict[str, str], **predicates: dict[str, str]) -> dict[str, str]:
    found = {"transforms": ",".join(f"t{n}" for n in range(len(stages)))}
    for number, stage in enumerate(stages):
        found |= {f"transforms.t{number}.{name}": value for name, value in stage.items()}
    for alias, predicate in predicates.items():
        found |= {f"predicates.{alias}.{name}": value for name, value in predicate.items()}
    return found | {"predicates": ",".join(predicates)}


def applied(
    value: Any, *stages: dict[str, str], topic: str = "orders", **predicates: dict[str, str]
) -> SourceRecord | None:
    chain = transformation_chain(configured(*stages, **predicates))
    assert chain is not None
    record = SourceRecord(
        {}, {}, topic, value, headers=[("kind", "x")], timestamp=1_700_000_000_000
    )
    made: SourceRecord | None = chain.apply(record)
    assert (record.topic, record.value) == (topic, value)  # the task's own is not changed
    return made


FILTER = {"type": f"{PACKAGE}Filter", "predicate": "p"}
NEGATED = FILTER | {"negate": "true"}


@pytest.mark.parametrize(
    ("predicate", "value", "holds"),
    [
        ({"type": "TopicNameMatches", "pattern": "ord.*"}, 1, True),
        ({"type": "TopicNameMatches", "pattern": "ord"}, 1, False),
        ({"type": "HasHeaderKey", "name": "kind"}, 1, True),
        ({"type": "HasHeaderKey", "name": "other"}, 1, False),
        ({"type": f"{PACKAGE}predicates.RecordIsTombstone"}, None, True),
        ({"type": "RecordIsTombstone"}, 1, False),
    ],
)
def test_a_predicate_and_its_negation(predicate: dict[str, str], value: Any, holds: bool) -> None:
    assert (applied(value, FILTER, p=predicate) is None) is holds
    assert (applied(value, NEGATED, p=predicate) is None) is not holds


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ({"type": "io.debezium.transforms.ExtractNewRecordState"}, "Unknown transformation io.deb"),
        ({"type": "InsertFeld$Value"}, "Did you mean InsertField$Value"),
        ({"type": "ReplaceField$Value", "blacklist": "a"}, "has no property blacklist"),
        ({"type": "ReplaceField$Value", "renames": "a"}, "Invalid rename mapping: a"),
        ({"type": "ReplaceField$Value", "replace.null.with.default": "x"}, "use true or false"),
        ({"type": "InsertField$Key"}, "No field insertion configured"),
        ({"type": "InsertField$Key", "static.field": "a"}, "No value specified for static field"),
        ({"type": "ExtractField$Key"}, 'Missing required configuration "transforms.t0.field"'),
        ({"type": "ExtractField$Key", "field": "`a", "field.syntax.version": "V2"}, "backtick"),
        ({"type": "MaskField$Key", "fields": " "}, "Empty list"),
        ({"type": "Cast$Value", "spec": "a:bytes"}, "Invalid type found in casting spec: bytes"),
        ({"type": "Cast$Value", "spec": "int8,a:int8"}, "may only be a single cast"),
        ({"type": "SetSchemaMetadata$Value"}, "Neither schema name nor version"),
        ({"type": "TimestampConverter$Key", "target.type": "text"}, "use string, unix"),
        ({"type": "TimestampConverter$Key", "target.type": "string"}, "requires format option"),
        ({"type": "TimestampRouter", "timestamp.format": "ww"}, "letter w is not supported here"),
        ({"type": "TimestampRouter", "timestamp.format": "y'"}, "Unterminated quote"),
        ({"type": "RegexRouter", "regex": "(", "replacement": ""}, "Invalid regex"),
        ({"type": "RegexRouter", "regex": "a", "replacement": "$1"}, "No group 1"),
        ({"type": "RegexRouter", "regex": "a", "replacement": "${n}"}, "No group with name {n}"),
        (FILTER | {"predicate": "none"}, "predicates does not list it"),
    ],
)
def test_what_a_worker_would_refuse_or_ignore_is_refused(
    stage: dict[str, str], message: str
) -> None:
    with pytest.raises(BadInput) as refused:
        transformation_chain(configured(stage))
    assert message in str(refused.value)


def test_without_transforms_there_is_no_chain() -> None:
    assert transformation_chain({"transforms": " "}) is None


def test_stages_are_applied_in_their_order_and_the_class_that_comes_next_is_told() -> None:
    hoist = {"type": "HoistField$Value", "field": "line"}
    insert = {"type": "InsertField$Value", "topic.field": "from"}
    assert (made := applied("a", hoist, insert)) is not None
    assert made.value == {"line": "a", "from": "orders"}
    chain, told = transformation_chain(configured(insert, hoist)), list[str]()
    assert chain is not None
    with pytest.raises(DataError, match=r"in absence of schema.*java\.lang\.String"):
        chain.apply(SourceRecord({}, {}, "t", "a"), told.append)
    assert told == [f"{PACKAGE}InsertField$Value"]


@pytest.mark.parametrize(
    ("pattern", "text", "millis"),
    [
        ("yyyy-MM-dd", "2023-11-14", 1_699_920_000_000),
        ("yyyy-MM-dd", "2023-02-30", 1_677_715_200_000),  # lenient: the 2nd of March
        ("yyyyMMddHHmmss", "20231114221320", 1_700_000_000_000),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2023-11-15T00:13:20+02:00", 1_700_000_000_000),
        ("EEE, dd MMM yy hh:mm a", "Tue, 14 Nov 23 10:13 PM", 1_699_999_980_000),
    ],
)
def test_dates_as_java_reads_them(pattern: str, text: str, millis: int) -> None:
    assert DateFormat(pattern).parse(text) == millis
