"""The two repairs of a connector: two admin overrides and a restart, if it waits for zombie fencing;
and publishing its task configurations again, if compaction removes them.

Neither a restart nor an identical PUT publishes them, because a worker writes task configurations
only if they differ from those in its memory. A stop writes a commit of no tasks (KIP-875, Kafka
3.5). After a resume all of them differ, and the new ones follow the connector's configuration in
the topic.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.connect.connector import (
    Connector,
    State,
    requested_state,
    restoring_verb,
    verdict_of,
)
from connectctl.ops.connect.health import failed_parts
from connectctl.ops.connect.task_config_commits import (
    TaskConfigOrder,
    lost_task_configs,
    task_configs_lost,
)
from connectctl.ops.connect.zombie_fencing import CURE, LEADER_LIMIT, Backoff
from connectctl.ops.connector_config import validations
from connectctl.ops.core.errors import ConnectctlError, Refused, TimedOut, Unreachable
from connectctl.ops.core.finding import Finding, counted
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.core.step import ResourceStep, Step
from connectctl.ops.kafka.visibility import gap_findings, gap_of
from connectctl.ops.operations.connectors.configure import ChangeConfig, words
from connectctl.ops.operations.connectors.context import POLL, StepContext
from connectctl.ops.operations.connectors.steps import (
    WANTED,
    Await,
    RestartAndAwait,
    SetTargetState,
)

MARGIN = 15.0
"""Seconds after the leader's limit in which the failure must have reached the tasks' statuses."""

LATER = (
    "From Kafka 5.0 on workers refuse these two overrides unless "
    "connector.client.config.override.policy is set: Allowlist with retry.backoff.ms and "
    "retry.backoff.max.ms in connector.client.config.override.allowlist, or All"
)
"""The warning of a plan that sets overrides (KIP-1188)."""
_POLICY = re.compile(r"The '\w+' policy does not allow '[^']+' to be overridden")


def check_policy(calls: ConnectCalls, name: str, config: Mapping[str, str | None]) -> None:
    """Raise ``Refused`` if the policy of the workers does not allow the overrides, according to
    their validation.
    """
    urls = calls.urls[:1]
    for answer in validations.ask(calls, urls, {name: {**config, **CURE}})[name]:
        for texts in (*answer.errors.values(), *answer.once_enabled.values()):
            if bad := next((text for text in texts if _POLICY.search(text)), None):
                raise Refused(
                    f"The workers do not allow the overrides that make the fencing of {name} quick",
                    why=bad,
                    next_step="Set connector.client.config.override.policy=All, or Allowlist with "
                    "retry.backoff.ms and retry.backoff.max.ms, on every worker; or "
                    "admin.retry.backoff.ms there.",
                    code="override-not-allowed",
                )


@dataclass
class CureContext(StepContext):
    """The context of the steps. ``pending`` and ``order`` read the config topic: a pending round of
    fencing, and an order of records that loses tasks.
    """

    pending: Callable[[str], bool] = field(kw_only=True)
    order: Callable[[str], TaskConfigOrder | None] = field(kw_only=True)


@dataclass(frozen=True)
class SetOverrides(ChangeConfig):
    """Set a short back-off of the connector's admin client, so that fencing is fast."""

    @property
    def properties(self) -> Mapping[str, str]:
        return CURE

    def describe(self) -> str:
        return f"{words(CURE)} on {self.subject}"

    def is_done(self, context: StepContext) -> str | None:
        return (
            "its retry back-off is already short"
            if is_quick(context.read(self.subject).config)
            else None
        )

    def apply(self, context: StepContext) -> str | None:
        try:
            return super().apply(context)
        except ConnectctlError as e:
            raise self._policy(e) from e

    def _policy(self, error: ConnectctlError) -> ConnectctlError:
        if "override" not in str(error).lower():
            return error
        hint = (
            "The workers must allow it: connector.client.config.override.policy=All, or "
            "Allowlist with these names."
        )
        return ConnectctlError(
            error.what, why=error.why, next_step=hint, code="override-not-allowed"
        )


@dataclass(frozen=True)
class AwaitRound(ResourceStep[CureContext]):
    """Wait for the end of the current round of fencing: it continues with the old back-off, and
    later requests join it.
    """

    def describe(self) -> str:
        return f"wait until the round of fencing for {self.subject} is over"

    def is_done(self, context: CureContext) -> str | None:
        return None if context.pending(self.subject) else "no round is pending"

    def apply(self, context: CureContext) -> str | None:
        limit = max(context.timeout, LEADER_LIMIT + MARGIN)
        if end := context.until(lambda: self._end(context), limit, POLL):
            return end
        why = f"it has been pending for {limit:.0f} s, and no task has failed"
        raise TimedOut(f"The round of fencing for {self.subject} does not end", why=why)

    def _end(self, context: CureContext) -> str | None:
        if not context.pending(self.subject):
            return "it is done"
        failed = failed_parts(context.read(self.subject))
        return "it failed" if failed.keys() - {CONNECTOR_INSTANCE} else None


