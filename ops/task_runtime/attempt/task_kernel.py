"""Builds a task's loop from its specification: producers of its transactional id, and its
ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.task_runtime.attempt.shared_clients import PRIMARY, SharedClients
from connectctl.ops.task_runtime.task.at_least_once import ALONE, IdempotentProducer
from connectctl.ops.task_runtime.task.attempt_loop import REMEDIES, AttemptLoop
from connectctl.ops.task_runtime.task.batch_limits import BatchSizeLimits
from connectctl.ops.task_runtime.task.global_offsets_writer import GlobalOffsetsWriter
from connectctl.ops.task_runtime.task.ledger import Ledger, SourceOffsetsLedger
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
    from connectctl.ops.task_runtime.spi.transaction_batch import TaskStats

_TEXT = ("utf-8", "surrogateescape")
"""The encoding of offset keys as text, for any bytes."""


def task_kernel(
    spec: TaskSpec,
    shared: SharedClients,
    task: int,
    properties: Mapping[str, str],
    stopped: Callable[[], bool],
    stats: TaskStats,
    kind: type[TaskProducer],
    ledger: Ledger,
    remedies: str = REMEDIES,
) -> AttemptLoop:
    """Return the loop of a task with producers of ``kind``; ``properties`` are defaults that
    ``spec`` overrides.
    """
    id_, delivery = task_id(spec.group, spec.connector, task), spec.delivery
    merged = {**properties, **delivery.properties}
    limits = BatchSizeLimits(shared.largest_batches, merged)

    alone: dict[str, str] = {}

    def opened() -> TaskProducer:
        return kind(
            shared.target,
            id_,
            timeout_ms=delivery.timeout_ms,
            properties=merged | limits.properties() | alone,
        )

    def send_one_by_one() -> bool:
        # The task begins again at what is committed, and meets the rejected record once more.
        if kind.names_records or alone:
            return False
        alone.update(ALONE)
        return True

    return AttemptLoop(
        opened,
        ledger,
        shared.stale_because,
        stopped,
        spec.patience,
        delivery.strict,
        stats,
        remedies=remedies,
        outage=spec.outage,
        visible_when_sent=kind is IdempotentProducer,
        batch_size_fits=limits.fits,
        send_one_by_one=send_one_by_one,
    )


@contextmanager
def source_ledger(
    spec: TaskSpec, shared: SharedClients, task: int, stats: TaskStats
) -> Iterator[SourceOffsetsLedger]:
    """Yield the source offsets of a task, and store in ``stats`` how far they reach."""
    global_writer, remaining = None, list[bytes]()
    if spec.global_offsets:
        stats.unwritten = spec.unwritten.get(task, ())
        remaining = [key.encode(*_TEXT) for key in stats.unwritten]
        global_writer = GlobalOffsetsWriter(
            shared.home, spec.global_offsets, spec.patience, remaining
        )
    view = shared.view()
    ledger = SourceOffsetsLedger(spec.offsets, view, global_writer)
    seen = frozenset(remaining)

    def observe(*, closed: bool = False) -> None:
        nonlocal seen
        # A later attempt, on any machine, must not read less.
        stats.reached = {
            w: ledger.history.beyond(r) if w == PRIMARY else r for w, r in view.reached.items()
        }
        if global_writer is not None:
            before, seen = seen, global_writer.unwritten
            # Those in flight will most likely arrive, unless they did not since the last time.
            late = seen if closed or global_writer.problem else seen & before
            stats.unwritten = sorted(key.decode(*_TEXT) for key in late)
            stats.unwritten_because, stats.meter.global_failures = (
                global_writer.problem,
                global_writer.failures,
            )

    stats.observe = observe
    try:
        yield ledger
    finally:
        if global_writer is not None:
            global_writer.close()
        observe(closed=True)
