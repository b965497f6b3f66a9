"""Validates connector configurations from files and directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.config.connector_file import Given
from connectctl.ops.config.masking import MASK, remember
from connectctl.ops.connector_config import framework_rules
from connectctl.ops.connector_config.evaluation import STATES, ConfigOutcome
from connectctl.ops.connector_config.report import Report
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.finding import Finding, Severity, some_of
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.connectors.config.plan import Desired
from connectctl.ops.operations.connectors.config.reading import (
    DEFAULT_READING,
    Reading,
    Reveal,
    read,
)
from connectctl.ops.operations.connectors.config.steps import (
    ChangeConnector,
    CreateConnector,
    DeleteConnector,
)
from connectctl.ops.operations.connectors.config.values import Config, changed, digest, read_config


def desired(
    paths: Sequence[Path], reveal: Reveal, reading: Reading = DEFAULT_READING
) -> list[Desired]:
    """Return the connectors in ``paths``, as for ``read``.

    Raises ``BadInput`` for configurations that no worker accepts, for a duplicate name, for masked
    values, and for secrets that ``reveal`` cannot resolve.
    """
    configs = read(paths, reveal, reading)
    for config in configs:
        refuse_unusable(config)
    _refuse_doubles(configs)
    return [usable(config) for config in configs]


def refuse_unusable(file_config: Given) -> None:
    """Raise ``BadInput`` for a configuration that no worker accepts, and for masked values. Its
    secrets are masked from then on.
    """
    remember(file_config.config)
    if problem := next(_problems(file_config), None):
        raise BadInput(f"{file_config.file}: {problem[0]}", next_step=problem[1])


def usable(file_config: Given) -> Desired:
    """Return ``file_config`` as it is sent: with its name among the properties, as workers store
    it, and without null values.
    """
    config = {name: value for name, value in file_config.config.items() if value is not None} | {
        "name": file_config.name
    }
    file = None if file_config.file == "-" else str(Path(file_config.file).absolute())
    state = file_config.initial_state.upper() if file_config.initial_state else None
    return Desired(
        file_config.name,
        config,
        state,
        file_config.kept_state,
        file,
        file_config.secrets,
        file_config.doubled,
    )


def _problems(file_config: Given) -> Iterator[tuple[str, str]]:
    config = file_config.config
    if not file_config.name:
        yield "the connector has no name", "Add the property name."
    if config.get("name") not in (None, file_config.name):
        yield (
            f"the connector is called {file_config.name} and {config['name']}",
            "Give it one name.",
        )
    if not (config.get("connector.class") or "").strip():
        yield f"{file_config.name} has no connector.class", "Add the property connector.class."
    for name, lines in file_config.repeated.items():
        where = f" (lines {', '.join(map(str, lines))})" if lines else ""
        yield f"{name} is set more than once{where}", "Leave one of them out."
    if file_config.initial_state is not None and file_config.initial_state.upper() not in STATES:
        yield (
            f"initial_state is {file_config.initial_state}, which is not one of "
            f"{', '.join(STATES)}",
            "Correct it.",
        )
    if masked := next((n for n, v in config.items() if v and MASK in v), None):
        hint = "Write the secret, or a reference to it such as ${file:…}."
        yield f"{masked} of {file_config.name} is masked, as connectctl prints it", hint
    if file_config.with_offsets:
        hint = (
            f"Take them out, and give them to connectors create with --offsets {file_config.file}."
        )
        yield "no worker accepts offsets with a configuration (KIP-995 is in no release)", hint


def _refuse_doubles(configs: Sequence[Given]) -> None:
    files: dict[str, str] = {}
    for config in configs:
        if config.name in files:
            where = (
                f"{files[config.name]} and {config.file}"
                if files[config.name] != config.file
                else config.file
            )
            raise BadInput(
                f"{config.name} is configured twice in {where}", next_step="Leave one of them out."
            )
        files[config.name] = config.file


MOST_SAID = 5
"""Problems that a line names; the others are counted."""


def given_of(desired: Iterable[Desired]) -> tuple[Given, ...]:
    """Return configurations as the input of ``validate``."""
    return tuple(
        Given(connector.name, connector.config, connector.file or "-", doubled=connector.doubled)
        for connector in desired
    )


def warnings_of(report: Report, *, force: bool) -> tuple[str, ...]:
    """Return the warnings of a plan, one line each. With ``force``, errors that workers accept are
    warnings.

    Raises ``BadInput`` for errors because of which workers refuse a configuration, and without
    ``force`` ``Refused`` for other errors.
    """
    refusing = [
        verdict
        for verdict in report.verdicts
        if verdict.outcome is ConfigOutcome.REFUSED and verdict.subject.answers
    ]
    if refusing:
        errors = _errors(finding for verdict in refusing for finding in verdict.findings)
        raise BadInput(
            "The workers do not accept the configuration; nothing was done",
            why=some_of(list(map(_line, errors)), MOST_SAID, "; "),
            next_step=_correction(errors),
            code="invalid-config",
        )
    errors = _errors(report.findings)
    if errors and not force:
        raise Refused(
            "The workers accept the configuration, and it fails or loses its guarantee; nothing "
            "was done",
            why=some_of(list(map(_line, errors)), MOST_SAID, "; "),
            next_step=f"Correct it, or override this with --force. {_explained(errors)}",
            code="invalid-config",
        )
    return tuple(
        _line(finding) for finding in report.findings if finding.severity is not Severity.INFO
    )


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity is Severity.ERROR]


def _correction(errors: Sequence[Finding]) -> str:
    """Return the next step; a class that no worker has comes before all other errors."""
    first = min(errors, key=lambda finding: finding.id != framework_rules.no_class.id)
    known = len(errors) == 1 or first.id == framework_rules.no_class.id
    step = f"{first.next_step.rstrip('.')}." if known and first.next_step else "Correct it."
    return f"{step} {_explained([first])}"


def _line(finding: Finding) -> str:
    return f"{finding.subject}: {finding.id} {finding.message.rstrip('.')}"


def _explained(errors: Sequence[Finding]) -> str:
    return f"Details: connectctl preflight --explain {errors[0].id}."


def resolved(
    calls: ConnectCalls, saved: Plan, desired_by_name: Mapping[str, Desired]
) -> tuple[Config, ...]:
    """Return the configurations of a saved plan, former ones included; its secrets are read again
    from ``desired_by_name``.

    Raises ``Refused`` if a connector or a file has changed since the plan was made.
    """
    found: list[Config] = []
    for step in saved.steps:
        if not isinstance(step, CreateConnector | ChangeConnector | DeleteConnector):
            continue
        now = read_config(calls, step.subject)
        before = None if isinstance(step, CreateConnector) else step.before
        if (None if now is None else digest(now)) != before:
            change = "deleted" if now is None else "created" if before is None else "changed"
            raise _stale(f"{step.subject} was {change}", saved)
        found += [] if now is None else [now]
        if not isinstance(step, DeleteConnector):
            found.append(_desired_config(step, now or {}, desired_by_name, saved))
    return tuple(found)


def _desired_config(
    step: CreateConnector | ChangeConnector,
    now: Config,
    desired_by_name: Mapping[str, Desired],
    saved: Plan,
) -> Config:
    changes = step.config if isinstance(step, CreateConnector) else step.changes
    tries = [changed(now, changes)] + (
        [desired_by_name[step.subject].config] if step.subject in desired_by_name else []
    )
    for config in tries:
        if digest(config) == step.after:
            return config
    if step.file is None:
        raise _stale(
            f"the plan does not hold the secrets of {step.subject}, and no file has them", saved
        )
    if step.subject not in desired_by_name:
        raise _stale(
            f"the plan does not hold the secrets of {step.subject}, and {step.file} does not have "
            "it",
            saved,
        )
    raise _stale(
        f"{step.file} has another configuration of {step.subject} than the plan was made from",
        saved,
    )


def _stale(why: str, saved: Plan) -> Refused:
    hint = f"Make a new plan: connectctl {saved.operation} … --dry-run -o json."
    return Refused(f"The plan is stale: {why}; nothing was done", next_step=hint, code="stale")
