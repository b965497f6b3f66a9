"""Finds a Connect cluster's three internal topics from a Kafka cluster and a group id.

Topics that the user names are only checked to exist. For the others every compacted topic is
sampled and classified (``ops/connect/internal_topics.py``), and matched to the group by its workers
and connectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from connectctl.ops.connect import cluster_findings, config_topic, internal_topics
from connectctl.ops.connect.internal_topics import (
    ClusterSignals,
    ConfigTopicSignals,
    Role,
    TopicChoice,
    TopicSignals,
)
from connectctl.ops.connect.transactional_ids import leader_id, task_id
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized
from connectctl.ops.kafka.visibility import (
    Gap,
    Observation,
    Reason,
    observation_of,
    read_topic,
    whole,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import KafkaReads
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.kafka.topics import TopicFacts

SAMPLE = 20
"""Offsets that are read from the end of each partition of a topic to classify it."""
MOST_IDS = 200
"""Transactional ids of tasks in a request: one that wrote to the topic is sufficient."""
PATIENCE = 2.0
"""Seconds to wait for open transactions on config topics, also on those of other clusters."""


@dataclass(frozen=True)
class InternalTopics:
    """The workers' config, offsets and status topics; None for a role that was not searched."""

    config: str | None
    offsets: str | None
    status: str | None
    findings: tuple[Finding, ...] = ()
    unproven: Mapping[str, str] = field(default_factory=dict)
    """Topics that are only the last candidates, by role: they may belong to another group, and must
    not be written.
    """


def find_internal_topics(
    kafka: KafkaReads,
    group: ConnectGroup,
    named: Mapping[str, str | None],
    needed: Sequence[str] = ("config", "offsets", "status"),
) -> InternalTopics:
    """Return the internal topics of ``group``; those in ``named`` are only checked to exist.

    The roles in ``named`` and ``needed`` are ``config``, ``offsets`` and ``status``. Raises
    ``BadInput`` if a topic does not exist, if none is found, or if several cannot be distinguished.
    """
    choices = search_topics(kafka, group, named, needed)
    for role in needed:
        if choices[role].topic is None:
            raise not_found(role, choices[role], group)
    found = {str(role): named.get(role) for role in Role} | {
        role: choices[role].topic for role in needed
    }
    guessed = tuple(
        cluster_findings.empty_topic_chosen(str(c.topic), role)
        for role, c in choices.items()
        if c.empty
    )
    unproven = {role: str(choices[role].topic) for role in needed if not choices[role].proven}
    return InternalTopics(found["config"], found["offsets"], found["status"], guessed, unproven)


def search_topics(
    kafka: KafkaReads,
    group: ConnectGroup,
    named: Mapping[str, str | None],
    needed: Sequence[str],
    *,
    superseded: bool = False,
) -> dict[str, TopicChoice]:
    """Return the choice for each role; its topic is None if it is not found.

    ``superseded``: config topics are read with superseded records, for callers that use them later.
    """
    known = {role: name for role in needed if (name := named.get(role))}
    check_named(kafka, known)
    choices = {role: TopicChoice(name) for role, name in known.items()}
    missing = [role for role in needed if role not in known]
    return choices | (_search(kafka, group, named, missing, superseded) if missing else {})


def those_that_exist(kafka: KafkaReads, *topics: str) -> frozenset[str]:
    """Return those of ``topics`` that exist. Raises ``NotAuthorized`` if one may not be
    described.
    """
    return whole(kafka.existing(topics), f"the topics {', '.join(topics)}")


def check_named(kafka: KafkaReads, named: Mapping[str, str]) -> None:
    """Raise ``BadInput`` for a topic in ``named`` that does not exist, ``NotAuthorized`` for one
    that may not be described.
    """
    from difflib import get_close_matches

    exist = those_that_exist(kafka, *named.values())
    for role, name in named.items():
        if name not in exist:
            similar = get_close_matches(name, kafka.topic_names(), n=1)
            hint = f"Did you mean {similar[0]}? " if similar else ""
            raise BadInput(
                f"Topic not found: {name} (given as the {role} topic)",
                next_step=f"{hint}Correct --{role}-topic or topics.{role} in the context, or "
                "leave it out.",
            )


