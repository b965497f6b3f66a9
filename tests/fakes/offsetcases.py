"""Source offsets of Kafka's own connectors, and what a worker's ``PATCH /connectors/NAME/offsets``
answers to each.

The first ones are from public reports; ``tests/live/test_offset_rules.py`` gives all of them to a
real worker.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
_MIRROR = "org.apache.kafka.connect.mirror"
SOURCE, CHECKPOINT, HEARTBEAT = (
    f"{_MIRROR}.Mirror{name}Connector" for name in ("Source", "Checkpoint", "Heartbeat")
)
_ALIASES = {
    "source.cluster.alias": "live",
    "target.cluster.alias": "dr",
    "source.cluster.bootstrap.servers": "localhost:9092",
    "target.cluster.bootstrap.servers": "localhost:9092",
}
CONFIGS = {
    FILE: {"connector.class": FILE, "file": "/tmp/lines.txt", "topic": "lines"},
    SOURCE: {"connector.class": SOURCE, "topics": "orders", **_ALIASES},
    CHECKPOINT: {"connector.class": CHECKPOINT, **_ALIASES},
    HEARTBEAT: {"connector.class": HEARTBEAT, **_ALIASES},
}


@dataclass(frozen=True)
class Case:
    """An offset for a connector of ``kind``: ``worker`` is whether a worker accepts it.

    ``says`` is what connectctl says against it, None where it accepts it.
    """

    kind: str
    partition: Any
    offset: Any
    worker: bool
    says: str | None = None

    @property
    def name(self) -> str:
        return (
            f"{self.kind.rpartition('.')[2]} {json.dumps(self.partition)} {json.dumps(self.offset)}"
        )


LINES, ORDERS = (
    {"filename": "/tmp/lines.txt"},
    {"cluster": "live", "topic": "orders", "partition": 0},
)
GROUP = {"group": "app", "topic": "orders", "partition": 0}
BEAT = {"sourceClusterAlias": "live", "targetClusterAlias": "dr"}

CASES = (
    Case(
        SOURCE,
        ORDERS | {"partition": "0"},
        {"offset": 3},
        False,
        'partition is the string "0", and the connector ',
    ),
    Case(
        SOURCE,
        ORDERS,
        {"offset": "3"},
        False,
        'offset is the string "3", and the connector requires an integer',
    ),
    Case(FILE, LINES, {"position": "30"}, False, 'position is the string "30"'),
    Case(FILE, {"filename": "/tmp/older.txt"}, {"position": 0}, True),
    Case(FILE, LINES, {"position": (1 << 63) - 1}, True),
    Case(FILE, LINES, {"position": 3, "lines": 1}, True),
    Case(
        FILE,
        LINES,
        {"position": -1},
        False,
        "position is the integer -1, and the connector requires an integer that",
    ),
    Case(FILE, LINES, {"position": 3.0}, False, "position is the floating-point number 3.0"),
    Case(FILE, LINES, {"position": True}, False, "position is the boolean true"),
    Case(FILE, LINES, {"position": None}, False, "position is null"),
    Case(FILE, LINES, {"offset": 3}, False, "the offset has no position"),
    Case(FILE, LINES, {}, False, "the offset has no position"),
    Case(FILE, {"file": "/tmp/lines.txt"}, {"position": 3}, False, "the partition has no filename"),
    Case(FILE, None, {"position": 3}, False, "the partition is null"),
    Case(FILE, {"file": 1}, None, True),
    Case(
        FILE,
        LINES | {"path": "/tmp"},
        {"position": 3},
        True,
        "path is not in the partitions of the connector",
    ),
    Case(FILE, {"filename": 1}, {"position": 3}, True, "filename is the integer 1"),
    Case(SOURCE, ORDERS, {"offset": 0}, True),
    Case(SOURCE, ORDERS | {"partition": (1 << 31) - 1}, {"offset": 3, "epoch": 1}, True),
    Case(
        SOURCE,
        ORDERS | {"partition": 1 << 31},
        {"offset": 3},
        False,
        "an integer from 0 to 2147483647",
    ),
    Case(SOURCE, ORDERS | {"partition": -1}, {"offset": 3}, False, "partition is the integer -1"),
    Case(
        SOURCE,
        ORDERS | {"partition": 0.0},
        {"offset": 3},
        False,
        "partition is the floating-point number 0.0",
    ),
    Case(SOURCE, ORDERS | {"topic": None}, {"offset": 3}, False, "topic is null"),
    Case(
        SOURCE,
        {"topic": "orders", "partition": 0},
        {"offset": 3},
        False,
        "the partition has no cluster",
    ),
    Case(SOURCE, ORDERS, {"offset": -1}, False, "offset is the integer -1"),
    Case(SOURCE, ORDERS, {"position": 3}, False, "the offset has no offset"),
    Case(SOURCE, {"anything": 1}, None, True),
    Case(
        SOURCE,
        ORDERS | {"group": "app"},
        {"offset": 3},
        True,
        "group is not in the partitions of the connector",
    ),
    Case(CHECKPOINT, GROUP, {"offset": 0}, True),
    Case(
        CHECKPOINT,
        GROUP,
        {"offset": 1},
        False,
        "offset is the integer 1, and the connector requires the integer 0",
    ),
    Case(CHECKPOINT, ORDERS, {"offset": 0}, False, "the partition has no group"),
    Case(HEARTBEAT, BEAT, {"offset": 0}, True),
    Case(
        HEARTBEAT,
        BEAT | {"targetClusterAlias": 1},
        {"offset": 0},
        False,
        "targetClusterAlias is the integer 1",
    ),
    Case(HEARTBEAT, BEAT, {"offset": 5}, False, "requires the integer 0"),
)
