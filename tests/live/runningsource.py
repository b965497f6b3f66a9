"""A file source on real workers that goes on while its offsets are changed, and a producer of its
task that is no more.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException, Producer
from connectctl.cli import apply
from connectctl.ops.connect.connector import State
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.operations.connectors.carried_offsets import CarryOffsets
from connectctl.ops.operations.connectors.steps import Await, SetTargetState
from connectctl.ops.operations.offsets.steps import Change
from connectctl.ops.operations.sink_offsets.steps import ChangeGroupOffsets
from live.offsetchanges import ctl, file_source, journal, live, read_all
from live.real import Ran, Workers, connectctl, connector, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

PROPERTY = "offsets.storage.topic"
MORE = 50
"""Lines that are written at a time."""


class Lines:
    """A FileStreamSource whose file grows by numbered lines.

    ``committed`` is how many of them are written to the topic ``data``, ``again`` how many somebody
    wanted to have twice.
    """

    def __init__(self, cluster: Sandbox, name: str, file: Path, rest: Workers):
        self.cluster, self.name, self.file, self.rest, self.count = cluster, name, file, rest, 0
        self.data, self.committed, self.again = name, 0, 0

    @property
    def own(self) -> str:
        return f"{self.data}-offsets"

    @property
    def topic(self) -> str:
        """The topic that its tasks commit to."""
        return str(self.config().get(PROPERTY, self.cluster.topics["offsets"]))

    @cached_property
    def zombie(self) -> Zombie:
        """A task of it that did not hear of its stop."""
        return Zombie(self, f"{self.cluster.group_id}-{self.name}-0")

    @cached_property
    def older_worker(self) -> Zombie:
        """A task of it on a worker of a release before 3.3."""
        return Zombie(self, None)

    def config(self) -> dict[str, str]:
        return dict(self.rest.call("GET", f"/connectors/{self.name}/config").json())

    def configure(self, topic: str | None) -> None:
        config = {name: value for name, value in self.config().items() if name != PROPERTY}
        self.rest.call(
            "PUT", f"/connectors/{self.name}/config", config | ({PROPERTY: topic} if topic else {})
        )
        eventually(lambda: self.config().get(PROPERTY) == topic)

    def write(self) -> list[str]:
        """Write some lines to the file."""
        lines = [f"line {n}" for n in range(self.count, self.count + MORE)]
        with self.file.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        self.count += MORE
        return lines

    def commit(self) -> None:
        """Write some lines, and wait until the connector has committed them."""
        self.write()
        eventually(lambda: self.position() == self.file.stat().st_size)
        self.committed = self.count

    def position(self) -> int | None:
        found = live(self.cluster, self.topic, self.name)
        return max((json.loads(value)["position"] for value in found.values()), default=None)

    def offsets(self, line: int) -> str:
        """What ``offsets set`` is given to start at a line."""
        position = sum(len(f"line {n}\n") for n in range(line))
        offset = {"partition": {"filename": str(self.file)}, "offset": {"position": position}}
        return json.dumps({"offsets": [offset]})

    def stop(self) -> None:
        self.rest.call("PUT", f"/connectors/{self.name}/stop")
        eventually(lambda: self.rest.state(self.name) == ["STOPPED"])

    def resume(self) -> None:
        self.rest.call("PUT", f"/connectors/{self.name}/resume")
        self.runs()

    def runs(self) -> None:
        eventually(lambda: self.rest.state(self.name) == ["RUNNING", "RUNNING"])

    def twice(self) -> int:
        """How many lines are in the topic more than once, once it has read all of the file; none
        may be missing.
        """
        self.runs()
        self.commit()
        expected = [f"line {n}" for n in range(self.count)]
        found = read_all(self.cluster, self.data)
        assert set(found) == set(expected)
        return len(found) - len(expected)

    def asked(self, *args: str, stdin: str | None = None) -> Ran:
        """The command, with whatever exit code."""
        return connectctl(
            "--context", f"sandbox-{self.cluster.spec.name}", *args, "--yes", stdin=stdin
        )

    def move(self, *args: str, code: int = 0) -> Ran:
        return ctl(self.cluster, *args, "--yes", code=code)

    def merge(self, into: str, code: int = 0) -> Ran:
        return self.move(*self.words_of_merge(into), code=code)

    def words_of_merge(self, into: str) -> list[str]:
        more = ["--topic", self.own] if into == "dedicated" else ["--unset-topic"]
        return ["offsets", "merge", self.name, "--into", into, *more, "--stop"]

    def migrate(self, migration: str, *sets: str) -> Ran:
        return self.move(*self.words_of_migration(migration, *sets))

    def words_of_migration(self, migration: str, *sets: str) -> list[str]:
        given = [word for each in (f"connector={self.name}", *sets) for word in ("--set", each)]
        return ["upgrade", "apply", "--migration", migration, *given, "--gate-timeout", "600"]

    def run(self) -> str:
        return journal().runs()[0].id


@contextmanager
def file_lines(cluster: Sandbox, directory: Path) -> Iterator[Lines]:
    """A source that has committed its first lines."""
    name, file = f"meanwhile-{uuid.uuid4().hex[:8]}", directory / "lines.txt"
    file.touch()
    with connector(cluster, name, file_source(file, name)) as rest:
        found = Lines(cluster, name, file, rest)
        found.commit()
        try:
            yield found
        finally:
            found.zombie.close()
    connectctl("--context", f"sandbox-{cluster.spec.name}", "upgrade", "abort", "--leave", "--yes")


class Zombie:
    """A task of ``lines`` that goes on beside its workers: a producer with its transactional id
    ``id_``, or with none.

    It writes the next lines and their offset in one transaction, as workers do; with no id, the
    offset to the global topic.
    """

    def __init__(self, lines: Lines, id_: str | None):
        self.lines, self.id_ = lines, id_
        self.outcome = ""
        self._global = lines.cluster.topics["offsets"]
        self._open: tuple[Producer, list[tuple[str, int, bytes, str]]] | None = None

    def _producer(self, **more: str) -> Producer:
        common = {
            "bootstrap.servers": self.lines.cluster.bootstrap_servers,
            "partitioner": "murmur2_random",
        }
        return Producer(common | more, logger=logging.getLogger("zombie"))

    def begin(self) -> None:
        """Write, and leave the transaction open."""
        lines, topic = self.lines, self.lines.topic if self.id_ else self._global
        producer = self._producer(**({"transactional.id": self.id_} if self.id_ else {}))
        if self.id_:
            producer.init_transactions(120)
            producer.begin_transaction()
        for line in lines.write():
            producer.produce(lines.data, value=json.dumps(line))
        ((partition, key), _) = next(iter(live(lines.cluster, self._global, lines.name).items()))
        offset = json.dumps({"position": lines.file.stat().st_size})
        producer.produce(topic, key=key, value=offset, partition=partition)
        assert producer.flush(300) == 0
        self._open = (
            producer,
            [(self._global, partition, key, offset)] if topic != self._global else [],
        )

    def commit(self) -> None:
        """Commit what is open; workers write the copy to the global topic then."""
        if self._open is None:
            return
        (producer, copies), self._open = self._open, None
        try:
            if self.id_:
                producer.commit_transaction(60)
        except KafkaException:
            self.outcome = "fenced"
            return
        copier = self._producer()
        for topic, partition, key, offset in copies:
            copier.produce(topic, key=key, value=offset, partition=partition)
        assert copier.flush(300) == 0
        self.outcome = "committed"
        self.lines.committed = self.lines.count

    def commits(self) -> None:
        self.begin()
        self.commit()

    def close(self) -> None:
        if self._open is not None and self.id_:
            with suppress(KafkaException):
                self._open[0].abort_transaction(60)


# ----------------------------------------------------------------------------- while a plan is made


class Once:
    """Does something, the first time that it is called."""

    def __init__(self, do: Callable[[], object]):
        self.do, self.done = do, False

    def __call__(self, *args: object, **more: object) -> None:
        if not self.done:
            self.done = True
            self.do()


@contextmanager
def at_the_answer(do: Callable[[], object]) -> Iterator[None]:
    """``do`` happens after the plan was made, and before it is agreed to."""
    act = Once(do)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "confirm", act)
        yield
    assert act.done


@contextmanager
def beside(
    kind: type[Any], when: Callable[[Any], bool], do: Callable[[], object], *, after: bool
) -> Iterator[Once]:
    """``do`` happens before or after the first step of ``kind`` for which ``when`` holds."""
    real, act = kind.apply, Once(do)

    def apply_step(self: Any, context: Any) -> str | None:
        if not after and when(self):
            act()
        said = real(self, context)
        if after and when(self):
            act()
        return said  # type: ignore[no-any-return]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "apply", apply_step)
        yield act


@contextmanager
def at_the_stop(do: Callable[[], object]) -> Iterator[None]:
    with beside(SetTargetState, lambda step: step.verb == "stop", do, after=False) as act:
        yield
    assert act.done


@contextmanager
def after_the_stop(do: Callable[[], object]) -> Iterator[None]:
    with beside(Await, lambda step: step.wanted is State.STOPPED, do, after=True) as act:
        yield
    assert act.done


@contextmanager
def at_the_resume(do: Callable[[], object]) -> Iterator[None]:
    """Where the run comes to it."""
    with beside(SetTargetState, lambda step: step.verb == "resume", do, after=False):
        yield


@contextmanager
def broken_off_after(
    kind: type[Any], when: Callable[[Any], bool] = lambda step: True
) -> Iterator[None]:
    """The run breaks off when it has done the step."""

    def broken() -> None:
        raise Unreachable("broken off")

    with beside(kind, when, broken, after=True) as act:
        yield
    assert act.done


@contextmanager
def broken_off() -> Iterator[None]:
    """The run breaks off where it would write."""

    def broken(self: Any, context: Any) -> str | None:
        raise Unreachable("broken off")

    with pytest.MonkeyPatch.context() as patch:
        for kind in (Change, ChangeGroupOffsets, CarryOffsets):
            patch.setattr(kind, "is_done", lambda self, context: None)
            patch.setattr(kind, "apply", broken)
        yield
