"""The decision on configurations before they are sent, by the rules of ``validate``, and those that saved plans mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from connectctl.ops.checks.connector_config.config_file import Given
from connectctl.ops.checks.connector_config.rules import ConfigOutcome
from connectctl.ops.checks.offline import Report
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.finding import Finding, Severity, some_of
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.connectors.config_plan import Desired
from connectctl.ops.operations.connectors.config_steps import ChangeConnector, CreateConnector, DeleteConnector
from connectctl.ops.operations.connectors.config_values import Config, changed, digest, read_config

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls

MOST_SAID = 5
"""Problems that are said in one line; the rest is counted."""


def given_of(desired: Iterable[Desired]) -> tuple[Given, ...]:
    """Return configurations as ``validate`` takes them."""
    return tuple(Given(each.name, each.config, each.file or "-", doubled=each.doubled) for each in desired)


def warnings_of(report: Report, *, force: bool) -> tuple[str, ...]:
    """Return what a plan warns of, in one line each. ``force`` makes warnings of the errors that workers accept.

    Raises ``BadInput`` for what workers refuse, and ``Refused`` for other errors, without ``force``.
    """
    refusing = [each for each in report.verdicts if each.outcome is ConfigOutcome.REFUSED and each.subject.answers]
    if refusing:
        errors = _errors(finding for verdict in refusing for finding in verdict.findings)
        raise BadInput(
            "The workers do not accept the configuration; nothing was done",
            why=some_of(list(map(_line, errors)), MOST_SAID, "; "),
            next_step=f"Correct it. {_explained(errors)}",
            code="invalid-config",
        )
    errors = _errors(report.findings)
    if errors and not force:
        raise Refused(
            "The workers accept the configuration, and it fails or loses its guarantee; nothing was done",
            why=some_of(list(map(_line, errors)), MOST_SAID, "; "),
            next_step=f"Correct it, or override this with --force. {_explained(errors)}",
            code="invalid-config",
        )
    return tuple(_line(each) for each in report.findings if each.severity is not Severity.INFO)


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [each for each in findings if each.severity is Severity.ERROR]


def _line(finding: Finding) -> str:
    return f"{finding.subject}: {finding.id} {finding.message.rstrip('.')}"


def _explained(errors: Sequence[Finding]) -> str:
    return f"Details: connectctl preflight --explain {errors[0].id}."


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
