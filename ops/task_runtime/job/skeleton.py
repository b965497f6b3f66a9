"""Writes a new source connector: a module, a test and a job file that work without changes."""

from __future__ import annotations

import keyword
from importlib.util import find_spec
from pathlib import Path
from string import Template

from connectctl.ops.core.errors import BadInput, Refused

MODULE = '''"""A source connector of connectctl: replace fetch by what reads your source, and settings by what it
needs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from connectctl.source import ExactlyOnceSupport, Setting, SourceConnector, SourceRecord, SourceTask

PAUSE = 0.5
"""Seconds between two polls that find nothing; at most a second, so that the task can be stopped."""


def fetch(after: int) -> list[dict[str, Any]]:
    """Return the next rows after the row with the id ``after``, in the order of their ids; an empty
    list if there are none now.

    Raise ``connectctl.source.RetriableError`` for what may pass, such as a lost connection: it is
    called again. Any other exception fails the task.
    """
    return [{"id": n, "text": f"row {n}"} for n in range(after + 1, min(after + 10, 100) + 1)]


class ${kind}Task(SourceTask):
    def start(self, configs: Mapping[str, str]) -> None:
        self.topic = configs["topic"]
        self.partition = {"source": "${name}"}  # what one task reads in order
        committed = self.context.offsets.offset(self.partition)  # None at the first start
        self.last = committed["id"] if committed else 0

    def poll(self) -> list[SourceRecord] | None:
        rows = fetch(self.last)
        if not rows:
            time.sleep(PAUSE)
            return None
        self.last = rows[-1]["id"]
        return [
            SourceRecord(self.partition, {"id": row["id"]}, self.topic, row, key=str(row["id"]))
            for row in rows
        ]

    def stop(self) -> None:
        """Close what start has opened."""


class ${kind}(SourceConnector):
    task = ${kind}Task
    settings = (Setting("topic", "where the records go", required=True),)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        # One task; for more, distribute the source partitions among at most max_tasks.
        return [dict(self.configs)]

    def exactly_once_support(self, configs: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED
'''
TEST = '''"""${kind} without a cluster: pytest test_${name}.py"""

from __future__ import annotations

import pytest
from connectctl.testing import check_exactly_once, run_source

import ${name}
from ${name} import ${kind}

CONFIG = {
    "topic": "${connector}",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
}


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(${name}, "PAUSE", 0.0)


def test_each_row_is_a_record_and_the_offset_is_that_of_the_last() -> None:
    run = run_source(${kind}, CONFIG)
    assert run.values("${connector}")[:2] == [b'{"id":1,"text":"row 1"}', b'{"id":2,"text":"row 2"}']
    assert run.offsets == [({"source": "${name}"}, {"id": 100})]


def test_it_resumes_behind_the_committed_offset() -> None:
    run = run_source(${kind}, CONFIG, offsets=[({"source": "${name}"}, {"id": 97})])
    assert len(run.records) == 3


def test_it_is_exactly_once_whatever_fails() -> None:
    check_exactly_once(lambda fail_at: run_source(${kind}, CONFIG, fail_at=fail_at))
'''
JOB = """# connectctl --group-id spark-jobs run ${name}.yaml
name: ${connector}
config:
  connector.class: ${name}:${kind}
  topic: ${connector}
  value.converter: JsonConverter
  value.converter.schemas.enable: "false"
spark: {master: "local[1]"}
until: {idle: 5s} # or forever: true
"""


def skeleton(path: Path) -> dict[Path, str]:
    """Return the contents of the files of a new connector, by path. ``path`` is its module without
    ``.py``.

    Raises ``BadInput`` if the name is not valid for a new module, ``Refused`` if a file exists.
    """
    name, directory = path.name, path.parent
    _check(name, directory)
    kind = "".join(part.capitalize() for part in name.split("_"))
    words = {"name": name, "kind": kind, "connector": name.replace("_", "-")}
    texts = {f"{name}.py": MODULE, f"test_{name}.py": TEST, f"{name}.yaml": JOB}
    files = {directory / file: Template(text).substitute(words) for file, text in texts.items()}
    if existing := [str(file) for file in files if file.exists()]:
        raise Refused(
            f"{existing[0]} exists, and is not overwritten",
            next_step="Give another name, or remove it.",
            code="exists",
        )
    return files


def write(files: dict[Path, str]) -> None:
    """Write ``files`` without overwriting any. Raises ``BadInput`` if that fails."""
    for file, text in files.items():
        try:
            with file.open("x") as stream:
                stream.write(text)
        except OSError as e:
            raise BadInput(f"Cannot write {file}", why=e.strerror or str(e)) from e


def _check(name: str, directory: Path) -> None:
    if not (name.isascii() and name.isidentifier() and name == name.lower()) or keyword.iskeyword(
        name
    ):
        raise BadInput(
            f"{name} cannot be the name of a new module",
            next_step="Use lower-case letters, digits and _: my_source.",
        )
    if not directory.is_dir():
        raise BadInput(f"{directory} is not a directory", next_step=f"mkdir -p {directory}")
    spec = find_spec(name)
    if spec is not None and (
        spec.origin is None or Path(spec.origin).parent.resolve() != directory.resolve()
    ):
        raise BadInput(
            f"A module {name} is installed, and would be imported in place of yours",
            why=str(spec.origin),
            next_step="Give another name.",
        )
