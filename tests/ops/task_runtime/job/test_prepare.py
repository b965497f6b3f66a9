"""What is looked at before a run, what is refused, and what the plan says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from connectctl.ops.core.errors import BadInput, NotAuthorized, Refused
from connectctl.ops.kafka.brokers import BrokerVersion
from connectctl.ops.task_runtime.job import prepare
from connectctl.ops.task_runtime.job.config_topic_records import KeyValue, task_set
from connectctl.ops.task_runtime.job.internal_topics import RunClients
from connectctl.ops.task_runtime.job.job_file import Job, Until, parse
from connectctl.ops.task_runtime.job.preconditions import check_master
from connectctl.ops.task_runtime.job.prepare import PreparedJob, offsets_topic, plan
from connectctl.ops.task_runtime.job.run_request import RunRequest
from connectctl.ops.task_runtime.job.task_count import refusal
from fakes.preparing import FILE, Many, World

TRANSFORM = {
    "connector.class": "Filter",
    "topics": "in",
    "topic": "t",
    "condition": "value == 'a'",
    "name": "c",
}
NAMED: dict[str, str | None] = {"config": "configs", "offsets": "offs", "status": "stats"}


def with_workers(*more: KeyValue, config: Mapping[str, str] | None = None) -> World:
    there = {"configs": (1, "compact"), "offs": (25, "compact"), "stats": (5, "compact")}
    records = task_set("c", config or {"name": "c", **FILE}, [{}])
    return World(there, [*records, *more], live=2, named=NAMED)


def says(ready: PreparedJob) -> list[str]:
    return [
        step.describe() for step in plan(ready, "id", "local[2]", RunRequest("job.yaml"), {}).steps
    ]


def test_a_group_of_its_own_gets_topics_named_after_it() -> None:
    ready = World().look()
    assert ready.create == {"g-configs": 1, "g-offsets": 25, "g-status": 5}
    assert says(ready) == [
        "create the topic g-configs with 1 partition",
        "create the topic g-offsets with 25 partitions",
        "create the topic g-status with 5 partitions",
        "write the task configurations of c to g-configs and fence older tasks",
        "run c on Spark (local[2]) until it is stopped, source offsets in g-offsets",
    ]


def test_topics_that_are_there_are_used() -> None:
    world = World(
        {"configs": (1, "compact"), "g-status": (5, "compact")}, named={"config": "configs"}
    )
    assert world.look().create == {"g-offsets": 25}


@pytest.mark.parametrize("id_", ["connect-cluster-g", "g-c-0"])
def test_a_group_that_worked_before_must_have_its_topics_named(id_: str) -> None:
    with pytest.raises(Refused, match=f"the transactional id {id_} exists"):
        World(known=frozenset({id_})).look()
    assert World(known=frozenset({id_}), named=NAMED).look().create


def test_a_group_with_live_workers_is_refused() -> None:
    with pytest.raises(Refused, match="--take-over"):
        with_workers().look()


def test_a_connector_that_runs_on_workers_is_stopped_and_resumed() -> None:
    ready = with_workers().look(take_over=True)
    assert says(ready) == [
        "create the topic g-run-status with 1 partition",
        "stop c on its workers",
        "run c on Spark (local[2]) until it is stopped, source offsets in offs",
        "resume c on its workers",
    ]


@pytest.mark.parametrize(
    ("state", "verb"), [("STOPPED", None), ("PAUSED", "pause"), ("STARTED", "resume")]
)
def test_a_connector_is_handed_back_as_it_was(state: str, verb: str | None) -> None:
    target = (b"target-state-c", f'{{"state":"PAUSED","state.v2":"{state}"}}'.encode())
    ready = with_workers(target).look(take_over=True)
    assert ready.hand_back_action == verb
    assert ("stop c on its workers" in says(ready)) is (verb is not None)


def test_there_must_be_something_to_take_over() -> None:
    world = with_workers()
    world.configs = []
    with pytest.raises(BadInput, match="Cannot take over c: no such connector"):
        world.look(take_over=True)


def test_a_job_that_only_names_the_connector_has_the_workers_configuration() -> None:
    theirs = {"name": "c", **FILE, "value.converter": "StringConverter"}
    ready = with_workers(config=theirs).look(Job("c", {"name": "c"}), take_over=True)
    assert (ready.config, ready.notes) == (theirs, ())


def test_a_configuration_that_differs_from_the_workers_is_told() -> None:
    ready = with_workers().look(Job("c", {"name": "c", **FILE, "batch.size": "7"}), take_over=True)
    assert (
        ready.notes[0]
        == "The configuration in the job file differs from that on the workers in batch.size; the "
        "job file is used."
    )


def test_a_converter_that_only_the_workers_know_is_told_where_their_connector_is_taken_over() -> (
    None
):
    (note,) = with_workers().look(take_over=True).notes
    assert note.startswith("value.converter is not set: strings are written unconverted")
    assert World().look().notes == ()


def test_brokers_that_do_not_verify_transactions_are_refused_with_the_reason() -> None:
    with pytest.raises(Refused, match=r"older than 3\.6 .*: 1 \(3\.5\).*KIP-890"):
        World(broker=BrokerVersion(1, (3, 5), {24: 3})).look()


def test_brokers_that_take_a_groups_offsets_without_its_generation_are_refused_with_the_proposals_error() -> (
    None
):
    job = Job("c", TRANSFORM)
    with pytest.raises(
        Refused,
        match=r"group metadata commit API, which requires 2\.5 .*has the API versions of 2\.4, without TxnOff",
    ):
        World(broker=BrokerVersion(1, (2, 4), {24: 1, 28: 2, 9: 6})).look(job)
    with pytest.raises(Refused, match=r"older than 3\.6"):
        World(broker=BrokerVersion(1, (2, 4), {24: 1, 28: 2, 9: 6})).look()


def test_a_change_of_the_guarantee_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "check_group_is_free", lambda members: None)
    known = {"t": (1, "delete"), "in": (4, "delete"), "configs": (1, "compact")}
    now = TRANSFORM | {"guarantee": "at-least-once"}
    world = World(known, task_set("c", TRANSFORM, [{}]), named={"config": "configs"})
    ready = world.look(Job("c", now))
    told = "guarantee changes from exactly-once to at-least-once: all tasks are replaced"
    assert next(note for note in ready.notes if "guarantee changes" in note).startswith(told)
    world.configs = task_set("c", now, [{}])
    assert not [note for note in world.look(Job("c", now)).notes if "guarantee changes" in note]


def test_a_broker_that_does_not_tell_is_not_held_against_it() -> None:
    assert World(broker=NotAuthorized("no")).look()


def test_a_dedicated_offsets_topic_is_created_and_the_groups_stands_behind_it() -> None:
    ready = World().look(Job("c", {"name": "c", **FILE, "offsets.storage.topic": "own"}))
    assert (ready.dedicated_offsets_topic, offsets_topic(ready)) == ("own", "own")
    assert "create the topic own with 25 partitions" in says(ready)


def test_a_dedicated_topic_that_is_the_groups_own_is_none() -> None:
    ready = World().look(Job("c", {"name": "c", **FILE, "offsets.storage.topic": "g-offsets"}))
    assert (ready.dedicated_offsets_topic, offsets_topic(ready)) == (None, "g-offsets")


@pytest.mark.parametrize(
    ("topic", "made", "says_"),
    [
        ("g-configs", (2, "compact"), "has 2 partitions; a config topic must have exactly one"),
        ("g-offsets", (25, "delete"), "g-offsets has cleanup.policy=delete"),
        ("g-status", (5, "compact,delete"), "g-status has cleanup.policy=compact,delete"),
    ],
)
def test_topics_that_would_lose_what_is_in_them_are_refused(
    topic: str, made: tuple[int, str], says_: str
) -> None:
    with pytest.raises(Refused, match=says_):
        World({topic: made}).look()


def test_what_cannot_be_overridden_is_among_the_notes() -> None:
    (note,) = (
        World()
        .look(Job("c", {"name": "c", **FILE, "producer.override.transactional.id": "x"}))
        .notes
    )
    assert "cannot be overridden" in note


def test_a_topic_that_nobody_would_create_is_refused() -> None:
    with pytest.raises(
        Refused,
        match="The topic t of c does not exist, and the brokers do not create topics automatically",
    ):
        World(creates="false").look()
    assert World({"t": (1, "delete")}, creates="false").look()


def test_what_librdkafka_does_not_take_is_told_by_javas_name() -> None:
    given = {"producer.override.linger.ms": "99999999999"}
    with pytest.raises(BadInput, match=r"producer\.override\.linger\.ms=99999999999.*0\.\.900000"):
        World().look(Job("c", {"name": "c", **FILE, **given}))


def test_without_exactly_once_the_plan_and_a_note_say_so() -> None:
    ready = World().look(Job("c", {"name": "c", **FILE, "exactly.once.source.support": "disabled"}))
    assert says(ready)[-1].startswith(
        "run c on Spark (local[2]) until it is stopped, at least once"
    )
    assert "at-least-once delivery" in ready.notes[-1]


def test_a_connector_of_workers_is_not_taken_over_without_exactly_once() -> None:
    config = {"name": "c", **FILE, "exactly.once.source.support": "disabled"}
    with pytest.raises(BadInput, match="Cannot take over c without exactly-once"):
        with_workers().look(Job("c", config), take_over=True)


@pytest.mark.parametrize(
    ("more", "says_"),
    [
        (
            {"exactly.once.source.support": "maybe"},
            "Invalid value maybe for configuration exactly.once.source.support",
        ),
        ({"offset.flush.interval.ms": "soon"}, "Not a number of type LONG"),
        (
            {"exactly.once.source.support": "disabled", "exactly.once.support": "required"},
            "This worker does not have exactly-once source support enabled.",
        ),
    ],
)
def test_a_workers_properties_in_a_job_are_validated(more: Mapping[str, str], says_: str) -> None:
    with pytest.raises(BadInput, match=says_):
        World().look(Job("c", {"name": "c", **FILE, **more}))


def test_task_configs_have_the_class_of_their_task() -> None:
    (task,) = World().look().task_configs()
    assert task == {
        "name": "c",
        **FILE,
        "task.class": "org.apache.kafka.connect.file.FileStreamSourceTask",
    }


MANY = {"connector.class": f"{__name__}:Many", "topic": "t", "tasks.max": "2"}


@pytest.fixture
def calls() -> list[str]:
    Many.calls.clear()
    return Many.calls


def with_tasks(existing: int, **more: str) -> PreparedJob:
    """A job of ``Many`` where ``existing`` tasks were run before."""
    config = {"name": "c", **MANY, **more}
    world = World(
        {"g-configs": (1, "compact")}, task_set("c", config, [{}] * existing) if existing else []
    )
    return world.look(Job("c", config))


def test_a_connector_within_tasks_max_is_asked_for_its_tasks_and_stopped_and_nothing_is_told(
    calls: list[str],
) -> None:
    ready = with_tasks(0, wanted="2")
    assert (calls, ready.notes, refusal(ready.tasks_max)) == (
        ["start", "tasks 2", "stop"],
        (),
        None,
    )


@pytest.mark.parametrize(("existing", "fail"), [(0, False), (3, True)])
def test_more_tasks_than_tasks_max_are_known_before_a_start(
    existing: int, fail: bool, calls: list[str]
) -> None:
    ready = with_tasks(existing, wanted="4")
    assert ready.tasks_max is not None
    assert "c has generated 4 tasks, which is greater than 2" in str(refusal(ready.tasks_max))
    assert bool(ready.tasks_max.tasks_failed) is fail
    assert calls[-1] == "stop"


def test_existing_tasks_that_will_run_while_the_connector_fails_are_among_the_notes(
    calls: list[str],
) -> None:
    ready = with_tasks(1, wanted="4")
    (note,) = ready.notes
    assert "c has generated 4 tasks, which is greater than 2" in note
    assert note.endswith("The connector will be FAILED; its previous 1 task will run.")
    assert refusal(ready.tasks_max) is None


def test_too_many_tasks_that_are_tolerated_are_among_the_notes(calls: list[str]) -> None:
    ready = with_tasks(0, wanted="4", **{"tasks.max.enforce": "false"})
    (note,) = ready.notes
    assert "generated 4 tasks, which is greater than 2" in note
    assert refusal(ready.tasks_max) is None


def test_a_connector_whose_start_changes_something_is_not_started_to_be_asked(
    calls: list[str],
) -> None:
    ready = with_tasks(0, wanted="4", creates="a queue")
    assert (calls, ready.tasks_max) == ([], None)
    assert ready.notes == (
        "tasks.max is checked when c is started: its number of tasks is unknown before.",
    )


def test_a_connector_that_tells_the_number_of_its_tasks_is_not_started_to_be_asked(
    calls: list[str],
) -> None:
    ready = with_tasks(0, wanted="4", creates="a queue", foretold="3")
    assert (calls, ready.notes) == ([], ())
    assert "generated 3 tasks, which is greater than 2" in str(refusal(ready.tasks_max))


def test_a_connector_that_fails_when_it_is_asked_is_refused_in_one_line(calls: list[str]) -> None:
    with pytest.raises(
        Refused, match="The connector c failed when it was asked for its tasks"
    ) as failed:
        with_tasks(0, wanted="many\nmore")
    assert (failed.value.code, "\n" in str(failed.value), calls[-1]) == (
        "connector-failed",
        False,
        "stop",
    )
    assert failed.value.why == "ValueError: invalid literal for int() with base 10: 'many\\nmore'"


def test_a_job_says_until_when() -> None:
    job = parse(
        "config: {connector.class: FileStreamSource, file: /in, topic: t}\nuntil: {idle: 5s}",
        Path("c.yaml"),
    )
    assert "until no records arrive for 5 s" in says(World().look(job))[-1]


@pytest.mark.parametrize(
    "master",
    ["local", "local[2]", "local[*]", "local-cluster[2,1,1024]", "yarn", "k8s://https://x:6443"],
)
def test_masters_of_all_kinds_are_taken(master: str) -> None:
    check_master(master, 0.1)


@pytest.mark.parametrize("master", ["", "locl[2]", "spark:/x", "http://x"])
def test_what_is_no_master_is_bad_input(master: str) -> None:
    with pytest.raises(BadInput, match="Invalid Spark master"):
        check_master(master, 0.1)


@pytest.mark.parametrize(("given", "replicas"), [(None, 3), ("1", 1), ("-1", -1)])
def test_the_topic_of_dead_letters_has_the_replicas_that_are_asked_for(
    given: str | None, replicas: int
) -> None:
    made: dict[str, tuple[int, bool]] = {}

    def create(
        topic: str, partitions: int, replicas: int, config: Mapping[str, str], *, exactly: bool
    ) -> None:
        made[topic] = replicas, exactly

    kafka: Any = SimpleNamespace(create_topic=create)
    letters = {"errors.deadletterqueue.topic.name": "dead"}
    if given is not None:
        letters["errors.deadletterqueue.topic.replication.factor"] = given
    ready: Any = SimpleNamespace(
        create={}, dedicated_offsets_topic=None, own_topics={"own": {}, "dead": {}}, config=letters
    )
    clients = cast(RunClients, SimpleNamespace(kafka=kafka, target=kafka))
    for topic in ready.own_topics:
        prepare.create_topic(ready, clients, topic, lambda line: None)
    assert made == {"own": (3, False), "dead": (replicas, given is not None)}


@pytest.mark.parametrize("reads", [{"topics": "in"}, {"topics.regex": "in.*"}])
def test_a_job_with_an_end_whose_input_does_not_exist_is_refused_and_another_waits(
    monkeypatch: pytest.MonkeyPatch, reads: Mapping[str, str]
) -> None:
    monkeypatch.setattr(prepare, "check_group_is_free", lambda members: None)
    config = {**{k: v for k, v in TRANSFORM.items() if k != "topics"}, **reads}
    missing = (
        "The input topic in does not exist"
        if "topics" in reads
        else "No topic matches topics.regex=in.*"
    )
    world = World({"t": (1, "delete")})
    with pytest.raises(Refused) as refused:
        world.look(Job("c", config, Until(idle=5)))
    assert (refused.value.what, refused.value.code) == (missing, "no-topic")
    assert (
        f"{missing}: its records are read once it is created." in world.look(Job("c", config)).notes
    )
    there = World({"t": (1, "delete"), "in": (1, "delete")}).look(Job("c", config, Until(idle=5)))
    assert not any(note.startswith(missing) for note in there.notes)


def test_a_job_that_has_another_input_reads_it_and_names_the_missing_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prepare, "check_group_is_free", lambda members: None)
    ready = World({"t": (1, "delete"), "in": (1, "delete")}).look(
        Job("c", TRANSFORM | {"topics": "in,later"}, Until(idle=5))
    )
    assert (
        "The input topic later does not exist: its records are read once it is created."
        in ready.notes
    )
