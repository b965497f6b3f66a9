from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from connectctl.ops.checks.acls import rules
from connectctl.ops.checks.acls.emit import emit
from connectctl.ops.checks.acls.observe import AclFacts, literal_prefix, observe
from connectctl.ops.checks.acls.principals import parse_principals
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import check
from connectctl.ops.core.unseen import Unseen
from connectctl.ops.kafka.acls import Operation, Resource
from connectctl.ops.kafka.visibility import Complete
from fakes.acl_documents import read
from fakes.acls import FakeAcls, allow
from fakes.check_context import check_context

TOPIC, GROUP, CLUSTER = Resource.TOPIC, Resource.GROUP, Resource.CLUSTER
READ, WRITE, CREATE, DESCRIBE = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DESCRIBE,
)
C, P, A = "User:c", "User:p", "User:a"
SAID = ("consumer=User:c", "producer=User:p", "admin=User:a", "super=User:w", "worker=User:w")
DEAD_LETTERS = {"topics": "in", "errors.deadletterqueue.topic.name": "dead"}
READS = (allow(C, READ, GROUP, "connect-snk"), allow(C, READ, TOPIC, "in"))


@dataclass
class World:
    """A Connect cluster with one sink connector."""

    config: dict[str, str] = field(default_factory=lambda: {"topics": "in"})
    acls: FakeAcls = field(
        default_factory=lambda: FakeAcls([*READS], topics={"in", "__consumer_offsets"})
    )
    other: FakeAcls = field(
        default_factory=lambda: FakeAcls([], bootstrap="other:9092", id="other")
    )
    said: Sequence[str] = SAID

    def connect_groups(self) -> Complete[frozenset[str]]:
        """No other Connect cluster."""
        return Complete(frozenset({"g"}))

    def look(self) -> tuple[AclFacts, tuple[Unseen, ...]]:
        context = check_context(
            Connector("snk", None, {0: None}, self.config, "sink"),
            transactions=self,
            acls=self.acls,
            other_acls=lambda bootstrap, overrides: self.other,
        )
        facts, unseen = observe(context, parse_principals(self.said))
        assert facts is not None
        return facts, unseen

    def said_of_it(self, goal: Goal = Goal.NOW) -> list[tuple[str, str]]:
        facts, unseen = self.look()
        assert unseen == ()
        return [(f.id, f.message) for f in check(rules, facts, goal)]


@pytest.mark.parametrize("goal", list(Goal))
def test_a_sink_needs_its_group_and_its_topics_whatever_the_workers_support(goal: Goal) -> None:
    assert World().said_of_it(goal) == []
    nothing = World(acls=FakeAcls([]))
    message = (
        "User:c, its consumer, lacks Read on Group connect-snk; Read and Describe on Topic in."
    )
    assert nothing.said_of_it(goal) == [("ACL008", message)]


def test_the_group_is_the_one_that_the_consumer_is_given() -> None:
    world = World({"topics": "in", "consumer.override.group.id": "mine"})
    assert world.said_of_it() == [("ACL008", "User:c, its consumer, lacks Read on Group mine.")]


def test_a_group_that_only_workers_can_resolve_is_not_checked_and_that_is_told() -> None:
    _, (unseen,) = World({"topics": "in", "consumer.override.group.id": "${file:x:y}"}).look()
    assert unseen.what == "the permissions of snk on its group"


def test_dead_letters_need_a_producer_and_an_admin_client_that_creates_their_topic() -> None:
    world = World(DEAD_LETTERS)
    assert world.said_of_it() == [
        ("ACL009", "User:p, its producer, lacks Write and Describe on Topic dead."),
        ("ACL009", "User:a, its admin, lacks Describe and Create on Topic dead."),
    ]
    world.acls.acls = [
        *READS,
        allow(P, WRITE, TOPIC, "dead"),
        allow(A, CREATE, CLUSTER, "kafka-cluster"),
    ]
    assert world.said_of_it() == [("ACL009", "User:a, its admin, lacks Describe on Topic dead.")]
    world.acls.topics.add("dead")
    world.acls.acls = [*READS, allow(P, WRITE, TOPIC, "dead"), allow(A, DESCRIBE, TOPIC, "dead")]
    assert world.said_of_it() == []


