from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.connect.group_mark import GroupMark
from connectctl.ops.connect.internal_topics import (
    ClusterSignals,
    ConfigTopicSignals,
    Role,
    TopicChoice,
    TopicSignals,
    address,
    choose,
    choose_config,
    classify,
    mirror_topic,
    sibling_topic_names,
)
from connectctl.ops.kafka.records import ConsumerRecord
from fakes.kafkareads import connect_group, records
from hypothesis import given
from hypothesis import strategies as st

RUNNING = {"state": "RUNNING", "trace": None, "worker_id": "one:8083", "generation": 6}

KINDS: list[tuple[Role | None, str, Any]] = [
    (Role.CONFIG, "connector-file-src", {"properties": {"name": "file-src"}}),
    (Role.CONFIG, "connector-file-src", None),
    (Role.CONFIG, "task-file-src-0", {"properties": {}}),
    (Role.CONFIG, "commit-file-src", {"tasks": 2}),
    (Role.CONFIG, "target-state-file-src", {"state": "PAUSED", "state.v2": "STOPPED"}),
    (Role.CONFIG, "tasks-fencing-file-src", {"task-count": 2}),
    (Role.CONFIG, "session-key", {"key": "x", "algorithm": "HmacSHA256", "creation-timestamp": 1}),
    (Role.CONFIG, "restart-connector-a", {"include-tasks": True, "only-failed": True}),
    (Role.CONFIG, "logger-cluster-org.x", {"level": "DEBUG"}),
    (Role.STATUS, "status-connector-a", RUNNING),
    (Role.STATUS, "status-task-a-b-0", RUNNING),
    (
        Role.STATUS,
        "status-topic-t:connector-a",
        {"topic": {"name": "t", "connector": "a", "task": 0}},
    ),
    (Role.OFFSETS, '["a",{"file":"x"}]', {"position": 3}),
    (Role.OFFSETS, '["a",null]', {"position": 3}),
    (Role.OFFSETS, '["a",{"file":"x"}]', None),
    (None, '["a",{"file":"x"},1]', {"position": 3}),
    (None, '["a",[1]]', {"position": 3}),
    (None, '[1,{"file":"x"}]', {"position": 3}),
    (None, "connector-a", {"something": "else"}),
    (None, "task-42", {"title": "a to-do list of somebody"}),
    (None, "user-42", {"name": "x"}),
]


@pytest.mark.parametrize(("role", "key", "value"), KINDS)
def test_a_topic_is_told_by_the_form_of_its_records(
    role: Role | None, key: str, value: Any
) -> None:
    assert classify("t", records((key, value))).role == role


def test_status_records_tell_connectors_with_dashes_and_workers() -> None:
    clues = classify(
        "t",
        records(
            ("status-task-a-b-0", RUNNING),
            ("status-topic-x:y:connector-c", {"topic": {"name": "x:y"}}),
        ),
    )
    assert clues.connectors == {"a-b", "c"}
    assert clues.workers == {"one:8083"}


def test_a_topic_without_records_is_empty_and_no_particular_one() -> None:
    assert classify("t", [], 25) == TopicSignals("t", None, empty=True, partitions=25)


def test_a_few_stray_records_do_not_hide_what_a_topic_is() -> None:
    stray = ConsumerRecord(b"\xff\xfe", b"\x00", 0, 9)
    assert (
        classify(
            "t", [*records(("commit-a", {"tasks": 1}), ("commit-b", {"tasks": 1})), stray]
        ).role
        is Role.CONFIG
    )
    assert classify("t", [*records(("commit-a", {"tasks": 1})), stray]).role is None


@given(st.lists(st.tuples(st.none() | st.binary(), st.none() | st.binary())))
def test_no_records_of_others_break_the_classification(
    pairs: list[tuple[bytes | None, bytes | None]],
) -> None:
    classify("t", [ConsumerRecord(key, value, 0, n) for n, (key, value) in enumerate(pairs)])


@given(st.text(min_size=1), st.dictionaries(st.text(), st.integers() | st.text() | st.none()))
def test_every_source_offset_key_is_recognised(name: str, partition: dict[str, Any]) -> None:
    clues = classify(
        "t", [ConsumerRecord(json.dumps([name, partition]).encode(), b'{"at":1}', 3, 5)]
    )
    assert clues.role is Role.OFFSETS
    assert clues.connectors == {name}


def test_an_address_is_what_statuses_name_a_worker_by() -> None:
    assert address("https://worker-1.example:8443") == "worker-1.example:8443"


