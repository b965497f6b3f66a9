from __future__ import annotations

import pytest
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Unreachable
from connectctl.ops.operations.offsets.incomplete import check_complete
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState

GRANT = "Grant Describe on Topic a."
DENIED = NotAuthorized("a cannot be read", next_step=GRANT)
SILENT = Unreachable("b cannot be read", next_step="Check the brokers.")


def place(
    problem: str, hint: str | None = None, unread: ConnectctlError | None = None
) -> OffsetsTopicState:
    return OffsetsTopicState("off", Side.DEDICATED, 1, problem=problem, unread=unread, hint=hint)


def test_a_next_step_is_given_once_and_a_text_that_quotes_it_stays_whole() -> None:
    quoting = "x: the broker says (Grant Describe on Topic a)"
    found = [
        place("a: denied", GRANT, DENIED),
        place(quoting),
        place("c: silent", "Check the brokers.", SILENT),
    ]
    with pytest.raises(NotAuthorized) as raised:
        check_complete(found)
    assert (raised.value.why, raised.value.next_step) == (
        f"a: denied; {quoting}; c: silent (Check the brokers)",
        GRANT,
    )


def test_what_could_be_read_is_no_error() -> None:
    check_complete([OffsetsTopicState("off", Side.DEDICATED, 1)])
