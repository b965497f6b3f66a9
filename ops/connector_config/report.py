"""The evaluation of configurations from files, with no cluster, with some of its workers, or with
all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.config.connector_file import Given
from connectctl.ops.connect.connector_class import has_reference
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connector_config import evaluation, validations
from connectctl.ops.connector_config.evaluation import SAME_NAME, ConfigOutcome
from connectctl.ops.connector_config.subject import Subject, Validation
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.unseen import NOT_SEEN, Unseen, finding_of

WORKERS = "the workers' validation"


@dataclass(frozen=True)
class Known:
    """The known facts about the cluster. ``answers`` are the workers' validations, one tuple for
    each configuration.
    """

    answers: tuple[tuple[Validation, ...], ...] = ()
    group_id: str | None = None
    offsets_topic: str | None = None
    unseen: tuple[Unseen, ...] = ()
    named_servers: tuple[str, ...] = ()
    """The bootstrap servers of the clusters in the context."""


@dataclass(frozen=True)
class ConfigVerdict:
    """The result for one configuration of a file."""

    given: Given
    subject: Subject
    findings: tuple[Finding, ...]
    outcome: ConfigOutcome


@dataclass(frozen=True)
class Report:
    """All results, and the findings that belong to no single configuration."""

    verdicts: tuple[ConfigVerdict, ...]
    general: tuple[Finding, ...]

    @property
    def not_validated(self) -> tuple[str, ...]:
        """Return the configurations that workers should have validated and none did."""
        return tuple(
            verdict.given.name
            for verdict in self.verdicts
            if verdict.outcome is ConfigOutcome.NOT_VALIDATED
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return every finding once."""
        of_files = (finding for verdict in self.verdicts for finding in verdict.findings)
        return tuple(dict.fromkeys((*of_files, *self.general)))

    def file_of(self, finding: Finding) -> str | None:
        """Return the file of a finding; None for standard input and for a finding about no file."""
        files = (verdict.given.file for verdict in self.verdicts if finding in verdict.findings)
        return next((file for file in files if file != "-"), None)


def ask_workers(
    calls: ConnectCalls, urls: Sequence[str], given: Sequence[Given], most: int | None = None
) -> tuple[tuple[Validation, ...], ...]:
    """Return the validations of each configuration by the workers at ``urls``, in the order of
    ``given``.

    Raises nothing. ``most``: see ``validations.ask``.
    """
    found: dict[int, tuple[Validation, ...]] = {}
    remaining = dict(enumerate(given))
    while remaining:
        # Configurations may have the same name: each batch has one of each name.
        batch = {configuration.name: index for index, configuration in reversed(remaining.items())}
        answers = validations.ask(
            calls, urls, {name: remaining[index].config for name, index in batch.items()}, most=most
        )
        for name, index in batch.items():
            found[index] = answers[name]
            del remaining[index]
    return tuple(found[index] for index in range(len(given)))


def report(
    given: Sequence[Given], goal: Goal, known: Known | None, release: tuple[int, int] | None = None
) -> Report:
    """Evaluate every configuration; ``known`` is None without a cluster, ``release`` is the planned
    one.
    """
    answers = known.answers if known is not None and known.answers else ((),) * len(given)
    pairs = zip(given, answers, strict=True)
    verdicts = tuple(
        _verdict(configuration, goal, found, known, release) for configuration, found in pairs
    )
    return Report(verdicts, tuple(_general(verdicts, goal, known)))


def _verdict(
    given: Given,
    goal: Goal,
    answers: tuple[Validation, ...],
    known: Known | None,
    release: tuple[int, int] | None,
) -> ConfigVerdict:
    cluster = known or Known()
    subject = Subject(
        given.name,
        given.config,
        goal,
        answers,
        cluster.group_id,
        cluster.offsets_topic,
        release=release,
        named_servers=cluster.named_servers,
    )
    evaluated = evaluation.evaluate(subject)
    refused = tuple(
        evaluation.creation(given.name, given.initial_state, with_offsets=given.with_offsets)
    )
    doubled = evaluation.given_twice(given.name, given.doubled)
    found = (
        *evaluated.findings,
        *refused,
        *evaluation.repeated(given.name, given.repeated),
        *doubled,
    )
    named = tuple(
        finding if finding.subject.strip() else replace(finding, subject=given.file)
        for finding in found
    )
    outcome = ConfigOutcome.REFUSED if refused else evaluated.outcome
    if outcome is ConfigOutcome.TAKEN and not subject.answers:
        outcome = ConfigOutcome.NO_ERROR if known is None else ConfigOutcome.NOT_VALIDATED
    return ConfigVerdict(given, subject, named, outcome)


def _general(
    verdicts: Sequence[ConfigVerdict], goal: Goal, known: Known | None
) -> Iterator[Finding]:
    count = Counter(verdict.given.name for verdict in verdicts)
    for name in (name for name, n in count.items() if name and n > 1):
        files = ", ".join(
            dict.fromkeys(verdict.given.file for verdict in verdicts if verdict.given.name == name)
        )
        message = f"{count[name]} configurations have this name, in {files}."
        yield SAME_NAME.found(name, message, "Give each connector a name of its own.")
    if known is None:
        yield undecided(verdicts, goal)
        return
    yield from map(finding_of, known.unseen)
    names = Counter[str]()
    validated: dict[str, tuple[Validation, ...]] = {}
    for verdict in verdicts:
        names[verdict.given.name] += 1
        validated[
            f"{verdict.given.name or verdict.given.file}{'' if names[verdict.given.name] == 1 else ' again'}"
        ] = verdict.subject.validations
    yield from map(finding_of, validations.unseen(validated))


def undecided(verdicts: Sequence[ConfigVerdict], goal: Goal) -> Finding:
    """Return UNSEEN001 as information: the facts that only workers can determine."""
    parts = ["properties of the connector itself", "whether its class is installed"]
    if any(verdict.subject.kind != "sink" for verdict in verdicts):
        parts.append("whether it supports exactly-once")
        parts += ["whether the workers do (see --for)"] if goal is Goal.NOW else []
    if any(".override." in name for verdict in verdicts for name in verdict.given.config):
        parts.append("whether the overrides are allowed")
    if any(
        has_reference(value or "")
        for verdict in verdicts
        for value in verdict.given.config.values()
    ):
        parts.append("the values of the references ${…}")
    message = f"Not checked, because no worker was asked: {', '.join(parts)}."
    step = (
        "Give a cluster, without --offline: --context, --rest, or --bootstrap-servers and "
        "--group-id."
    )
    return NOT_SEEN.found(WORKERS, message, step, severity=Severity.INFO)


def as_json(verdict: ConfigVerdict) -> Mapping[str, object]:
    """Return the result for one configuration in JSON, without its values."""
    config = verdict.given.config
    return {
        "file": verdict.given.file,
        "name": verdict.given.name,
        "class": config.get("connector.class"),
        "type": verdict.subject.kind,
        "outcome": verdict.outcome.value,
        "workers": [
            {
                "worker": validation.worker,
                "exactlyOnceSupport": validation.support.value,
                "plugin": validation.plugin.value,
                "errors": sum(map(len, validation.errors.values())),
                "problem": validation.problem,
            }
            for validation in verdict.subject.validations
        ],
    }