def not_found(role: str, choice: TopicChoice, group: ConnectGroup) -> BadInput | NotAuthorized:
    """Return the error for a role for which no topic is found, or several."""
    hint = f"Give --{role}-topic TOPIC, or topics.{role} in the context."
    if choice.gaps:
        gap, more = choice.gaps[0], len(choice.gaps) - 1
        why = f"{gap.subject}: {gap.why}" + (
            f", and {more} more topics that may not be read" if more else ""
        )
        what = f"The {role} topic of {group.id} was not found"
        return NotAuthorized(
            what, why=why, next_step=f"{gap.next_step.rstrip('.')}. {hint}", right=gap.right
        )
    if choice.candidates:
        return BadInput(
            f"The {role} topic of {group.id} cannot be distinguished from others",
            why=f"it may be any of {', '.join(choice.candidates)}",
            next_step=hint,
            code="ambiguous-topic",
        )
    no_members = (
        "" if group.members else f" The group {group.id} has no members; check --group-id too."
    )
    return BadInput(
        f"No topic that this principal may see looks like the {role} topic of {group.id}",
        next_step=hint + no_members,
        code="topic-not-found",
    )


def _search(
    kafka: KafkaReads,
    group: ConnectGroup,
    named: Mapping[str, str | None],
    missing: Sequence[str],
    superseded: bool,
) -> dict[str, TopicChoice]:
    named_topics = {name for name in named.values() if name}
    compacted = kafka.compacted()
    sampled = _sample(kafka, compacted.seen)
    gaps = (*compacted.gaps, *sampled.gaps)
    signals = [signal for signal in sampled.seen if signal.topic not in named_topics]
    if not group.members:
        choices_by_name = _named_after(group, compacted.seen, signals, missing)
        if choices_by_name:
            remaining = [role for role in missing if role not in choices_by_name]
            with_choices = {
                **named,
                **{role: choice.topic for role, choice in choices_by_name.items()},
            }
            return choices_by_name | (
                _search(kafka, group, with_choices, remaining, superseded) if remaining else {}
            )
    found = {c.topic for c in signals if c.role is Role.CONFIG} | {
        name for name in [named.get("config")] if name
    }
    configs = _read_configs(kafka, sorted(found), superseded)
    config = _config_of(kafka, configs, signals, group, named.get("config"))
    choices: dict[str, TopicChoice] = {"config": config} if "config" in missing else {}
    empty = [c.topic for c in signals if c.empty and c.topic != config.topic]
    for role in (Role.STATUS, Role.OFFSETS):
        if role in missing:
            like_role = [c for c in signals if c.role is role]
            choices[role] = _choose_with_config(
                kafka, group, role, configs, config, like_role, empty
            )
    return {
        role: replace(choice, gaps=gaps) if choice.topic is None else choice
        for role, choice in choices.items()
    }


def _choose_with_config(
    kafka: KafkaReads,
    group: ConnectGroup,
    role: Role,
    configs: Sequence[ConfigTopicSignals],
    config: TopicChoice,
    like_role: Sequence[TopicSignals],
    empty: Sequence[str],
) -> TopicChoice:
    """Return the ``role`` topic of the group with the config topic ``config``, from the candidates
    ``like_role`` and the ``empty`` topics.
    """
    mark = next((c.mark for c in configs if c.topic == config.topic), None)
    marked = (
        mark.topics.get(role) if mark and mark.group_id == group.id and not group.members else None
    )
    if marked in {*(c.topic for c in like_role), *empty}:
        return TopicChoice(marked)
    choice = internal_topics.choose(
        like_role, empty, _evidence(kafka, group, role, configs, config.topic, like_role)
    )
    # Only the group's own config topic, or its workers, prove that the connectors belong to the
    # group.
    is_certain = config.proven and config.topic is not None
    return choice if is_certain or group.members else replace(choice, proven=False)


def _named_after(
    group: ConnectGroup,
    compacted: Mapping[str, TopicFacts],
    signals: Sequence[TopicSignals],
    missing: Sequence[str],
) -> dict[str, TopicChoice]:
    """Return the topics of a group without workers that ``connectctl run`` or MirrorMaker 2 named
    after it.

    A topic with records of another role is excluded; a topic that may not be read is included.
    """
    signals_by_topic = {signal.topic: signal for signal in signals}
    found = {}
    for role in missing:
        for name in _names_after(group, role):
            signal = signals_by_topic.get(name)
            if name in compacted and (signal is None or signal.empty or signal.role == role):
                found[role] = TopicChoice(name)
                break
    return found


