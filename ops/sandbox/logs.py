"""The logs of a sandbox's processes: how they are written, and what in them is worth showing."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from connectctl.ops.core.errors import BadInput
from connectctl.ops.sandbox.jars.versions import KafkaVersion
from connectctl.ops.sandbox.layout import SandboxLayout

_LOG4J2 = """rootLogger.level=INFO
rootLogger.appenderRef.out.ref=OUT
appender.out.type=Console
appender.out.name=OUT
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
logger.tokens.name=org.apache.kafka.common.security.oauthbearer.internals.unsecured
logger.tokens.level=WARN
"""
# The last two lines: it would write down the claims of every token, one of which is a secured
# sandbox's secret.

_LOG4J1 = """log4j.rootLogger=INFO, OUT
log4j.appender.OUT=org.apache.log4j.ConsoleAppender
log4j.appender.OUT.layout=org.apache.log4j.PatternLayout
log4j.appender.OUT.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.org.reflections=ERROR
log4j.logger.org.apache.kafka.common.security.oauthbearer.internals.unsecured=WARN
"""

_TELLING = (" ERROR ", " FATAL ", "Exception", "Error:", "Address already in use")


def write_logging(version: KafkaVersion, directory: Path) -> str:
    """Write the logging configuration for a process of this version; return the JVM option that
    names it.
    """
    if version.logs_with_log4j2:
        file = directory / "log4j2.properties"
        file.write_text(_LOG4J2)
        return f"-Dlog4j2.configurationFile={file.as_uri()}"
    file = directory / "log4j.properties"
    file.write_text(_LOG4J1)
    return f"-Dlog4j.configuration={file.as_uri()}"


def telling_line(text: str) -> str:
    """Return the line of a log that most likely has the cause of its process's failure: the last
    one with an error, else the last.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # A stack trace ends with its cause, which explains more than its first line.
    causes = [line for line in lines if line.startswith("Caused by:")]
    errors = [
        line
        for line in lines
        if any(word in line for word in _TELLING) and not line.startswith("at ")
    ]
    chosen = (causes or errors or lines or ["the log is empty"])[-1]
    return chosen if len(chosen) <= 300 else chosen[:297] + "..."


def log_files(layout: SandboxLayout, wanted: Sequence[str]) -> dict[str, Path]:
    """Return the logs of these processes, of all when none is named, by process. Raises BadInput
    for an unknown name.
    """
    found = {path.stem: path for path in sorted(layout.logs.glob("*.log"))}
    if unknown := [name for name in wanted if name not in found]:
        raise BadInput(
            f"Log not found in sandbox {layout.name}: {', '.join(unknown)}",
            next_step=f"Available: {', '.join(found)}."
            if found
            else f"Its directory is {layout.root}.",
            code="no-log",
        )
    return {name: found[name] for name in wanted or found}


def last_lines(path: Path, count: int) -> list[str]:
    """Return the last ``count`` lines of a log; none where there is no log."""
    if not path.exists() or count <= 0:
        return []
    with path.open(errors="replace") as log:
        return [line.rstrip("\n") for line in deque(log, count)]


def follow(
    paths: Mapping[str, Path], *, is_over: Callable[[], bool], pause: float = 0.25
) -> Iterator[tuple[str, str]]:
    """New lines of several logs as they come, each with its log's name, until ``is_over``;
    ``pause`` in seconds.
    """
    positions = {name: path.stat().st_size if path.exists() else 0 for name, path in paths.items()}
    rests = dict.fromkeys(paths, "")
    while True:
        ending = is_over()
        for name, path in paths.items():
            if not path.exists():
                continue
            with path.open("rb") as log:
                log.seek(positions[name])
                chunk = log.read()
            positions[name] += len(chunk)
            *lines, rests[name] = (rests[name] + chunk.decode(errors="replace")).split("\n")
            yield from ((name, line) for line in lines)
        if ending:
            return
        time.sleep(pause)
