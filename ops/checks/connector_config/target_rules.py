"""STORE008: a connector that writes its records to its own offsets topic. Pure."""

from __future__ import annotations

from connectctl.ops.checks.connector_config.active_topics import configured_topics
from connectctl.ops.checks.connector_config.exactly_once_rules import OFFSETS_TOPIC
from connectctl.ops.checks.connector_config.observe import SOURCE, PropertyCase, Subject
from connectctl.ops.checks.types import Goal
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import rule

OWN_TOPIC = (
    "Source tasks may not produce to their own offsets topics when exactly-once support is enabled"
)


@rule("STORE008", Severity.ERROR)
def own_target(subject: Subject, goal: Goal) -> PropertyCase | None:
    """Return STORE008 for a configuration that is not on the cluster yet; ``offset_stores`` has it
    for the others.
    """
    if subject.running or subject.kind != SOURCE or subject.modes == {False}:
        return None
    dedicated = subject.text(OFFSETS_TOPIC)
    topic = subject.offsets_topic if dedicated is None else dedicated
    targets = configured_topics(
        {name: value for name, value in subject.config.items() if value is not None}
    )
    if not topic or topic not in targets:
        return None
    severity = Severity.ERROR if subject.modes else Severity.WARNING
    step = f"Write to another topic than {topic}, or give {OFFSETS_TOPIC} another name."
    return PropertyCase(OFFSETS_TOPIC, f"{OWN_TOPIC}.", step, severity)