@dataclass(frozen=True)
class RestartWhatFailed(RestartAndAwait[CureContext]):
    """Restart the failed tasks; the round of fencing that this begins is fast."""

    def is_done(self, context: CureContext) -> str | None:
        waiting = context.read(self.subject).status is None or context.pending(self.subject)
        return None if waiting else super().is_done(context)


def is_quick(config: Any) -> bool:
    """Return whether a connector's back-off is not longer than that of the overrides."""
    return Backoff.of(config).longest <= Backoff.of(CURE).longest


def plan_cure(
    cluster_id: str,
    connector: Connector,
    configured: ConfiguredConnector | None,
    *,
    pending: bool,
    group_id: str = "",
) -> Plan:
    name = connector.name
    failed = failed_parts(connector)
    quick = is_quick(connector.config)
    if quick and not failed and not pending:
        idle = Noop(name, "its fencing is quick, and nothing has failed")
        return Plan("connectors cure", cluster_id, (), (idle,), group_id, independent=True)
    record = configured.task_count_record if configured else None
    now = (
        f"fencing pending for {record} ids"
        if pending
        else f"{counted(len(failed), 'part')} FAILED"
        if failed
        else ""
    )
    steps: list[Step[CureContext]] = [] if quick else [SetOverrides(name, now=now)]
    steps += [AwaitRound(name), RestartWhatFailed(name)]
    return Plan("connectors cure", cluster_id, tuple(steps), group_id=group_id, independent=True)


PATIENCE = 3.0
"""Seconds that an open transaction may hold up the reading of the config topic."""


def orders(kafka: KafkaReads, topic: str) -> tuple[TaskConfigOrder, ...]:
    """Return the connectors that lose their tasks by the order of records in the config topic
    ``topic``. Raises ``Unreachable``.
    """
    image = kafka.image([topic], patience=PATIENCE, superseded=True).get(topic)
    if image is None:
        return ()
    if image.held_back:
        # The missing commit may follow the open transaction.
        raise Unreachable(f"Could not read {topic} to its end", why="an open transaction blocks it")
    return tuple(lost_task_configs([*image.latest, *image.superseded], time.time()))


def findings(kafka: KafkaReads, topic: str | None) -> tuple[Finding, ...]:
    """Return TASK010 for every such connector, or a gap if the topic could not be read."""
    if topic is None:
        return ()
    try:
        return tuple(task_configs_lost(order, topic) for order in orders(kafka, topic))
    except ConnectctlError as e:
        return gap_findings([gap_of(e, f"the order of the config topic {topic}")])


@dataclass(frozen=True)
class AwaitPublished(ResourceStep[CureContext]):
    def describe(self) -> str:
        return f"verify that the task configurations of {self.subject} follow its configuration"

    def apply(self, context: CureContext) -> str | None:
        order: TaskConfigOrder | None = None

        def published() -> str | None:
            nonlocal order
            order = context.order(self.subject)
            return "they do" if order is None else None

        done = context.until(published, context.timeout, POLL)
        if order is not None:
            why = (
                f"its configuration is at offset {order.config}, the commit of its tasks at "
                f"{order.commit}"
            )
            hint = f"See connectctl connectors show {self.subject}, and try again."
            raise TimedOut(
                f"{self.subject} did not publish its tasks again", why=why, next_step=hint
            )
        return done


def plan_republish(
    cluster_id: str, connector: Connector, order: TaskConfigOrder, *, group_id: str = ""
) -> Plan:
    """Return the plan that makes ``connector`` publish its tasks again, and restores its state.

    Raises ``Refused`` if the connector itself has failed: it would publish no tasks, and lose its
    current ones.
    """
    name = connector.name
    if CONNECTOR_INSTANCE in failed_parts(connector):
        raise Refused(
            f"{name} is FAILED, and would publish no tasks",
            why=f"its {order.tasks} previous tasks may still run, and a stop would end them",
            next_step=f"Correct it first: connectctl connectors show {name} -o wide.",
            code="connector-failed",
        )
    verb = restoring_verb(requested_state(connector))
    steps: list[Step[CureContext]] = [
        SetTargetState(name, "stop", now=str(verdict_of(connector, connector.owners).state)),
        Await(name, State.STOPPED),
        SetTargetState(name, verb),
        Await(name, WANTED[verb]),
        AwaitPublished(name),
    ]
    return Plan("connectors cure", cluster_id, tuple(steps), group_id=group_id, independent=True)