def _names_after(group: ConnectGroup, role: str) -> list[str]:
    """Return the possible names of the ``role`` topic after the group."""
    names = (
        internal_topics.run_topic_name(group.id, role),
        internal_topics.mirror_topic(group.id, role),
    )
    return [name for name in names if name]


def _sample(kafka: KafkaReads, facts: Mapping[str, TopicFacts]) -> Observation[list[TopicSignals]]:
    gaps: list[Gap] = []
    try:
        tails = kafka.tails(list(facts), SAMPLE)
    except NotAuthorized:
        # Read the topics one by one: a topic that this principal may list but not read must not
        # hide the others.
        tails = {}
        for name in facts:
            try:
                tails |= kafka.tails([name], SAMPLE)
            except NotAuthorized:
                gaps.append(Gap(f"topic {name}", Reason.NOT_AUTHORIZED, read_topic(name)))
    found = [
        internal_topics.classify(name, records, facts[name].partitions)
        for name, records in sorted(tails.items())
    ]
    return observation_of(found, gaps)


def _read_configs(
    kafka: KafkaReads, found: Sequence[str], superseded: bool
) -> list[ConfigTopicSignals]:
    images = kafka.image(found, patience=PATIENCE, superseded=superseded)
    return [
        internal_topics.config_topic_signals(
            name, config_topic.state_of(image), image.end_offsets[0]
        )
        for name, image in images.items()
    ]


def _config_of(
    kafka: KafkaReads,
    configs: Sequence[ConfigTopicSignals],
    signals: Sequence[TopicSignals],
    group: ConnectGroup,
    named: str | None,
) -> TopicChoice:
    if named:
        return TopicChoice(named)
    # A config topic has one partition: workers refuse to start with several.
    empty = [c.topic for c in signals if c.empty and c.partitions == 1]
    written = partial(_written_by, kafka, (leader_id(group.id),))
    return internal_topics.choose_config(
        configs, empty, group, written, frozenset(_names_after(group, Role.CONFIG))
    )


def _evidence(
    kafka: KafkaReads,
    group: ConnectGroup,
    role: Role,
    configs: Sequence[ConfigTopicSignals],
    config: str | None,
    like_role: Sequence[TopicSignals],
) -> ClusterSignals:
    own_topics = [c for c in configs if c.topic == config]
    # If the mark of a group names the topic, no other topic has its connectors.
    settled = [
        c.topic
        for c in configs
        if c.belongs_to_other_group(group.id) and c.mark and c.mark.topics.get(role)
    ]
    other_topics = [c for c in configs if c.topic not in (config, *settled)] if config else []
    owned = frozenset(connector for connector, _ in group.owners)
    # Tasks write to the offsets topic with their own transactional ids; the status topic has no
    # transactions.
    ids = (
        sorted({task_id(group.id, c, n) for c, n in group.owners if n >= 0})[:MOST_IDS]
        if role is Role.OFFSETS
        else ()
    )
    dedicated = (
        frozenset[str]().union(*(c.dedicated for c in configs))
        if role is Role.OFFSETS
        else frozenset[str]()
    )
    named = internal_topics.sibling_topic_names(config, role) if config else frozenset[str]()
    return ClusterSignals(
        workers=frozenset(
            w for c in like_role for w in c.workers if any(m.wrote(w) for m in group.members)
        ),
        connectors=owned.union(*(c.connectors | c.deleted for c in own_topics)),
        others=frozenset[str]().union(*(c.connectors | c.deleted for c in other_topics)),
        foreign=dedicated.union(
            *(
                c.mark.topics.values()
                for c in configs
                if c.mark and c.belongs_to_other_group(group.id)
            )
        ),
        other_groups=bool(other_topics),
        named=named.union(_names_after(group, role)),
        written=partial(_written_by, kafka, ids),
    )


def _written_by(kafka: KafkaReads, ids: Sequence[str], topics: Sequence[str]) -> frozenset[str]:
    """Return those of ``topics`` to which one of ``ids`` is known to have written; none if this is
    unknown.
    """
    try:
        return kafka.written_by(ids, topics) if ids else frozenset()
    except ConnectctlError:
        # Without a right or an answer there is no proof: the error is that the topics cannot be
        # distinguished.
        return frozenset()
