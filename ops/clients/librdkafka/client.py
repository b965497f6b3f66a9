"""Kafka through librdkafka: metadata, groups, and the handles that read and write records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import ConfigResource, ResourceType
from connectctl.ops.clients.connection_errors import not_listening
from connectctl.ops.clients.kafka_protocol.run_presence import holders
from connectctl.ops.clients.kafka_protocol.transactions import written_by
from connectctl.ops.clients.librdkafka.connection import PAUSE, Connection
from connectctl.ops.clients.librdkafka.named_groups import describe
from connectctl.ops.clients.librdkafka.partition_offsets import (
    layouts_of,
    offsets_at,
    read_extents,
    reset_positions,
)
from connectctl.ops.clients.librdkafka.read import (
    read_group_log,
    read_images,
    read_key_times,
    read_tails,
)
from connectctl.ops.clients.librdkafka.write import create_topic, write_transaction
from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect import connect_protocol
from connectctl.ops.connect.connect_protocol import ConnectGroup, Member
from connectctl.ops.connect.run_presence import Holder
from connectctl.ops.core.errors import BadInput, NotAuthorized, TimedOut, Unreachable
from connectctl.ops.kafka import offset_commits
from connectctl.ops.kafka.records import ConsumerRecord, KeyTimes, TopicImage
from connectctl.ops.kafka.sentinels import number_of
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import OffsetRange, TopicFacts
from connectctl.ops.kafka.visibility import (
    Gap,
    Observation,
    Reason,
    describe_configs,
    describe_topic,
    observation_of,
    whole,
)

NEW_TOPIC, NEW_TOPIC_PAUSE = 10.0, 0.2
"""Seconds: for how long a broker may not know a topic that another one knows, and the pause between
requests.
"""

OUTAGE = 3.0
"""Seconds after which brokers that accept no connection are not those of a moment."""
_OFFLINE = "do not accept connections"
_NOT_THERE = ("UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "TOPIC_EXCEPTION")
"""The last is a name that no topic can have."""
_HIDDEN = "TOPIC_AUTHORIZATION_FAILED"


class _MostBrokersOffline(Unreachable):
    """Coordinators do not move to other brokers: there are too few."""


class Kafka(Connection):
    """One Kafka cluster, for reading and writing; see ``KafkaReads`` and ``KafkaWrites``."""

    def silent(self) -> str | None:
        """Return the brokers that accept no connection, of those in the last metadata; None if all
        do.
        """
        offline, known = self._offline()
        return (
            f"{len(offline)} of {known} brokers {_OFFLINE}: {', '.join(offline)}"
            if offline
            else None
        )

    def _offline(self) -> tuple[list[str], int]:
        """Return the brokers of the last metadata that accept no connection, and how many there
        are.
        """
        reported = self.__dict__.get("_metadata")  # in an outage it is not read anew
        known = (
            {broker.id: f"{broker.host}:{broker.port}" for broker in reported.brokers.values()}
            if reported
            else {}
        )
        offline = not_listening(known)
        return [f"{broker} ({address})" for broker, address in offline.items()], len(known)

    def _refuse_without_most_brokers(self) -> None:
        """Raise ``_MostBrokersOffline`` with the brokers that accept no connection if these are
        most of them, and remain so: coordinators do not move then, and are not waited for. A broker
        that restarts alone is.
        """
        end = time.monotonic() + OUTAGE
        while True:
            offline, known = self._offline()
            if not known / 2 < len(offline) < known:
                return
            if time.monotonic() > end:
                raise _MostBrokersOffline(
                    f"Most brokers of Kafka at {self.bootstrap} do not answer",
                    why=f"{len(offline)} of {known} {_OFFLINE}: {', '.join(offline)}",
                    next_step="Start them, or find out what keeps this machine from them.",
                )
            time.sleep(NEW_TOPIC_PAUSE)

    def brokers(self) -> int:
        return len(self._metadata.brokers)

    def topic_names(self) -> frozenset[str]:
        return frozenset(self._metadata.topics)

    def existing(self, names: Sequence[str]) -> Observation[frozenset[str]]:
        if not names:
            return observation_of(frozenset(), ())
        found: set[str] = set()
        hidden: list[Gap] = []
        topics = TopicCollection(list(dict.fromkeys(names)))
        # which creates none
        futures = self.admin_request(
            lambda admin, seconds: admin.describe_topics(topics, request_timeout=seconds)
        )
        for name, future in futures.items():
            try:
                future.result()
            except KafkaException as e:
                error = e.args[0]
                if error.name() == _HIDDEN:
                    hidden.append(Gap(f"topic {name}", Reason.NOT_AUTHORIZED, describe_topic(name)))
                elif error.name() not in _NOT_THERE:
                    raise self.failure(error, f"look up the topic {name}") from e
            else:
                found.add(name)
        return observation_of(frozenset(found), hidden)

    def topics(self, names: Sequence[str]) -> dict[str, TopicFacts]:
        return {
            name: self._facts(name, config)
            for name, config in self._configs(self._known(names)).items()
        }

    def _known(self, names: Sequence[str]) -> list[str]:
        """Return those of ``names`` that exist. Raises ``NotAuthorized`` if one of them may not be
        seen.

        The metadata of all topics leaves out those that may not be seen, so that a missing one is
        requested by name.
        """
        deadline = time.monotonic() + min(self.timeout, NEW_TOPIC)
        while missing := [name for name in names if name not in self._metadata.topics]:
            existing = whole(self.existing(missing), f"the topics {', '.join(missing)}")
            if not existing:
                break
            # it is older than they are, or from a broker with older metadata
            self.__dict__.pop("_metadata", None)
            if existing <= self.topic_names():
                break
            if time.monotonic() > deadline:
                what = f"Kafka at {self.bootstrap} could not list its topics"
                raise Unreachable(
                    what,
                    why=f"not every broker lists {', '.join(sorted(existing))}",
                    next_step="Try again.",
                )
            time.sleep(NEW_TOPIC_PAUSE)
        return [name for name in names if name in self._metadata.topics]

    def compacted(self) -> Observation[dict[str, TopicFacts]]:
        candidates = [name for name in self._metadata.topics if not name.startswith("__")]
        configs = self._configs(candidates)
        found = {
            name: self._facts(name, config)
            for name, config in configs.items()
            # An empty policy (KIP-1161) removes nothing, and workers use such a topic like a
            # compacted one.
            if (policy := config.get("cleanup.policy")) == "" or "compact" in (policy or "")
        }
        unseen = sorted(name for name, config in configs.items() if not config)
        return observation_of(
            found, [Gap(f"topic {n}", Reason.NOT_AUTHORIZED, describe_configs(n)) for n in unseen]
        )

    def _whole(self, name: str) -> Any:
        """Return the partitions of a topic by metadata, asked again while that has not all of them.
        Raises ``TimedOut``.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            topic = self._metadata.topics.get(name)
            partitions = topic.partitions if topic is not None and topic.error is None else {}
            # A partition without replicas, too, is one of which nothing is reported.
            replicated = partitions and all(partition.replicas for partition in partitions.values())
            if replicated and sorted(partitions) == list(range(len(partitions))):
                return partitions
            if time.monotonic() > deadline:
                error = topic.error if topic is not None else None
                why = str(error.str()) if error else "metadata lists only some of them, or none"
                what = f"The partitions of {name} could not be determined"
                raise TimedOut(what, why=why, next_step="Check the brokers.")
            time.sleep(PAUSE)
            self.__dict__.pop("_metadata", None)

    def _facts(self, name: str, config: Mapping[str, str]) -> TopicFacts:
        partitions = self._whole(name)
        return TopicFacts(
            name=name,
            partitions=len(partitions),
            replicas={p: len(facts.replicas) for p, facts in partitions.items()},
            in_sync={p: len(facts.isrs) for p, facts in partitions.items()},
            config=config,
            leaders={p: number_of(facts.leader) for p, facts in partitions.items()},
            out_of_sync=frozenset(
                broker
                for facts in partitions.values()
                for broker in set(facts.replicas).difference(facts.isrs)
            ),
        )

    def _configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the configuration of each topic in ``names``; empty for a topic whose
        configuration we may not see.
        """
        found: dict[str, dict[str, str]] = {}
        for resource, future in self._described(names).items():
            try:
                entries = self.ask("describe topics", future.result)
            except NotAuthorized:
                entries = {}
            found[resource.name] = {name: str(entry.value) for name, entry in entries.items()}
        return found

    def _described(self, names: Sequence[str]) -> dict[Any, Any]:
        if not names:
            return {}
        # librdkafka refuses the whole response if a topic is in it twice.
        topics = [ConfigResource(ResourceType.TOPIC, name) for name in dict.fromkeys(names)]
        return self.ask(
            "describe topics",
            lambda: self.admin_request(
                lambda admin, seconds: admin.describe_configs(topics, request_timeout=seconds)
            ),
        )

    def largest_batches(self, topics: Sequence[str]) -> dict[str, int]:
        """Return ``max.message.bytes`` of ``topics``, without those that are unknown: not seen, not
        there yet, no answer.
        """
        reported = {
            topic: str(each.get("max.message.bytes"))
            for topic, each in self.topic_configs(topics).items()
        }
        numbers = {topic: whole_number(value) for topic, value in reported.items()}
        return {topic: number for topic, number in numbers.items() if number is not None}

    def topic_configs(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the configuration of ``topics``, with defaults, without those that are unknown."""
        found = {}
        for resource, future in self._described(topics).items():
            with suppress(KafkaException):
                entries = future.result().items()
                found[resource.name] = {
                    name: str(e.value) for name, e in entries if e.value is not None
                }
        return found

    def group(self, group_id: str) -> ConnectGroup:
        # first contact, whose failure is distinguished from a slow group coordinator
        self.cluster_id()
        try:
            group = describe(self, group_id, self._refuse_without_most_brokers)
        except _MostBrokersOffline:
            raise
        except (TimedOut, Unreachable) as e:
            e.why = self.silent() or e.why
            raise
        if group is None:
            return ConnectGroup(group_id, "Dead", "", ())
        if group.protocol_type not in ("connect", ""):
            raise BadInput(
                f"{group_id} is not a group of Connect workers",
                why=f"its members speak the protocol {group.protocol_type!r}",
                next_step="Give the workers' group.id.",
            )
        return ConnectGroup(
            group_id,
            str(group.state),
            group.protocol,
            tuple(member_of(group_id, m) for m in group.members),
        )

    def holders(self, group_id: str, connector: str) -> tuple[Holder, ...]:
        return holders(self, group_id, connector)

    def image(
        self,
        topics: Sequence[str],
        *,
        patience: float,
        superseded: bool = False,
        includes: Callable[[str], bool] | None = None,
    ) -> dict[str, TopicImage]:
        known = self._known(topics)
        return self.ask(
            "read topics",
            lambda: read_images(
                self, known, patience=patience, superseded=superseded, includes=includes
            ),
        )

    def key_times(
        self, topics: Sequence[str], *, patience: float, most: int
    ) -> dict[str, KeyTimes]:
        known = self._known(topics)
        return self.ask(
            "read topics", lambda: read_key_times(self, known, patience=patience, most=most)
        )

    def group_log(self, group_id: str, since_ms: int) -> list[ConsumerRecord]:
        if not self._known([offset_commits.TOPIC]):
            return []  # no group has ever existed
        return self.ask("read topics", lambda: read_group_log(self, group_id, since_ms))

    def positions(
        self, topic_partitions: Sequence[TopicPartition], *, earliest: bool
    ) -> dict[TopicPartition, int]:
        return reset_positions(self, topic_partitions, earliest=earliest)

    def extents(self, topics: Sequence[str]) -> dict[str, dict[int, OffsetRange]]:
        return read_extents(self, self._known(topics))

    def offsets_at(self, topics: Sequence[str], timestamp: int) -> dict[str, dict[int, int]]:
        known = self._known(topics)
        at = self.ask("find offsets by time", lambda: offsets_at(self, known, timestamp))
        return {topic: {p: int(offset) for p, offset in by.items()} for topic, by in at.items()}

    def tails(self, topics: Sequence[str], count: int) -> dict[str, list[ConsumerRecord]]:
        return self.ask("read topics", lambda: read_tails(self, topics, count))

    def written_by(self, ids: Sequence[str], topics: Sequence[str]) -> frozenset[str]:
        layouts = self.topics(topics)
        return written_by(
            self,
            ids,
            [TopicPartition(t, p) for t, facts in layouts.items() for p in range(facts.partitions)],
        )

    def transact(self, id_: str, records: Iterable[tuple[str, int, bytes, bytes | None]]) -> int:
        return write_transaction(self, id_, records)

    def create_topic(
        self,
        name: str,
        partitions: int,
        replicas: int,
        config: Mapping[str, str],
        *,
        exactly: bool = False,
    ) -> None:
        create_topic(self, name, partitions, replicas, config, exactly=exactly)
        self.__dict__.pop("_metadata", None)  # it does not know the new topic

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of ``topic``. Raises ``BadInput`` where there is no such topic; see
        ``partition_counts``.
        """
        return list(range(self.partition_counts([topic])[topic]))

    def partition_counts(self, topics: Sequence[str]) -> dict[str, int]:
        """Return the current number of partitions of each of ``topics``.

        Brokers know a new topic a moment after the controller has created it; one that remains
        unknown, or that metadata has in part, is an error.
        """
        return {topic: layout.partitions for topic, layout in layouts_of(self, topics).items()}


def member_of(group_id: str, raw: Any) -> Member:
    try:
        advertised, config_offset = connect_protocol.decode_metadata(raw.metadata)
        newest = connect_protocol.decode_assignment(raw.assignment)
        assignment = newest and newest.merged_with(connect_protocol.decode_current(raw.metadata))
    except (ValueError, UnicodeDecodeError):
        # As in a rebalance, when there is no metadata: whether the worker has REST is not known
        # then.
        return Member(raw.id, raw.client_id, raw.client_host, "", -1, None)
    url = connect_protocol.rest_url(advertised)
    without_rest = bool(advertised) and (
        not url or connect_protocol.is_mirror(group_id, raw.client_id)
    )
    address = "" if without_rest else url
    return Member(
        raw.id, raw.client_id, raw.client_host, address, config_offset, assignment, without_rest
    )
