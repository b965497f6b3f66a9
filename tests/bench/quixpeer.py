"""Quix Streams as a peer of a bench: it has librdkafka below it, as our tasks have, and
transactions of its own.

It is no dependency of connectctl and has one of its own version of confluent-kafka, so it lives
elsewhere::

    python -m venv /tmp/quix && /tmp/quix/bin/pip install quixstreams
    python tests/bench/transform.py --quix /tmp/quix/bin/python
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

APPLICATION = """
import sys
from quixstreams import Application

bootstrap, group, source, target = sys.argv[1:]
app = Application(
    bootstrap,
    consumer_group=group,
    auto_offset_reset="earliest",
    commit_interval=0.1,
    processing_guarantee="exactly-once",
    loglevel="ERROR",
)
how = {"value_deserializer": "bytes", "key_deserializer": "bytes"}
back = {"value_serializer": "bytes", "key_serializer": "bytes"}
frame = app.dataframe(app.topic(source, **how))
frame.apply(bytes.upper).to_topic(app.topic(target, **back))
print("ready", flush=True)
sys.stdin.readline()  # both join at once, so that the first does not work alone
app.run()
"""


def version(python: str) -> str | None:
    """The version of Quix Streams that ``python`` has; None where it has none."""
    ask = "from importlib.metadata import version; print(version('quixstreams'))"
    try:
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@contextmanager
def processes(
    python: str, bootstrap: str, group: str, source: str, target: str, count: int
) -> Iterator[None]:
    """So many processes of one application, as its own documentation has it for more than one; they
    end with this.
    """
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        script = Path(directory) / "application.py"
        script.write_text(APPLICATION)
        command = [python, str(script), bootstrap, group, source, target]
        made = []
        for number in range(count):
            # for their state, of which two would make the directory at once
            home = Path(directory) / f"{number}"
            home.mkdir()
            one = subprocess.Popen(
                command, cwd=home, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            made.append(stack.enter_context(one))
            stack.callback(made[-1].kill)
        for each in made:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n", f"{python} ended with {each.wait(10)}"
        for each in made:
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        yield
        for each in made:
            assert each.poll() is None, (
                f"an application of Quix Streams ended with {each.returncode}"
            )
            each.terminate()
        for each in made:
            each.wait(60)
