"""Illnesses of a group of workers, planted one after the other on a cluster of their own; those that
leave traces for minutes, or end the cluster, are the last.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Sequence

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.connect.connect_protocol import ConnectGroup, Member
from connectctl.ops.sandbox.ports import LOOPBACK
from fakes.sandboxes import add_worker
from live import nodes
from live.illnesses.bed import Bed, Where, situation
from live.mirrormaker import MirrorMaker
from live.real import eventually

OLDER = "3.7.2"
MOVED = ("GROUP001", "GROUP002", "GROUP003")
"""Findings that stay for minutes after workers came and went."""


def third_worker(
    bed: Bed, support: str | None = None, kafka_version: str | None = None, **properties: str
) -> int:
    """Start one more worker, which is stopped in the end, and return its number; of names of
    properties, __ is a dot.
    """
    dotted = {key.replace("__", "."): value for key, value in properties.items()}
    before = len(members(bed))
    number = add_worker(
        bed.cluster.group,
        support=support,
        properties=dotted,
        kafka_version=kafka_version,
        wait=False,
    )

    def stop() -> None:
        bed.cluster.group.stop_worker(number)
        until(bed, lambda group: len(group.members) == before)

    bed.closing.append(stop)
    until(bed, lambda group: len(group.members) == before + 1)
    return number


def third_of_three(bed: Bed) -> int:
    """Start a worker that runs some of three connectors and their tasks, and return its number."""
    for number in range(3):
        bed.source("one\n", name=f"{bed.name}-{number}")
        bed.states("RUNNING", "RUNNING", name=f"{bed.name}-{number}")
    worker = third_worker(bed)
    address = f"{LOOPBACK}:{bed.cluster.group.workers[worker - 1].port}"
    until(bed, lambda group: any(owner.name == address for owner in group.owners.values()))
    for number in range(3):
        bed.states("RUNNING", "RUNNING", name=f"{bed.name}-{number}")
    return worker


def group_of(bed: Bed) -> ConnectGroup:
    kafka = Kafka({"bootstrap.servers": bed.cluster.bootstrap_servers}, timeout=60)
    return kafka.group(bed.cluster.group_id)


def members(bed: Bed) -> Sequence[Member]:
    return group_of(bed).members


def until(bed: Bed, is_so: Callable[[ConnectGroup], bool]) -> None:
    """Wait until the group is stable, and ``is_so``."""

    def settled() -> bool:
        group = group_of(bed)
        return group.settled and is_so(group)

    eventually(settled)


def free_port() -> str:
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        return str(found.getsockname()[1])


def send(bed: Bed, number: int, what: signal.Signals) -> None:
    assert nodes.send(bed.cluster, bed.cluster.group.workers[number - 1], what)


def cut_off(bed: Bed, number: int) -> None:
    """Suspend a worker until the group is without it, and have it come back."""
    before = len(members(bed))
    send(bed, number, signal.SIGSTOP)
    try:
        until(bed, lambda group: len(group.members) == before - 1)
    finally:
        come_back(bed, number, before)


def come_back(bed: Bed, number: int, workers: int) -> None:
    """Wake a worker, and wait until the group has so many again."""
    send(bed, number, signal.SIGCONT)
    until(bed, lambda group: len(group.members) == workers)


def leader(bed: Bed) -> int:
    found = eventually(lambda: group_of(bed).leader)
    return bed.cluster.group.number_of(f"http://{found.name}")


@situation("Six connectors were created and deleted within seconds", where=Where.WORKERS)
def connectors_are_created_and_deleted(bed: Bed) -> None:
    for number in range(6):
        name = f"{bed.name}-{number}"
        bed.source("one\n", name=name)
        bed.rest.delete(name)


@situation(
    "One of three workers was stopped in order: the group was scaled in",
    where=Where.WORKERS,
    also=["GROUP001"],
)
def a_group_is_scaled_in(bed: Bed) -> None:
    third_of_three(bed)
    bed.closing.pop()()


@situation(
    "MirrorMaker 2 runs in dedicated mode, without REST: its workers advertise NOTUSED",
    where=Where.WORKERS,
)
def mirror_maker_without_rest(bed: Bed) -> None:
    bed.topic("one")
    mirror = MirrorMaker(
        bed.directory, bed.cluster.bootstrap_servers, f"a-{bed.name}", f"b-{bed.name}", bed.name
    )
    bed.closing.append(mirror.stop)
    mirror.start()
    kafka = Kafka({"bootstrap.servers": bed.cluster.bootstrap_servers}, timeout=60)

    def joined() -> bool:
        group = kafka.group(mirror.group)
        return group.settled and bool(group.members)

    eventually(joined)
    bed.options = ("--bootstrap-servers", mirror.bootstrap, "--group-id", mirror.group)


@situation(
    "A worker of another release joined: a rolling upgrade is in progress, and doctor says so",
    where=Where.WORKERS,
)
def a_rolling_upgrade(bed: Bed) -> None:
    third_worker(bed, kafka_version=OLDER)


@situation(
    "Nothing listens at the address that a worker advertises",
    "CLUSTER004",
    "its REST server cannot be used",
    where=Where.WORKERS,
    also=MOVED,
)
def an_address_is_wrong(bed: Bed) -> None:
    third_worker(bed, listeners=f"http://{LOOPBACK}:{free_port()}")


@situation(
    "A worker is suspended, and its session has not expired",
    "CLUSTER004",
    "did not answer",
    where=Where.WORKERS,
    also=MOVED,
)
def a_worker_is_suspended(bed: Bed) -> None:
    number = third_worker(bed, session__timeout__ms="600000", rebalance__timeout__ms="600000")
    send(bed, number, signal.SIGSTOP)
    bed.closing.append(lambda: send(bed, number, signal.SIGCONT))


@situation(
    "A worker's config provider does not return: its herder is held, and its REST server answers",
    "GROUP005",
    "GET /health",
    where=Where.WORKERS,
    also=[*MOVED, "CLUSTER012", "FAIL004"],
)
def a_herder_is_held(bed: Bed) -> None:
    reads_a_pipe(bed)


@situation(
    "A worker's config provider was slow, and the herder is free again",
    where=Where.WORKERS,
    also=MOVED,
)
def a_herder_was_held(bed: Bed) -> None:
    reads_a_pipe(bed)
    bed.closing.pop()()
    for number in range(3):
        bed.states("RUNNING", "RUNNING", name=f"{bed.name}-{number}")


def reads_a_pipe(bed: Bed) -> None:
    """Start a worker whose herder waits for a writer of a pipe, which a connector's configuration
    names; the others have no such config provider. The pipe is an empty file in the end.
    """
    pipe, opened = bed.directory / "values", bed.directory / "pipe"
    os.mkfifo(pipe)
    for number in range(3):
        bed.source(name=f"{bed.name}-{number}", note=f"${{file:{pipe}:note}}")
        bed.states("RUNNING", "RUNNING", name=f"{bed.name}-{number}")

    def is_read() -> None:
        pipe.rename(opened)
        pipe.touch()
        os.close(os.open(opened, os.O_RDWR))

    third_worker(
        bed,
        config__providers="file",
        config__providers__file__class="org.apache.kafka.common.config.provider.FileConfigProvider",
        rebalance__timeout__ms="600000",
    )
    bed.closing.append(is_read)


@situation(
    "A worker was suspended until its session expired, and has not come back",
    "GROUP006",
    "without stopping the",
    where=Where.WORKERS,
    also=MOVED,
)
def a_worker_is_lost(bed: Bed) -> None:
    number = third_of_three(bed)
    before = len(members(bed))
    send(bed, number, signal.SIGSTOP)
    bed.closing.append(lambda: come_back(bed, number, before))
    until(bed, lambda group: len(group.members) == before - 1)


@situation(
    "A worker advertises the address of another one",
    "CLUSTER008",
    "Several workers advertise",
    where=Where.WORKERS,
    also=MOVED,
)
def an_address_is_another_workers(bed: Bed) -> None:
    first = bed.cluster.group.workers[0]
    listener = f"http://{LOOPBACK}:{free_port()}"
    third_worker(bed, listeners=listener, rest__advertised__port=str(first.port))


@situation(
    "One worker of three has exactly-once support disabled",
    "CLUSTER006",
    "on some workers and not on",
    where=Where.WORKERS,
    also=MOVED,
)
def support_differs(bed: Bed) -> None:
    third_worker(bed, support="disabled")


@situation(
    "A worker was cut off three times, and came back",
    "GROUP003",
    "came back 3 times",
    where=Where.WORKERS,
    also=MOVED,
)
def a_worker_comes_and_goes(bed: Bed) -> None:
    follower = 3 - leader(bed)
    for _ in range(3):
        cut_off(bed, follower)


@situation(
    "The leader was cut off four times, each time another worker",
    "GROUP002",
    "Its leader changed",
    where=Where.WORKERS,
    also=MOVED,
)
def the_leader_moves(bed: Bed) -> None:
    for _ in range(4):
        cut_off(bed, leader(bed))


@situation(
    "Workers went on to leave and join: rebalances follow each other",
    "GROUP001",
    "It rebalanced",
    where=Where.WORKERS,
    also=MOVED,
)
def rebalances_follow_each_other(bed: Bed) -> None:
    cut_off(bed, 2)


@situation(
    "No worker answers over REST, and the group is alive",
    "CLUSTER010",
    "No worker answers over REST",
    where=Where.WORKERS,
    also=[*MOVED, "CLUSTER004"],
)
def rest_is_dead(bed: Bed) -> None:
    group = bed.cluster.group
    for number in (1, 2):
        group.stop_worker(number, kill=True)
    for number in (1, 2):
        listener = {"listeners": f"http://{LOOPBACK}:{free_port()}"}
        group.start_worker(number, properties=listener, wait=False)
    until(bed, lambda found: len(found.members) == 2)


@situation(
    "All workers are down",
    "CLUSTER001",
    "nothing runs",
    where=Where.WORKERS,
    also=[*MOVED, "CLUSTER010"],
)
def no_worker_runs(bed: Bed) -> None:
    group = bed.cluster.group
    for number in (1, 2):
        group.stop_worker(number, kill=True)
    eventually(lambda: not members(bed))
    listener = {"listeners": f"http://{LOOPBACK}:{group.workers[0].port}"}
    bed.closing.append(lambda: group.start_worker(1, properties=listener))
