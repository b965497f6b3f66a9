"""``tasks.max`` of a transform that runs, changed by running its job file again: the new run takes
over from the older.
"""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live.piped import Piped
from live.real import eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]


def owners(place: Piped) -> dict[str, set[int]]:
    """The partitions of each member, by its instance id; two members never have the same one."""
    found = {
        m.group_instance_id: {p.partition for p in m.assignment.topic_partitions}
        for m in place.members()
    }
    every = [number for numbers in found.values() for number in numbers]
    assert len(every) == len(set(every))
    return found


def is_shared_by(place: Piped, tasks: int) -> bool:
    """Whether just so many tasks are members, each with partitions, and no partition is without an
    owner.
    """
    found = owners(place)
    ids = {f"{place.group}-{place.name}-{n}" for n in range(tasks)}
    return (
        found.keys() == ids
        and all(found.values())
        and set().union(*found.values()) == set(range(4))
    )


@pytest.mark.usefixtures("without_spark")
def test_tasks_become_fewer_and_more_and_each_record_is_there_once(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Piped(cluster, tmp_path, "Shout")
    older: subprocess.Popen[str] | None = None
    with ExitStack() as runs:
        for tasks in (2, 1, 3):
            place.config["tasks.max"] = str(tasks)
            place.append(400)  # the run of before may be in the middle of them when it is replaced
            run = runs.enter_context(place.running())
            if older is not None:
                out, err = older.communicate(timeout=900)
                assert (older.returncode, json.loads(out)["outcome"]) == (1, "taken"), err
            eventually(partial(is_shared_by, place, tasks))
            place.append(400)
            eventually(lambda: len(place.seen()) >= place.written)
            place.each_once()
            older = run
        assert older is not None
        older.send_signal(signal.SIGTERM)
        out, err = older.communicate(timeout=900)
        assert (older.returncode, json.loads(out)["outcome"]) == (0, "stopped"), err
    place.each_once()
    assert place.committed() == 4
    assert place.members() == []
