from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import yaml
from connectctl.ops.checks.acls import rules
from connectctl.ops.checks.acls.clusters import ClusterAcls
from connectctl.ops.checks.acls.emit import additions, emit, removal
from connectctl.ops.checks.acls.observe import AclFacts, SourceAccess
from connectctl.ops.checks.acls.principals import CLIENTS, Client
from connectctl.ops.checks.acls.requirements import AclStage
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.rule import check
from connectctl.ops.core.unseen import Unseen
from connectctl.ops.kafka.acls import Acls, Authorizer, Binding, Operation, Pattern, Resource
from fakes.acl_documents import read
from fakes.acls import allow
from hypothesis import given, settings
from hypothesis import strategies as st

SCHEMA = json.loads((Path(__file__).parents[4] / "docs/schema/acl-bindings.json").read_text())
HOME = "b1:9092,b2:9092"
ALL, READ, WRITE, CREATE, _, _, DESCRIBE = list(Operation)[1:8]
TOPIC, ID = Resource.TOPIC, Resource.TRANSACTIONAL_ID


def connector(name: str = "src", ids: int = 2, cluster: str = HOME) -> SourceAccess:
    principals = {Client.PRODUCER: "User:p", Client.CONSUMER: "User:c", Client.ADMIN: "User:a"}
    return SourceAccess(name, ids, principals, dict.fromkeys(CLIENTS, cluster), "g-offsets")


def facts(
    *bindings: Binding, sources: tuple[SourceAccess, ...] = (connector(),), **more: object
) -> AclFacts:
    topics = frozenset({"g-config", "g-offsets", "g-status"})
    cluster = ClusterAcls(HOME, "id", Acls(bindings, Authorizer("", frozenset(), False)), topics)
    internal = tuple(sorted(topics))
    made = AclFacts("g", HOME, {HOME: cluster}, worker="User:w", internal=internal, sources=sources)
    return replace(made, **more)  # type: ignore[arg-type]


WORKER = (
    allow("User:w", ALL, Resource.GROUP, "g"),
    allow("User:w", ALL, TOPIC, "g-", prefixed=True),
)


