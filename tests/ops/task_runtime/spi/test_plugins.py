"""Connector classes by Connect's names, by entry point and by path; and what cannot be run said in
Connect's words.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest
from connectctl.ops.connect.source_transactions import LATENCY
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.connectors.filestream import FileStreamSource
from connectctl.ops.task_runtime.spi.connector import (
    ExactlyOnceSupport,
    SourceConnector,
    SourceTask,
    TransactionBoundaries,
)
from connectctl.ops.task_runtime.spi.plugins import (
    connector_class,
    importable,
    known_connectors,
    path_of,
    task_class,
)
from connectctl.ops.task_runtime.spi.validation import validated

FILE = {"connector.class": "FileStreamSource", "file": "/in", "topic": "t"}


@pytest.mark.parametrize(
    "name",
    [
        "FileStreamSource",
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "connectctl.ops.task_runtime.connectors.filestream:FileStreamSource",
    ],
)
def test_the_file_stream_has_connects_own_names(name: str) -> None:
    assert connector_class(path_of(name)) is FileStreamSource
    assert task_class(path_of(name)) == "org.apache.kafka.connect.file.FileStreamSourceTask"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "JdbcSink",
            "Failed to find any class that implements Connector and which name matches JdbcSink",
        ),
        ("FileSteamSource", "Did you mean FileStreamSource?"),
        ("nowhere:Mine", "Cannot import nowhere:Mine: No module named 'nowhere'"),
        ("pathlib:Pth", "Class not found: Pth in pathlib"),
        ("pathlib:Path", "pathlib:Path is not a connector"),
    ],
)
def test_a_class_that_cannot_be_had_is_bad_input(name: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        connector_class(path_of(name))
    assert says in str(caught.value)


def test_a_module_that_fails_is_not_a_bug_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bursting.py").write_text("raise RuntimeError('boom')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BadInput, match="Import of bursting failed: RuntimeError: boom"):
        connector_class("bursting:Any")


def test_a_wheel_brings_connectors_by_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "wheeled-1.0-py3-none-any.whl"
    source = (
        "from connectctl.ops.task_runtime.spi.connector import SourceConnector, SourceTask\nclass "
        "Task(SourceTask):\n    pass\nclass Wheeled(SourceConnector):\n    task = Task\n    def "
        "task_configs(self, most): return []\n"
    )
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("wheeled.py", source)
        archive.writestr(
            "wheeled-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: wheeled\nVersion: 1.0\n"
        )
        archive.writestr(
            "wheeled-1.0.dist-info/entry_points.txt",
            "[connectctl.connectors]\nWheeledSource = wheeled:Wheeled\n",
        )
    monkeypatch.setattr(sys, "path", list(sys.path))
    importable([wheel])
    assert known_connectors()["WheeledSource"] == "wheeled:Wheeled"
    assert connector_class(path_of("WheeledSource")).__name__ == "Wheeled"
    assert task_class(path_of("WheeledSource")) == "wheeled:Task"


class Idle(SourceTask):
    def start(self, configs: object) -> None:
        pass

    def poll(self) -> None:
        return None


class Quiet(SourceConnector):
    task = Idle
    support: ExactlyOnceSupport | None = None
    boundaries: TransactionBoundaries | None = None

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return []

    def exactly_once_support(self, configs: object) -> ExactlyOnceSupport | None:
        return self.support

    def can_define_transaction_boundaries(self, configs: object) -> TransactionBoundaries | None:
        return self.boundaries


class No(Quiet):
    support = ExactlyOnceSupport.UNSUPPORTED
    boundaries = TransactionBoundaries.UNSUPPORTED


class Yes(Quiet):
    support = ExactlyOnceSupport.SUPPORTED
    boundaries = TransactionBoundaries.SUPPORTED


class Broken(Quiet):
    def exactly_once_support(self, configs: object) -> ExactlyOnceSupport | None:
        raise RuntimeError("boom")


def named(kind: type[SourceConnector]) -> dict[str, str]:
    sys.modules.setdefault(kind.__module__, sys.modules[__name__])
    return {"connector.class": f"{kind.__module__}:{kind.__name__}"}


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"topic": "t"}, "The configuration contains no connector type"),
        (FILE | {"file": ""}, 'Missing required configuration "file" which has no default value.'),
        (
            FILE | {"tasks.max": "0"},
            "Invalid value 0 for configuration tasks.max: Value must be at least 1",
        ),
        (
            FILE | {"transaction.boundary": "never"},
            "Invalid value never for configuration transaction.boundary",
        ),
        (
            FILE | {"exactly.once.support": "maybe"},
            "Invalid value maybe for configuration exactly.once.support",
        ),
        (
            FILE | {"transforms": "a", "transforms.a.type": "b"},
            "Unknown transformation b (transforms.a.type)",
        ),
        (FILE | {"file": "${file:/etc/x:y}"}, "file refers to a config provider"),
        (FILE | {"topic": "offs"}, "Source tasks may not produce to their own offsets topics"),
        (
            FILE | {"value.converter": "ProtobufConverters"},
            "Unsupported converter ProtobufConverters",
        ),
        (
            FILE | {"value.converter": "AvroConverter"},
            'required configuration "value.converter.schema.registry.url"',
        ),
        (
            FILE | {"transaction.boundary": "connector"},
            "does not support connector-defined transaction boundaries",
        ),
        (
            named(Quiet) | {"exactly.once.support": "required"},
            "does not implement the API required",
        ),
        (
            named(No) | {"exactly.once.support": "REQUIRED"},
            "does not support exactly-once semantics with the provided",
        ),
        (
            named(Quiet) | {"transaction.boundary": "connector"},
            "has returned a null value from its canDefine",
        ),
        (
            FILE | {LATENCY: "0"},
            f"Invalid value 0 for configuration {LATENCY}: Value must be at least 1",
        ),
        (
            FILE | {LATENCY: "soon"},
            f"Invalid value soon for configuration {LATENCY}: Not a number of type INT",
        ),
        (
            FILE | {LATENCY: "100", "transaction.boundary": "Poll"},
            f"{LATENCY} cannot be used with transaction.boundary=poll",
        ),
        (
            named(Yes) | {LATENCY: "100", "transaction.boundary": "connector"},
            f"{LATENCY} cannot be used with transaction.boundary=connector: only the connector "
            "ends its transactions",
        ),
        (
            FILE | {LATENCY: "5000", "producer.override.transaction.timeout.ms": "5000"},
            f"{LATENCY} is 5000, and brokers end transactions after 5000 ms",
        ),
        (
            {"connector.class": "DataFrameSource", "query": "q", "topic": "t", LATENCY: "100"},
            "DataFrameSource commits a transaction after records.per.transaction rows",
        ),
        (
            named(Broken) | {"exactly.once.support": "required"},
            "An unexpected error occurred during validation: boom",
        ),
    ],
)
def test_a_configuration_that_will_not_do_is_refused_in_connects_words(
    config: dict[str, str], says: str
) -> None:
    with pytest.raises(BadInput) as caught:
        validated("c", config, "g", "offs")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "config",
    [
        FILE,
        FILE | {"exactly.once.support": "required", "tasks.max": "4"},
        FILE | {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "120000"},
        FILE | {LATENCY: "100"},
        FILE
        | {
            LATENCY: "100",
            "transaction.boundary": "interval",
            "transaction.boundary.interval.ms": "50",
        },
        named(Quiet) | {"exactly.once.support": "requested"},
        named(Yes) | {"exactly.once.support": "required", "transaction.boundary": "connector"},
    ],
)
def test_a_configuration_that_will_do_gives_a_connector(config: dict[str, str]) -> None:
    path, connector = validated("c", config, "g", "offs")
    assert isinstance(connector, connector_class(path))
