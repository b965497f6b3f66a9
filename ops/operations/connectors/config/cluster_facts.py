"""Reads the facts about a cluster that the evaluation of configurations needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
from connectctl.ops.config.connector_file import Given
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.internal_topics import Role
from connectctl.ops.connector_config.report import WORKERS, Known, ask_workers
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.core.unseen import Unseen
from connectctl.ops.operations.cluster.internal_topic_discovery import search_topics


def observe_cluster(
    calls: ConnectCalls,
    given: Sequence[Given],
    kafka: KafkaReads | None,
    group: ConnectGroup | None,
    named: Mapping[str, str | None],
    *,
    group_id: str | None,
    named_servers: tuple[str, ...],
    most: int | None = None,
) -> Known:
    """Return the cluster's facts about configurations; ``kafka`` and ``group`` are None to ask
    workers only.

    ``named`` are the internal topics that the user named; ``most``: see ``validations.ask``.
    ``named_servers`` are the bootstrap servers of the clusters in the context.
    """
    unseen: tuple[Unseen, ...] = ()
    if not calls.urls:
        unseen = (
            Unseen(
                WORKERS, f"no worker is in the group {group_id}", "Start a worker, or give --rest."
            ),
        )
    offsets, hidden = _offsets_topic(kafka, group, named)
    answers = ask_workers(calls, calls.urls, given, most)
    return Known(answers, group_id, offsets, (*unseen, *hidden), named_servers)


def _offsets_topic(
    kafka: KafkaReads | None, group: ConnectGroup | None, named: Mapping[str, str | None]
) -> tuple[str | None, tuple[Unseen, ...]]:
    """Return the workers' ``offset.storage.topic``, None if unknown, and the missing rights to
    discover it.
    """
    if named.get("offsets") or kafka is None or group is None:
        return named.get("offsets"), ()
    what = "the workers' offsets topic"
    try:
        choice = search_topics(kafka, group, named, [Role.OFFSETS])[Role.OFFSETS]
    except NotAuthorized as e:
        return None, (Unseen(what, e.why or e.what, e.next_step),)
    except ConnectctlError:
        return None, ()  # only one rule needs it
    return choice.topic, tuple(
        Unseen(what, f"{gap.subject}: {gap.why}", gap.next_step) for gap in choice.gaps
    )
