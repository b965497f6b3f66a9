"""What the workers say of configurations before they are sent: their own validation, which changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from connectctl.ops.checks.connector_config import validations
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.connectors.config_plan import Desired
from connectctl.ops.operations.connectors.config_steps import ChangeConnector, CreateConnector, DeleteConnector
from connectctl.ops.operations.connectors.config_values import Config, changed, digest, read_config

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls

MOST_SAID = 5
"""Problems that are said in one line; the rest is counted."""


def refuse_invalid(calls: ConnectCalls, configs: Mapping[str, Config]) -> None:
    """Raises ``BadInput`` with what a worker does not accept. One that cannot be asked says so when it is sent."""
    found = validations.ask(calls, calls.urls[:1], configs)
    said = [
        f"{name}: {f'{field} ' if field else ''}{text}"
        for name, answers in found.items()
        for answer in answers
        for field, texts in answer.errors.items()
        for text in texts
    ]
    if said:
        raise BadInput(
            "The workers do not accept the configuration; nothing was done",
            why=some_of(said, MOST_SAID, "; "),
            next_step="Correct it; connectctl validate -f FILE says more.",
            code="invalid-config",
        )


def resolved(calls: ConnectCalls, saved: Plan, given: Mapping[str, Desired]) -> tuple[Config, ...]:
    """The configurations that a saved plan means, former ones included; its secrets are read again from ``given``.

    Raises ``Refused`` where a connector or a file is not what it was when the plan was made.
    """
    found: list[Config] = []
    for step in saved.steps:
        if not isinstance(step, CreateConnector | ChangeConnector | DeleteConnector):
            continue
        now = read_config(calls, step.subject)
        before = None if isinstance(step, CreateConnector) else step.before
        if (None if now is None else digest(now)) != before:
            state = "not there" if now is None else "there already" if before is None else "another one"
            raise _stale(f"{step.subject} is {state} now", saved)
        found += [] if now is None else [now]
        if not isinstance(step, DeleteConnector):
            found.append(_meant(step, now or {}, given, saved))
    return tuple(found)


def _meant(step: CreateConnector | ChangeConnector, now: Config, given: Mapping[str, Desired], saved: Plan) -> Config:
    changes = step.config if isinstance(step, CreateConnector) else step.changes
    tries = [changed(now, changes)] + ([given[step.subject].config] if step.subject in given else [])
    for config in tries:
        if digest(config) == step.after:
            return config
    if step.file is None:
        raise _stale(f"the plan does not hold the secrets of {step.subject}, and no file has them", saved)
    if step.subject not in given:
        raise _stale(f"the plan does not hold the secrets of {step.subject}, and {step.file} does not have it", saved)
    raise _stale(f"{step.file} has another configuration of {step.subject} than the plan was made from", saved)


def _stale(why: str, saved: Plan) -> Refused:
    hint = f"Make a new plan: connectctl {saved.operation} … --dry-run -o json."
    return Refused(f"The plan is stale: {why}; nothing was done", next_step=hint, code="stale")
