"""A Kafka cluster that is a few dictionaries: topics of records, and groups."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.connect.connect_protocol import Assignment, ConnectGroup, Member
from connectctl.ops.connect.run_presence import Holder
from connectctl.ops.connect.source_keys import owner_of, owners_of
from connectctl.ops.kafka.records import ConsumerRecord, KeyTimes, TopicImage, UnreadTail
from connectctl.ops.kafka.rhythm import Rhythm
from connectctl.ops.kafka.topics import OffsetRange, TopicFacts
from connectctl.ops.kafka.visibility import (
    Gap,
    Observation,
    Reason,
    describe_configs,
    describe_group,
    describe_topic,
    not_authorized,
    observation_of,
    read_topic,
    whole,
)


@dataclass
class FakeKafka:
    """Keeps ``KafkaReads``. ``forbidden`` topics can be listed and not read; ``read`` tells which
    were read.

    ``hidden`` topics and ``hidden_groups`` may not be described: nothing tells whether they are
    there.
    """

    records: dict[str, list[ConsumerRecord]] = field(default_factory=dict)
    groups: dict[str, ConnectGroup] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    config: dict[str, dict[str, str]] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    broker_count: int = 1
    runs: dict[tuple[str, str], tuple[Holder, ...]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    hidden_groups: set[str] = field(default_factory=set)
    bootstrap: str = "fake:9092"
    writers: dict[str, set[str]] = field(default_factory=dict)
    """The topics that a transactional id wrote to."""
    markers: dict[tuple[str, int], int] = field(default_factory=dict)
    """How many markers of transactions follow the last record of a partition."""

    def cluster_id(self) -> str:
        return "fake-cluster"

    def brokers(self) -> int:
        return self.broker_count

    def topic_names(self) -> frozenset[str]:
        return frozenset(self.records) - self.hidden

    def existing(self, names: Sequence[str]) -> Observation[frozenset[str]]:
        gaps = [
            Gap(f"topic {n}", Reason.NOT_AUTHORIZED, describe_topic(n))
            for n in names
            if n in self.hidden
        ]
        return observation_of(frozenset(names) & self.topic_names(), gaps)

    def partition_counts(self, names: Sequence[str]) -> dict[str, int]:
        return {name: self.partitions.get(name, 1) for name in names if name in self.records}

    def topics(self, names: Sequence[str]) -> dict[str, TopicFacts]:
        there = whole(self.existing(names), "the topics")
        return {name: self._facts(name) for name in names if name in there}

    def _facts(self, name: str) -> TopicFacts:
        count = self.partitions.get(name, 1)
        ones = dict.fromkeys(range(count), 1)
        return TopicFacts(
            name, count, ones, ones, self.config.get(name, {"cleanup.policy": "compact"})
        )

    def compacted(self) -> Observation[dict[str, TopicFacts]]:
        facts = {name: self._facts(name) for name in sorted(self.topic_names())}
        gaps = [
            Gap(f"topic {n}", Reason.NOT_AUTHORIZED, describe_configs(n))
            for n, f in facts.items()
            if not f.config
        ]
        return observation_of(
            {n: f for n, f in facts.items() if "compact" in f.config.get("cleanup.policy", "")},
            gaps,
        )

    def group(self, group_id: str) -> ConnectGroup:
        if group_id in self.hidden_groups:
            raise not_authorized(
                f"Not authorized to describe the group {group_id}", describe_group(group_id)
            )
        return self.groups.get(group_id, ConnectGroup(group_id, "Dead", "", ()))

    def holders(self, group_id: str, connector: str) -> tuple[Holder, ...]:
        return self.runs.get((group_id, connector), ())

    def image(
        self,
        topics: Sequence[str],
        *,
        patience: float,
        superseded: bool = False,
        includes: Callable[[str], bool] | None = None,
    ) -> dict[str, TopicImage]:
        images = {}
        for topic in self._readable(topics):
            held_back = self.held_back(topic)
            stable = {tail.partition: tail.stable for tail in held_back}
            every = [
                r
                for r in self.records[topic]
                if r.partition not in stable or r.offset < stable[r.partition]
            ]
            owners = {
                name.decode(errors="surrogatepass")
                for name in owners_of([r.key for r in every])
                if name
            }
            left_out = frozenset(
                name for name in owners if includes is not None and not includes(name)
            )
            records = [
                r for r in every if owner_of(r.key).decode(errors="surrogatepass") not in left_out
            ]
            newest = {(r.partition, r.key): r for r in records}
            older = (
                tuple(r for r in records if newest[(r.partition, r.key)] is not r)
                if superseded
                else ()
            )
            latest = tuple(newest.values())
            images[topic] = TopicImage(
                topic, len(every), latest, self.ends(topic), held_back, older, left_out
            )
        return images

    def key_times(
        self, topics: Sequence[str], *, patience: float, most: int
    ) -> dict[str, KeyTimes]:
        found = {}
        for topic in self._readable(topics):
            times: dict[bytes, list[int]] = {}
            for r in self.records[topic]:
                if r.key is not None and r.value is None:
                    times.pop(r.key, None)
                elif r.key is not None and r.timestamp is not None:
                    times.setdefault(r.key, []).append(r.timestamp)
            newest = {key: tuple(all_[-most:]) for key, all_ in times.items()}
            rhythms = {
                key: rhythm
                for key, all_ in times.items()
                if (rhythm := rhythm_of(at / 1000 for at in all_))
            }
            found[topic] = KeyTimes(topic, newest, self.held_back(topic), rhythms)
        return found

    def group_log(self, group_id: str, since_ms: int) -> list[ConsumerRecord]:
        if self._readable(["__consumer_offsets"]):
            written = self.records["__consumer_offsets"]
            return [r for r in written if (r.timestamp or 0) >= since_ms]
        return []

    def offsets_at(self, topics: Sequence[str], timestamp: int) -> dict[str, dict[int, int]]:
        found = {}
        for topic in self._readable(topics):
            found[topic] = self.ends(topic)
            for r in reversed(self.records[topic]):
                if (r.timestamp or 0) >= timestamp:
                    found[topic][r.partition] = r.offset
        return found

    def held_back(self, topic: str) -> tuple[UnreadTail, ...]:
        """Where open transactions keep readers from the end: nowhere."""
        return ()

    def ends(self, topic: str) -> dict[int, int]:
        """Where each partition ends."""
        ends = dict.fromkeys(range(self.partitions.get(topic, 1)), 0)
        for r in self.records[topic]:
            ends[r.partition] = max(ends[r.partition], r.offset + 1)
        return {p: end + self.markers.get((topic, p), 0) for p, end in ends.items()}

    def extents(self, topics: Sequence[str]) -> dict[str, dict[int, OffsetRange]]:
        ends = {t: image.end_offsets for t, image in self.image(topics, patience=0).items()}
        return {t: {p: OffsetRange(0, end, end) for p, end in by.items()} for t, by in ends.items()}

    def written_by(self, ids: Sequence[str], topics: Sequence[str]) -> frozenset[str]:
        return frozenset[str]().union(*(self.writers.get(each, set()) for each in ids)) & frozenset(
            topics
        )

    def tails(self, topics: Sequence[str], count: int) -> dict[str, list[ConsumerRecord]]:
        return {topic: self.records[topic][-count:] for topic in self._readable(topics)}

    def _readable(self, topics: Sequence[str]) -> list[str]:
        known = whole(self.existing(topics), "the topics")
        there = [topic for topic in topics if topic in known]
        if denied := self.forbidden & set(there):
            raise not_authorized(f"Not allowed to read {sorted(denied)}", read_topic(min(denied)))
        self.read |= set(there)
        return there


def records(*pairs: tuple[str, Mapping[str, Any] | None]) -> list[ConsumerRecord]:
    """Records of one partition with these keys and JSON values, None for a tombstone."""
    return [
        ConsumerRecord(
            key.encode(), None if value is None else json.dumps(value).encode(), 0, offset
        )
        for offset, (key, value) in enumerate(pairs)
    ]


@dataclass
class FakeLeader:
    """What a leader does about a new target state: it writes the config topic, and the assignment
    follows.
    """

    kafka: FakeKafka
    group_id: str = "connect"
    topic: str = "cfg"

    def command(self, name: str, verb: str) -> None:
        """``verb`` is a request's; others than stop, pause, resume and delete change nothing."""
        if verb == "delete":
            for key in (f"connector-{name}", f"target-state-{name}"):
                self._write(key, None)
            self._assign([part for part in self._assigned() if part[0] != name])
            return
        state = {"stop": "STOPPED", "pause": "PAUSED", "resume": "STARTED"}.get(verb)
        if state is None:
            return
        tasks = (
            0
            if verb == "stop"
            else max(1, len([n for c, n in self._assigned() if c == name and n >= 0]))
        )
        self._write(f"target-state-{name}", {"state.v2": state})
        for n in range(tasks):
            self._write(f"task-{name}-{n}", {"properties": {}})
        self._write(f"commit-{name}", {"tasks": tasks})
        kept = [part for part in self._assigned() if part[0] != name or part[1] < 0]
        self._assign([*kept, *((name, n) for n in range(tasks))])

    def configure(self, name: str, config: Mapping[str, str]) -> None:
        """Write a configuration; a new connector is assigned."""
        self._write(f"connector-{name}", {"properties": dict(config)})
        self._assign(list(dict.fromkeys([*self._assigned(), (name, -1)])))

    def _assign(self, owners: list[tuple[str, int]]) -> None:
        if self.kafka.groups[self.group_id].members:
            self.kafka.groups[self.group_id] = connect_group(self.group_id, one=owners)

    def _assigned(self) -> list[tuple[str, int]]:
        return list(self.kafka.groups[self.group_id].owners)

    def _write(self, key: str, value: Mapping[str, Any] | None) -> None:
        log = self.kafka.records[self.topic]
        raw = None if value is None else json.dumps(value).encode()
        log.append(ConsumerRecord(key.encode(), raw, 0, len(log), int(time.time() * 1000)))


def connect_group(
    group_id: str = "connect",
    state: str = "Stable",
    offset: int = 0,
    **workers: Sequence[tuple[str, int]],
) -> ConnectGroup:
    """A group with a worker per keyword at ``http://<keyword>:8083``, the first the leader; values
    as in an assignment.
    """
    first = next(iter(workers), "")
    members = tuple(_member(name, first, offset, given) for name, given in workers.items())
    return ConnectGroup(group_id, state, "sessioned", members)


def _member(name: str, leader: str, offset: int, given: Sequence[tuple[str, int]]) -> Member:
    assignment = Assignment(
        leader_id=f"id-{leader}",
        leader_url=f"http://{leader}:8083",
        config_offset=offset,
        config_mismatch=False,
        connectors=tuple(c for c, task in given if task == -1),
        tasks=tuple((c, task) for c, task in given if task != -1),
    )
    return Member(f"id-{name}", name, f"/{name}", f"http://{name}:8083", offset, assignment)


def rhythm_of(times: Iterable[float]) -> Rhythm | None:
    """Return the rhythm of times in any order; None without any."""
    ordered = sorted(times)
    if not ordered:
        return None
    found = Rhythm(ordered[0], ordered[0])
    for at in ordered[1:]:
        found.add(at)
    return found
