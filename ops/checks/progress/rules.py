"""FLOW001 and FLOW002: source connectors that run, and no longer do what they did: rules over
``progress.observe``. Pure.
"""

from __future__ import annotations

from connectctl.ops.checks.progress.observe import ProgressFacts, SourceProgress
from connectctl.ops.checks.progress.silence import Certainty
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import Case, rule
from connectctl.ops.core.times import in_words, iso_utc

SEVERITIES = {
    Certainty.PROVEN: Severity.ERROR,
    Certainty.LIKELY: Severity.WARNING,
    Certainty.POSSIBLE: Severity.INFO,
}


@rule("FLOW001", Severity.ERROR, each="connectors")
def stands_still(facts: ProgressFacts, source: SourceProgress, goal: Goal) -> Case | None:
    """Return FLOW001 for a source that writes neither offsets nor records, against its rhythm; not
    as an error if it may rest.
    """
    silence = source.silence
    if silence is None or source.writes_records:
        return None
    message = (
        f"It is RUNNING and stands still: its last offset was committed "
        f"{in_words(facts.now - silence.since)} ago, and before that one at least every "
        f"{in_words(silence.rhythm.longest)}."
    )
    if silence.certainty is not Certainty.PROVEN:
        message += (
            " It may rest, as at a weekend: the retained offsets do not include the same time of "
            "an earlier week."
        )
    return Case(
        source.name,
        message,
        f"Take a thread dump of {_workers(source)}, then: connectctl connectors restart "
        f"{source.name}",
        SEVERITIES[silence.certainty],
        since=silence.since,
        evidence=(*_past(source), _records(source)),
    )


@rule("FLOW002", Severity.ERROR, each="connectors")
def commits_nothing(facts: ProgressFacts, source: SourceProgress, goal: Goal) -> Case | None:
    """Return FLOW002 for a source that writes records, and no longer commits offsets."""
    silence = source.silence
    if silence is None or not source.writes_records:
        return None
    message = (
        f"Its topics have new records, and its last offset was committed "
        f"{in_words(facts.now - silence.since)} ago: after a restart it sends them again."
    )
    return Case(
        source.name,
        message,
        f"Look for failed commits of offsets in the log of {_workers(source)}",
        since=silence.since,
        evidence=(*_past(source), _records(source)),
    )


def _past(source: SourceProgress) -> tuple[str, ...]:
    if source.silence is None:
        return ()
    past = source.silence.rhythm
    return (
        f"{past.count} offsets from {iso_utc(past.first * 1000)} to {iso_utc(past.last * 1000)}, "
        f"the longest gap {in_words(past.longest)}",
    )


def _records(source: SourceProgress) -> str:
    if source.record_at is not None:
        return f"newest record of its topics: {iso_utc(source.record_at * 1000)}"
    return "when it last wrote a record is unknown: its topics are not known, empty, or not read"


def _workers(source: SourceProgress) -> str:
    return ", ".join(source.workers) or "its workers"
