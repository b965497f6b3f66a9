"""The calls of a connector before its tasks start: validation, ``start``, ``task_configs``,
``stop``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi import tasks_max
from connectctl.ops.task_runtime.spi.connector import Connector, ConnectorContext
from connectctl.ops.task_runtime.spi.validation import check

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka

GROUP, OFFSETS_TOPIC = "testing", "testing-offsets"


class NoKafka:
    """In the place of ``ConnectorContext.target``."""

    def __getattr__(self, name: str) -> Any:
        raise ConnectctlError(
            f"connectctl.testing has no Kafka: context.target.{name} was asked for",
            next_step="Test what asks Kafka on a cluster (connectctl sandbox up).",
        )


def whole_config(kind: type[Connector], config: Mapping[str, str], name: str) -> dict[str, str]:
    """Return ``config`` with the name and the class of the connector, as a job has them."""
    return {"name": name, "connector.class": f"{kind.__module__}:{kind.__qualname__}", **config}


def task_configs(kind: type[Connector], config: Mapping[str, str]) -> list[Mapping[str, str]]:
    """Return the tasks that a run would start with ``config``, which is whole. Raises ``BadInput``
    where it would be refused, and ``ConnectctlError`` for more tasks than ``tasks.max``.
    """
    name, connector = config["name"], kind()
    check(name, config, GROUP, OFFSETS_TOPIC, connector)
    connector.context = ConnectorContext(cast("Kafka", NoKafka()))
    connector.start(dict(config))
    try:
        made = connector.task_configs(tasks_max.limit(config))
    finally:
        connector.stop()
    result = tasks_max.evaluate(name, config, made, ())
    if result.failed is not None:
        raise ConnectctlError(result.failed)
    return list(result.tasks)
