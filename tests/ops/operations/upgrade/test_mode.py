from __future__ import annotations

import pytest
from connectctl.ops.clients.protocols import ConfiguredValue
from connectctl.ops.connect.transactional_ids import LeaderId
from connectctl.ops.connect.worker import Support
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.upgrade.mode import (
    Confidence,
    Evidence,
    JournalRecord,
    SourceSupport,
    mode_of,
)

HELD = LeaderId(Transaction("connect-cluster-g", "CompleteCommit", 1, 2))
NOT, YES, SILENT = Support.NOT_ENABLED, Support.ENABLED, Support.UNKNOWN
FILE_DISABLED, FILE_PREPARING, FILE_ENABLED = (
    ConfiguredValue(v, "file w.properties") for v in ("disabled", "preparing", "enabled")
)
SAME = JournalRecord(SourceSupport.PREPARING, "r1", restarted=True, same=True)
SINCE = JournalRecord(SourceSupport.PREPARING, "r1", restarted=True, same=False)
HALF = JournalRecord(SourceSupport.PREPARING, "r1", restarted=False, same=False)
LEADS = JournalRecord(
    SourceSupport.PREPARING, "r1", restarted=True, same=True, writes_transactions=True
)


@pytest.mark.parametrize(
    ("evidence", "value", "how"),
    [
        (Evidence(YES), SourceSupport.ENABLED, Confidence.VERIFIED),
        (Evidence(YES, configured=FILE_DISABLED), SourceSupport.ENABLED, Confidence.VERIFIED),
        (Evidence(Support.NOT_SUPPORTED), SourceSupport.NOT_SUPPORTED, Confidence.VERIFIED),
        (Evidence(SILENT, version="3.2.3"), SourceSupport.NOT_SUPPORTED, Confidence.VERIFIED),
        (Evidence(NOT, version="7.2.1-ccs"), SourceSupport.NOT_SUPPORTED, Confidence.VERIFIED),
        (Evidence(NOT, version="7.6.0-ccs"), SourceSupport.UNKNOWN, Confidence.NOT_KNOWN),
        (Evidence(NOT), SourceSupport.UNKNOWN, Confidence.NOT_KNOWN),
        (Evidence(NOT, leader=True), SourceSupport.UNKNOWN, Confidence.NOT_KNOWN),
        (
            Evidence(NOT, leader=True, leader_id=LeaderId(None)),
            SourceSupport.DISABLED,
            Confidence.VERIFIED,
        ),
        (Evidence(NOT, leader_id=LeaderId(None)), SourceSupport.UNKNOWN, Confidence.NOT_KNOWN),
        (Evidence(NOT, leader=True, leader_id=HELD), SourceSupport.UNKNOWN, Confidence.NOT_KNOWN),
        (
            Evidence(NOT, leader=True, leader_id=HELD, journal_record=LEADS),
            SourceSupport.PREPARING,
            Confidence.VERIFIED,
        ),
        (Evidence(NOT, configured=FILE_PREPARING), SourceSupport.PREPARING, Confidence.CONFIGURED),
        (
            Evidence(NOT, configured=ConfiguredValue(None, "file")),
            SourceSupport.DISABLED,
            Confidence.CONFIGURED,
        ),
        (Evidence(NOT, configured=FILE_ENABLED), SourceSupport.UNKNOWN, Confidence.NOT_KNOWN),
        (
            Evidence(NOT, configured=ConfiguredValue("yes", "file")),
            SourceSupport.UNKNOWN,
            Confidence.NOT_KNOWN,
        ),
        (Evidence(NOT, journal_record=SAME), SourceSupport.PREPARING, Confidence.ASSUMED),
        (Evidence(NOT, journal_record=SINCE), SourceSupport.PREPARING, Confidence.ASSUMED),
        (
            Evidence(NOT, journal_record=SAME, configured=FILE_PREPARING),
            SourceSupport.PREPARING,
            Confidence.CONFIGURED,
        ),
        # The file was changed since, and the process is still the one that was started with
        # preparing.
        (
            Evidence(NOT, journal_record=SAME, configured=FILE_DISABLED),
            SourceSupport.PREPARING,
            Confidence.ASSUMED,
        ),
        # Somebody has restarted it since: the file is the newer witness.
        (
            Evidence(NOT, journal_record=SINCE, configured=FILE_DISABLED),
            SourceSupport.DISABLED,
            Confidence.CONFIGURED,
        ),
        # Killed between the change and the restart: the file says what the process does not run
        # with.
        (
            Evidence(NOT, journal_record=HALF, configured=FILE_PREPARING),
            SourceSupport.UNKNOWN,
            Confidence.NOT_KNOWN,
        ),
        (
            Evidence(YES, journal_record=HALF, configured=FILE_PREPARING),
            SourceSupport.ENABLED,
            Confidence.VERIFIED,
        ),
        (
            Evidence(SILENT, problem="Connection refused"),
            SourceSupport.UNKNOWN,
            Confidence.NOT_KNOWN,
        ),
        (
            Evidence(SILENT, problem="Connection refused", configured=FILE_ENABLED),
            SourceSupport.ENABLED,
            Confidence.CONFIGURED,
        ),
    ],
)
def test_the_strongest_evidence_tells_the_mode(
    evidence: Evidence, value: SourceSupport, how: Confidence
) -> None:
    mode = mode_of(evidence)
    assert (mode.value, mode.how) == (value, how)
    assert mode.source


def test_a_worker_that_cannot_be_known_says_why() -> None:
    assert (
        mode_of(Evidence(NOT)).source
        == "preparing and disabled cannot be distinguished from outside"
    )
    assert mode_of(Evidence(SILENT, problem="Connection refused")).source == "Connection refused"
