"""What an audit reads, and what it does without."""

from __future__ import annotations

import pytest
from connectctl.ops.audit import field_extractor
from connectctl.ops.audit.plan import AuditRequest
from connectctl.ops.audit.scan import PartitionRange
from connectctl.ops.jobs import audit_execution
from connectctl.ops.jobs.audit import Cluster
from connectctl.ops.operations.offsets.engine_choice import Choice


def test_without_spark_a_big_topic_is_judged_by_its_headers_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("connectctl.ops.clients.spark.session.installed", lambda: False)
    cluster = Cluster({}, 1.0)
    big = [PartitionRange("t", 0, 0, 5_000_000, 5_000_000, 5_000_000)]
    request = AuditRequest(("t",), field_extractor.sequence_spec("$.seq"))
    work, unread = audit_execution._work(cluster, request, big, None, None, Choice.AUTO, None)
    assert work.wanted is None
    assert "pip install 'connectctl[spark]'" in str(unread)
    work, unread = audit_execution._work(cluster, request, big, None, None, Choice.LOCAL, None)
    assert (work.wanted is None, unread) == (False, None)
