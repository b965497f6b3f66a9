"""Kafka through librdkafka: metadata, groups, and the handles that read and write records.

The only module that turns librdkafka's errors into ours; see ``failure``.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from connectctl.ops.clients.connection_errors import explained
from connectctl.ops.connect.connect_protocol import (
    ConnectGroup,
    Member,
    decode_assignment,
    decode_current,
    decode_metadata,
)
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized, TimedOut, Unreachable
from connectctl.ops.kafka.records import Record, TopicImage
from connectctl.ops.kafka.sentinels import number_of
from connectctl.ops.kafka.topics import OffsetRange, TopicFacts
from connectctl.ops.kafka.visibility import Gap, Reason, describe_configs, not_authorized, observation_of, whole

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient
    from connectctl.ops.clients.librdkafka.partition_offsets import Layout
    from connectctl.ops.connect.run_presence import Holder
    from connectctl.ops.kafka.acls import Right
    from connectctl.ops.kafka.visibility import Observation

T = TypeVar("T")
NEW_TOPIC, NEW_TOPIC_PAUSE = 10.0, 0.2
"""Seconds: for how long a broker may not know a topic that another one knows, and between two looks."""
PAUSE = 0.1
"""Seconds before metadata that is not whole is asked for again."""
LOGIN_PATIENCE = 3.0
"""Seconds for a broker to take a login, where another one has refused it."""
_UNREACHABLE = {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_SSL", "_NODE_UPDATE", "BROKER_NOT_AVAILABLE"}
_TIMED_OUT = {"_TIMED_OUT", "_TIMED_OUT_QUEUE", "_MSG_TIMED_OUT", "REQUEST_TIMED_OUT"}
MOVING = {
    "NOT_LEADER_FOR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "KAFKA_STORAGE_ERROR",
    "NETWORK_EXCEPTION",
    "BROKER_NOT_AVAILABLE",
    "_WAIT_CACHE",
    "_DESTROY_BROKER",
    "_PARTIAL",
}
"""Answers that a moment changes: a leader moves, a broker has just gone."""
_MOVING = MOVING | {
    "NOT_CONTROLLER",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "_WAIT_COORD",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "INVALID_REPLICATION_FACTOR",
}
"""Such answers to requests of any kind. A topic gets no more replicas than there are brokers, and so may do in a moment."""
_NOT_AUTHORIZED = {
    "_AUTHENTICATION",
    "SASL_AUTHENTICATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}
_CUT_SHORT = re.compile(r"failed: Local: ")
"""What librdkafka says of a login, as a failure of it, where the broker died in the middle: nobody has refused it."""


def failure(
    error: KafkaError, doing: str, bootstrap: str, last_words: str | None = None, right: Right | None = None
) -> ConnectctlError:
    """The error of ours that ``error`` means. ``last_words`` is what the connection itself last complained of.

    ``right`` is what an ACL must allow for it.
    """
    if right is not None and error.name().endswith("_AUTHORIZATION_FAILED"):
        return not_authorized(f"Kafka at {bootstrap} does not let us {doing}", right)
    why = last_words or said(error)
    cut_short = error.name() == "_AUTHENTICATION" and _CUT_SHORT.search(error.str()) is not None
    if (error.name() in _NOT_AUTHORIZED and not cut_short) or _refuses(last_words):
        return NotAuthorized(
            f"Kafka at {bootstrap} does not let us {doing}", why=why, next_step="Check the client's rights."
        )
    if cut_short:
        return unreachable(bootstrap, why)
    no_broker = "waiting for controller" in error.str()  # librdkafka has reached none that could name it
    if error.name() in _UNREACHABLE or (error.name() in _TIMED_OUT and (last_words or no_broker)):
        return unreachable(bootstrap, why)
    if error.name() in _TIMED_OUT:
        return TimedOut(f"Kafka at {bootstrap} did not {doing} in time", why=why, next_step="Try a longer --timeout.")
    kind = Unreachable if error.name() in _MOVING else ConnectctlError
    return kind(f"Kafka at {bootstrap} could not {doing}", why=why, code=error.name())


def _refuses(words: str | None) -> bool:
    """Whether a connection complained that its login is refused."""
    return words is not None and "authentication" in words.lower() and not _CUT_SHORT.search(words)


def said(error: KafkaError) -> str:
    """What librdkafka says of the error; its name where it says of what only, as it does of some answers."""
    text = error.str().strip()
    return f"{text} {error.name()}".lstrip() if not text or text.endswith(":") else text


def unreachable(bootstrap: str, why: str | None) -> Unreachable:
    """Nobody answers at ``bootstrap``."""
    hint = "Check bootstrap_servers and the client's security settings: connectctl context show."
    return Unreachable(f"Kafka at {bootstrap} does not answer", why=why, next_step=hint)


class Kafka:
    """One Kafka cluster, for reading. ``properties`` are librdkafka's; ``timeout`` is in seconds, for each request."""

    def __init__(self, properties: Mapping[str, Any], *, timeout: float):
        self.bootstrap = str(properties.get("bootstrap.servers", ""))
        self.timeout = timeout
        self._properties = dict(properties)
        self._last_words: str | None = None
        self.layouts: dict[str, Layout] = {}
        """How topics were laid out when they were last asked about."""

    def properties(self, **more: Any) -> dict[str, Any]:
        """The properties of a new handle: the person's, ours, and quiet logging. Dots are written as ``__``."""
        quiet = logging.getLogger("connectctl.librdkafka")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        ours = {name.replace("__", "."): value for name, value in more.items()}
        return {"client.id": "connectctl"} | self._properties | ours | {"logger": quiet, "error_cb": self._remember}

    @property
    def client(self) -> dict[str, Any]:
        """The person's properties as they were given, secrets included: for a handle in another process."""
        return dict(self._properties)

    def _remember(self, error: KafkaError) -> None:
        # Kept because the error of the request only says that it timed out; the connection knows why.
        if error.name() != "_ALL_BROKERS_DOWN" or self._last_words is None:
            self._last_words = error.str()

    def failure(self, error: KafkaError, doing: str, right: Right | None = None) -> ConnectctlError:
        """``failure`` with what this connection knows, and a look at why there is none."""
        if "admin" in self.__dict__:
            self._listen(0)  # what the connection complained of waits there until somebody asks
        return self._explained(failure(error, doing, self.bootstrap, self._last_words, right))

    def _explained(self, error: ConnectctlError) -> ConnectctlError:
        from connectctl.ops.clients.kafka_protocol.client_properties import tls

        return explained(error, self.bootstrap, lambda: tls(self._properties))

    @cached_property
    def admin(self) -> AdminClient:
        """The handle for metadata and admin requests."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        try:
            return AdminClient(self.properties())
        except KafkaException as e:
            raise BadInput(
                "librdkafka does not take the client properties",
                why=e.args[0].str(),
                next_step="Correct client: in the context (connectctl context show tells where each value is from).",
            ) from e

    def _listen(self, seconds: float) -> None:
        from confluent_kafka import KafkaException

        with suppress(KafkaException):
            self.admin.poll(seconds)

    def ask(self, doing: str, call: Callable[[], T]) -> T:
        """Run ``call`` and translate what it raises."""
        from confluent_kafka import KafkaException

        try:
            return call()
        except KafkaException as e:
            raise self.failure(e.args[0], doing) from e

    def renew(self) -> None:
        """Ask what comes with a new handle, which knows nothing of leaders and connections of before."""
        self.__dict__.pop("admin", None)

    @cached_property
    def _metadata(self) -> Any:
        from confluent_kafka import KafkaException

        try:
            return self._listed(time.monotonic() + self.timeout)
        except KafkaException as e:
            self._listen(0.2)  # lets the connection say why, through error_cb
            error = self.failure(e.args[0], "list its topics")
            # The first request of all: whoever does not answer it in time is not there.
            if isinstance(error, TimedOut):
                error = self._explained(unreachable(self.bootstrap, self._last_words))
            raise error from e

    def _listed(self, deadline: float) -> Any:
        """All topics. A connection that is cut ends the request before its time, and it is asked again on another one.

        So is one that nobody answers, after longer and longer; but not where a broker has refused the login meanwhile and
        none has taken it: nobody waits a whole time-out to hear of a wrong password.
        """
        from confluent_kafka import KafkaException

        patience, login = LOGIN_PATIENCE, time.monotonic() + LOGIN_PATIENCE
        while True:
            left = max(PAUSE, deadline - time.monotonic())
            try:
                return self.admin.list_topics(timeout=min(patience, left))
            except KafkaException as e:
                self._listen(0)
                cut, late = e.args[0].name() == "_TRANSPORT", e.args[0].name() in _TIMED_OUT and patience < left
                refused = time.monotonic() > login and _refuses(self._last_words)
                if not (cut or late) or refused or time.monotonic() + PAUSE > deadline:
                    raise
                patience *= 2 if late else 1
                time.sleep(PAUSE)

    def cluster_id(self) -> str:
        return str(self._metadata.cluster_id)

    def silent(self) -> str | None:
        """The brokers that take no connection now, of those that were there when metadata was last read; None for none."""
        from connectctl.ops.clients.connection_errors import listens

        told = self.__dict__.get("_metadata")  # in an outage it is not read anew
        known = {f"{broker.host}:{broker.port}": broker.id for broker in told.brokers.values()} if told else {}
        with ThreadPoolExecutor(len(known) or 1) as pool:
            there = dict(zip(known, pool.map(listens, known), strict=True))
        away = [f"{id_} ({address})" for address, id_ in sorted(known.items(), key=itemgetter(1)) if not there[address]]
        return f"{len(away)} of {len(known)} brokers take no connection: {', '.join(away)}" if away else None

    def brokers(self) -> int:
        return len(self._metadata.brokers)

    def topic_names(self) -> frozenset[str]:
        return frozenset(self._metadata.topics)

    def existing(self, names: Sequence[str]) -> Observation[frozenset[str]]:
        from connectctl.ops.clients.librdkafka.named_topics import existing

        return existing(self, names)

    def topics(self, names: Sequence[str]) -> dict[str, TopicFacts]:
        return {name: self._facts(name, config) for name, config in self._configs(self._known(names)).items()}

    def _known(self, names: Sequence[str]) -> list[str]:
        """Those of ``names`` that exist. Raises ``NotAuthorized`` where one of them may not be seen.

        The metadata of all topics leaves out what may not be seen, so that what is not in it is asked for by name.
        """
        deadline = time.monotonic() + min(self.timeout, NEW_TOPIC)
        while missing := [name for name in names if name not in self._metadata.topics]:
            there = whole(self.existing(missing), f"the topics {', '.join(missing)}")
            if not there:
                break
            self.__dict__.pop("_metadata", None)  # it is older than they are, or from a broker that lags behind
            if there <= self.topic_names():
                break
            if time.monotonic() > deadline:
                why = f"not every broker knows {', '.join(sorted(there))}"
                raise Unreachable(
                    f"Kafka at {self.bootstrap} could not list its topics", why=why, next_step="Try again."
                )
            time.sleep(NEW_TOPIC_PAUSE)
        return [name for name in names if name in self._metadata.topics]

    def compacted(self) -> Observation[dict[str, TopicFacts]]:
        candidates = [name for name in self._metadata.topics if not name.startswith("__")]
        configs = self._configs(candidates)
        found = {
            name: self._facts(name, config)
            for name, config in configs.items()
            # An empty policy (KIP-1161) removes nothing, and workers use such a topic like a compacted one.
            if (policy := config.get("cleanup.policy")) == "" or "compact" in (policy or "")
        }
        unseen = sorted(name for name, config in configs.items() if not config)
        return observation_of(found, [Gap(f"topic {n}", Reason.NOT_AUTHORIZED, describe_configs(n)) for n in unseen])

    def _whole(self, name: str) -> Any:
        """The partitions of a topic by metadata, asked again while that has not all of them. Raises ``TimedOut``."""
        deadline = time.monotonic() + self.timeout
        while True:
            topic = self._metadata.topics.get(name)
            partitions = topic.partitions if topic is not None and topic.error is None else {}
            # A partition that is nowhere, too, is one of which nobody tells.
            if partitions and sorted(partitions) == list(range(len(partitions))) and _replicated(partitions):
                return partitions
            if time.monotonic() > deadline:
                why = (
                    str(topic.error.str())
                    if topic is not None and topic.error
                    else "metadata has a part of them, or none"
                )
                raise TimedOut(f"The partitions of {name} cannot be told", why=why, next_step="Look at the brokers.")
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
        )

    def _configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """The configuration of each topic in ``names``; empty for a topic whose configuration we may not see."""
        found: dict[str, dict[str, str]] = {}
        for resource, future in self._described(names).items():
            try:
                entries = self.ask("describe topics", future.result)
            except NotAuthorized:
                entries = {}
            found[resource.name] = {name: str(entry.value) for name, entry in entries.items()}
        return found

    def _described(self, names: Sequence[str]) -> dict[Any, Any]:
        from confluent_kafka.admin import ConfigResource, ResourceType

        if not names:
            return {}
        topics = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        return dict(
            self.ask("describe topics", lambda: self.admin.describe_configs(topics, request_timeout=self.timeout))
        )

    def largest_batches(self, topics: Sequence[str]) -> dict[str, int]:
        """``max.message.bytes`` of ``topics``, without those of which nobody tells: not seen, not there yet, no answer."""
        from confluent_kafka import KafkaException

        found = {}
        for resource, future in self._described(topics).items():
            with suppress(KafkaException):
                told = future.result().get("max.message.bytes")
                if told is not None and str(told.value).isdigit():
                    found[resource.name] = int(told.value)
        return found

    def group(self, group_id: str) -> ConnectGroup:
        from connectctl.ops.clients.librdkafka.named_groups import describe

        self.cluster_id()  # first contact, whose failure is told apart from a slow group coordinator
        group = describe(self, group_id)
        if group is None:
            return ConnectGroup(group_id, "Dead", "", ())
        if group.protocol_type not in ("connect", ""):
            raise BadInput(
                f"{group_id} is not a group of Connect workers",
                why=f"its members speak the protocol {group.protocol_type!r}",
                next_step="Give the workers' group.id.",
            )
        return ConnectGroup(group_id, str(group.state), group.protocol, tuple(map(_member, group.members)))

    def holders(self, group_id: str, connector: str) -> tuple[Holder, ...]:
        from connectctl.ops.clients.kafka_protocol.run_presence import holders

        return holders(self, group_id, connector)

    def image(self, topics: Sequence[str], *, patience: float, superseded: bool = False) -> dict[str, TopicImage]:
        from connectctl.ops.clients.librdkafka.read import read_images

        known = self._known(topics)
        return self.ask("read topics", lambda: read_images(self, known, patience=patience, superseded=superseded))

    def extents(self, topics: Sequence[str]) -> dict[str, dict[int, OffsetRange]]:
        from connectctl.ops.clients.librdkafka.partition_offsets import read_extents

        return read_extents(self, self._known(topics))

    def tails(self, topics: Sequence[str], count: int) -> dict[str, list[Record]]:
        from connectctl.ops.clients.librdkafka.read import read_tails

        return self.ask("read topics", lambda: read_tails(self, topics, count))

    def transact(self, id_: str, records: Iterable[tuple[str, int, bytes, bytes | None]]) -> int:
        from connectctl.ops.clients.librdkafka.write import write_transaction

        return write_transaction(self, id_, records)

    def create_topic(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        from connectctl.ops.clients.librdkafka.write import create_topic

        create_topic(self, name, partitions, replicas, config)
        self.__dict__.pop("_metadata", None)  # it does not know the new topic

    def partitions(self, topic: str) -> list[int]:
        """The partitions of ``topic``. Raises ``BadInput`` where there is no such topic; see ``partition_counts``."""
        return list(range(self.partition_counts([topic])[topic]))

    def partition_counts(self, topics: Sequence[str]) -> dict[str, int]:
        """How many partitions each of ``topics`` has, asked now.

        Brokers know a new topic a moment after the controller said that it is there; one that stays unknown, or that
        metadata has in part, is an error.
        """
        from connectctl.ops.clients.librdkafka.partition_offsets import layouts_of

        return {topic: layout.partitions for topic, layout in layouts_of(self, topics).items()}


def _replicated(partitions: Mapping[int, Any]) -> bool:
    return all(partition.replicas for partition in partitions.values())


def _member(raw: Any) -> Member:
    try:
        url, config_offset = decode_metadata(raw.metadata)
        newest = decode_assignment(raw.assignment)
        assignment = newest and newest.carried_on(decode_current(raw.metadata))
    except (ValueError, UnicodeDecodeError):
        url, config_offset, assignment = "", -1, None
    return Member(raw.id, raw.client_id, raw.client_host, url.rstrip("/"), config_offset, assignment)
