from __future__ import annotations

import pytest
from connectctl.ops.clients.protocols import ConfiguredValue
from connectctl.ops.connect.worker import Support
from connectctl.ops.operations.upgrade.mode import Belief, Evidence, How, LeaderId, Value, mode_of

NOT, YES, SILENT = Support.NOT_ENABLED, Support.ENABLED, Support.UNKNOWN
FILE_DISABLED, FILE_PREPARING, FILE_ENABLED = (
    ConfiguredValue(v, "file w.properties") for v in ("disabled", "preparing", "enabled")
)
SAME = Belief(Value.PREPARING, "r1", restarted=True, same=True)
SINCE = Belief(Value.PREPARING, "r1", restarted=True, same=False)
HALF = Belief(Value.PREPARING, "r1", restarted=False, same=False)
LEADS = Belief(Value.PREPARING, "r1", restarted=True, same=True, writes_transactions=True)


@pytest.mark.parametrize(
    ("evidence", "value", "how"),
    [
        (Evidence(YES), Value.ENABLED, How.PROVEN),
        (Evidence(YES, told=FILE_DISABLED), Value.ENABLED, How.PROVEN),
        (Evidence(Support.NOT_SUPPORTED), Value.NOT_SUPPORTED, How.PROVEN),
        (Evidence(SILENT, version="3.2.3"), Value.NOT_SUPPORTED, How.PROVEN),
        (Evidence(NOT, version="7.2.1-ccs"), Value.NOT_SUPPORTED, How.PROVEN),
        (Evidence(NOT, version="7.6.0-ccs"), Value.UNKNOWN, How.NOT_KNOWN),
        (Evidence(NOT), Value.UNKNOWN, How.NOT_KNOWN),
        (Evidence(NOT, leader=True), Value.UNKNOWN, How.NOT_KNOWN),
        (Evidence(NOT, leader=True, leader_id=LeaderId(None)), Value.DISABLED, How.PROVEN),
        (Evidence(NOT, leader_id=LeaderId(None)), Value.UNKNOWN, How.NOT_KNOWN),
        (Evidence(NOT, leader=True, leader_id=LeaderId((1, 2))), Value.UNKNOWN, How.NOT_KNOWN),
        (Evidence(NOT, leader=True, leader_id=LeaderId((1, 2)), belief=LEADS), Value.PREPARING, How.PROVEN),
        (Evidence(NOT, told=FILE_PREPARING), Value.PREPARING, How.TOLD),
        (Evidence(NOT, told=ConfiguredValue(None, "file")), Value.DISABLED, How.TOLD),
        (Evidence(NOT, told=FILE_ENABLED), Value.UNKNOWN, How.NOT_KNOWN),
        (Evidence(NOT, told=ConfiguredValue("yes", "file")), Value.UNKNOWN, How.NOT_KNOWN),
        (Evidence(NOT, belief=SAME), Value.PREPARING, How.BELIEVED),
        (Evidence(NOT, belief=SINCE), Value.PREPARING, How.BELIEVED),
        (Evidence(NOT, belief=SAME, told=FILE_PREPARING), Value.PREPARING, How.TOLD),
        # The file was changed since, and the process is still the one that was started with preparing.
        (Evidence(NOT, belief=SAME, told=FILE_DISABLED), Value.PREPARING, How.BELIEVED),
        # Somebody has restarted it since: the file is the newer witness.
        (Evidence(NOT, belief=SINCE, told=FILE_DISABLED), Value.DISABLED, How.TOLD),
        # Killed between the change and the restart: the file says what the process does not run with.
        (Evidence(NOT, belief=HALF, told=FILE_PREPARING), Value.UNKNOWN, How.NOT_KNOWN),
        (Evidence(YES, belief=HALF, told=FILE_PREPARING), Value.ENABLED, How.PROVEN),
        (Evidence(SILENT, problem="Connection refused"), Value.UNKNOWN, How.NOT_KNOWN),
        (Evidence(SILENT, problem="Connection refused", told=FILE_ENABLED), Value.ENABLED, How.TOLD),
    ],
)
def test_the_strongest_evidence_tells_the_mode(evidence: Evidence, value: Value, how: How) -> None:
    mode = mode_of(evidence)
    assert (mode.value, mode.how) == (value, how)
    assert mode.source


def test_a_worker_that_cannot_be_known_says_why() -> None:
    assert mode_of(Evidence(NOT)).source == "preparing and disabled cannot be distinguished from outside"
    assert mode_of(Evidence(SILENT, problem="Connection refused")).source == "Connection refused"