def configs(**named: str) -> list[ConfigTopicSignals]:
    return [
        ConfigTopicSignals(topic, frozenset(filter(None, names.split(","))), end=10)
        for topic, names in named.items()
    ]


def guess(topic: str, *, empty: bool = False) -> TopicChoice:
    """The last one left: nothing proves that it is the group's."""
    return TopicChoice(topic, empty=empty, proven=False)


GROUP = connect_group(offset=8, one=[("a", -1), ("a", 0)], two=[("b", -1)])
IDLE = connect_group(offset=8, one=[])
DOWN = connect_group(state="Empty")


@pytest.mark.parametrize(
    ("why", "found", "empty", "group", "expected"),
    [
        ("the only one", configs(c="a,b"), [], GROUP, TopicChoice("c")),
        ("it has all that run", configs(c="a,b", d="a"), [], GROUP, TopicChoice("c")),
        ("no other connectors in it", configs(c="a,b", d="a,b,x"), [], GROUP, TopicChoice("c")),
        ("one just created", configs(c="a,b,new", d="x"), [], GROUP, TopicChoice("c")),
        ("one just deleted", configs(c="a", d="x"), [], GROUP, TopicChoice("c")),
        ("same names twice", configs(c="a,b", d="a,b"), [], GROUP, TopicChoice(None, ("c", "d"))),
        ("another cluster's only", configs(d="x"), [], GROUP, TopicChoice(None)),
        (
            "shorter than workers read",
            [ConfigTopicSignals("c", frozenset("ab"), end=7)],
            [],
            GROUP,
            TopicChoice(None),
        ),
        ("nothing runs", configs(c="", d="x"), [], IDLE, guess("c")),
        ("all down, only one", configs(c="a"), [], DOWN, guess("c")),
        ("all down, two", configs(c="a", d="b"), [], DOWN, TopicChoice(None, ("c", "d"))),
        ("nothing but an empty one", [], ["e"], IDLE, guess("e", empty=True)),
        ("two empty ones", [], ["e", "f"], IDLE, TopicChoice(None, ("e", "f"))),
        ("empty cannot be while connectors run", [], ["e"], GROUP, TopicChoice(None)),
    ],
)
def test_the_config_topic_is_matched_by_what_the_group_runs(
    why: str, found: list[ConfigTopicSignals], empty: list[str], group: Any, expected: TopicChoice
) -> None:
    assert choose_config(found, empty, group) == expected, why


def offsets(**named: str) -> list[TopicSignals]:
    return [
        TopicSignals(topic, Role.OFFSETS, connectors=frozenset(names.split(",")))
        for topic, names in named.items()
    ]


OURS = ClusterSignals(connectors=frozenset("ab"))
BESIDE = ClusterSignals(connectors=frozenset("ab"), others=frozenset("bx"), other_groups=True)


@pytest.mark.parametrize(
    ("why", "found", "empty", "evidence", "expected"),
    [
        ("the only one", offsets(o="a"), ["e"], OURS, TopicChoice("o")),
        ("the other names strangers", offsets(o="a", p="x"), ["e"], OURS, TopicChoice("o")),
        ("only a neighbour's", offsets(p="x"), [], BESIDE, TopicChoice(None)),
        ("a neighbour's and an empty one", offsets(p="x"), ["e"], BESIDE, guess("e", empty=True)),
        ("a name shared with a neighbour", offsets(p="b"), [], BESIDE, guess("p")),
        (
            "a shared name proves nothing beside an empty one",
            offsets(p="b"),
            ["e"],
            BESIDE,
            TopicChoice(None, ("p", "e")),
        ),
        ("leftovers of deleted connectors", offsets(o="gone"), ["e"], OURS, guess("o")),
        ("both name ours", offsets(o="a", p="a"), [], OURS, TopicChoice(None, ("o", "p"))),
        ("nothing at all", [], [], OURS, TopicChoice(None)),
        ("two empty ones", [], ["e", "f"], OURS, TopicChoice(None, ("e", "f"))),
        (
            "a dedicated one is left out",
            offsets(o="a,b", d="a"),
            [],
            ClusterSignals(foreign=frozenset("d")),
            guess("o"),
        ),
        (
            "empty beside dedicated",
            offsets(d="a"),
            ["e"],
            ClusterSignals(foreign=frozenset("d")),
            guess("e", empty=True),
        ),
        (
            "a dedicated one alone is none",
            offsets(d="a"),
            [],
            ClusterSignals(foreign=frozenset("d")),
            TopicChoice(None),
        ),
    ],
)
def test_the_offsets_topic_is_matched_by_the_connectors_it_names(
    why: str,
    found: list[TopicSignals],
    empty: list[str],
    evidence: ClusterSignals,
    expected: TopicChoice,
) -> None:
    assert choose(found, empty, evidence) == expected, why


