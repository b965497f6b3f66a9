"""The job file: what is taken, and one clear line with its number for what is not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.job.job_file import Until, parse, read, seconds
from hypothesis import given
from hypothesis import strategies as st

PATH = Path("numbers.yaml")
WHOLE = """
name: numbers
config:
  connector.class: FileStreamSource
  file: /data/in.txt
  tasks.max: 1
  errors.log.enable: yes
  ratio: 0.10
spark:
  master: "local[2]"
  conf: {spark.sql.shuffle.partitions: 4, spark.ui.enabled: false}
  packages: [a:b:1]
until: {idle: 5s}
"""


def test_a_job_has_its_values_as_they_are_written() -> None:
    job = parse(WHOLE, PATH)
    assert job.config == {
        "name": "numbers",
        "connector.class": "FileStreamSource",
        "file": "/data/in.txt",
        "tasks.max": "1",
        "errors.log.enable": "true",
        "ratio": "0.10",
    }
    assert (job.name, job.master, job.packages) == ("numbers", "local[2]", ("a:b:1",))
    assert job.conf == {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}
    assert job.until == Until(idle=5.0)


@pytest.mark.parametrize(
    ("until", "expected", "says"),
    [
        ("{idle: 500ms}", Until(idle=0.5), "until no records arrive for 0.5 s"),
        ("{records: 1000}", Until(records=1000), "until 1,000 records are written"),
        ("{duration: 2m}", Until(duration=120.0), "for 120 s"),
        ("{forever: true}", Until(), "until it is stopped"),
    ],
)
def test_a_job_ends_in_one_of_four_ways(until: str, expected: Until, says: str) -> None:
    found = parse(f"config: {{a: b}}\nuntil: {until}", PATH).until
    assert (found, str(found)) == (expected, says)


def test_a_job_is_called_after_its_file_and_goes_on_for_ever_where_nothing_else_is_said() -> None:
    job = parse("config: {a: b}", PATH)
    assert (job.name, job.until, job.master) == ("numbers", Until(), None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "numbers.yaml is not a job file: it is empty"),
        ("[1", "numbers.yaml, line 1: invalid YAML"),
        ("- 1", "numbers.yaml is not a job file"),
        ("name: x\nconfg: {a: b}", "line 2: unknown key confg. Did you mean config?"),
        (
            "name: x\nconnector.class: y",
            "line 2: unknown key connector.class. Properties of the connector belong",
        ),
        (
            "config: {a: b}\nspark:\n  mster: local",
            "line 3: unknown key mster. Did you mean master?",
        ),
        ("config: {a: b}\nuntil:\n  xyz: 1", "Valid keys here: idle, records, duration, forever."),
        (
            "config: {a: b}\nuntil:\n  idle: 5x",
            "line 3: invalid value of until.idle: invalid duration '5x'",
        ),
        ("config: {a: b}\nuntil: {idle: 0}", "invalid duration"),
        ("config: {a: b}\nuntil: {records: 0}", "line 2: invalid value of until.records"),
        (
            "config: {a: b}\nuntil: {records: 1, idle: 1s}",
            "it must have exactly one of idle, records, duration",
        ),
        ("config: {a: b}\nuntil: {forever: false}", "it must have exactly one"),
        ("config: {a: b}\nuntil: {records: 1, latency: 1s}", "line 2: unknown key latency."),
        ("config:\n  a: [1]", "line 2: invalid value of config.a"),
        ("config:\n  a:", "line 2: invalid value of config.a"),
        ("config:\n  a: 1\n  a: 2", "line 3: duplicate key a: first defined in line 2"),
        ("name: a\nconfig: {name: b}", "name is a, but config.name is b"),
        ("config: {a: b}\nplugins: [nowhere.whl]", "line 2:"),
    ],
)
def test_what_does_not_fit_is_one_line_that_says_where(text: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(text, PATH)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_plugins_are_looked_for_beside_the_job(tmp_path: Path) -> None:
    (tmp_path / "mine.whl").write_bytes(b"")
    (tmp_path / "job.yaml").write_text("config: {a: b}\nplugins: [mine.whl]")
    assert read(tmp_path / "job.yaml").plugins == ((tmp_path / "mine.whl").resolve(),)


def test_a_file_that_is_not_there_or_no_text_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Cannot read the job file"):
        read(tmp_path / "none.yaml")
    (tmp_path / "raw.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(BadInput, match="not UTF-8"):
        read(tmp_path / "raw.yaml")


@given(st.integers(1, 10**6), st.sampled_from(["ms", "s", "m", "h", "d", ""]))
def test_spans_are_numbers_with_units(number: int, unit: str) -> None:
    assert seconds(f"{number}{unit}") == seconds(f" {number} {unit} ")
    assert seconds(f"{number}s") == number


@given(st.text(max_size=200))
def test_any_text_is_a_job_or_bad_input(text: str) -> None:
    with suppress(BadInput):
        parse(text, PATH)