def commands(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [shlex.split(line) for line in lines]


def test_commands_stand_under_the_support_that_needs_them() -> None:
    text = emit(facts(*WORKER), Goal.ENABLED, "kafka-acls")
    preparing, enabled = (
        text.index(f"# Needed before exactly.once.source.support={s}")
        for s in ("preparing", "enabled")
    )
    assert text.startswith("#!/bin/sh\n")
    assert "Needed by the cluster as it is now" not in text
    assert text.index("--transactional-id connect-cluster-g") in range(preparing, enabled)
    assert text.index("--transactional-id g-src-0 --transactional-id g-src-1") > enabled
    assert "enabled" not in emit(facts(*WORKER), Goal.PREPARING, "kafka-acls")


def test_a_command_gives_one_principal_all_operations_on_all_names_at_once() -> None:
    producer = commands(emit(facts(*WORKER), Goal.ENABLED, "kafka-acls"))[1]
    assert producer[:3] == ["kafka-acls.sh", "--bootstrap-server", HOME]
    assert producer[-10:-4] == [
        "--allow-principal",
        "User:p",
        "--operation",
        "Write",
        "--operation",
        "Describe",
    ]
    assert producer[-4:] == ["--transactional-id", "g-src-0", "--transactional-id", "g-src-1"]


def test_many_names_are_given_in_several_commands() -> None:
    lines = list(additions([allow("User:p", WRITE, ID, f"i{n}") for n in range(120)], HOME))
    assert [line.count("--transactional-id ") for line in lines] == [50, 50, 20]


def test_names_that_a_shell_or_the_tool_would_misread_are_quoted() -> None:
    (line,) = additions([allow("User:CN=a b", WRITE, ID, "g-it's $HOME; rm-0")], HOME)
    assert shlex.split(line)[-1] == "g-it's $HOME; rm-0"
    assert "'User:CN=a b'" in line
    (line,) = additions([allow("User:p", WRITE, ID, "-g-c-0")], HOME)
    assert shlex.split(line)[-1] == "--transactional-id=-g-c-0"


def test_a_prefix_ends_with_its_dash_and_says_what_it_covers_besides() -> None:
    both = facts(
        *WORKER, sources=(connector(), connector("src-1")), groups=frozenset({"g-src", "h"})
    )
    text = emit(both, Goal.ENABLED, "kafka-acls", prefixed=True)
    assert "--transactional-id g-src- --resource-pattern-type prefixed" in text
    assert (
        "The prefix g-src- also covers transactional ids of connector src-1, group g-src; and "
        "those of a" in text
    )
    alone = emit(facts(*WORKER), Goal.ENABLED, "kafka-acls", prefixed=True)
    assert (
        "would also cover the transactional ids of a connector called src-… or a group called "
        "g-src; there is" in alone
    )


def test_what_denies_is_told_in_a_comment_because_nothing_that_is_added_helps() -> None:
    text = emit(
        facts(*WORKER, allow("User:p", WRITE, ID, "g-src-0", deny=True)), Goal.ENABLED, "kafka-acls"
    )
    (told,) = [line for line in text.splitlines() if "Denied; a deny overrides every allow" in line]
    assert told.startswith("# ")
    assert "--remove --force --deny-principal User:p" in told


def test_what_was_not_looked_at_is_told() -> None:
    unseen = (Unseen("the permissions of x", "its principal is unknown"),)
    for form in ("kafka-acls", "yaml"):
        assert "# Not checked: the permissions of x, because its principal" in emit(
            facts(), Goal.NOW, form, unseen=unseen
        )


def test_where_nothing_is_missing_that_is_said() -> None:
    assert "# Nothing is missing.\n" in emit(facts(*WORKER), Goal.NOW, "kafka-acls")
    assert "items: []\n" in emit(facts(*WORKER), Goal.NOW, "yaml")
    without = facts(clusters={HOME: ClusterAcls(HOME, "id", None)})
    assert "# The brokers at b1:9092,b2:9092 have no authorizer" in emit(
        without, Goal.ENABLED, "kafka-acls"
    )


def test_a_binding_that_several_need_is_given_once() -> None:
    same = dict.fromkeys(CLIENTS, "User:w")
    sources = tuple(replace(connector(name), principals=same) for name in ("a", "b"))
    (wanted,) = read(emit(facts(sources=sources), Goal.ENABLED, "yaml"))
    assert len(wanted.bindings) == len(set(wanted.bindings))


def test_every_cluster_has_a_document_and_its_own_commands() -> None:
    other = ClusterAcls("other:9092", "other-id", Acls(()), frozenset({"g-offsets"}))
    two = facts(*WORKER, sources=(connector(cluster="other:9092"),))
    two = replace(two, clusters={**two.clusters, "other:9092": other})
    home, away = read(emit(two, Goal.ENABLED, "yaml"))
    assert [b.principal for b in home.bindings] == ["User:w", "User:w"]
    assert (away.cluster_id, away.bootstrap) == ("other-id", "other:9092")
    assert {line[2] for line in commands(emit(two, Goal.ENABLED, "kafka-acls"))} == {
        HOME,
        "other:9092",
    }


@pytest.mark.parametrize("prefixed", [False, True])
@pytest.mark.parametrize("goal", list(Goal))
def test_after_what_is_printed_is_applied_nothing_is_missing(goal: Goal, prefixed: bool) -> None:
    before = facts()
    (wanted,) = read(emit(before, goal, "yaml", prefixed=prefixed))
    assert list(check(rules, facts(*wanted.bindings), goal)) == []
    assert {s for s, _ in wanted.items} <= set(AclStage)


def test_yaml_keeps_to_its_schema() -> None:
    for document in yaml.safe_load_all(emit(facts(), Goal.ENABLED, "yaml", prefixed=True)):
        jsonschema.validate(document, SCHEMA)


@settings(deadline=None)
@given(st.text(min_size=1), st.text(min_size=1))
def test_names_survive_yaml_and_the_shell(group: str, name: str) -> None:
    strange = replace(facts(sources=(connector(name, ids=1),)), group_id=group)
    (wanted,) = read(emit(strange, Goal.ENABLED, "yaml"))
    id_ = f"{group}-{name}-0"
    assert id_ in {b.name for b in wanted.bindings if b.resource is ID}
    (line,) = additions([allow("User:p", WRITE, ID, id_)], HOME)
    assert shlex.split(line)[-1].removeprefix("--transactional-id=") == id_


def test_a_removal_names_the_binding_exactly() -> None:
    binding = Binding(
        TOPIC,
        "t",
        Pattern.PREFIXED,
        "User:*",
        "10.0.0.1",
        Operation.ALL,
        allow("a:b", ALL, TOPIC, "t", deny=True).permission,
    )
    assert removal(binding, HOME).endswith(
        "--remove --force --deny-principal 'User:*' --deny-host 10.0.0.1 --operation All --topic t "
        "--resource-pattern-type prefixed"
    )
