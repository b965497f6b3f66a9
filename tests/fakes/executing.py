"""Steps carried out in a journal of their own, with a lock that nobody else holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from connectctl.ops.core.executor import execute
from connectctl.ops.core.journal import Journal
from connectctl.ops.core.plan import Result
from fakes.locks import FakeLock


def performed(steps: Sequence[Any], context: Any) -> list[Result]:
    """What came of the steps, of which a failed one ends only those of its resource."""
    with TemporaryDirectory() as directory:
        journal = Journal(Path(directory))
        run = journal.begin("test", "cluster", "group", (), {})
        return execute(steps, context, journal, run, lock=FakeLock(), independent=True)
