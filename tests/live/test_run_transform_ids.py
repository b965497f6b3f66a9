"""The transactional ids of a transform are those of a connector's tasks, so that they are listed
and fenced by its name.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from live.piped import Piped
from live.real import connectctl
from live.rundirectory import well

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.usefixtures("without_spark")
def test_a_transforms_ids_are_listed_and_fenced_by_its_name_and_its_next_run_goes_on(
    cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    place = Piped(cluster, tmp_path, "Shout")

    def ask(*args: str) -> Any:
        where = ["--context", f"sandbox-{cluster.spec.name}", "--group-id", place.group]
        ran = connectctl(*where, *args, "-o", "json")
        assert ran.code == 0, ran.out + ran.err
        return ran.json

    place.append(400)
    well(place.run(idle="3s"))
    ids = [f"{place.group}-{place.name}-{task}" for task in range(2)]
    listed = ask("transactions", "list", place.name)["transactions"]
    assert sorted(each["transactionalId"] for each in listed) == ids
    fenced = ask("fence", place.name, "--yes")["results"]
    assert sorted((each["transactionalId"], each["outcome"]) for each in fenced) == [
        (id, "fenced") for id in ids
    ]
    place.append(400)
    well(place.run(records=400))
    place.each_once()
