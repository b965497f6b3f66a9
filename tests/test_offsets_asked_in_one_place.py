"""Offsets are asked of brokers in one place, which takes no answer for an end: nobody goes around
it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sources import ROOT, below, nodes

OPS = ROOT / "ops"
ASKING = {
    "list_offsets",
    "query_watermark_offsets",
    "get_watermark_offsets",
    "offsets_for_times",
    "position",
    "committed",
}
ALLOWED = {
    ("clients/librdkafka/partition_offsets.py", "list_offsets"): "the place",
    (
        "task_runtime/connectors/topic_copy/source_reader.py",
        "get_watermark_offsets",
    ): "a lag for people, and whether a broker is back",
    ("task_runtime/group/member.py", "get_watermark_offsets"): "a lag for people",
}
CLIENTS = {"admin", "consumer", "_consumer", "_admin"}
"""What handles of librdkafka are called here."""


def asked() -> Iterator[tuple[str, str]]:
    """File and method of each call that asks a client for offsets."""
    for file in below("ops"):
        for node in nodes(file):
            if not (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ASKING
            ):
                continue
            whose = node.func.value
            name = (
                whose.attr
                if isinstance(whose, ast.Attribute)
                else whose.id
                if isinstance(whose, ast.Name)
                else ""
            )
            if name in CLIENTS:
                yield str(file.relative_to(OPS)), node.func.attr


def test_nobody_asks_for_offsets_anywhere_else() -> None:
    assert set(asked()) == set(ALLOWED)


def test_every_offset_that_is_asked_for_becomes_one_or_none() -> None:
    """``offset_of`` is what makes an ``Offset``; a cast would be a way around it."""
    made = [
        str(file.relative_to(OPS))
        for file in below("ops")
        for node in nodes(file)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Offset"
    ]
    # The second: ends that were asked for by the driver, on their way through Spark.
    assert made == ["jobs/topic_layout.py", "kafka/sentinels.py"]
