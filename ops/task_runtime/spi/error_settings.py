"""The settings for records that fail: ``errors.*``, as in ``ConnectorConfig`` and
``SinkConnectorConfig`` (KIP-298). Dead letters of sources and transforms are an addition. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connectctl.ops.core.errors import BadInput

DLQ = "errors.deadletterqueue."


@dataclass(frozen=True)
class ErrorSettings:
    """``errors.*``, with Connect's defaults. ``topic`` is the dead letter topic, None without one;
    its ``replication_factor`` is -1 for the brokers' default, None if not configured.

    A conversion or transformation that raises ``RetriableError`` is repeated for
    ``retry_timeout_ms``, forever with -1, after pauses of ``retry_delay_max_ms`` at most.
    """

    tolerate_all: bool = False
    log: bool = False
    log_records: bool = False
    topic: str | None = None
    replication_factor: int | None = None
    context_headers: bool = False
    retry_timeout_ms: int = 0
    retry_delay_max_ms: int = 60_000

    @property
    def reports(self) -> bool:
        """Return whether a task gets a reporter
        (``SinkConnectorConfig.enableErrantRecordReporter``).
        """
        return self.log or self.topic is not None


def error_settings(configs: Mapping[str, str]) -> ErrorSettings:
    """Parse ``errors.*``. Raises ``BadInput`` for an invalid value, or a dead letter topic that is
    one of ``topics``.
    """
    tolerance = configs.get("errors.tolerance", "none").lower()
    if tolerance not in {"none", "all"}:
        raise _invalid("errors.tolerance", tolerance, "none or all")
    replication = configs.get(f"{DLQ}topic.replication.factor")
    if replication is not None and not replication.lstrip("-").isdecimal():
        raise _invalid(f"{DLQ}topic.replication.factor", replication, "a number")
    topic = configs.get(f"{DLQ}topic.name", "").strip() or None
    if topic in [name.strip() for name in configs.get("topics", "").split(",")]:
        raise BadInput(
            f"The DLQ topic {topic} may not be included in the list of topics consumed by the "
            "connector",
            next_step=f"Remove it from topics, or use another {DLQ}topic.name.",
        )
    return ErrorSettings(
        tolerance == "all",
        _flag(configs, "errors.log.enable"),
        _flag(configs, "errors.log.include.messages"),
        topic,
        None if replication is None else int(replication),
        _flag(configs, f"{DLQ}context.headers.enable"),
        _number(configs, "errors.retry.timeout", 0),
        _number(configs, "errors.retry.delay.max.ms", 60_000),
    )


def silent_loss(configs: Mapping[str, str]) -> list[str]:
    """Return a line if records that fail are left out, and only a metric counts them."""
    settings = error_settings(configs)
    if not settings.tolerate_all or settings.reports:
        return []
    return [
        "errors.tolerance is all, without a dead letter topic and with errors.log.enable=false: "
        "records that fail in a converter or a transformation are dropped silently. Set "
        f"{DLQ}topic.name, or errors.log.enable=true."
    ]


def _number(configs: Mapping[str, str], name: str, default: int) -> int:
    given = configs.get(name, str(default)).strip()
    if not given.removeprefix("-").isdecimal():
        raise _invalid(name, given, "a number of milliseconds")
    return int(given)


def _flag(configs: Mapping[str, str], name: str) -> bool:
    given = configs.get(name, "false").strip().lower()
    if given not in ("true", "false"):
        raise _invalid(name, given, "true or false")
    return given == "true"


def _invalid(name: str, given: str, allowed: str) -> BadInput:
    return BadInput(f"Invalid value {given} for configuration {name}", next_step=f"Use {allowed}.")
