"""What a plan says of source offsets is what workers make of them: orphaned, begun anew, carried
over, resumed, shared.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from live.offsetchanges import read_all
from live.real import FILE_SOURCE, Ran, connectctl, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


class Lines:
    """A FileStreamSource with the lines ``a 0``, ``a 1``, … of a file of its own."""

    def __init__(self, cluster: Sandbox, directory: Path):
        self.cluster, self.directory, self.name = (
            cluster,
            directory,
            f"lines-{uuid.uuid4().hex[:8]}",
        )
        self.rest, self.rows = workers(cluster), list[str]()
        self.write("a.txt", 3)

    def file(self, name: str) -> str:
        return str(self.directory / name)

    def write(self, name: str, count: int) -> None:
        """Have ``count`` lines in the file ``name``, which begin with its first letter."""
        (self.directory / name).write_text("".join(f"{name[0]} {n}\n" for n in range(count)))

    def config(self, **more: str) -> dict[str, str]:
        config = {
            "connector.class": FILE_SOURCE,
            "topic": self.name,
            "file": self.file("a.txt"),
            "name": self.name,
        }
        return config | more

    def ctl(self, *args: str, code: int = 0) -> Ran:
        ran = connectctl("--context", f"sandbox-{self.cluster.spec.name}", "--timeout", "60", *args)
        assert ran.code == code, ran.out + ran.err
        return ran

    def told(self, *args: str) -> str:
        """The plan's only change, in words."""
        steps = self.ctl("connectors", *args, "--dry-run", "-o", "json").json["steps"]
        (change,) = (
            each for each in steps if each["step"] in ("ChangeConnector", "CreateConnector")
        )
        return str(change["description"])

    def changed(self, *args: str) -> str:
        """The id of the run that changed it."""
        self.ctl("connectors", *args, "--yes", "--wait")
        return str(connectctl("runs", "list", "-o", "json").json["runs"][0]["id"])

    def came(self, *rows: str) -> None:
        """Just ``rows`` came to the topic since the last look, and are committed as source
        offsets.
        """
        self.rows += rows
        eventually(lambda: len(read_all(self.cluster, self.name)) >= len(self.rows))
        assert read_all(self.cluster, self.name) == self.rows

    def offsets(self) -> dict[str, Any]:
        seen = self.rest.call("GET", f"/connectors/{self.name}/offsets").json()["offsets"]
        return {
            Path(each["partition"]["filename"]).name: each["offset"]["position"] for each in seen
        }

    def committed(self, **expected: int) -> None:
        """The workers have these offsets, by the names of files."""
        eventually(lambda: self.offsets() == {f"{name}.txt": at for name, at in expected.items()})


@pytest.fixture
def lines(cluster: Sandbox, tmp_path: Path) -> Iterator[Lines]:
    made = Lines(cluster, tmp_path)
    made.rest.create(made.name, made.config(), "RUNNING")
    made.came("a 0", "a 1", "a 2")
    made.committed(a=12)
    yield made
    made.rest.delete(made.name)


def test_another_file_is_begun_anew_the_old_offset_is_orphaned_and_undo_goes_on_with_it(
    lines: Lines,
) -> None:
    lines.write("b.txt", 2)
    change = ("patch", lines.name, f"file={lines.file('b.txt')}")
    told = lines.told(*change)
    assert "orphans 1 source offset" in told
    assert f'starts from the beginning: {{"filename":"{lines.file("b.txt")}"}}' in told
    assert "--carry-offsets carries them over instead" in told
    run = lines.changed(*change)
    lines.came("b 0", "b 1")
    lines.committed(a=12, b=8)
    lines.ctl("runs", "undo", run, "--yes")
    lines.committed(a=12)
    lines.write("a.txt", 4)
    lines.came("a 3")


def test_a_file_that_was_moved_is_read_on_where_its_offset_is_carried_over_and_undo_carries_that_back(
    lines: Lines,
) -> None:
    (lines.directory / "c.txt").hardlink_to(lines.file("a.txt"))
    change = ("patch", lines.name, f"file={lines.file('c.txt')}", "--carry-offsets")
    assert "carries 1 source offset over" in lines.told(*change)
    run = lines.changed(*change)
    lines.write("a.txt", 4)
    lines.came("a 3")
    lines.committed(c=16)
    lines.ctl("runs", "undo", run, "--yes")
    lines.committed(a=16)
    lines.write("a.txt", 5)
    lines.came("a 4")


def test_what_is_no_part_of_a_source_partition_says_nothing_and_keeps_the_offset(
    lines: Lines,
) -> None:
    assert "offset" not in lines.told("patch", lines.name, "batch.size=10")
    lines.changed("patch", lines.name, "batch.size=10")
    lines.write("a.txt", 4)
    lines.came("a 3")


def test_a_connector_that_is_created_again_resumes_and_the_plan_says_so_and_another_one_shares_its_file(
    lines: Lines,
) -> None:
    given = lines.directory / "given.json"
    given.write_text(json.dumps(lines.config(name=f"{lines.name}-too")))
    assert f"reads the same source partitions as {lines.name}" in lines.told(
        "create", "-f", str(given)
    )
    lines.ctl("connectors", "delete", lines.name, "--yes", "--wait")
    given.write_text(json.dumps(lines.config()))
    assert "resumes from 1 source offset stored before" in lines.told("create", "-f", str(given))
    lines.write("a.txt", 4)
    lines.changed("create", "-f", str(given))
    lines.came("a 3")


def test_offsets_are_not_carried_over_where_they_cannot_all_be(lines: Lines) -> None:
    lines.write("b.txt", 2)
    lines.changed("patch", lines.name, f"file={lines.file('b.txt')}")
    lines.came("b 0", "b 1")
    lines.committed(a=12, b=8)
    # What it read before has its own offset already.
    refused = lines.ctl(
        "connectors", "patch", lines.name, f"file={lines.file('a.txt')}", "--carry-offsets", code=4
    )
    assert "Not every source offset" in refused.err
