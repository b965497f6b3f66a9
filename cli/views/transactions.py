"""The tables of ``connectctl transactions``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Block
from connectctl.ops.core.finding import counted
from connectctl.ops.core.times import iso_utc

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from connectctl.ops.kafka.topic_partition import TopicPartition
    from connectctl.ops.operations.transactions.hanging import Search
    from connectctl.ops.operations.transactions.lag import Lag
    from connectctl.ops.operations.transactions.listing import Owned

_MOST_PARTITIONS = 3


def partition_names(partitions: Collection[TopicPartition], wide: bool) -> list[str]:
    """Return the names of ``partitions`` in a table: the first ones and how many more there are, or
    all of them if it is ``wide``.
    """
    names = list(map(str, partitions))
    more = len(names) - _MOST_PARTITIONS
    return names if wide or more <= 0 else [*names[:_MOST_PARTITIONS], f"+{more}"]


def print_list(found: Sequence[Owned], now: float, wide: bool) -> None:
    """Print one row per transactional id."""
    columns = ["TRANSACTIONAL-ID", "CONNECTOR", "TASK", "STATE", "OPEN", "PARTITIONS"]
    columns += ["GROUP", "PRODUCER", "EPOCH", "TIMEOUT", "COORDINATOR"] if wide else []
    rows = []
    for each in found:
        txn = each.transaction
        shown = partition_names(txn.partitions, wide)
        shown += [f"(pending offsets of {held.group})" for held in each.pending]
        row = [
            txn.id,
            *_owner(each),
            txn.state,
            terminal.duration(txn.seconds_open(now)),
            " ".join(shown) or "-",
        ]
        if wide:
            group = each.owner.group if each.owner else each.leader_of or "-"
            row += [
                group,
                str(txn.producer_id),
                str(txn.epoch),
                f"{txn.timeout_ms} ms",
                str(txn.coordinator),
            ]
        rows.append(row)
    spare = () if wide else ("CONNECTOR", "TASK", "PARTITIONS")
    terminal.table(columns, rows, empty="No transactional id.", spare=spare)


def print_one(found: Owned, now: float) -> None:
    """Print all facts about one transactional id."""
    txn = found.transaction
    owners = [str(owner) for owner in found.owners] + (
        [f"the leader of {found.leader_of}"] if found.leader_of else []
    )
    started = "" if txn.started_ms is None else iso_utc(txn.started_ms, "seconds")
    facts = [
        ["state", txn.state],
        ["belongs to", " and ".join(owners) or "no connector that can be seen"],
        ["producer id", str(txn.producer_id)],
        ["epoch", str(txn.epoch)],
        ["timeout", f"{txn.timeout_ms} ms"],
        [
            "started",
            f"{started}, open for {terminal.duration(txn.seconds_open(now))}"
            if txn.is_open
            else "-",
        ],
        ["coordinator", f"broker {txn.coordinator}"],
    ]
    facts += [["pending offsets", str(each)] for each in found.pending]
    parts = [Block(["TRANSACTIONAL-ID", txn.id], facts)]
    if txn.partitions:
        parts.append(
            Block(["TOPIC", "PARTITION"], [[p.topic, str(p.partition)] for p in txn.partitions])
        )
    terminal.blocks(parts)


def print_hanging(found: Search, now: float, wide: bool) -> None:
    """Print one row per hanging transaction."""
    columns = [
        "TOPIC",
        "PARTITION",
        "START-OFFSET",
        "PRODUCER",
        "EPOCH",
        "SILENT",
        "FORMER-ID",
        "DECIDED",
        "WHY",
    ]
    columns += ["DECIDED-WHY"] if wide else []
    rows = [
        [
            each.topic_partition.topic,
            str(each.topic_partition.partition),
            str(each.producer.start_offset),
            str(each.producer.producer_id),
            str(each.producer.epoch),
            terminal.duration(each.seconds(now)),
            each.id or "-",
            each.decision.outcome or "not known",
            each.why,
            *([each.decision.why] if wide else []),
        ]
        for each in found.found
    ]
    spare = () if wide else ("EPOCH", "START-OFFSET", "FORMER-ID")
    seen = "partitions that could be read" if found.findings else "partitions"
    hangs = "is proven to hang" if found.unproven else "hangs"
    terminal.table(
        columns, rows, spare=spare, empty=f"Nothing {hangs} on {found.partitions} {seen}."
    )


def print_lag(found: Sequence[Lag], now: float, wide: bool) -> None:
    """Print one row per partition that blocks read_committed consumers; with ``wide`` every
    partition.
    """
    columns = [
        "TOPIC",
        "PARTITION",
        "ROLE",
        "STABLE",
        "END",
        "LAG",
        "SUSPECT",
        "CONNECTOR",
        "TASK",
        "OPEN",
    ]
    rows = []
    for each in found:
        if not each.bounds.lag and not wide:
            continue
        row = [each.partition.topic, str(each.partition.partition), each.role]
        row += [str(each.bounds.stable), str(each.bounds.end), str(each.bounds.lag)]
        rows.append([*row, *_suspect(each, now)])
    spare = () if wide else ("CONNECTOR", "TASK", "END", "STABLE")
    terminal.table(
        columns,
        rows,
        spare=spare,
        empty=f"No reader is blocked in {counted(len(found), 'partition')}: the last stable "
        "offset is the end.",
    )


def _suspect(lag: Lag, now: float) -> list[str]:
    suspect = lag.suspect
    if suspect is None:
        return ["-", "-", "-", "-"]
    known = suspect.transaction
    name = known.transaction.id if known else f"producer {suspect.producer.producer_id}"
    seconds = known.transaction.seconds_open(now) if known else None
    return [
        f"{name} (hangs)" if suspect.hangs else name,
        *(_owner(known) if known else ["-", "-"]),
        terminal.duration(seconds),
    ]


def _owner(each: Owned) -> list[str]:
    if each.owner:
        return [each.owner.connector, str(each.owner.task)]
    return ["(leader)" if each.leader_of else "-", "-"]
