"""Whether a connector's configuration will do: our rules and the workers' own validation, told once. Pure.

EOS001 to EOS015 are about exactly-once, CONFIG001 to CONFIG015 about what every configuration has, CONFIG016 to CONFIG018
about what is ignored or lost silently, CONFIG020 to CONFIG029 about client overrides and topics, CONFIG030 to CONFIG035
about what is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum

from connectctl.ops.checks.connector_config import (
    exactly_once_rules,
    framework_rules,
    override_rules,
    silent_rules,
    target_rules,
)
from connectctl.ops.checks.connector_config.observe import Hit, Subject, hits, same_words, scrubbed
from connectctl.ops.checks.connector_config.strimzi import Doubled
from connectctl.ops.checks.types import Goal, PluginAnswer, Validation
from connectctl.ops.connect.worker import NOT_ENABLED
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
_NO_CLASS = "Failed to find any class that implements Connector"
_PLUGIN_NAME = re.compile(r"name='([^']+)'")
_FOLLOWS = "Invalid value null for configuration "
_SHORT = 160


@dataclass(frozen=True)
class _Said:
    """One of the workers' own errors, and the workers that report it."""

    property: str
    text: str
    workers: tuple[str, ...]


class ConfigOutcome(StrEnum):
    """What becomes of a configuration: workers refuse it; they take it, and connector or tasks fail; neither.

    NOT_VALIDATED: no rule finds an error, and none of the workers that were to be asked has validated it.
    """

    REFUSED = "refused"
    FAILS = "fails"
    TAKEN = "taken"
    NOT_VALIDATED = "not validated"


@dataclass(frozen=True)
class Evaluated:
    findings: tuple[Finding, ...]
    outcome: ConfigOutcome


def evaluate(subject: Subject) -> Evaluated:
    """The findings about the configuration, and what becomes of it. A worker's error that a rule tells is one finding."""
    found = hits((exactly_once_rules, framework_rules, override_rules, silent_rules, target_rules), subject)
    said = _said(subject)
    kept = [hit for hit in found if _stands(hit, subject, said)]
    covered = {each for each in said for hit in kept if _same(hit, each)}
    left = tuple(_left_over(each, subject) for each in said if each not in covered)
    bad = [hit for hit in kept if hit.finding.severity is Severity.ERROR]
    refused = bool(left) or any(hit.text is not None for hit in bad)
    outcome = ConfigOutcome.REFUSED if refused else ConfigOutcome.FAILS if bad else ConfigOutcome.TAKEN
    theirs = (_in_their_words(hit, said, subject) for hit in kept)
    return Evaluated((*theirs, *left, *disagreement(subject, said)), outcome)


def _said(subject: Subject) -> tuple[_Said, ...]:
    """The workers' errors as far as they matter under the goal, those of several workers together."""
    found: dict[tuple[str, str], list[str]] = {}
    texts: dict[tuple[str, str], str] = {}
    for answer in subject.answers:
        for name, text in _errors(answer, subject):
            key = (name, same_words(text))
            texts.setdefault(key, text)
            found.setdefault(key, []).append(answer.worker)
    return tuple(_Said(name, texts[name, key], tuple(workers)) for (name, key), workers in found.items())


def _errors(answer: Validation, subject: Subject) -> Iterator[tuple[str, str]]:
    more = answer.once_enabled if subject.goal is Goal.ENABLED else {}
    for name in dict.fromkeys((*answer.errors, *more)):
        texts = dict.fromkeys((*answer.errors.get(name, ()), *more.get(name, ())))
        for text in texts:
            follows = text.startswith(_FOLLOWS) and len(texts) > 1
            if not follows and not (text == NOT_ENABLED and subject.goal is not Goal.NOW):
                yield name, text


def _stands(hit: Hit, subject: Subject, said: Sequence[_Said]) -> bool:
    """Whether the hit counts: what validation decides was also said, where anybody was asked."""
    # A worker that rejected the whole configuration has not validated the rest of it.
    whole = any("" not in answer.errors for answer in subject.answers)
    return not hit.validated or not whole or any(_same(hit, each) for each in said)


def _same(hit: Hit, said: _Said) -> bool:
    if hit.text is None or said.property not in (*hit.properties, ""):
        return False
    return same_words(hit.text) == same_words(said.text)


def _in_their_words(hit: Hit, said: Sequence[_Said], subject: Subject) -> Finding:
    """The finding with the worker's order of words, where the message is the worker's."""
    theirs = next((each for each in said if _same(hit, each)), None)
    if theirs is None or hit.finding.message != scrubbed(hit.text or "", subject.config, hit.properties[0]):
        return hit.finding
    return replace(hit.finding, message=scrubbed(theirs.text, subject.config, theirs.property))


