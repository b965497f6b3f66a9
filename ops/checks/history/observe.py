"""Reads what the workers' topics retain of the past: all records of the config and status topics,
and the times of the records in offsets topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from connectctl.ops.checks.context import PATIENCE, CheckContext
from connectctl.ops.checks.history.records import (
    History,
    config_records,
    rhythms_by_connector,
    status_records,
    times_by_connector,
)
from connectctl.ops.connect.group_rounds import GroupRound, rounds_in
from connectctl.ops.connect.offset_store import TOPIC
from connectctl.ops.core.unseen import Unseen, answer_of
from connectctl.ops.kafka.offset_commits import TOPIC as COMMITS
from connectctl.ops.kafka.records import KeyTimes, TopicImage

HOUR = 3600.0
MOST = 32
"""The number of times that are kept for each key of an offsets topic."""


def observe(context: CheckContext, now: float) -> History:
    """Return the history of the cluster in ``context`` until ``now``, in seconds since the epoch.
    What cannot be read is in ``unseen``.
    """
    unseen: list[Unseen] = []
    times = _key_times(context, unseen)
    config, status = (image_of(context, role, unseen) for role in ("config", "status"))
    in_workers_topic = [each for each in times if each.topic == context.internal.get("offsets")]
    return History(
        statuses=status_records([*status.latest, *status.superseded]) if status else {},
        configs=config_records([*config.latest, *config.superseded]) if config else (),
        offset_times=times_by_connector(times),
        rounds=_rounds(context, now, unseen),
        rhythms=rhythms_by_connector(times),
        rhythms_of_topic=tuple(
            rhythm
            for each in in_workers_topic
            if not each.held_back
            for rhythm in each.rhythms.values()
        ),
        config_read=config is not None and not config.held_back,
        unseen=tuple(unseen),
    )


def _rounds(context: CheckContext, now: float, unseen: list[Unseen]) -> tuple[GroupRound, ...]:
    what = f"the rebalances of {context.group.id} in {COMMITS}"
    read = partial(context.edges.kafka.group_log, context.group.id, int((now - HOUR) * 1000))
    records = answer_of(read, unseen, what) or ()
    rounds = rounds_in(records)
    if not rounds and any(record.value for record in records):
        unseen.append(Unseen(what, "its records have an unknown format"))
    return rounds


def image_of(context: CheckContext, role: str, unseen: list[Unseen]) -> TopicImage | None:
    """Return the image of an internal topic with superseded records. A topic that is not found
    is reported by TOPIC002, one that cannot be read by the context.
    """
    topic = context.internal.get(role)
    if topic is None:
        return None
    read = partial(context.edges.kafka.image, [topic], patience=PATIENCE, superseded=True)
    images: Mapping[str, TopicImage] = answer_of(read, unseen, f"the {role} topic {topic}") or {}
    return images.get(topic)


def _key_times(context: CheckContext, unseen: list[Unseen]) -> list[KeyTimes]:
    """Return the times of source offsets in the workers' topic, and in connectors' own topics on
    the same Kafka cluster.
    """
    dedicated_topics = {connector.config.get(TOPIC) for connector in context.sources}
    found: list[KeyTimes] = []
    for topic in sorted({context.internal.get("offsets"), *dedicated_topics} - {None}, key=str):
        read = partial(context.edges.kafka.key_times, [str(topic)], patience=PATIENCE, most=MOST)
        answer = answer_of(read, unseen, f"the offsets topic {topic}") or {}
        found += answer.values()
        if any(times.held_back for times in answer.values()):
            why = "an open transaction keeps its end from being read"
            unseen.append(Unseen(f"the end of the offsets topic {topic}", why))
    return found
