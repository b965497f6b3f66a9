"""Findings about an offsets topic, with stable ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from connectctl.ops.connect.last_commit import Commits, Side, age_difference, last_commit
from connectctl.ops.connect.source_keys import SourceKey, connect_json, in_hash_order, java_map
from connectctl.ops.connect.source_offsets import ConnectorOffsets, SourceOffset, StoredOffset
from connectctl.ops.core.finding import Finding, Severity, counted
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.records import ConsumerRecord, UnreadTail
from connectctl.ops.kafka.visibility import describe_configs, grant

LOST = Rule("OFFSETS001", Severity.ERROR)
SPELLINGS = Rule("OFFSETS002", Severity.WARNING)
WRONG_PARTITION = Rule("OFFSETS003", Severity.ERROR)
FOREIGN_RECORD = Rule("OFFSETS004", Severity.WARNING)
UNREADABLE_OFFSET = Rule("OFFSETS005", Severity.ERROR)
INEXACT_NUMBER = Rule("OFFSETS006", Severity.ERROR)
NESTED_PARTITION = Rule("OFFSETS007", Severity.ERROR)
NULL_PARTITION = Rule("OFFSETS008", Severity.INFO)
OPEN_TRANSACTION = Rule("OFFSETS009", Severity.ERROR)
NOT_CONFIGURED = Rule("OFFSETS012", Severity.INFO)
STALE = Rule("OFFSETS013", Severity.WARNING)
UNUSUAL_SPELLING = Rule("OFFSETS014", Severity.WARNING)
POLICY = Rule("OFFSETS017", Severity.ERROR)
EMPTY_GROUP = Rule("OFFSETS018", Severity.INFO)
ORDER = Rule("OFFSETS019", Severity.INFO)
EXACT_IN_A_DOUBLE = 1 << 53


def of_connector(offsets: ConnectorOffsets) -> Iterator[Finding]:
    findings = OffsetFindings(offsets.name, offsets.configured, offsets.dedicated_topic)
    for entry in offsets.offsets:
        findings.add(entry)
    yield from findings.findings(
        finding for group in _suspects(offsets.offsets) for finding in of_spellings(group)
    )


@dataclass
class OffsetFindings:
    """Collects findings about one connector's source partitions; spellings are checked
    separately.
    """

    name: str
    configured: bool
    dedicated_topic: str | None
    _count: int = 0
    _lost: int = 0
    _first_lost: SourceOffset | None = None
    _unordered: int = 0
    _first_unordered: SourceKey | None = None
    _stale: Finding | None = None
    _found: list[Finding] = field(default_factory=list)

    def add(self, entry: SourceOffset) -> None:
        self._count += 1
        key, global_, dedicated = entry.key, entry.global_, entry.dedicated
        if key.partition is None or not key.spelled_as_connect or entry.strays or key.nested:
            self._found += _of_key(entry)
        if (
            key.partition is not None
            and len(key.partition) > 1
            and not in_hash_order(tuple(key.partition))
        ):
            self._unordered += 1
            self._first_unordered = self._first_unordered or key
        if global_ is not None and (global_.problem or global_.offset):
            self._found += _of_value(key.text, "global", global_)
        if dedicated is not None and (dedicated.problem or dedicated.offset):
            self._found += _of_value(key.text, "dedicated", dedicated)
        if self.dedicated_topic is not None and entry.origin == "global" and entry.lost:
            self._lost += 1
            self._first_lost = self._first_lost or entry
        if self._stale is None and dedicated is not None and global_ is not None:
            self._stale = _stale(self.name, entry, global_, dedicated)

    def findings(self, spellings: Iterable[Finding] = ()) -> Iterator[Finding]:
        if not self.configured and self._count:
            message = (
                f"{counted(self._count, 'source partition')} of a connector that is not configured; a "
                "new one would inherit them."
            )
            yield NOT_CONFIGURED.found(self.name, message)
        yield from spellings
        yield from self._found
        if self._first_lost is not None:
            yield _lost(self.name, self._first_lost, self._lost)
        if self._first_unordered is not None:
            yield _order(self.name, self._first_unordered, self._unordered)
        if self._stale is not None:
            yield self._stale


def _of_key(entry: SourceOffset) -> Iterator[Finding]:
    key = entry.key
    if key.partition is None:
        yield NULL_PARTITION.found(
            key.text, "The null partition: tasks can use it, GET …/offsets omits it."
        )
    elif key.nested:
        why = "The source partition holds objects or arrays; a worker refuses to look it up."
        yield NESTED_PARTITION.found(key.text, why)
    if not key.spelled_as_connect:
        why = (
            "Connect never writes a key in this spelling, so workers do not find it: another "
            "tool wrote it."
        )
        yield UNUSUAL_SPELLING.found(key.text, why)
    for stray in entry.strays:
        message = (
            f"It has a record in partition {stray.kafka_partition} (offset "
            f"{stray.kafka_offset}, value {_value(stray)}), where Java's partitioner does not put "
            "it: compaction never removes it, and the record that a worker uses depends on which "
            "one it reads last."
        )
        yield WRONG_PARTITION.found(key.text, message)


def _order(name: str, first: SourceKey, count: int) -> Finding:
    which = f"{counted(count, 'source partition')}, such as {first.text}"
    message = (
        f"The members of {which}, are in another order than a HashMap has. For GET …/offsets "
        f"workers look up {connect_json(java_map(first.partition))} and return null; so does a "
        "task that uses a HashMap."
    )
    return ORDER.found(name, message)


def _value(side: StoredOffset) -> str:
    if side.tombstone:
        return "a tombstone"
    return connect_json(side.offset) if side.offset is not None else repr(side.raw)


def _of_value(key: str, role: str, side: StoredOffset) -> Iterator[Finding]:
    if side.problem:
        message = (
            f"The {role} offset cannot be read: {side.problem} ({side.raw!r}). Workers ignore it."
        )
        yield UNREADABLE_OFFSET.found(key, message)
        return
    if side.raw is not None:
        message = f"More text follows the {role} offset, which workers ignore: {side.raw!r}."
        yield UNREADABLE_OFFSET.found(key, message, severity=Severity.WARNING)
    for member, value in (side.offset or {}).items():
        if type(value) is not int or -EXACT_IN_A_DOUBLE <= value <= EXACT_IN_A_DOUBLE:
            continue
        if -(1 << 63) <= value < 1 << 63:
            message = (
                f"The {role} offset's {member} {value} is beyond 2^53: JSON readers that "
                "use doubles round it."
            )
            yield INEXACT_NUMBER.found(key, message, severity=Severity.WARNING)
        else:
            message = (
                f"The {role} offset's {member} {value} does not fit 64 bits: a worker reads "
                "another number."
            )
            yield INEXACT_NUMBER.found(key, message)


def of_spellings(keys: Iterable[SourceKey]) -> Iterator[Finding]:
    by_meaning: dict[str, dict[str, str]] = {}
    for key in keys:
        by_meaning.setdefault(key.meaning, {})[key.text] = key.connector
    for texts in by_meaning.values():
        if len(texts) > 1:
            message = (
                f"One source partition in {len(texts)} spellings, which are {len(texts)} keys for "
                f"Connect: {' and '.join(texts)}. A task finds the one in the order of its own "
                "map."
            )
            yield SPELLINGS.found(next(iter(texts.values())), message)


def _suspects(offsets: Sequence[SourceOffset]) -> list[list[SourceKey]]:
    """Return groups of keys that may mean the same source partition.

    The test is cheap: the members are compared as sets, for which 1 and 1.0 are equal.
    """
    if _all_differ([entry.key for entry in offsets]):
        return []
    groups: dict[object, list[SourceKey]] = {}
    for entry in offsets:
        try:
            members: object = frozenset((entry.key.partition or {}).items())
        except TypeError:  # a nested object or array
            members = None
        groups.setdefault(members, []).append(entry.key)
    return [group for group in groups.values() if len(group) > 1]


def _all_differ(keys: Sequence[SourceKey]) -> bool:
    """Return True if no two keys mean the same source partition; False may mean that it is unknown.

    Connect's spelling of a source partition depends on the order of its members alone: keys in it
    differ if members of the same names have the same order.
    """
    if not all(key.spelled_as_connect for key in keys):
        return False
    orders = {tuple(key.partition or ()) for key in keys}
    return len(orders) == len(set(map(frozenset, orders)))


def _lost(name: str, first: SourceOffset, count: int) -> Finding:
    assert first.global_ is not None
    start = "this source partition" if count == 1 else f"these {count} source partitions"
    message = (
        f"A worker does not fall back to the global topic: its tasks would start {start} from the "
        f"beginning, although KIP-618 specifies {_value(first.global_)} for {first.key.text}"
        + (" and so on." if count > 1 else ".")
    )
    return LOST.found(
        name, message, f"Repair it: connectctl offsets merge {name} --into dedicated --stop"
    )


def _stale(
    name: str, entry: SourceOffset, global_: StoredOffset, dedicated: StoredOffset
) -> Finding | None:
    last = last_commit(global_, dedicated, Commits(Side.DEDICATED))
    if not last.stale:
        return None
    message = (
        f"The dedicated offset {_value(dedicated)} of {entry.key.text} is {age_difference(last)} "
        f"older than the global one {_value(global_)}, but takes precedence. After a downgrade "
        "the dedicated topic is stale; while the connector runs, its tasks commit to the "
        "dedicated topic, and the global one has a copy."
    )
    return STALE.found(name, message)


def of_foreign_records(
    topic: str, records: Sequence[tuple[ConsumerRecord, str]]
) -> Iterator[Finding]:
    """Yield a finding for each record whose key Connect ignores, with the reason."""
    for record, why in records:
        shown = (record.key or b"").decode(errors="backslashreplace")
        subject = f"{topic}-{record.partition}@{record.offset}"
        yield FOREIGN_RECORD.found(
            subject, f"Connect ignores this record: {why} ({shown[:120]!r})."
        )


def of_policy(topic: str, policy: str | None) -> Iterator[Finding]:
    """Yield OFFSETS017 for a clean-up policy with which no worker uses the topic.

    Source: ``TopicAdmin.verifyTopicCleanupPolicyOnlyCompact``. Workers accept an empty policy,
    which brokers allow since 4.2 (KIP-1161): nothing is ever removed.
    """
    repair = (
        f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config "
        "cleanup.policy=compact"
    )
    if policy == "":
        message = (
            "cleanup.policy is empty: nothing is deleted or compacted, and workers use the topic; "
            "but it grows without limit, and every worker that starts reads all of it."
        )
        yield POLICY.found(topic, message, f"Repair it: {repair}", severity=Severity.WARNING)
    elif policy not in (None, "compact"):
        message = (
            f"cleanup.policy is {policy} and must be compact: no worker starts on it, and no "
            "connector that keeps its offsets here; old offsets are deleted."
        )
        yield POLICY.found(topic, message, f"Repair it: {repair}")


def of_unseen_configuration(topic: str) -> Finding:
    """Return OFFSETS017 for a topic whose configuration this principal may not describe: its policy
    is unknown.
    """
    message = (
        f"This principal may not describe the configuration of topic {topic}: it is unknown "
        "whether workers use it."
    )
    return POLICY.found(topic, message, grant(describe_configs(topic)), severity=Severity.WARNING)


def of_empty_group(group_id: str) -> Finding:
    message = (
        "No worker is in this group: its connectors are those of connectctl run, or Connect is "
        "down, or group_id is not the workers' group.id."
    )
    return EMPTY_GROUP.found(group_id, message)


def of_open_transactions(topic: str, held: Sequence[UnreadTail]) -> Iterator[Finding]:
    for partition in held:
        message = (
            f"An open transaction holds the last stable offset at {partition.stable} while the "
            f"partition ends at {partition.end}: later records are not shown, and workers that "
            "read this topic wait until it ends."
        )
        yield OPEN_TRANSACTION.found(
            f"{topic}-{partition.partition}", message, end_transaction_hint(topic)
        )


def end_transaction_hint(topic: str) -> str:
    """Return how an open transaction on ``topic`` is found and ended."""
    return (
        f"connectctl transactions lag --topic {topic} names its transactional id. It ends at its "
        "time-out; connectctl transactions abort ID ends it now."
    )
