"""The cluster as the areas of preflight see it, made for a test of one area."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.transactional_ids import TransactionalIdIndex
from fakes.brokers import FakeBrokers
from fakes.coordinators import FakeCoordinators
from fakes.kafkareads import FakeKafka

if TYPE_CHECKING:
    from connectctl.ops.checks.context import CheckContext


def check_context(
    *connectors: Connector,
    kafka: Any = None,
    calls: Any = None,
    transactions: Any = None,
    brokers: Any = None,
    other_kafka: Any = None,
    acls: Any = None,
    other_acls: Any = None,
    bootstrap: str = "here:9092",
    group: str | ConnectGroup = "g",
    told: Mapping[str, str] | None = None,
    workers: int = 1,
    pause: Callable[[float], None] = lambda seconds: None,
    **more: Any,
) -> CheckContext:
    """A context of these connectors, with exactly-once enabled; ``told`` are the workers'
    properties.
    """
    edges = SimpleNamespace(
        kafka=FakeKafka() if kafka is None else kafka,
        calls=calls,
        transactions=lambda: FakeCoordinators() if transactions is None else transactions,
        brokers=lambda: FakeBrokers() if brokers is None else brokers,
        other_kafka=other_kafka,
        acls=lambda: acls,
        other_acls=other_acls,
        bootstrap=bootstrap,
        pause=pause,
    )
    seen = {
        "edges": edges,
        "group": ConnectGroup(group, "Stable", "sessioned", ())
        if isinstance(group, str)
        else group,
        "checked": connectors,
        "view": SimpleNamespace(workers=(None,) * workers),
        "connections": None,
        "all_connectors": connectors,
        "sources": [each for each in connectors if each.type != "sink"],
        "worker_property": dict(told or {}).get,
        "directory": TransactionalIdIndex({}),
        "enabled": True,
        "versions": ("4.3.1",),
        "internal": {},
        "state": None,
        "written": {},
        "recorded": None,
    }
    return cast("CheckContext", SimpleNamespace(**(seen | more)))
