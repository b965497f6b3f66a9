"""``preflight --self`` on a broker with an authorizer: what it says of one's own rights is what the
brokers then do.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from connectctl.ops.clients.kafka_protocol.own_rights import OwnRights
from connectctl.ops.kafka.acls import ANY, Binding, Operation, Pattern, Permission, Resource
from connectctl.ops.kafka.visibility import Reason
from fakes.acls import allow
from live.grants import Grants
from live.real import FILE_SOURCE, connectctl, connector, create_topic, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
PASSWORD = "correct-horse-battery"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
ME, TOPIC, MISSING, GROUP, ID = "User:me", "self-there", "self-missing", "self-group", "self-id-0"
OP, R = Operation, Resource
_KINDS = {"--topic": R.TOPIC, "--group": R.GROUP, "--transactional-id": R.TRANSACTIONAL_ID}


@pytest.fixture(scope="module")
def guarded(state_home: Path) -> Iterator[Sandbox]:
    """A broker with an authorizer, a worker that is a super user, and one who has no right at
    all.
    """
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    spec = SandboxSpec(
        name="self",
        support="enabled",
        workers=1,
        extra_listeners={"SECURED": "SASL_PLAINTEXT"},
        extra_broker_properties={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secured.plain.sasl.jaas.config": f'{LOGIN} user_me="{PASSWORD}";',
        },
    )
    yield up(spec)
    down("self")


@pytest.fixture(scope="module")
def grants(guarded: Sandbox) -> Iterator[Grants]:
    found = Grants(guarded)
    yield found
    found.close()


def client(guarded: Sandbox) -> dict[str, Any]:
    return {
        "bootstrap.servers": guarded.listeners["SECURED"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": PASSWORD,
    }


@pytest.fixture
def mine(guarded: Sandbox) -> Iterator[OwnRights]:
    rights = OwnRights(client(guarded), timeout=120)
    yield rights
    rights.close()


def test_brokers_tell_exactly_what_is_allowed_and_nothing_is_changed_by_asking(
    guarded: Sandbox, grants: Grants, mine: OwnRights
) -> None:
    create_topic(guarded.bootstrap_servers, TOPIC, 1, policy="delete")
    nothing: frozenset[Operation] = frozenset()
    assert mine.on_cluster().operations == nothing
    assert {a.operations for a in mine.on_topics([TOPIC, MISSING]).values()} == {nothing}
    assert mine.on_groups([GROUP])[GROUP].operations == nothing
    assert (mine.describes([ID]), mine.creates([MISSING])) == ({ID: False}, {MISSING: False})

    for resource in (R.TOPIC, R.TRANSACTIONAL_ID):
        assert {gap.reason for gap in mine.unseen(resource)} == {Reason.NOT_AUTHORIZED}

    deny = Binding(R.TOPIC, TOPIC, Pattern.LITERAL, ME, ANY, OP.ALTER, Permission.DENY)
    given = [
        allow(ME, OP.READ, R.TOPIC, TOPIC),
        allow(ME, OP.ALL, R.TOPIC, TOPIC),
        deny,
        allow(ME, OP.DESCRIBE, R.TOPIC, MISSING),
        allow(ME, OP.CREATE, R.TOPIC, MISSING),
        allow(ME, OP.READ, R.GROUP, GROUP),
        allow(ME, OP.DESCRIBE, R.TRANSACTIONAL_ID, ID),
        allow(ME, OP.ALTER, R.CLUSTER, "kafka-cluster"),
    ]
    with grants.given(*given):
        eventually(lambda: mine.describes([ID])[ID])
        operations = mine.on_topics([TOPIC])[TOPIC].operations
        assert operations is not None
        assert {OP.READ, OP.WRITE, OP.DESCRIBE, OP.DESCRIBE_CONFIGS, OP.CREATE} <= operations
        assert OP.ALTER not in operations
        missing = mine.on_topics([MISSING])[MISSING]
        assert (missing.operations, missing.why) == (None, "UNKNOWN_TOPIC_OR_PARTITION")
        assert mine.creates([MISSING]) == {MISSING: True}
        assert MISSING not in grants.reads.topic_names()
        assert mine.on_groups([GROUP])[GROUP].operations == frozenset({OP.READ, OP.DESCRIBE})
        assert mine.on_cluster().operations == frozenset({OP.ALTER, OP.DESCRIBE})
    every = [
        allow(ME, OP.DESCRIBE, R.TRANSACTIONAL_ID, ANY),
        allow(ME, OP.DESCRIBE, R.CLUSTER, "kafka-cluster"),
    ]
    with grants.given(*every, allow(ME, OP.DESCRIBE_CONFIGS, R.CLUSTER, "kafka-cluster")):
        fresh = OwnRights(client(guarded), timeout=120)
        eventually(lambda: fresh.unseen(R.TRANSACTIONAL_ID) == ())
        fresh.close()


def _bindings(script: str) -> list[Binding]:
    """What the printed kafka-acls.sh commands add."""
    found = []
    for line in script.splitlines():
        if line.startswith("#"):
            continue
        words = shlex.split(
            line.replace('${CLIENT_PROPERTIES:+--command-config "$CLIENT_PROPERTIES"}', "")
        )
        pairs = list(pairwise(words))
        operations = [
            OP("_".join(_parts(value)).upper()) for word, value in pairs if word == "--operation"
        ]
        names = [(_KINDS[word], value) for word, value in pairs if word in _KINDS]
        names += [(R.CLUSTER, "kafka-cluster")] if "--cluster" in words else []
        (principal,) = [value for word, value in pairs if word == "--allow-principal"]
        found += [
            allow(principal, operation, kind, name)
            for operation in operations
            for kind, name in names
        ]
    return found


def _parts(word: str) -> list[str]:
    """``DescribeConfigs`` as its words."""
    return "".join(f" {c}" if c.isupper() else c for c in word).split()


def test_commands_work_as_it_is_said_and_with_what_is_emitted_they_work_whole(
    guarded: Sandbox, grants: Grants, tmp_path: Path
) -> None:
    (path := tmp_path / "in.txt").write_text("one\n")
    properties = client(guarded)
    entry = {
        "bootstrap_servers": properties.pop("bootstrap.servers"),
        "group_id": guarded.group_id,
        "topics": dict(guarded.topics),
        "client": properties,
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"contexts": {"me": entry}}))
    config = ("--config", str(tmp_path / "config.yaml"))
    commands = ("cluster show", "connectors list", "offsets show", "offsets backup", "tasks check")
    asked = [part for command in commands for part in ("--command", command)]
    with connector(
        guarded, "self-lines", {"connector.class": FILE_SOURCE, "topic": TOPIC, "file": str(path)}
    ) as rest:
        eventually(lambda: rest.offsets("self-lines"))
        before = connectctl(*config, "preflight", "--self", *asked, "-o", "json")
        assert before.code == 1, before.out + before.err
        assert {each["works"] for each in before.json["commands"]} == {"refused"}
        refused = connectctl(*config, "offsets", "show")
        assert refused.code != 0, refused.out

        added: list[Binding] = []
        try:
            # which topics and ids connectors have shows only once the config topic can be read
            for _ in range(2):
                emitted = connectctl(*config, "preflight", "--self", *asked, "--emit", "kafka-acls")
                assert emitted.code == 0, emitted.err
                assert PASSWORD not in emitted.out
                grants.add(more := _bindings(emitted.out))
                added += more
            after = connectctl(*config, "preflight", "--self", *asked, "-o", "json")
            assert after.code == 0, after.out + after.err
            assert {each["works"] for each in after.json["commands"]} == {"whole"}, after.out
            shown = connectctl(*config, "offsets", "show", "self-lines", "-o", "json")
            assert (shown.code, len(shown.json["connectors"][0]["offsets"])) == (0, 1), shown.err
            for command in ("cluster show", "connectors list", "tasks check"):
                ran = connectctl(*config, *command.split())
                assert (ran.code, "self-lines" in ran.out) == (0, True), ran.out + ran.err
            backup = connectctl(
                *config, "offsets", "backup", "self-lines", "--out", str(tmp_path / "backup.jsonl")
            )
            assert backup.code == 0, backup.err
        finally:
            grants.remove(added)
