"""The evaluation of a connector's configuration: our rules and the workers' validation, each fault
once. Pure.

EOS001 to EOS015 concern exactly-once, CONFIG001 to CONFIG015 the properties that every connector
has, CONFIG016 to CONFIG018 settings that are silently ignored or lose records, CONFIG020 to
CONFIG029 client overrides and topics, CONFIG030 to CONFIG035 everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from connectctl.ops.config.strimzi import Doubled
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.missing_class import (
    FITTING,
    INSTALL,
    missing_class,
    needs_class,
    shortened,
)
from connectctl.ops.connect.worker import NOT_ENABLED
from connectctl.ops.connector_config import (
    exactly_once_rules,
    framework_rules,
    override_rules,
    silent_rules,
)
from connectctl.ops.connector_config.subject import (
    Hit,
    PluginAnswer,
    Subject,
    Validation,
    comparable,
    hits,
    scrubbed,
)
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule

WORKER_ERROR = Rule("CONFIG030", Severity.ERROR)
REPEATED = Rule("CONFIG031", Severity.WARNING)
SAME_NAME = Rule("CONFIG032", Severity.WARNING)
BAD_STATE = Rule("CONFIG033", Severity.ERROR)
INITIAL_OFFSETS = Rule("CONFIG034", Severity.ERROR)
GIVEN_TWICE = Rule("CONFIG035", Severity.WARNING)
STATES = ("RUNNING", "PAUSED", "STOPPED")
_POLICY = re.compile(r"The '(\w+)' policy does not allow '(.+)' to be overridden")
CLASS = "connector.class"
_CONSEQUENCE = "Invalid value null for configuration "
_SHORT = 160


@dataclass(frozen=True)
class _WorkerError:
    """An error that workers report, and these workers."""

    property: str
    text: str
    workers: tuple[str, ...]


class ConfigOutcome(StrEnum):
    """The outcome of a configuration: workers refuse it; they accept it, and connector or tasks
    fail; neither.

    Where no rule finds an error, and no worker has validated it: NOT_VALIDATED if one should have,
    NO_ERROR if none was to be asked.
    """

    REFUSED = "refused"
    FAILS = "fails"
    TAKEN = "taken"
    NOT_VALIDATED = "not validated"
    NO_ERROR = "no error found"


@dataclass(frozen=True)
class Evaluated:
    findings: tuple[Finding, ...]
    outcome: ConfigOutcome


def evaluate(subject: Subject) -> Evaluated:
    """Return the findings about the configuration, and its outcome. A rule and a worker's error
    make one finding.
    """
    found = hits((exactly_once_rules, framework_rules, override_rules, silent_rules), subject)
    errors = _worker_errors(subject)
    kept = [hit for hit in found if _counts(hit, subject, errors)]
    covered = {error for error in errors for hit in kept if _same(hit, error)}
    of_workers = tuple(_of_worker_error(error, subject) for error in errors if error not in covered)
    severe = [hit for hit in kept if hit.finding.severity is Severity.ERROR]
    refused = bool(of_workers) or any(hit.case.text is not None for hit in severe)
    outcome = (
        ConfigOutcome.REFUSED if refused else ConfigOutcome.FAILS if severe else ConfigOutcome.TAKEN
    )
    of_rules = (_with_worker_text(hit, errors, subject) for hit in kept)
    return Evaluated((*of_rules, *of_workers, *disagreement(subject, errors)), outcome)


def _worker_errors(subject: Subject) -> tuple[_WorkerError, ...]:
    """Return the workers' errors that matter under the goal; those of several workers are
    joined.
    """
    found: dict[tuple[str, str], list[str]] = {}
    texts: dict[tuple[str, str], str] = {}
    for answer in subject.answers:
        for name, text in _errors(answer, subject):
            key = (name, comparable(text))
            texts.setdefault(key, text)
            found.setdefault(key, []).append(answer.worker)
    return tuple(
        _WorkerError(name, texts[name, key], tuple(workers))
        for (name, key), workers in found.items()
    )


def _errors(answer: Validation, subject: Subject) -> Iterator[tuple[str, str]]:
    once_enabled = answer.once_enabled if subject.goal is Goal.ENABLED else {}
    for name in dict.fromkeys((*answer.errors, *once_enabled)):
        texts = dict.fromkeys((*answer.errors.get(name, ()), *once_enabled.get(name, ())))
        for text in texts:
            is_consequence = text.startswith(_CONSEQUENCE) and len(texts) > 1
            if not is_consequence and not (text == NOT_ENABLED and subject.goal is not Goal.NOW):
                yield name, text


def _counts(hit: Hit, subject: Subject, errors: Sequence[_WorkerError]) -> bool:
    """Return whether the hit counts: if workers validated, they must report what only validation
    decides.
    """
    # A worker that rejected the configuration as a whole has not validated its properties.
    validated = any("" not in answer.errors for answer in subject.answers)
    return not hit.case.validated or not validated or any(_same(hit, error) for error in errors)


def _same(hit: Hit, error: _WorkerError) -> bool:
    if hit.case.text is None or error.property not in (*hit.case.named, ""):
        return False
    return comparable(hit.case.text) == comparable(error.text)


def _with_worker_text(hit: Hit, errors: Sequence[_WorkerError], subject: Subject) -> Finding:
    """Return the finding with the worker's own text, if the message is the worker's."""
    reported = next((error for error in errors if _same(hit, error)), None)
    if reported is None or hit.finding.message != scrubbed(
        hit.case.text or "", subject.config, hit.case.named[0]
    ):
        return hit.finding
    return replace(hit.finding, message=scrubbed(reported.text, subject.config, reported.property))


def _of_worker_error(error: _WorkerError, subject: Subject) -> Finding:
    """Return the finding about an error of the workers for which there is no rule, or that only
    they can detect.
    """
    text = " ".join(scrubbed(error.text, subject.config, error.property).split())
    reporters = (
        f" (reported by {', '.join(error.workers)})"
        if len(error.workers) < len(subject.answers)
        else ""
    )
    if _POLICY.search(text):
        step = (
            f"Leave out {error.property}, or have it allowed by "
            "connector.client.config.override.policy."
        )
        return override_rules.NOT_ALLOWED.found(subject.name, f"{text}{reporters}", step)
    if missing := missing_class(text):
        # The worker refuses a connector's class before it validates any property.
        about = error.property or CLASS
        where = "" if about == CLASS else f"{about}: "
        rule = framework_rules.no_class if about == CLASS else WORKER_ERROR
        message = f"{where}{missing}{'' if missing.similar else '.'}{reporters}"
        return rule.found(subject.name, message, f"Correct {about}, or {INSTALL}.")
    if needs_class(text):
        return WORKER_ERROR.found(subject.name, f"{shortened(text)}{reporters}", f"{FITTING}.")
    named = error.property if error.property and error.property not in text else ""
    step = (
        f"Correct {error.property}."
        if error.property
        else "Correct the property that the worker names."
    )
    return WORKER_ERROR.found(
        subject.name, f"{named}{': ' if named else ''}{text}{reporters}", step
    )


def disagreement(subject: Subject, errors: Sequence[_WorkerError]) -> Iterator[Finding]:
    """Yield EOS015 if some workers accept what others refuse, or a plugin answers differently."""
    workers = [answer.worker for answer in subject.answers]
    partial = [error for error in errors if len(set(error.workers)) < len(workers)]
    if partial:
        parts = []
        for worker in workers:
            texts = [error.text for error in partial if worker in error.workers]
            if not texts:
                parts.append(f"{worker} accepts it")
            else:
                text = shortened(scrubbed(texts[0], subject.config))
                parts.append(f"{worker} reports: {_shortened(text)}")
        yield exactly_once_rules.DISAGREE.found(
            subject.name, f"{'; '.join(parts)}.", "connectctl plugins list"
        )
        return
    plugins = {
        a.worker: a.plugin.value for a in subject.answers if a.plugin is not PluginAnswer.NOT_ASKED
    }
    if len(set(plugins.values())) > 1:
        text = "; ".join(f"{plugin} on {worker}" for worker, plugin in plugins.items())
        message = (
            "Workers give different answers to whether the connector supports exactly-once: "
            f"{text}."
        )
        yield exactly_once_rules.DISAGREE.found(
            subject.name, message, "Install the same version of the plugin on every worker."
        )


def _shortened(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _SHORT else f"{line[:_SHORT]}…"


def creation(name: str, initial_state: str | None, *, with_offsets: bool) -> Iterator[Finding]:
    """Yield CONFIG033 and CONFIG034 about the other members of a request to create a connector."""
    if initial_state is not None and initial_state.upper() not in STATES:
        message = f"initial_state is {initial_state}, which is not one of {', '.join(STATES)}."
        yield BAD_STATE.found(name, message, "Correct initial_state, or leave it out for RUNNING.")
    if with_offsets:
        message = "It has offsets next to its configuration, which no release up to 4.3 accepts."
        step = f"Create it with initial_state STOPPED, then: connectctl offsets set {name} -f FILE"
        yield INITIAL_OFFSETS.found(name, message, step)


def repeated(name: str, lines: Mapping[str, Sequence[int]]) -> Iterator[Finding]:
    """Yield CONFIG031 for each repeated property, with its line numbers."""
    for key, numbers in lines.items():
        where = ", ".join(map(str, numbers))
        message = f"{key} is set {len(numbers)} times, on lines {where}; the last one counts."
        yield REPEATED.found(name, message, "Keep only one of them.")


def given_twice(name: str, doubled: Mapping[str, Doubled]) -> Iterator[Finding]:
    """Yield CONFIG035 for properties that a manifest sets twice."""
    for key, pair in doubled.items():
        values = (
            "" if pair.value == pair.other_value else f" ({pair.value}, not {pair.other_value})"
        )
        message = (
            f"{key} is given twice, by {pair.path} and by {pair.other_path}: {pair.path} "
            f"counts{values}."
        )
        severity = None if values else Severity.INFO
        yield GIVEN_TWICE.found(name, message, "Leave one of them out.", severity=severity)