def _left_over(said: _Said, subject: Subject) -> Finding:
    """An error of the workers for which there is no rule of ours, or one that only they can see."""
    text = " ".join(scrubbed(said.text, subject.config, said.property).split())
    some = f" (so says {', '.join(said.workers)})" if len(said.workers) < len(subject.answers) else ""
    if _POLICY.search(text):
        step = f"Leave out {said.property}, or have it allowed by connector.client.config.override.policy."
        return override_rules.NOT_ALLOWED.found(subject.name, f"{text}{some}", step)
    if text.startswith(_NO_CLASS):
        message, _, installed = text.partition(", available connectors are")
        step = f"{_similar(subject, installed)}Correct connector.class, or install the plugin on every worker: "
        step += "connectctl plugins list."
        return framework_rules.no_class.found(subject.name, f"{message}.{some}", step)
    named = said.property if said.property and said.property not in text else ""
    step = f"Correct {said.property}." if said.property else "Correct the property that the worker names."
    return WORKER_ERROR.found(subject.name, f"{named}{': ' if named else ''}{text}{some}", step)


def _similar(subject: Subject, installed: str) -> str:
    """Return the question for the installed class whose name is nearest, by the list in a worker's error."""
    names = {name.rsplit(".", 1)[-1].removesuffix("Connector"): name for name in _PLUGIN_NAME.findall(installed)}
    wanted = (subject.config.get("connector.class") or "").strip().rsplit(".", 1)[-1].removesuffix("Connector")
    near = get_close_matches(wanted, names, 1)
    return f"Do you mean {names[near[0]]}? " if near else ""


def disagreement(subject: Subject, said: Sequence[_Said]) -> Iterator[Finding]:
    """EOS015: some workers take what others refuse, or a plugin answers differently."""
    workers = [answer.worker for answer in subject.answers]
    apart = [each for each in said if len(set(each.workers)) < len(workers)]
    if apart:
        parts = []
        for worker in workers:
            texts = [each.text for each in apart if worker in each.workers]
            if not texts:
                parts.append(f"{worker} accepts it")
            else:
                parts.append(f"{worker} says: {_shortened(scrubbed(texts[0], subject.config))}")
        yield exactly_once_rules.DISAGREE.found(subject.name, f"{'; '.join(parts)}.", "connectctl plugins list")
        return
    plugins = {a.worker: a.plugin.value for a in subject.answers if a.plugin is not PluginAnswer.NOT_ASKED}
    if len(set(plugins.values())) > 1:
        text = "; ".join(f"{plugin} on {worker}" for worker, plugin in plugins.items())
        message = f"Workers give different answers to whether the connector supports exactly-once: {text}."
        yield exactly_once_rules.DISAGREE.found(
            subject.name, message, "Install the same version of the plugin on every worker."
        )


def _shortened(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _SHORT else f"{line[:_SHORT]}…"


def creation(name: str, initial_state: str | None, *, with_offsets: bool) -> Iterator[Finding]:
    """CONFIG033 and CONFIG034: what stands beside a configuration when a connector is created."""
    if initial_state is not None and initial_state.upper() not in STATES:
        message = f"initial_state is {initial_state}, which is not one of {', '.join(STATES)}."
        yield BAD_STATE.found(name, message, "Correct initial_state, or leave it out for RUNNING.")
    if with_offsets:
        message = "It has offsets next to its configuration, which no release up to 4.3 accepts."
        step = f"Create it with initial_state STOPPED, then: connectctl offsets set {name} -f FILE"
        yield INITIAL_OFFSETS.found(name, message, step)


def repeated(name: str, lines: Mapping[str, Sequence[int]]) -> Iterator[Finding]:
    """CONFIG031, for each property with its line numbers."""
    for each, at in lines.items():
        where = ", ".join(map(str, at))
        message = f"{each} is set {len(at)} times, on lines {where}; the last one counts."
        yield REPEATED.found(name, message, "Keep only one of them.")


def given_twice(name: str, doubled: Mapping[str, Doubled]) -> Iterator[Finding]:
    """CONFIG035: properties that a manifest gives in two places."""
    for each, at in doubled.items():
        values = "" if at.value == at.other_value else f" ({at.value}, not {at.other_value})"
        message = f"{each} is given twice, by {at.place} and by {at.other}: {at.place} counts{values}."
        severity = None if values else Severity.INFO
        yield GIVEN_TWICE.found(name, message, "Leave one of them out.", severity=severity)
