"""Stops an instance of the application and starts it again:
``restartpipe.py DIRECTORY PORT JAVA CLASSPATH``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil


def main(directory: Path, port: str, java: str, class_path: str) -> None:
    """Wait until the old process is gone, at most so long as a close may take, before the new one
    is started.
    """
    pid = directory / f"{port}.pid"
    if pid.exists() and psutil.pid_exists(int(pid.read_text())):
        old = psutil.Process(int(pid.read_text()))
        old.terminate()
        psutil.wait_procs([old], timeout=30)
    with (directory / f"{port}.log").open("a") as log:
        command = [
            java,
            "-Xmx96m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            class_path,
            "Pipe",
        ]
        process = subprocess.Popen(
            [*command, f"{directory}/{port}.properties"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    pid.write_text(str(process.pid))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5])
