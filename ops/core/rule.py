"""Rules of findings: a stable id and a severity, and the function that looks for it;
``docs/findings`` has the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule_docs import rule_doc


@dataclass(frozen=True)
class Rule:
    """One condition that is looked for.

    Title, consequence, source and explanation are the section of ``id`` in ``docs/findings``.
    """

    id: str
    severity: Severity

    def found(
        self,
        subject: str,
        message: str,
        next_step: str | None = None,
        *,
        severity: Severity | None = None,
        since: float | None = None,
        evidence: tuple[str, ...] = (),
    ) -> Finding:
        """Return a finding about ``subject``. ``message`` is what was observed; ``severity`` if it
        differs from the rule's; ``since`` and ``evidence`` as of ``Finding``.

        ``why`` is set if the section has a specification as its source.
        """
        doc = rule_doc(self.id)
        why = doc.cause if doc.source else None
        return Finding(
            self.id,
            severity or self.severity,
            subject,
            message,
            next_step,
            why,
            since=since,
            evidence=evidence,
        )


@dataclass(frozen=True)
class Case:
    """Something that a rule found. ``severity`` is set if it differs from the rule's; ``since`` and
    ``evidence`` as of ``Finding``.
    """

    subject: str
    message: str
    next_step: str | None = None
    severity: Severity | None = None
    since: float | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckedRule(Rule):
    """A rule with its function, which ``rule`` makes."""

    cases: Callable[..., Any]
    when: Callable[[Any, Any], bool] | None
    each: str | None

    def cases_in(self, facts: Any, goal: Any) -> Iterator[Any]:
        """Yield what the function finds in the facts of its area."""
        if self.when is not None and not self.when(facts, goal):
            return
        for unit in [()] if self.each is None else zip(getattr(facts, self.each)):
            found = self.cases(facts, *unit, goal)
            if isinstance(found, Iterable):
                yield from found
            elif found is not None:
                yield found

    def findings(self, facts: Any, goal: Any) -> Iterator[Finding]:
        """Yield what the rule finds in the facts of its area, as findings."""
        for case in self.cases_in(facts, goal):
            yield self.found(
                case.subject,
                case.message,
                case.next_step,
                severity=case.severity,
                since=case.since,
                evidence=case.evidence,
            )


def rule(
    id: str,
    severity: Severity,
    *,
    when: Callable[[Any, Any], bool] | None = None,
    each: str | None = None,
) -> Callable[[Callable[..., Any]], CheckedRule]:
    """Return a decorator that makes a function of an area's facts and the goal a rule.

    The function returns a ``Case``, yields several, or returns None. It is called only if ``when``
    is true for both. ``each`` is the name of an attribute of the facts: the function is called for
    each item of it, with the item between facts and goal.
    """
    return lambda cases: CheckedRule(id, severity, cases, when, each)


@dataclass(frozen=True)
class Several:
    """A function of facts and goal that yields findings of several rules, or that another module
    made.
    """

    findings: Callable[[Any, Any], Iterable[Finding]]


def check(rules: ModuleType, facts: Any, goal: Any = None) -> Iterator[Finding]:
    """Yield what the rules of a module find in the facts of their area, in the order in which they
    are written.

    ``goal`` is what the cluster is to become, for rules that depend on it.
    """
    for each in vars(rules).values():
        if isinstance(each, CheckedRule | Several):
            yield from each.findings(facts, goal)
