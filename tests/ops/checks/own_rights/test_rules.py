"""What the brokers tell of a principal's rights, made into what its commands can do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from connectctl.ops.checks.own_rights import observe, rules
from connectctl.ops.checks.own_rights.rules import (
    CommandVerdict,
    OfCommand,
    ResourceNames,
    RightState,
    commands,
)
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.rights import COMMANDS, Name
from connectctl.ops.kafka.acls import ANY, Binding, Operation, Pattern, Permission, Resource
from fakes.kafkareads import FakeKafka, connect_group, records
from fakes.rights import ME, FakeRights

TOPICS = frozenset(
    {"connect-run-status", "cfg", "off", "sta", "own", "target", "__transaction_state"}
)
PLACES = ResourceNames(
    {
        Name.GROUP: ("connect",),
        Name.LEADER: ("connect-cluster-connect",),
        Name.CHANGES: ("connectctl-offsets-connect",),
        Name.LOCK: ("connectctl-lock-connect",),
        Name.LOG: ("__transaction_state",),
        Name.GROUP_LOG: ("__consumer_offsets",),
        Name.CONFIG: ("cfg",),
        Name.OFFSETS: ("off",),
        Name.STATUS: ("sta",),
        Name.DEDICATED: ("own",),
        Name.TARGETS: ("target",),
        Name.TASKS: ("connect-c-0",),
        Name.PRESENCE: ("connectctl-run-connect-c",),
        Name.RUN_STATUS: ("connect-run-status",),
    },
    named=True,
    exist=TOPICS,
)
OP, R = Operation, Resource


def allow(operation: Operation, resource: Resource, name: str = ANY) -> Binding:
    return Binding(resource, name, Pattern.LITERAL, ME, ANY, operation, Permission.ALLOW)


EVERYTHING = tuple(
    allow(OP.ALL, resource) for resource in (R.TOPIC, R.GROUP, R.CLUSTER, R.TRANSACTIONAL_ID)
)


def verdicts(rights: FakeRights, places: ResourceNames = PLACES) -> dict[str, CommandVerdict]:
    return {each.command: each.verdict for each in commands(rights, rights, places)}


def one(rights: FakeRights, command: str, places: ResourceNames = PLACES) -> OfCommand:
    (found,) = commands(rights, rights, places, [command])
    return found


def missing(found: OfCommand) -> set[str]:
    return {str(each.right) for each in found.of(RightState.MISSING)}


def test_a_principal_with_every_right_can_do_everything_but_writing_with_an_id_is_not_proven() -> (
    None
):
    rights = FakeRights(EVERYTHING, TOPICS)
    found = verdicts(rights)
    assert set(found.values()) == {CommandVerdict.WHOLE, CommandVerdict.UNKNOWN}
    assert {
        found[c] for c in ("cluster show", "offsets backup", "transactions hanging", "preflight")
    } == {CommandVerdict.WHOLE}
    unknown = {str(each.right) for each in one(rights, "offsets set").of(RightState.UNKNOWN)}
    ids = ("connect-c-0", "connectctl-offsets-connect")
    assert unknown == {f"Write on TransactionalId {id_}" for id_ in ids}


def test_a_principal_without_any_right_is_refused_and_never_told_that_it_works() -> None:
    found = verdicts(FakeRights((), TOPICS))
    useful = {command for command, needs in COMMANDS.items() if needs}
    assert {
        command
        for command in useful
        if found[command] in (CommandVerdict.WHOLE, CommandVerdict.UNKNOWN)
    } == set()
    assert {found[command] for command in COMMANDS.keys() - useful} == {CommandVerdict.WHOLE}


def test_brokers_without_an_authorizer_allow_everything() -> None:
    found = verdicts(FakeRights((), TOPICS, secured=False))
    assert set(found.values()) == {CommandVerdict.WHOLE}


@pytest.mark.parametrize("resource", [R.TOPIC, R.GROUP, R.TRANSACTIONAL_ID])
def test_a_kind_of_right_taken_away_is_named(resource: Resource) -> None:
    left = tuple(binding for binding in EVERYTHING if binding.resource is not resource)
    # An audit asks for a group only where there are sinks or transforms.
    places = replace(PLACES, names={**PLACES.names, Name.SINK_GROUPS: ("connect-sink",)})
    found = {each.command: each for each in commands(*(FakeRights(left, TOPICS),) * 2, places)}
    for command, needs in COMMANDS.items():
        # Groups that may not be described alone are listed for whoever may describe the cluster.
        about = [
            n
            for n in needs
            if n.resource is resource and n.name is not Name.ANY_GROUP and n.when == "always"
        ]
        if about:
            assert found[command].verdict in (CommandVerdict.PART, CommandVerdict.REFUSED), command
            assert all(
                each.right.resource is resource for each in found[command].of(RightState.MISSING)
            )


def test_a_denial_counts_and_hides_what_a_listing_leaves_out() -> None:
    denied = replace(allow(OP.DESCRIBE, R.TRANSACTIONAL_ID, "other"), permission=Permission.DENY)
    listing = one(FakeRights((*EVERYTHING, denied), TOPICS), "transactions list")
    assert missing(listing) == {"Describe on TransactionalId *"}
    read = replace(allow(OP.READ, R.TOPIC, "off"), permission=Permission.DENY)
    shown = one(FakeRights((*EVERYTHING, read), TOPICS), "offsets show")
    assert (shown.verdict, missing(shown)) == (CommandVerdict.REFUSED, {"Read on Topic off"})


def test_what_a_listing_shows_is_not_known_without_seeing_the_denials_and_missing_without_the_right() -> (
    None
):
    some = (allow(OP.DESCRIBE, R.TRANSACTIONAL_ID), allow(OP.DESCRIBE, R.GROUP))
    unproven = one(FakeRights(some), "transactions list").of(RightState.UNKNOWN)
    assert {str(each.right) for each in unproven} == {
        "Describe on TransactionalId *",
        "Describe on Group *",
    }
    prefixed = Binding(
        R.TRANSACTIONAL_ID, "connect-", Pattern.PREFIXED, ME, ANY, OP.DESCRIBE, Permission.ALLOW
    )
    found = one(FakeRights((prefixed,)), "transactions list")
    assert missing(found) >= {"Describe on TransactionalId *", "Describe on Group *"}


def test_rights_on_names_that_could_not_be_found_out_are_not_known() -> None:
    names: dict[Name, tuple[str, ...]] = {
        n: value for n, value in PLACES.names.items() if n is not Name.OFFSETS
    }
    lost = replace(PLACES, names=names, lost={Name.OFFSETS: "No topic looks like it"}, named=False)
    found = one(FakeRights(EVERYTHING, TOPICS), "offsets show", lost)
    assert (found.verdict, found.of(RightState.UNKNOWN)[0].why) == (
        CommandVerdict.UNKNOWN,
        "No topic looks like it",
    )


def test_a_topic_that_is_to_be_created_needs_create_on_it_or_on_the_cluster() -> None:
    places = replace(PLACES, exist=TOPICS - {"own"})
    there = TOPICS - {"own"}
    topics = tuple(
        allow(op, R.TOPIC) for op in (OP.READ, OP.WRITE, OP.DESCRIBE, OP.DESCRIBE_CONFIGS)
    )
    rest = (*topics, allow(OP.ALL, R.GROUP), allow(OP.ALL, R.TRANSACTIONAL_ID))
    assert "Create on Topic own" in missing(one(FakeRights(rest, there), "offsets merge", places))
    for more in (allow(OP.CREATE, R.TOPIC, "own"), allow(OP.CREATE, R.CLUSTER)):
        assert "Create on Topic own" not in missing(
            one(FakeRights((*rest, more), there), "offsets merge", places)
        )


def test_who_may_act_as_a_broker_may_end_transactions() -> None:
    acting = (*EVERYTHING[:2], EVERYTHING[3], allow(OP.CLUSTER_ACTION, R.CLUSTER))
    assert one(FakeRights(acting, TOPICS), "transactions commit").verdict is CommandVerdict.WHOLE
    assert missing(
        one(FakeRights((*EVERYTHING[:2], EVERYTHING[3]), TOPICS), "transactions commit")
    ) == {"Alter on Cluster kafka-cluster"}


def test_findings_name_the_commands_and_what_is_emitted_are_the_missing_rights() -> None:
    left = tuple(binding for binding in EVERYTHING if binding.resource is not R.GROUP)
    left += (allow(OP.READ, R.GROUP, "connectctl-lock-connect"),)
    found = commands(
        *(FakeRights(left, TOPICS),) * 2, PLACES, ["cluster show", "offsets show", "offsets set"]
    )
    told = list(rules.findings(found))
    assert [(f.id, f.severity.value, f.subject) for f in told] == [
        ("RIGHT001", "error", "Describe on Group connect"),
        ("RIGHT001", "warning", "Describe on Group connectctl-run-connect-c"),
        ("RIGHT002", "info", "Write on TransactionalId connect-c-0"),
        ("RIGHT002", "info", "Write on TransactionalId connectctl-offsets-connect"),
    ]
    assert told[0].message == "Refused without it: cluster show, offsets show, offsets set."
    lines = list(rules.emitted(found, ME, "fake:9092"))
    run = [line for line in lines if not line.startswith("#")]
    assert len(run) == 1
    assert (
        "--allow-principal User:me --operation Describe --group connect --group "
        "connectctl-run-connect-c" in run[0]
    )
    assert any(line.startswith("# kafka-acls.sh") and "--operation Write" in line for line in lines)


# ---------------------------------------------------------------------------------------- the names


def cluster() -> FakeKafka:
    source = {"connector.class": "x.Source", "topic": "target", "offsets.storage.topic": "own"}
    return FakeKafka(
        records={
            "cfg": records(
                ("connector-c", {"properties": source}),
                ("task-c-0", {"properties": {}}),
                ("task-c-1", {"properties": {}}),
                ("commit-c", {"tasks": 2}),
                ("connector-s", {"properties": {"connector.class": "x.Sink", "topics": "t"}}),
            ),
            "off": [],
            "sta": [],
        }
    )


def test_the_names_are_those_of_the_cluster() -> None:
    named: dict[str, str | None] = {"config": "cfg", "offsets": "off", "status": "sta"}
    places = observe.observe(cluster(), None, connect_group("connect", one=[("c", 0)]), named, [])
    assert places.names[Name.TASKS] == ("connect-c-0", "connect-c-1")
    assert (places.names[Name.DEDICATED], places.names[Name.TARGETS]) == (("own",), ("target",))
    assert (places.lost, places.named) == ({}, True)
    with pytest.raises(BadInput, match="Connector not found: z"):
        observe.observe(cluster(), None, connect_group("connect"), named, ["z"])


def test_a_transform_writes_to_its_output_with_the_ids_of_its_tasks_and_reads_in_its_group() -> (
    None
):
    kafka = cluster()
    config = {"connector.class": "shouting:Shout", "topics": "in", "topic": "out"}
    kafka.records["cfg"] += records(
        ("connector-t", {"properties": config}), ("commit-t", {"tasks": 2})
    )
    java = {"connector.class": "org.x.Copy", "topics": "in2", "topic": "no"}
    kafka.records["cfg"] += records(("connector-j", {"properties": java}))
    named: dict[str, str | None] = {"config": "cfg", "offsets": "off", "status": "sta"}
    places = observe.observe(
        kafka, None, connect_group("connect", one=[("c", 0)]), named, ["t", "j"]
    )
    assert places.names[Name.TASKS] == ("connect-t-0", "connect-t-1")
    assert places.names[Name.TARGETS] == ("out",)
    assert places.names[Name.PRESENCE] == ("connectctl-run-connect-t",)
    assert places.names[Name.SINK_GROUPS] == ("connect-j", "connect-t")
    found = one(
        FakeRights((), TOPICS), "run job", replace(PLACES, names={**PLACES.names, **places.names})
    )
    assert missing(found) >= {
        "Read on Group connect-t",
        "Read on Topic in",
        "Write on Topic out",
        "Describe on TransactionalId connect-t-1",
        "Write on TransactionalId connect-t-1",
    }


def test_an_archive_writes_its_manifest_with_the_ids_of_its_tasks_and_sinks_write_dead_letters() -> (
    None
):
    kafka = cluster()
    config = {
        "connector.class": "ParquetArchive",
        "topics": "in",
        "errors.deadletterqueue.topic.name": "bad",
    }
    kafka.records["cfg"] += records(
        ("connector-a", {"properties": config}), ("commit-a", {"tasks": 2})
    )
    kafka.records["bad"] = []
    plain = {"connector.class": "FileStreamSink", "topics": "in2"}
    kafka.records["cfg"] += records(
        ("connector-f", {"properties": plain}), ("commit-f", {"tasks": 1})
    )
    named: dict[str, str | None] = {"config": "cfg", "offsets": "off", "status": "sta"}
    places = observe.observe(
        kafka, None, connect_group("connect", one=[("c", 0)]), named, ["a", "f"]
    )
    assert places.names[Name.TASKS] == ("connect-a-0", "connect-a-1")
    assert places.names[Name.SINK_OUTPUTS] == ("a-archive", "bad")
    assert places.names[Name.PRESENCE] == ("connectctl-run-connect-a", "connectctl-run-connect-f")
    here = replace(PLACES, names={**PLACES.names, **places.names}, exist=PLACES.exist | {"bad"})
    lacks = missing(one(FakeRights((), TOPICS), "run job", here))
    assert lacks >= {
        "Describe on Topic a-archive",
        "Write on Topic a-archive",
        "Create on Topic a-archive",
        "Read on Topic a-archive",
        "Write on Topic bad",
        "Write on TransactionalId connect-a-1",
    }
    assert "Create on Topic bad" not in lacks
    assert missing(one(FakeRights((), TOPICS), "audit", here)) >= {"Read on Topic a-archive"}


def test_names_that_may_not_be_seen_are_lost_with_the_reason() -> None:
    kafka = cluster()
    kafka.forbidden = {"cfg"}
    named: dict[str, str | None] = {"config": "cfg", "offsets": None, "status": "sta"}
    places = observe.observe(kafka, None, connect_group("connect", one=[("c", 0)]), named, [])
    assert set(places.lost) >= {Name.TASKS, Name.TARGETS, Name.DEDICATED}
    assert "Not allowed to read" in places.lost[Name.TASKS]
    assert places.names[Name.CONFIG] == ("cfg",)
