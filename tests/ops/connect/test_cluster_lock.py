from __future__ import annotations

import pytest
from connectctl.ops.connect.cluster_lock import LockHolder, group_of
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(max_size=20)


@given(TEXT, TEXT, TEXT, TEXT, st.integers(0, 2**22))
def test_a_client_id_says_who_holds_the_lock_whatever_the_names_are(
    run: str, user: str, host: str, since: str, pid: int
) -> None:
    holder = LockHolder(run, f"{user}@{host}", since, pid)
    assert holder.client_id.isascii()
    assert " " not in holder.client_id
    assert LockHolder.from_client_id(holder.client_id) == holder


@pytest.mark.parametrize(
    "client_id", ["", "rdkafka", "connectctl", "connectctl;run=x", "a;run=1;by=2;since=3"]
)
def test_a_member_that_is_none_of_ours_is_named_by_its_client_id(client_id: str) -> None:
    found = LockHolder.from_client_id(client_id, "10.0.0.1")
    assert (found.run, found.who, found.pid) == ("", client_id, 0)
    assert str(found) == f"{client_id} (at 10.0.0.1)"


def test_the_holder_is_told_with_run_person_time_and_address() -> None:
    holder = LockHolder("20260101-1", "anna@ops-1", "2026-01-01T10:31:00Z", 7, "10.0.0.1")
    assert str(holder) == "run 20260101-1 of anna@ops-1 since 2026-01-01T10:31:00Z (at 10.0.0.1)"
    assert holder.host == "ops-1"
    assert group_of("connect-prod") == "connectctl-lock-connect-prod"
