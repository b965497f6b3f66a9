"""Java properties files of the broker and the workers: their contents, and edits in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from connectctl.ops.config import java_properties
from connectctl.ops.sandbox.jars.versions import KafkaVersion
from connectctl.ops.sandbox.ports import LOOPBACK

PLAINTEXT, CONTROLLER = "PLAINTEXT", "CONTROLLER"
REDUNDANT = 2
"""With more brokers than this, one may fail and every write is still on two."""
SUPPORT_KEY = "exactly.once.source.support"
_JSON = "org.apache.kafka.connect.json.JsonConverter"


def broker_properties(
    data: Path,
    listeners: Mapping[str, int],
    protocols: Mapping[str, str],
    extra: Mapping[str, str],
    internal: str = PLAINTEXT,
    *,
    number: int = 1,
    controllers: Sequence[int] = (),
) -> dict[str, str]:
    """Return ``server.properties`` of one KRaft process that is broker and controller, of one or of
    several.

    ``number`` is the broker's, and ``controllers`` are the CONTROLLER ports of all brokers, from
    the first on, where there are several: see ``quorum``. With three, topics have three replicas,
    of which two must have what was acknowledged. ``listeners`` are names with ports, CONTROLLER
    among them; ``protocols`` their security protocols where those are not PLAINTEXT; brokers speak
    to each other on ``internal``. Internal topics are small, and buffers are cut to what a handful
    of topics needs: the log cleaner alone would take 128 MB. So are pools of threads, each of which
    wakes several times a second for nothing.
    """
    ports = controllers or [listeners[CONTROLLER]]
    voters = quorum(len(ports))
    copies, in_sync = str(len(ports)), "2" if len(ports) > REDUNDANT else "1"
    if number not in voters:
        listeners = {name: port for name, port in listeners.items() if name != CONTROLLER}
    addresses = {name: f"{name}://{LOOPBACK}:{port}" for name, port in listeners.items()}
    mapping = dict.fromkeys(listeners, PLAINTEXT) | dict(protocols)
    return {
        "process.roles": "broker,controller" if number in voters else "broker",
        "node.id": str(number),
        "controller.quorum.voters": ",".join(
            f"{voter}@{LOOPBACK}:{ports[voter - 1]}" for voter in voters
        ),
        "controller.listener.names": CONTROLLER,
        "listeners": ",".join(addresses.values()),
        "advertised.listeners": ",".join(
            address for name, address in addresses.items() if name != CONTROLLER
        ),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in mapping.items()
        ),
        "inter.broker.listener.name": internal,
        "log.dirs": str(data),
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": "8388608",
        "log.index.size.max.bytes": "1048576",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "group.coordinator.threads": "1",
        "share.coordinator.threads": "1",
        # A controller writes a record that says nothing twice a second by default, which every
        # broker fetches and stores.
        "metadata.max.idle.interval.ms": "10000",
        # A broker that was killed is registered again when its old session expires, by default
        # after 9 s.
        "broker.session.timeout.ms": "4000",
        "broker.heartbeat.interval.ms": "1000",
        **(
            {"default.replication.factor": copies, "min.insync.replicas": in_sync}
            if len(ports) > 1
            else {}
        ),
        **extra,
    }


def quorum(brokers: int) -> range:
    """Return the numbers of the brokers that are controllers too: all but one of an even number,
    which would add no safety.
    """
    return range(1, brokers + brokers % 2)


def internal_topics(group_id: str) -> dict[str, str]:
    """Return the names of a group's three internal topics, under the keys of the context file."""
    return {kind: f"{group_id}-{kind}" for kind in ("config", "offsets", "status")}


def worker_properties(
    version: KafkaVersion,
    group_id: str,
    *,
    bootstrap_servers: str,
    port: int,
    plugin_path: str,
    support: str,
    extra: Mapping[str, str],
    replicas: int = 1,
) -> dict[str, str]:
    """Return ``worker.properties`` of one distributed worker.

    Departs from Connect's defaults where those are made for production: a worker that leaves
    releases its tasks after one second instead of five minutes, a dead one is noticed after 6 s
    instead of 10, offsets are committed every second. Workers learn of a rebalance by their next
    heartbeat, which comes after half a second instead of three.
    """
    topics = internal_topics(group_id)
    properties = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group_id,
        "listeners": f"http://{LOOPBACK}:{port}",
        "rest.advertised.host.name": LOOPBACK,
        "rest.advertised.port": str(port),
        "plugin.path": plugin_path,
        "config.storage.topic": topics["config"],
        "offset.storage.topic": topics["offsets"],
        "status.storage.topic": topics["status"],
        "config.storage.replication.factor": str(replicas),
        "offset.storage.replication.factor": str(replicas),
        "status.storage.replication.factor": str(replicas),
        "key.converter": _JSON,
        "value.converter": _JSON,
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "offset.flush.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "1000",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "500",
        "connector.client.config.override.policy": "All",
    }
    if version.has_service_load:
        properties["plugin.discovery"] = "service_load"
    if version.has_exactly_once_source:
        properties[SUPPORT_KEY] = support
    return properties | dict(extra)


def render(properties: Mapping[str, str]) -> str:
    """Return the text of a properties file, one line for each key."""
    return "".join(java_properties.with_value("", key, value) for key, value in properties.items())


def with_changes(text: str, changes: Mapping[str, str]) -> str:
    """Return ``text`` with these keys set in place, or at the end; every other character is
    unchanged.
    """
    for key, value in changes.items():
        text = java_properties.with_value(text, key, value)
    return text
