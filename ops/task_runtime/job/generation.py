"""A new generation of tasks where no worker lives: the leader's part of KIP-618, done by the
driver.

The order is the whole point. The leader's transactional id comes first, so that an older driver can
write no more; then the task configs, by which older tasks that are not yet initialised know that
they are stale; then the round of fencing, which ends those that are; then the count record, without
which no new task starts.
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
"""Why an id is not fenced, where fencing it again would end in the same way."""


@dataclass(frozen=True)
class Leader:
    """Who starts generations of the connectors of ``group``. ``patience`` is in seconds, for each
    step of a start; ``retry`` says for how long a start is begun anew.
    """

    kafka: Kafka
    calls: TransactionCalls
    group: str
    topic: str
    patience: float = 60.0
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(60.0))
    topics: Mapping[str, str] = field(default_factory=dict)
    """The group's offsets and status topics, by role, as far as they are known."""

    def start(
        self,
        name: str,
        config: Mapping[str, str],
        choose: Callable[[ConfigTopicState], Sequence[Mapping[str, str]]],
    ) -> Generation:
        """Write the task configs that ``choose`` gives for what stands there, fence, and say so.

        After a doubt, and where Kafka does not answer, it begins anew: the new producer ends what
        the one before had asked for, one way or the other, and what stands in the topic by then is
        read. No request is repeated.

        Raises ``Refused`` where others keep taking the lead, ``TimedOut`` and ``Unreachable`` where
        that did not end in time, and ``ConnectctlError`` where ids could not be fenced.
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
                    # Another connector of the group may be starting, which takes the same id for a
                    # moment.
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
        """The connector's records in the config topic. Raises ``TimedOut`` where it cannot be read
        to its end.
        """
        return self._read_state(name)[0]

    def _read_state(self, name: str) -> tuple[ConfigTopicState, int]:
        self.kafka.partitions(self.topic)  # waits for a broker that does not know a new topic yet
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
    """What ``topic`` says of the connector ``name``, and up to where it was read. Raises
    ``TimedOut`` short of its end.
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
    """For how many ids a round is due: those of the old count and of the new one; none for a
    connector that is new.
    """
    return (
        max(before.transactional_ids, tasks)
        if before.commit >= 0 or before.task_count is not None
        else 0
    )


def fence(calls: TransactionCalls, group: str, name: str, count: int, patience: float) -> None:
    """Fence the ids of the tasks below ``count``, all at once. Raises ``ConnectctlError`` unless
    all are, ``TimedOut`` where it may be tried again.

    An id that no coordinator knows has no producer to fence.
    """
    failed = fence_ids(calls, [task_id(group, name, n) for n in range(count)], patience)
    check_fenced(failed, f"the {count} transactional ids of tasks of {name}")


def check_fenced(failed: Sequence[IdResult], subject: str) -> None:
    """Raises ``TimedOut`` where an id is not fenced and may be in another attempt,
    ``ConnectctlError`` where it will not.
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
