"""Starts a new generation of tasks in a group without workers: the driver does the leader's part of
KIP-618.

The order matters. First the producer with the leader's transactional id is initialised, so that an
older driver cannot write any more. Then the task configs are written, which make older tasks stale
that are not yet initialised. Then zombie fencing ends the older tasks that are initialised. Last
the task count record is written, without which no new task starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from connectctl.ops.connect.group_mark import GroupMark
from connectctl.ops.connect.transactional_ids import leader_id, task_id
from connectctl.ops.core.errors import Refused, TimedOut
from connectctl.ops.kafka.fence_attempt import NO_ANSWER
from connectctl.ops.operations.fencing.batch_fencer import fence_ids
from connectctl.ops.task_runtime.job.config_topic_records import (
    ConfigTopicState,
    Generation,
    KeyValue,
    config_topic_state,
    count_record,
    task_set,
)
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, TransactionBatch
from connectctl.ops.task_runtime.task.retries import RetryPolicy
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    TaskProducer,
    UnknownOutcome,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.clients.protocols import TransactionCalls
    from connectctl.ops.operations.fencing.snapshot import IdResult

LEADER_TIMEOUT_MS = 15_000
READ_PATIENCE = 30.0
PAUSE = 0.2
MOST_FENCED = 5
_NOT_RETRIABLE = {
    "not-authorized",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "UNSUPPORTED_VERSION",
    "INVALID_REQUEST",
    "INVALID_TRANSACTION_TIMEOUT",
}
"""Codes of failed fencing for which a retry would fail in the same way."""


@dataclass(frozen=True)
class Leader:
    """The leader that starts generations of the connectors of ``group``. ``patience`` is the
    seconds for each step of a start; ``retry`` repeats a start that did not complete.
    """

    kafka: Kafka
    calls: TransactionCalls
    group: str
    topic: str
    patience: float = 60.0
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(60.0))
    topics: Mapping[str, str] = field(default_factory=dict)
    """The group's offsets and status topics, by role, if they are known."""

    def start(
        self,
        name: str,
        config: Mapping[str, str],
        choose: Callable[[ConfigTopicState], Sequence[Mapping[str, str]]],
    ) -> Generation:
        """Write the task configs that ``choose`` returns for the current state, fence the older
        tasks, and write the task count record.

        After an unknown outcome, or if Kafka does not respond, the whole start is repeated. The new
        producer commits or aborts the transaction of the earlier one, and the config topic is read
        again. No single request is repeated.

        Raises ``Refused`` if other leaders of the group repeatedly fence this one, ``TimedOut`` and
        ``Unreachable`` if the start does not complete in time, and ``ConnectctlError`` if ids could
        not be fenced.
        """
        fenced = 0

        def begun() -> Generation:
            nonlocal fenced
            while True:
                try:
                    return self._start(name, config, choose)
                except UnknownOutcome as e:
                    raise TimedOut(f"Could not start {name}", why=str(e)) from e
                except Fenced as e:
                    # Another connector of the group may be starting, which uses the same id
                    # temporarily.
                    fenced += 1
                    if fenced >= MOST_FENCED:
                        raise Refused(
                            f"Another run or worker is the leader of group {self.group}",
                            why=str(e),
                            next_step="Use a separate group.id for each, or start one after the "
                            "other.",
                            code="fenced",
                        ) from e
                    time.sleep(PAUSE)

        return self.retry(f"start the tasks of {name}", begun)

    def _start(
        self,
        name: str,
        config: Mapping[str, str],
        choose: Callable[[ConfigTopicState], Sequence[Mapping[str, str]]],
    ) -> Generation:
        handle = TaskProducer(self.kafka, leader_id(self.group), timeout_ms=LEADER_TIMEOUT_MS)
        try:
            handle.initialise(self.patience)
            before = self.read_state(name)
            tasks = choose(before)
            mark = GroupMark(self.group, self.topics.get("offsets"), self.topics.get("status"))
            self._write(handle, task_set(name, config, tasks, mark))
            written = self.read_state(name)
            if (written.committed_tasks, written.tasks) != (len(tasks), tuple(map(dict, tasks))):
                raise UnknownOutcome("the config topic has newer task configurations")
            fence(self.calls, self.group, name, ids_of(before, len(tasks)), self.patience)
            self._write(handle, count_record(name, len(tasks)))
            after, end = self._read_state(name)
            if after.commit != written.commit or after.fenced < after.commit:
                raise UnknownOutcome(
                    "new task configurations were generated for the connector in the meantime"
                )
            return Generation(self.topic, name, after.commit, read_to=end)
        finally:
            handle.discard()

    def read_state(self, name: str) -> ConfigTopicState:
        """Return the connector's state in the config topic. Raises ``TimedOut`` if the topic cannot
        be read to its end.
        """
        return self._read_state(name)[0]

    def _read_state(self, name: str) -> tuple[ConfigTopicState, int]:
        self.kafka.partitions(self.topic)  # waits until the brokers know a new topic
        return read_config_topic(self.kafka, self.topic, name, READ_PATIENCE)

    def _write(self, handle: TaskProducer, records: Sequence[KeyValue]) -> None:
        handle.begin()
        handle.send(
            TransactionBatch([ProducerRecord(self.topic, key, value, 0) for key, value in records])
        )
        handle.commit(self.patience)
        if why := handle.unusable_because():
            raise UnknownOutcome(why)


def read_config_topic(
    kafka: Kafka, topic: str, name: str, patience: float
) -> tuple[ConfigTopicState, int]:
    """Return the state of the connector ``name`` in ``topic``, and the end offset of the read.
    Raises ``TimedOut`` if the topic cannot be read to its end.
    """
    image = kafka.image([topic], patience=patience)[topic]
    if image.held_back:
        raise TimedOut(
            f"Could not read {topic} to its end",
            why="a transaction is open on it",
            next_step="Find its producer: connectctl transactions lag",
        )
    return config_topic_state(image.latest, name), image.end_offsets[0]


def ids_of(before: ConfigTopicState, tasks: int) -> int:
    """Return the number of ids to fence: the greater one of the old and the new count, or 0 for a
    new connector.
    """
    return (
        max(before.transactional_ids, tasks)
        if before.commit >= 0 or before.task_count is not None
        else 0
    )


def fence(calls: TransactionCalls, group: str, name: str, count: int, patience: float) -> None:
    """Fence the transactional ids of the first ``count`` tasks in batches. Raises
    ``ConnectctlError`` unless all ids are fenced, as ``TimedOut`` if a retry may succeed.

    An id that no coordinator knows has no producer to fence.
    """
    failed = fence_ids(calls, [task_id(group, name, n) for n in range(count)], patience)
    check_fenced(failed, f"the {count} transactional ids of tasks of {name}")


def check_fenced(failed: Sequence[IdResult], subject: str) -> None:
    """Raise ``TimedOut`` if an id is not fenced and a retry may succeed, ``ConnectctlError`` if a
    retry would fail.
    """
    bad = {result.id: result.problem or NO_ANSWER for result in failed}
    if not bad:
        return
    hopeless = {id_: problem for id_, problem in bad.items() if problem.code in _NOT_RETRIABLE}
    id_, problem = min((hopeless or bad).items(), key=lambda item: item[0])
    what, why = f"Could not fence {len(bad)} of {subject}", f"{id_}: {problem.message}"
    hint = f"See connectctl fence --transactional-id {id_}."
    if hopeless:
        raise replace(problem, message=why).error(f"{what}; nothing was started", hint, "failed")
    raise TimedOut(what, why=why, next_step=hint)
