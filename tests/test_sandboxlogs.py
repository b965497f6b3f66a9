"""What a failed test reports of its sandboxes' logs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from sandboxlogs import all_errors_since

LOG = """\
[2026-03-01 10:00:00,100] ERROR before the test (a.Logger)
java.lang.IllegalStateException: old
[2026-03-01 10:00:02,100] INFO fine (a.Logger)
[2026-03-01 10:00:03,100] ERROR Failed to modify offsets (a.Worker)
org.apache.kafka.connect.errors.ConnectException: wrapped
\tat a.Worker.modify(Worker.java:1)
Caused by: org.apache.kafka.common.errors.ProducerFencedException: another producer
\t... 5 more
[2026-03-01 10:00:04,100] WARN later (a.Logger)
java.lang.RuntimeException: of a warning
"""


def test_errors_since_the_test_began_are_told_with_their_causes(tmp_path: Path) -> None:
    logs = tmp_path / "connectctl" / "sandbox" / "tests" / "logs"
    logs.mkdir(parents=True)
    (logs / "worker-1.log").write_text(LOG)
    since = datetime(2026, 3, 1, 10, 0, 2).timestamp()
    assert all_errors_since(tmp_path, since) == [
        "tests worker-1 [2026-03-01 10:00:03,100] ERROR Failed to modify offsets (a.Worker)",
        "tests worker-1 org.apache.kafka.connect.errors.ConnectException: wrapped",
        "tests worker-1 Caused by: org.apache.kafka.common.errors.ProducerFencedException: "
        "another producer",
    ]


def test_of_very_many_errors_the_rest_is_counted(tmp_path: Path) -> None:
    logs = tmp_path / "connectctl" / "sandbox" / "tests" / "logs"
    logs.mkdir(parents=True)
    line = "[2026-03-01 10:00:03,100] ERROR again (a.Worker)\n"
    (logs / "broker-1.log").write_text(line * 45)
    assert all_errors_since(tmp_path, 0.0)[-1] == "… and 5 more lines"
