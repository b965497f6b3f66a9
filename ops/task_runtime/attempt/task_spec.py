"""The specification of a connector's tasks, as plain values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from connectctl.ops.kafka.topics import KnownEnds
    from connectctl.ops.task_runtime.job.config_topic_records import Generation
    from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings
    from connectctl.ops.task_runtime.spi.subscription import Subscription


@dataclass(frozen=True)
class TaskSpec:
    """A connector's tasks. ``home`` are the client properties of the workers' cluster, ``target``
    those of the records'.

    ``offsets`` is the topic that is written in the transaction, ``global_offsets`` the global one
    if it is another; ``reached`` are the known ends of both. ``path`` is the connector's
    ``module:Class``. ``patience`` and ``outage``, the time for which Kafka may be unavailable, are
    in seconds.
    """

    group: str
    connector: str
    path: str
    config: Mapping[str, str]
    generation: Generation
    home: Mapping[str, Any] = field(repr=False)
    target: Mapping[str, Any] = field(repr=False)
    offsets: str
    global_offsets: str | None
    delivery: DeliverySettings
    timeout: float
    patience: float
    reached: Mapping[str, KnownEnds] = field(default_factory=dict)
    outage: float = 0.0
    waited: Mapping[int, float] = field(default_factory=dict)
    """Seconds without progress of a task when its last lease ended."""
    quiet: Mapping[int, float] = field(default_factory=dict)
    """Seconds without a record of a task when its last lease ended."""
    unwritten: Mapping[int, Collection[str]] = field(default_factory=dict)
    """The keys, as text, that a task's last lease could not write to ``global_offsets``."""
    subscription: Subscription | None = None
    """The topics that a sink or transform reads; None for a source."""
    tasks: int = 1
    """The number of the connector's tasks."""
    pending: float | None = None
    """How many seconds pending offsets of a consumer group are waited for; None: as long as it
    lasts.
    """
    endless: bool = False
    """Whether the run does not end by itself, so that it waits for input topics until they
    exist.
    """
