"""Tasks are replaced once their connector would generate others, and a look that fails is
repeated.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from connectctl.ops.core.errors import Unreachable
from connectctl.ops.task_runtime.job.task_changes import TaskChanges, TaskConfigs


def test_a_change_is_taken_once_and_a_failed_look_is_reported_once_until_it_succeeds() -> None:
    answers: list[TaskConfigs | Unreachable | None] = [
        Unreachable("no"), Unreachable("no"), None, Unreachable("no"), [{"a": "1"}]
    ]  # fmt: skip
    notes: list[str] = []

    def look(running: Sequence[dict[str, str]]) -> TaskConfigs | None:
        answer = answers.pop(0)
        if isinstance(answer, Unreachable):
            raise answer
        return answer

    changes = TaskChanges(1.0, look, notes.append)
    for _ in range(4):
        changes.update([])
        assert changes.take() is None
    changes.update([])
    assert changes.found
    assert (changes.take(), changes.take(), changes.found) == ([{"a": "1"}], None, False)
    assert (
        notes
        == ["warning: could not look for new topics and partitions, which is repeated: no"] * 2
    )


def test_it_looks_at_the_running_tasks_until_it_is_over() -> None:
    seen, looked = list[Sequence[dict[str, str]]](), threading.Event()

    def look(running: Sequence[dict[str, str]]) -> None:
        seen.append(running)
        looked.set()

    changes = TaskChanges(0.001, look, print)
    with changes.watching(lambda: [{"n": "0"}]):
        assert looked.wait(60)
    assert seen[0] == [{"n": "0"}]
    with TaskChanges(None, look, print).watching(lambda: []):
        pass