def test_without_dead_letters_nobody_has_to_say_who_its_producer_is() -> None:
    _, unseen = World(said=("consumer=User:c", "worker=User:w", "super=User:w")).look()
    assert unseen == ()
    _, (told,) = World(DEAD_LETTERS, said=("snk:consumer=User:c",)).look()
    assert told.what == "the permissions of the workers and of the clients of snk"


def test_of_a_pattern_those_topics_are_checked_that_are_there() -> None:
    topics = {"orders.a", "orders.b", "other", "__consumer_offsets"}
    world = World({"topics.regex": r"orders\..*|__.*"}, FakeAcls([READS[0]], topics=topics))
    facts, unseen = world.look()
    (finding,) = check(rules, facts, Goal.NOW)
    assert unseen == ()
    assert (finding.id, finding.severity) == ("ACL010", Severity.WARNING)
    message = (
        "User:c, its consumer, lacks Read on Topic orders.a and orders.b, matched by its "
        "topics.regex."
    )
    assert finding.message == message


def test_a_pattern_that_python_does_not_take_is_told_and_covers_no_topic() -> None:
    facts, (unseen,) = World({"topics.regex": r"\p{Lower}+"}).look()
    assert unseen.what == "the permissions of snk on its topics"
    assert list(check(rules, facts, Goal.NOW)) == []


def test_a_sink_that_reads_elsewhere_needs_its_permissions_there() -> None:
    world = World({"topics": "in", "consumer.override.bootstrap.servers": "other:9092"})
    assert [id for id, _ in world.said_of_it()] == ["ACL008"]
    world.other.acls = [*READS]
    assert world.said_of_it() == []


def test_a_deny_is_told_as_one() -> None:
    world = World(acls=FakeAcls([*READS, allow("User:*", READ, TOPIC, "in", deny=True)]))
    assert [id for id, _ in world.said_of_it()] == ["ACL005"]


@pytest.mark.parametrize("prefixed", [False, True])
@pytest.mark.parametrize(
    "config", [DEAD_LETTERS, {"topics.regex": r"in\.?.*"}, {"topics.regex": "in|out"}]
)
def test_after_what_is_printed_is_applied_nothing_is_missing(
    config: dict[str, str], prefixed: bool
) -> None:
    world = World(config, FakeAcls([], topics={"in", "in.2", "out"}))
    facts, _ = world.look()
    (wanted,) = read(emit(facts, Goal.NOW, "yaml", prefixed=prefixed))
    world.acls.acls = list(wanted.bindings)
    assert world.said_of_it() == []


def test_a_prefix_covers_topics_that_are_made_later_and_says_what_it_covers_besides() -> None:
    world = World({"topics.regex": r"orders\..*"}, FakeAcls([], topics={"orders.a", "orders.b"}))
    text = emit(world.look()[0], Goal.NOW, "kafka-acls", prefixed=True)
    assert "# Needed by the cluster as it is now:" in text
    assert "--operation Read --topic orders. --resource-pattern-type prefixed" in text
    assert (
        r"# snk reads the topics that match orders\..*: it also needs Read on matching topics that are created later."
        in text
    )
    assert "The prefix orders. also covers topics that topics.regex of snk does not match." in text


@pytest.mark.parametrize(
    ("regex", "prefix"),
    [
        (r"orders\..*", "orders."),
        (r"^in-[0-9]+", "in-"),
        ("orders?", "order"),
        (r"a\.?b", "a"),
        ("a|b", ""),
        (".*", ""),
        ("", ""),
        (r"a\d", "a"),
        ("whole", "whole"),
        ("(a)b", ""),
        ("ab{2}", "a"),
    ],
)
def test_what_every_topic_of_a_pattern_begins_with(regex: str, prefix: str) -> None:
    assert literal_prefix(regex) == prefix
