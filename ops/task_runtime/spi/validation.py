"""Validation of a connector configuration, with the messages of workers where they have one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.source_transactions import BOUNDARY, LATENCY, TIMEOUT
from connectctl.ops.connect.worker import NOT_ENABLED
from connectctl.ops.connector_config import evaluation
from connectctl.ops.connector_config.exactly_once_rules import (
    FAILED,
    NO_ANSWER_OF_CLASS,
    NO_BOUNDARIES,
    NOT_SUPPORTED_BY_CLASS,
    SUPPORT,
    long_interval,
)
from connectctl.ops.connector_config.property_values import number_problem, word_problem
from connectctl.ops.connector_config.subject import Subject
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.finding import Severity
from connectctl.ops.task_runtime.spi.connector import (
    Connector,
    ExactlyOnceSupport,
    SourceConnector,
    TransactionBoundaries,
)
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.delivery_settings import FLUSH, exactly_once
from connectctl.ops.task_runtime.spi.delivery_settings import SUPPORT as WORKERS_SUPPORT
from connectctl.ops.task_runtime.spi.error_settings import error_settings
from connectctl.ops.task_runtime.spi.plugins import connector_class, path_of
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.spi.sink import SinkConnector
from connectctl.ops.task_runtime.spi.subscription import input_problems
from connectctl.ops.task_runtime.transforms.chain import transformation_chain

WORKERS = ("DISABLED", "PREPARING", "ENABLED")
_REFERENCE = re.compile(r"\$\{\w[^}:]*:[^}]*\}")
_NO_BOUNDARIES = (
    f"{NO_BOUNDARIES[0]} with the given configuration. Please reconfigure it to use a different "
    "transaction boundary definition."
)
_NULL_BOUNDARIES = (
    f"{NO_BOUNDARIES[1]}, which is not permitted. The connector will be treated as if it cannot "
    "define its own transaction boundaries, and cannot be configured with 'transaction.boundary' "
    "set to 'connector'."
)


def validated(
    name: str, config: Mapping[str, str], group: str, offsets_topic: str
) -> tuple[str, Connector]:
    """Return ``module:Class`` and a new connector for ``config``. Raises ``BadInput`` with every
    problem.
    """
    if not config.get("connector.class", "").strip():
        raise BadInput(
            f"{name}: The configuration contains no connector type",
            next_step="Set connector.class.",
        )
    path = path_of(config["connector.class"])
    connector = connector_class(path)()
    check(name, config, group, offsets_topic, connector)
    return path, connector


def check(
    name: str, config: Mapping[str, str], group: str, offsets_topic: str, connector: Connector
) -> None:
    """Raise ``BadInput`` with every problem of ``config``."""
    problems = list(dict.fromkeys(_problems(name, config, group, offsets_topic, connector)))
    if problems:
        more = (
            f" (and {len(problems) - 1} more: {'; '.join(problems[1:])})"
            if len(problems) > 1
            else ""
        )
        raise BadInput(
            f"Invalid configuration of {name}", why=problems[0] + more, code="bad-config"
        )
    converters(config)


def _problems(
    name: str, config: Mapping[str, str], group: str, offsets_topic: str, connector: Connector
) -> Iterator[str]:
    yield from _record_problems(config, connector)
    for each, value in config.items():
        if _REFERENCE.search(value):
            yield f"{each} refers to a config provider, which is not supported here"
    subject = Subject(
        name,
        config,
        Goal.ENABLED,
        (),
        group,
        offsets_topic,
        is_source=isinstance(connector, SourceConnector),
    )
    for finding in evaluation.evaluate(subject).findings:
        # Without a configured timeout, a task uses one that is long enough.
        fits = finding.id == long_interval.id and TIMEOUT not in config
        if finding.severity is Severity.ERROR and not fits:
            yield finding.message
    yield from _worker_problems(config)
    try:
        for messages in connector.validate(config).values():
            yield from messages
    except ConnectctlError as e:
        yield str(e)
    except Exception as e:  # noqa: BLE001  # a connector may raise anything, which workers report like this
        yield f"{FAILED}: {e}"
    if isinstance(connector, SinkConnector):
        yield from _sink_problems(config)
    if isinstance(connector, SourceConnector):
        yield from _exactly_once_problems(config, connector)
        if LATENCY in config:
            yield from latency_problems(config)


def latency_problems(config: Mapping[str, str]) -> Iterator[str]:
    """Yield the problems of a promised latency, alone and combined with the other properties of
    transactions.
    """
    value = config[LATENCY]
    if problem := number_problem(LATENCY, value, "INT", 1):
        yield problem
        return
    boundary = config.get(BOUNDARY, "").strip().lower()
    if boundary == "connector":
        yield (
            f"{LATENCY} cannot be used with {BOUNDARY}=connector: only the connector ends its "
            "transactions then"
        )
    if boundary == "poll":
        yield (
            f"{LATENCY} cannot be used with {BOUNDARY}=poll: each batch is a transaction then. "
            f"Leave out {BOUNDARY}"
        )
    timeout = config.get(TIMEOUT, "").strip()
    if timeout.isdigit() and int(timeout) <= int(value):
        yield (
            f"{LATENCY} is {int(value)}, and brokers end transactions after {timeout} ms: set "
            f"{TIMEOUT} well above it"
        )


def _record_problems(config: Mapping[str, str], connector: Connector) -> Iterator[str]:
    """Yield the problems of transformations and of ``errors.*``."""
    if config.get("transforms", "").strip() and not connector.converts:
        yield (
            f"{config['connector.class']} has no records for single message transformations, which "
            "are applied between a converter and a task (transforms)"
        )
    for parse in (error_settings, transformation_chain):
        try:
            parse(config)
        except BadInput as e:
            yield str(e)


def _sink_problems(config: Mapping[str, str]) -> Iterator[str]:
    yield from input_problems(config)
    try:
        reading_converters(config)
    except BadInput as e:
        yield str(e)


def _worker_problems(config: Mapping[str, str]) -> Iterator[str]:
    """Problems of the worker properties that a job may contain."""
    if problem := word_problem(
        WORKERS_SUPPORT, config.get(WORKERS_SUPPORT, "enabled"), WORKERS, any_case=True
    ):
        yield problem
    elif not exactly_once(config) and config.get(SUPPORT, "requested").lower() == "required":
        yield NOT_ENABLED
    if problem := number_problem(FLUSH, config.get(FLUSH, "60000"), "LONG", 0):
        yield problem


def _exactly_once_problems(config: Mapping[str, str], connector: SourceConnector) -> Iterator[str]:
    try:
        if config.get(SUPPORT, "requested").lower() == "required":
            support = connector.exactly_once_support(config)
            if support is not ExactlyOnceSupport.SUPPORTED:
                yield NO_ANSWER_OF_CLASS if support is None else NOT_SUPPORTED_BY_CLASS
        if config.get(BOUNDARY, "poll").lower() == "connector":
            boundaries = connector.can_define_transaction_boundaries(config)
            if boundaries is not TransactionBoundaries.SUPPORTED:
                yield _NULL_BOUNDARIES if boundaries is None else _NO_BOUNDARIES
    except Exception as e:  # noqa: BLE001  # as above
        yield f"{FAILED}: {e}"
