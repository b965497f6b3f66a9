"""The mode of a worker, and its confidence: verified by the worker's responses, configured in its
properties, or assumed.

Sources: KIP-618; ``DistributedHerder.validateExactlyOnceConfigs`` for what verifies ``enabled``;
``claimWritePrivileges`` for what a leader in ``preparing`` does and one in ``disabled`` does not.
Nothing else is observable from outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from connectctl.ops.clients.protocols import ConfiguredValue
from connectctl.ops.connect.release import EXACTLY_ONCE, older
from connectctl.ops.connect.transactional_ids import LeaderId
from connectctl.ops.connect.worker import Support

PROPERTY = "exactly.once.source.support"


class SourceSupport(StrEnum):
    """The worker's ``exactly.once.source.support``; NOT_SUPPORTED if its release has no such
    property.
    """

    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"
    UNKNOWN = "unknown"
    NOT_SUPPORTED = "not supported"


class Confidence(StrEnum):
    """How a mode is known.

    ASSUMED: connectctl set it in an earlier run, and nothing since contradicts it.
    """

    VERIFIED = "verified"
    CONFIGURED = "configured"
    ASSUMED = "assumed"
    NOT_KNOWN = "not known"


@dataclass(frozen=True)
class WorkerMode:
    """A worker's mode. ``source`` is the evidence for it, or why it is unknown."""

    value: SourceSupport
    how: Confidence
    source: str

    def __str__(self) -> str:
        return f"{self.value} ({self.how}: {self.source})"

    def fits(self, wanted: str) -> bool:
        """Return whether it is the mode ``wanted``; a release without the property is
        ``disabled``.
        """
        return self.value == wanted or (
            self.value is SourceSupport.NOT_SUPPORTED and wanted == SourceSupport.DISABLED
        )

    @property
    def may_change(self) -> bool:
        """Whether the same process may show another mode soon: a new leader has yet to initialize
        its transactional id.
        """
        return self.how is Confidence.VERIFIED and self.value is SourceSupport.DISABLED


@dataclass(frozen=True)
class JournalRecord:
    """The journal's record of a worker: ``run`` set its property to ``value``.

    ``restarted``: it was restarted since. ``same``: it is still the process that rejoined in this
    run. ``writes_transactions``: that process was observed using the leader's transactional id.
    """

    value: SourceSupport
    run: str
    restarted: bool
    same: bool
    writes_transactions: bool = False


@dataclass(frozen=True)
class Evidence:
    """All evidence of the mode of one worker."""

    support: Support
    version: str | None = None
    problem: str | None = None
    leader: bool = False
    leader_id: LeaderId | None = None
    configured: ConfiguredValue | None = None
    journal_record: JournalRecord | None = None


NOT_OBSERVABLE = "preparing and disabled cannot be distinguished from outside"


def mode_of(evidence: Evidence) -> WorkerMode:
    """The mode by the strongest evidence."""
    if older(evidence.version, EXACTLY_ONCE):
        return WorkerMode(
            SourceSupport.NOT_SUPPORTED,
            Confidence.VERIFIED,
            f"it runs {evidence.version}; the property requires 3.3 or later",
        )
    if evidence.support is Support.ENABLED:
        return WorkerMode(
            SourceSupport.ENABLED,
            Confidence.VERIFIED,
            "it accepts connectors that require exactly-once",
        )
    if evidence.support is Support.NOT_SUPPORTED:
        return WorkerMode(
            SourceSupport.NOT_SUPPORTED,
            Confidence.VERIFIED,
            "it does not know exactly.once.support",
        )
    if evidence.journal_record is not None and not evidence.journal_record.restarted:
        source = (
            f"run {evidence.journal_record.run} changed its property and its restart was not "
            "observed"
        )
        return WorkerMode(SourceSupport.UNKNOWN, Confidence.NOT_KNOWN, source)
    if (
        evidence.support is Support.NOT_ENABLED
        and evidence.leader
        and (verified := _verified_leader(evidence))
    ):
        return verified
    nothing = WorkerMode(
        SourceSupport.UNKNOWN, Confidence.NOT_KNOWN, evidence.problem or NOT_OBSERVABLE
    )
    return _assumed(evidence) or _configured(evidence) or nothing


def _verified_leader(evidence: Evidence) -> WorkerMode | None:
    """The mode by the leader's transactional id: only a leader that is at least preparing
    initializes it.
    """
    if evidence.leader_id is not None and evidence.leader_id.who is None:
        source = "it is the leader, and the leader's transactional id does not exist"
        return WorkerMode(SourceSupport.DISABLED, Confidence.VERIFIED, source)
    if (
        evidence.journal_record is not None
        and evidence.journal_record.same
        and evidence.journal_record.writes_transactions
    ):
        return WorkerMode(
            SourceSupport.PREPARING,
            Confidence.VERIFIED,
            "it initialized the leader's transactional id when it became leader",
        )
    return None


def _assumed(evidence: Evidence) -> WorkerMode | None:
    """The mode that an earlier run set, if no newer value is configured: for the same process it
    outweighs any file.
    """
    journal_record, configured = evidence.journal_record, evidence.configured
    if journal_record is None or (configured is not None and not journal_record.same):
        return None
    if (
        journal_record.value in (SourceSupport.ENABLED, SourceSupport.NOT_SUPPORTED)
        and evidence.support is Support.NOT_ENABLED
    ):
        return None
    since = "and the process is unchanged" if journal_record.same else "and it was restarted since"
    if (
        journal_record.same
        and configured is not None
        and _value_of(configured) is journal_record.value
    ):
        return WorkerMode(
            journal_record.value,
            Confidence.CONFIGURED,
            f"{configured.source}, and run {journal_record.run} restarted it with that",
        )
    return WorkerMode(
        journal_record.value, Confidence.ASSUMED, f"run {journal_record.run} set it, {since}"
    )


def _configured(evidence: Evidence) -> WorkerMode | None:
    configured = evidence.configured
    if configured is None:
        return None
    value = _value_of(configured)
    if value is None:
        return WorkerMode(
            SourceSupport.UNKNOWN,
            Confidence.NOT_KNOWN,
            f"{configured.source} has the invalid mode {configured.value!r}",
        )
    if value is SourceSupport.ENABLED and evidence.support is Support.NOT_ENABLED:
        return WorkerMode(
            SourceSupport.UNKNOWN,
            Confidence.NOT_KNOWN,
            f"{configured.source} has enabled, but the running worker does not use it",
        )
    if configured.value is None:
        return WorkerMode(
            value, Confidence.CONFIGURED, f"{configured.source} does not set it, default: disabled"
        )
    return WorkerMode(value, Confidence.CONFIGURED, configured.source)


def _value_of(configured: ConfiguredValue) -> SourceSupport | None:
    text = (configured.value or SourceSupport.DISABLED).strip().lower()
    return SourceSupport(text) if text in ("disabled", "preparing", "enabled") else None
