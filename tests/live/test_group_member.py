"""What the design of the group member rests on, each fact on a real broker."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.task_runtime.group.consumer import Revoked
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason
from connectctl.ops.task_runtime.task.transactional_producer import Fenced
from live.groupslots import LONG, PATIENCE, Generation, Slots, took
from live.real import eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


def test_a_new_attempt_takes_its_slot_over_at_once_and_fences_the_older_one(
    cluster: Sandbox,
) -> None:
    with Slots.new(cluster) as slots:
        older = slots.joined(0)
        assert older.assignment == slots.places
        began = time.monotonic()
        newer = slots.joined(0)
        took("take-over of a static member", began)
        assert newer.assignment == slots.places
        with pytest.raises(Fenced, match="another attempt has its"):
            eventually(lambda: older.poll(0.1, 10) and None)
        producer = slots.producer(7)
        producer.initialise(PATIENCE)
        producer.begin()
        with pytest.raises(Fenced):
            producer.send_group_offsets({min(slots.places): GroupOffset(1)}, older, PATIENCE)
        producer.discard()
        assert slots.committed() == {}


def test_of_two_attempts_of_one_slot_the_older_ends_as_fenced_and_each_record_is_there_once(
    cluster: Sandbox,
) -> None:
    with Slots.new(cluster) as slots:
        slots.write()
        older = slots.slot(0, interval=LONG)  # it has a transaction open when it is overtaken
        eventually(lambda: len(older.read) == 20)
        newer = slots.slot(0)
        eventually(lambda: slots.seen() == slots.each_once)
        eventually(lambda: older.ended)
        assert older.result is not None
        assert older.result.reason is EndReason.FENCED
        slots.write()
        eventually(lambda: slots.seen() == slots.each_once)
        assert (len(older.read), len(newer.read)) == (20, 40)


def test_a_lease_that_ends_and_begins_again_rebalances_nobody(cluster: Sandbox) -> None:
    with Slots.new(cluster) as slots:
        one = slots.joined(0)
        slots.polling(one)
        kept = slots.joined(1)
        polled = slots.polling(kept)
        eventually(lambda: len(one.assignment) == len(polled.assignments[kept]) == 2)
        before = polled.generations[kept]
        changes = list(polled.changes[kept])
        was = one.assignment
        slots.end_of(one)
        began = time.monotonic()
        following = slots.joined(0)
        took("a lease ends and begins again", began)
        assert following.assignment == was
        assert Generation(following.metadata).number == before
        slots.write()
        followed = slots.polling(following)
        eventually(lambda: followed.records[following] == polled.records[kept] == 10)
        assert polled.generations[kept] == before
        assert polled.changes[kept] == changes


def test_pending_offsets_are_waited_for_and_reported_until_their_id_is_initialised_anew(
    cluster: Sandbox,
) -> None:
    with Slots.new(cluster, 1) as slots:
        (place,) = slots.places
        # A group that nobody is a member of takes offsets of any transaction.
        # Beyond what the member needs to see it, however slow the machine is.
        pending = slots.producer(1, timeout_ms=600_000)
        pending.initialise(PATIENCE)
        pending.begin()
        nobody = Generation.of(slots.settings.group, "", -1)
        pending.send_group_offsets({place: GroupOffset(1)}, nobody, PATIENCE)  # type: ignore[arg-type]
        member, ends = slots.member(0, candidates=[1]), list[float]()

        def join() -> None:
            member.join()
            ends.append(time.monotonic())

        joining = threading.Thread(target=join)
        joining.start()
        owner = rf"the transaction of {slots.id_of(1)} \(open since 2\S+Z\)"
        # Transactions that other tests have left open may be in the same partition of offsets.
        expected = (
            rf"offsets of {slots.settings.group} on {place} are pending \(KIP-447\), and wait for "
            rf"(.* or )?{owner}( or .*)?"
        )
        eventually(lambda: any(re.fullmatch(expected, each) for each in slots.waits))
        assert not ends
        began = time.monotonic()
        successor = slots.producer(1)
        successor.initialise(PATIENCE)
        joining.join(PATIENCE)
        took("initialise the id, and have stable offsets", began)
        assert ends[0] - began < 60  # and not the transaction's time-out
        assert member.assignment == slots.places
        assert slots.committed() == {}
        for each in (pending, successor):
            each.discard()


@pytest.mark.drawn
@PROTOCOLS
def test_a_commit_within_a_revocation_counts_and_the_next_owner_reads_nothing_again(
    cluster: Sandbox, protocol: str
) -> None:
    with Slots.new(cluster, group_protocol=protocol) as slots:
        slots.write()
        giving = slots.slot(0, interval=LONG)  # only a revocation commits what it has
        eventually(lambda: len(giving.read) == 20)
        assert slots.seen() == []
        taking = slots.slot(1)
        eventually(lambda: len(taking.assignment) == len(giving.assignment) == 2)
        eventually(lambda: slots.seen() == slots.each_once)
        slots.write()
        eventually(lambda: (len(giving.read), len(taking.read)) == (30, 10))
        giving.close()
        eventually(lambda: slots.seen() == slots.each_once)
        assert (len(giving.read), len(taking.read)) == (30, 10)
        assert giving.task.stats.doubts == taking.task.stats.doubts == []


@pytest.mark.drawn
@PROTOCOLS
def test_behind_a_doubt_in_a_revocation_the_member_gives_the_partitions_up_and_reads_again(
    cluster: Sandbox, protocol: str
) -> None:
    with Slots.new(cluster, group_protocol=protocol) as slots:
        member = slots.joined(0)
        taking = slots.slot(1)

        def revoked() -> Revoked | None:
            event = member.poll(0.1, 10)
            return event if isinstance(event, Revoked) else None

        given_up = eventually(revoked).partitions
        assert set(given_up) <= member.assignment  # until the member is asked again
        assert member.rewind()
        assert member.assignment == slots.places - set(given_up)
        assert member.stable(slots.places) == {}
        slots.polling(member)
        eventually(lambda: taking.assignment == set(given_up))


def test_a_static_member_is_removed_by_its_instance_id_and_others_get_its_partitions(
    cluster: Sandbox,
) -> None:
    with Slots.new(cluster) as slots:
        gone = slots.joined(0)
        slots.polling(gone)
        kept = slots.joined(1)
        slots.polling(kept)
        eventually(lambda: len(gone.assignment) == len(kept.assignment) == 2)
        slots.end_of(gone)
        assert {m.instance_id for m in slots.ask(lambda c: c.describe()).members} == {
            slots.id_of(0),
            slots.id_of(1),
        }
        began = time.monotonic()
        assert slots.ask(lambda c: c.remove_static([slots.id_of(0), "never-there"])) == {}
        eventually(lambda: kept.assignment == slots.places)
        took("removed, and another has its partitions", began)
