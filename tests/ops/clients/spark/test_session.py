"""What is told of a Spark session, and what travels to executors, without Spark."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from connectctl import StreamWriter, Target, write_exactly_once
from connectctl.ops.clients.spark import executors
from connectctl.ops.clients.spark.session import (
    close_session,
    escape,
    first_line,
    open_session,
    spark_settings,
)
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.job.preconditions import check_master
from hypothesis import given
from hypothesis import strategies as st

PY4J = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
LOST = (
    "Job aborted due to stage failure: Task 0 in stage 2.0 failed 4 times, most recent "
    "failure: Lost task 0.3 in "
)
TRACEBACK = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/spark/worker.py", line 12, in main
    func(1)

pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has another version.

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            f"{PY4J}: java.net.UnknownHostException: nowhere\n\tat x\n",
            "java.net.UnknownHostException: nowhere",
        ),
        (
            f"{PY4J}: org.apache.spark.SparkException: {LOST}stage 2.0 (TID 7) (10.0.0.7 executor 3): java.io.IOException: "
            'Cannot run program "x"\n\tat y\n',
            'java.io.IOException: Cannot run program "x" (executor 3)',
        ),
        (
            f"{PY4J}: org.apache.spark.SparkException: {LOST}stage 2.0 (TID 7) (10.0.0.7 executor "
            f"3): {TRACEBACK}",
            "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python "
            "in worker has another version.",
        ),
        (
            "\n  An exception was thrown from the Python worker.\n"
            f"{TRACEBACK}connectctl.ops.core.errors.BadInput: no such topic",
            "no such topic",
        ),
        ("", "Exception"),
    ],
)
def test_the_cause_is_told_and_not_the_way_it_came(error: str, line: str) -> None:
    assert first_line(Exception(error)) == line


def test_masters_of_this_machine_alone_have_their_driver_on_the_loopback_address() -> None:
    alone = {
        m: spark_settings(m, {}).get("spark.driver.host")
        for m in ("local[2]", "local-cluster[1,1,512]", "spark://localhost:1")
    }
    assert set(alone.values()) == {"127.0.0.1"}
    for elsewhere in (
        "spark://spark.example.com:7077",
        "yarn",
        "k8s://https://10.0.0.1:443",
        "spark://127.0.0.1:1,b:1",
    ):
        assert "spark.driver.host" not in spark_settings(elsewhere, {})
    assert (
        spark_settings("spark://127.0.0.1:1", {"spark.driver.host": "192.0.2.1"})[
            "spark.driver.host"
        ]
        == "192.0.2.1"
    )


def test_settings_are_told_as_spark_reads_them() -> None:
    wish = spark_settings("yarn", {"a": True, "b": 2})
    assert (wish["a"], wish["b"], wish["spark.master"]) == ("true", "2", "yarn")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00")))
def test_a_word_of_a_properties_file_has_no_space_nor_line_of_its_own(text: str) -> None:
    escaped = escape(text)
    assert "\n" not in escaped
    unescaped, rest = [], iter(escaped)
    for char in rest:
        assert not char.isspace()
        unescaped.append(
            {"n": "\n", "r": "\r", "t": "\t"}.get(c := next(rest), c) if char == "\\" else char
        )
    assert "".join(unescaped) == text


def test_only_masters_whose_executors_are_other_processes_are_sent_anything() -> None:
    assert [executors.apart(m) for m in ("local", "local[*]", "local[2,3]")] == [False] * 3
    assert all(
        executors.apart(m)
        for m in ("local-cluster[2,1,512]", "spark://a:1", "yarn", "k8s://https://a")
    )


def test_spark_connect_is_refused_in_one_line_as_a_master_and_as_a_frame(tmp_path: Path) -> None:
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    target = Target({}, "g", "c", "t", "o", "shop", "id")
    for refused in (
        lambda: open_session("sc://a:15002", {}, tmp_path / "log"),
        lambda: check_master("sc://a:15002", 1.0),
        lambda: write_exactly_once(frame, target),
        lambda: StreamWriter(target)(frame, 0),
    ):
        with pytest.raises(BadInput, match=r"^Spark Connect is not supported: ") as e:
            refused()
        assert e.value.code == "spark-connect"


def test_the_archive_is_enough_to_run_a_task_and_the_same_each_time(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first, again = executors.archive(tmp_path), executors.archive(tmp_path / "again")
    assert first.read_bytes() == again.read_bytes()
    program = (
        "import connectctl.ops.task_runtime.job.spark_round, connectctl.ops.jobs.audit as "
        "a; print(a.__file__); "
    )
    program += "from connectctl import Target, source, sink, transform; print(source.__file__)"
    hidden = (
        "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in str(f)]; "
    )
    hidden += f"sys.path.insert(0, {str(first)!r}); "
    ran = subprocess.run(
        [sys.executable, "-c", hidden + program], capture_output=True, text=True, check=False
    )
    assert [line.startswith(str(first)) for line in ran.stdout.splitlines()] == [True, True], (
        ran.stderr
    )


def test_what_an_executor_lacks_is_seen_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    (answer,) = executors.python_of_executor([0])
    assert (answer["missing"], answer["python"]) == (["confluent_kafka"], sys.executable)


def test_a_session_whose_java_was_killed_is_over_without_a_word() -> None:
    from py4j.protocol import Py4JError, Py4JNetworkError

    class Session:
        def __init__(self, error: Exception):
            self._error = error

        def stop(self) -> None:
            raise self._error

    for error in (
        Py4JNetworkError("Error while sending"),
        Py4JError("no class"),
        ConnectionRefusedError(),
    ):
        close_session(Session(error))
    with pytest.raises(ValueError, match="a bug"):
        close_session(Session(ValueError("a bug")))


def test_spark_is_told_which_settings_its_event_log_must_leave_out() -> None:
    wish = spark_settings("local", {})
    for pattern in (wish["spark.redaction.regex"], wish["spark.sql.redaction.options.regex"]):
        for name in (
            "spark.hadoop.fs.s3a.secret.key",
            "spark.x.apiKey",
            "fs.azure.account.key",
            "db.passwd",
            "sasl.jaas.config",
        ):
            assert re.search(pattern.replace("|(?i)url", ""), name), name
        for name in (
            "spark.app.name",
            "spark.serializer",
            "spark.sql.session.timeZone",
            "spark.x.primaryKey",
        ):
            assert not re.search(pattern.replace("|(?i)url", ""), name), name


@pytest.mark.parametrize(
    ("master", "authenticate"),
    [
        ("local", "true"),
        ("local[*]", "true"),
        ("local[2,3]", "true"),
        ("yarn", "true"),
        ("k8s://https://h:1", "true"),
        # Its master and workers would have to have the same secret.
        ("spark://h:7077", None),
        ("local-cluster[1,1,1024]", None),
    ],
)
def test_sparks_connections_are_authenticated_where_spark_makes_the_secret(
    master: str, authenticate: str | None
) -> None:
    assert spark_settings(master, {}).get("spark.authenticate") == authenticate
    assert spark_settings(master, {"spark.authenticate": False})["spark.authenticate"] == "false"


@pytest.mark.parametrize(
    "name", ["spark.driver.extraJavaOptions", "spark.executor.defaultJavaOptions"]
)
@pytest.mark.parametrize(
    "value", ["-Djavax.net.ssl.trustStorePassword=x1y2z3", "-Da=b -Dapi.key=x1y2z3"]
)
def test_a_secret_in_the_options_of_a_jvm_is_refused(name: str, value: str) -> None:
    with pytest.raises(BadInput, match="contains a secret") as told:
        spark_settings("local", {name: value})
    assert "x1y2z3" not in str(told.value)
    assert (
        spark_settings("local", {name: "-Xmx1g -Dlog4j2.level=warn"})[name]
        == "-Xmx1g -Dlog4j2.level=warn"
    )


def test_a_persons_own_expression_is_added_to_what_is_redacted() -> None:
    pattern = spark_settings("local", {"spark.redaction.regex": "Mine"})["spark.redaction.regex"]
    ours = spark_settings("local", {})["spark.redaction.regex"]
    assert pattern == f"(?:Mine)|{ours}"
    for value in (
        "jdbc:x://me:pw@h",
        "https://h/x?sig=abc",
        "https://h/x?a=1&X-Amz-Signature=abc",
        "my.password",
    ):
        assert re.search(ours, value)
    for value in ("https://h/x?a=b", "spark://h:7077", "local[*]", "org.example.Passage"):
        assert not re.search(ours, value)


TWO_SESSIONS = """
import sys
from pathlib import Path
from connectctl.ops.clients.spark.session import close_session, open_session
for conf in ({"spark.connectctl.first": "1", "spark.connectctl.both": "1"}, {"spark.connectctl.both": "2"}):
    spark = open_session("local[1]", conf, Path(sys.argv[1]))
    print(*(f"{name}={value}" for name, value in sorted(spark.sparkContext.getConf().getAll()) if "connectctl." in name))
    close_session(spark)
"""


def test_a_session_has_no_settings_of_an_earlier_one_in_the_same_process(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", TWO_SESSIONS, str(tmp_path / "spark.log")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines() == [
        "spark.connectctl.both=1 spark.connectctl.first=1",
        "spark.connectctl.both=2",
    ]
