"""Secrets in Spark's settings are in no event log, no command line, no log and no temporary file
that stays.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.secrets import Planted

pytestmark = pytest.mark.live
NAMES = (
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net",
    "spark.ssl.keyStorePassword",
    "spark.x.apiKey",
    "spark.x.api.key",
    "spark.x.db.passwd",
    "spark.x.db.pwd",
    "spark.x.passphrase",
    "spark.x.credentials",
    "spark.x.user.info",
    "spark.x.token",
    "spark.x.jaas",
    "spark.x.pin",
    "spark.x.auth",
    "spark.x.own.setting",
)
SESSION = """
import json, sys
from pathlib import Path
import psutil
from connectctl.ops.clients.spark.session import close_session, open_session

given = json.loads(sys.stdin.read())
spark = open_session("local[1]", given["conf"], Path(given["log"]))
assert spark.range(5).selectExpr("sum(id)").collect()[0][0] == 10
lines = []
for child in psutil.Process().children(recursive=True):
    try:
        lines += child.cmdline()
    except psutil.Error:
        pass  # It ended meanwhile; the driver's, which is looked for below, lives.
Path(given["processes"]).write_text("\\n".join(lines))
close_session(spark)
"""


def test_a_session_tells_no_secret_of_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = Planted()
    events, temporary = tmp_path / "events", tmp_path / "tmp"
    events.mkdir()
    temporary.mkdir()
    conf = {name: planted.secret() for name in NAMES}
    conf |= {
        "spark.x.database": f"jdbc:x://me:{planted.secret()}@db/x",
        "spark.x.signed": f"https://h/x?a=b&sig={planted.secret()}",
        "spark.redaction.regex": "own[.]setting",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    monkeypatch.setenv("TMPDIR", str(temporary))
    # What is given on the standard input is on no command line of the test's own.
    given = json.dumps(
        {
            "conf": conf,
            "log": str(tmp_path / "spark.log"),
            "processes": str(tmp_path / "processes.txt"),
        }
    )
    ran = subprocess.run(
        [sys.executable, "-c", SESSION], input=given, text=True, capture_output=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert planted.found_in(ran.stdout + ran.stderr) == []
    logs = [
        path
        for path in events.rglob("*")
        if path.is_file() and "SparkListenerEnvironmentUpdate" in path.read_text()
    ]
    assert logs
    assert "spark.x.apiKey" in logs[0].read_text()
    assert "SparkSubmit" in (tmp_path / "processes.txt").read_text()
    assert list(planted.in_files([tmp_path])) == []
