"""Kafka in memory, for tests of connectors, has the methods of what it is in the place of, with the
same parameters.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from connectctl.ops.task_runtime.group.consumer import GroupConsumer
from connectctl.ops.task_runtime.group.member import TaskMember
from connectctl.ops.task_runtime.spi.transaction_batch import RefreshableOffsets
from connectctl.ops.task_runtime.task.committed_offsets import CommittedOffsets
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from connectctl.ops.task_runtime.testing.memory_consumer import MemoryConsumer
from connectctl.ops.task_runtime.testing.memory_kafka import MemoryOffsets, MemoryProducer


def parameters(kind: type, name: str) -> list[str] | None:
    """The names of the parameters of a method; None of what is read as an attribute."""
    found: Any = inspect.getattr_static(kind, name)
    return list(inspect.signature(found).parameters) if callable(found) else None


def public(kind: type) -> list[str]:
    return sorted(name for name in dir(kind) if not name.startswith("_"))


@pytest.mark.parametrize(
    ("real", "memory"),
    [
        (TaskProducer, MemoryProducer),
        (CommittedOffsets, MemoryOffsets),
        (TaskMember, MemoryConsumer),
    ],
)
def test_what_both_have_is_called_alike(real: type, memory: type) -> None:
    shared = [name for name in public(memory) if hasattr(real, name)]
    assert {name: parameters(memory, name) for name in shared} == {
        name: parameters(real, name) for name in shared
    }
    assert len(shared) > 3


def test_a_producer_lacks_nothing_that_tasks_call() -> None:
    assert set(public(TaskProducer)) - set(public(MemoryProducer)) == set()


@pytest.mark.parametrize(
    ("protocol", "memory"), [(GroupConsumer, MemoryConsumer), (RefreshableOffsets, MemoryOffsets)]
)
def test_a_protocol_is_there_with_all_its_methods(protocol: type, memory: type) -> None:
    assert [name for name in public(protocol) if not hasattr(memory, name)] == []