def test_the_status_topic_is_matched_by_its_workers_even_where_connectors_have_the_same_names() -> (
    None
):
    found = [
        TopicSignals("s", Role.STATUS, connectors=frozenset("a"), workers=frozenset({"one:8083"})),
        TopicSignals("z", Role.STATUS, connectors=frozenset("a"), workers=frozenset({"far:8083"})),
    ]
    evidence = ClusterSignals(
        frozenset({"one:8083"}), frozenset("a"), frozenset("a"), other_groups=True
    )
    assert choose(found, [], evidence) == TopicChoice("s")


def marked(topic: str, group_id: str, names: str = "a,b") -> ConfigTopicSignals:
    return ConfigTopicSignals(topic, frozenset(names.split(",")), end=10, mark=GroupMark(group_id))


@pytest.mark.parametrize(
    ("why", "found", "group", "expected"),
    [
        (
            "a job's with the same names",
            [*configs(c="a,b"), marked("j", "jobs")],
            GROUP,
            TopicChoice("c"),
        ),
        (
            "a job's alone, of a group that runs nothing",
            [marked("j", "jobs")],
            IDLE,
            TopicChoice(None),
        ),
        ("a job's alone, with all workers down", [marked("j", "jobs")], DOWN, TopicChoice(None)),
        ("its own mark", [*configs(c="a,b"), marked("d", "connect")], GROUP, TopicChoice("d")),
        (
            "its own mark, with all workers down",
            [*configs(c="a,b"), marked("d", "connect")],
            DOWN,
            TopicChoice("d"),
        ),
        ("the group was renamed", [*configs(c="x"), marked("j", "old-name")], GROUP, guess("j")),
    ],
)
def test_the_mark_of_a_job_tells_whose_a_config_topic_is(
    why: str, found: list[ConfigTopicSignals], group: Any, expected: TopicChoice
) -> None:
    assert choose_config(found, [], group) == expected, why


@pytest.mark.parametrize("group", [GROUP, DOWN])
def test_of_several_config_topics_the_one_that_the_groups_leader_wrote_to_is_chosen(
    group: Any,
) -> None:
    found = configs(c="a,b", d="a,b")
    assert choose_config(found, [], group, lambda topics: frozenset("d")) == TopicChoice("d")
    assert choose_config(found, [], group, lambda topics: frozenset("cd")) == TopicChoice(
        None, ("c", "d")
    )
    assert choose_config(found, [], group, lambda topics: frozenset()) == TopicChoice(
        None, ("c", "d")
    )


def test_a_name_tells_topics_apart_and_proves_nothing() -> None:
    found = configs(c="a,b", d="a,b")
    assert choose_config(found, [], GROUP, named=frozenset({"d", "z"})) == guess("d")
    named = ClusterSignals(connectors=frozenset("ab"), named=frozenset({"o", "e"}))
    assert choose(offsets(o="a", p="a"), [], named) == guess("o")
    assert choose([], ["e", "f"], named) == guess("e", empty=True)


def test_of_several_offsets_topics_the_one_that_the_groups_tasks_wrote_to_is_chosen() -> None:
    wrote = ClusterSignals(connectors=frozenset("ab"), written=lambda topics: frozenset("p"))
    assert choose(offsets(o="a", p="a"), [], wrote) == TopicChoice("p")


def test_nobody_is_asked_who_wrote_where_there_is_no_choice() -> None:
    def never(topics: Any) -> frozenset[str]:
        raise AssertionError(topics)

    assert choose_config(configs(c="a,b", d="x"), [], GROUP, never) == TopicChoice("c")
    assert choose(offsets(o="a", p="x"), ["e"], replace(OURS, written=never)) == TopicChoice("o")


def test_topics_of_mirror_maker_are_called_after_its_group() -> None:
    assert [mirror_topic("live-mm2", role) for role in Role] == [
        "mm2-configs.live.internal",
        "mm2-offsets.live.internal",
        "mm2-status.live.internal",
    ]
    assert mirror_topic("connect", "config") is None


@pytest.mark.parametrize(
    ("config", "role", "name"),
    [
        ("connect-configs", "offsets", "connect-offsets"),
        ("x-config", "status", "x-status"),
        ("mm2-configs.live.internal", "offsets", "mm2-offsets.live.internal"),
    ],
)
def test_topics_of_one_group_are_mostly_called_alike(config: str, role: str, name: str) -> None:
    assert name in sibling_topic_names(config, role)
    assert sibling_topic_names("something", role) == frozenset()
