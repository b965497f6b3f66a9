"""A principal that may not see everything, on a broker with an authorizer: what is not seen is
never said not to be there.

One principal has every right that the commands here need, and loses one at a time. The truth is
what a super user sees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.kafka.acls import Operation, Resource
from connectctl.ops.kafka.visibility import Complete, Partial
from fakes.acls import allow
from live.grants import Grants
from live.offsetchanges import VERIFIABLE
from live.real import Ran, connectctl, create_topic, eventually, workers, write, write_uncommitted

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORD = "correct-horse-battery"
SEER, NOBODY = "User:seer", "User:nobody"
DESCRIBE, READ, ALTER, CONFIGS = (
    Operation.DESCRIBE,
    Operation.READ,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
)
TOPIC, GROUP, CLUSTER, ID = (
    Resource.TOPIC,
    Resource.GROUP,
    Resource.CLUSTER,
    Resource.TRANSACTIONAL_ID,
)
LOG = "__transaction_state"
OWN = "sight-own-offsets"
"""The dedicated offsets topic of the connector ``apart``."""


@pytest.fixture(scope="module")
def guarded(state_home: Path) -> Iterator[Sandbox]:
    """A broker with an authorizer, a worker that is a super user, a connector that runs and one
    with offsets apart.
    """
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    passwords = " ".join(f'user_{user}="{PASSWORD}"' for user in ("seer", "nobody"))
    spec = SandboxSpec(
        name="sight",
        workers=1,
        support="enabled",
        extra_listeners={"SECURED": "SASL_PLAINTEXT"},
        extra_broker_properties={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secured.plain.sasl.jaas.config": f"{LOGIN} {passwords};",
        },
    )
    sandbox = up(spec)
    create_topic(sandbox.bootstrap_servers, OWN, 1)
    rest = workers(sandbox)
    rest.create("nums", VERIFIABLE | {"topic": "nums"})
    rest.create("apart", VERIFIABLE | {"topic": "apart", "offsets.storage.topic": OWN}, "STOPPED")
    write(sandbox.bootstrap_servers, OWN, ('["apart",{"id":0}]', {"seqno": 41}))
    eventually(lambda: rest.offsets("nums"))
    yield sandbox
    down("sight")


@pytest.fixture(scope="module")
def grants(guarded: Sandbox) -> Iterator[Grants]:
    found = Grants(guarded)
    found.add(RIGHTS.values())
    yield found
    found.close()


RIGHTS = {
    "topics": allow(SEER, Operation.ALL, TOPIC, "*"),
    "group": allow(SEER, Operation.ALL, GROUP, "*"),
    "cluster": allow(SEER, Operation.ALL, CLUSTER, "kafka-cluster"),
    "ids": allow(SEER, Operation.ALL, ID, "*"),
}
"""All that there is to see, and to do."""


@dataclass
class Seer:
    """The principal, with and without rights."""

    guarded: Sandbox
    grants: Grants
    directory: Path

    def client(self, user: str = "seer") -> dict[str, str]:
        return {
            "bootstrap.servers": self.guarded.listeners["SECURED"],
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORD,
        }

    def runs(self, *words: str, user: str = "seer", stdin: str | None = None) -> Ran:
        client = {
            n: v
            for n, v in self.client(user).items()
            if not n.startswith(("bootstrap", "sasl.password"))
        }
        (self.directory / "password").write_text(PASSWORD)
        client_ = client | {"sasl.password": {"file": str(self.directory / "password")}}
        context = {
            "bootstrap_servers": self.guarded.listeners["SECURED"],
            "group_id": self.guarded.group_id,
            "topics": self.guarded.topics,
            "client": client_,
        }
        config = self.directory / "config.yaml"
        config.write_text(json.dumps({"current": "c", "contexts": {"c": context}}))
        return connectctl("--config", str(config), "--timeout", "20", *words, stdin=stdin)

    @contextmanager
    def denied(self, operation: Operation, resource: Resource, name: str) -> Iterator[None]:
        """Without one right: a denial wins over every allowance."""
        with self.grants.given(allow(SEER, operation, resource, name, deny=True)):
            yield


@pytest.fixture
def seer(guarded: Sandbox, grants: Grants, tmp_path: Path) -> Seer:
    return Seer(guarded, grants, tmp_path)


def told(ran: Ran, code: int, *words: str) -> str:
    """What a run said, if it ended with this code and said all of the words."""
    said = ran.out + ran.err
    assert ran.code == code, said
    assert [word for word in words if word not in said] == [], said
    assert "Traceback" not in said
    return said


# ------------------------------------------------------------------------------------- transactions


@contextmanager
def alive(seer: Seer, id_: str, topic: str) -> Iterator[Producer]:
    """A transaction with five records that its producer is about to commit."""
    create_topic(seer.guarded.bootstrap_servers, topic, 1, "delete")
    yield write_uncommitted(
        seer.guarded.bootstrap_servers, topic, id_, *((None, str(n)) for n in range(5))
    )


def committed(seer: Seer, topic: str) -> int:
    """How many records a reader of committed records gets."""
    client = {
        "bootstrap.servers": seer.guarded.bootstrap_servers,
        "group.id": "x",
        "enable.partition.eof": True,
    }
    consumer = Consumer(
        client | {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    count = 0
    while eventually(lambda: consumer.poll(1)).error() is None:
        count += 1
    consumer.close()
    return count


def test_a_live_transaction_that_is_not_seen_is_not_ended_and_its_producer_commits_it(
    seer: Seer,
) -> None:
    where = ("--topic", "sight-alive", "--partition", "0")
    with (
        alive(seer, "sight-hidden-0", "sight-alive") as producer,
        seer.denied(DESCRIBE, ID, "sight-hidden-0"),
        seer.denied(READ, TOPIC, LOG),
    ):
        found = seer.runs("transactions", "hanging", "--topic", "sight-alive", "-o", "json")
        assert (found.code, found.json["hanging"], len(found.json["notProven"])) == (1, [], 1)
        assert {"TXN010", "SIGHT001"} <= {finding["id"] for finding in found.json["findings"]}
        told(
            seer.runs("transactions", "hanging", "--topic", "sight-alive"),
            1,
            f"Read on Topic {LOG}",
            "Nothing is proven",
        )
        told(
            seer.runs("transactions", "abort", *where, "--yes"),
            4,
            f"Read on Topic {LOG}",
            "not proven to hang",
        )
        told(seer.runs("transactions", "commit", *where, "--yes"), 4, f"Read on Topic {LOG}")
        assert "(hangs)" not in seer.runs("transactions", "lag", "--topic", "sight-alive").out
        producer.commit_transaction(30)
    assert committed(seer, "sight-alive") == 5


def test_the_log_shows_that_a_transaction_lives_whose_id_is_not_seen(seer: Seer) -> None:
    with (
        alive(seer, "sight-hidden-1", "sight-logged") as producer,
        seer.denied(DESCRIBE, ID, "sight-hidden-1"),
    ):
        told(
            seer.runs("transactions", "hanging", "--topic", "sight-logged"),
            0,
            "Nothing hangs on 1 partitions",
        )
        told(
            seer.runs(
                "transactions", "abort", "--topic", "sight-logged", "--partition", "0", "--yes"
            ),
            4,
        )
        producer.commit_transaction(30)
    assert committed(seer, "sight-logged") == 5


def test_sight_of_all_ids_is_proven_by_the_acls_and_lost_with_any_of_them(seer: Seer) -> None:
    calls = TransactionClient(seer.client(), timeout=120)
    try:
        assert isinstance(calls.listed(), Complete)
        assert isinstance(calls.all_topic_partitions(), Complete)
        assert isinstance(calls.connect_groups(), Complete)
    finally:
        calls.close()
    for lacking in (
        allow(SEER, DESCRIBE, ID, "some-one-id", deny=True),
        allow(SEER, DESCRIBE, ID, "some-prefix-", prefixed=True, deny=True),
        allow(SEER, DESCRIBE, CLUSTER, "kafka-cluster", deny=True),
        allow(SEER, CONFIGS, CLUSTER, "kafka-cluster", deny=True),
    ):
        with seer.grants.given(lacking):
            calls = TransactionClient(seer.client(), timeout=120)
            listed = calls.listed()
            assert isinstance(listed, Partial), lacking
            assert str(lacking.operation.word) in str(listed.gaps[0].right)
            calls.close()
    # What others may not, and what a filter leaves out, is no concern.
    for harmless in (
        allow("User:other", DESCRIBE, ID, "some-one-id", deny=True),
        allow(SEER, READ, ID, "x", deny=True),
    ):
        with seer.grants.given(harmless):
            calls = TransactionClient(seer.client(), timeout=120)
            assert isinstance(calls.listed(), Complete), harmless
            calls.close()


def test_ids_that_are_not_seen_are_told_in_lists(seer: Seer) -> None:
    group = seer.guarded.group_id
    with seer.denied(DESCRIBE, ID, f"{group}-nums-0"):
        told(
            seer.runs("transactions", "list"),
            0,
            "SIGHT001",
            f"Describe on TransactionalId {group}-nums-0",
        )
        told(seer.runs("transactions", "list", "nums"), 5, "Describe on TransactionalId")
        told(
            seer.runs("fence", "--prefix", f"{group}-nums-", "--yes"),
            5,
            "Describe on TransactionalId",
        )
        told(
            seer.runs("transactions", "show", f"{group}-nums-0"),
            5,
            f"Describe on TransactionalId {group}-nums-0",
        )


def test_a_topic_that_is_not_seen_is_not_searched_and_not_said_to_be_missing(seer: Seer) -> None:
    with seer.denied(DESCRIBE, TOPIC, "nums"):
        for words in (
            ("transactions", "hanging", "--topic", "nums"),
            ("transactions", "lag", "--topic", "nums"),
        ):
            told(seer.runs(*words), 5, "Describe on Topic nums")
        told(seer.runs("transactions", "hanging"), 1, "SIGHT001", "Describe on Topic nums")
        create_topic(seer.guarded.bootstrap_servers, "sight-other", 1, "delete")
        told(seer.runs("transactions", "hanging", "--topic", "sight-other"), 0, "Nothing hangs")
        told(seer.runs("audit", "nums", "--sequence", "$.seqno"), 5, "Describe on Topic nums")


# ---------------------------------------------------------------------------------------- the group


OFFSETS = json.dumps({"offsets": [{"partition": {"id": 0}, "offset": {"seqno": 1}}]})
CHANGES = (
    ("fence", "nums", "--yes"),
    ("fence", "--transactional-id", "sight-nobody", "--yes"),
    ("offsets", "set", "nums", "-f", "-", "--yes"),
    ("offsets", "reset", "nums", "--yes"),
    ("connectors", "stop", "nums", "--yes"),
    ("connectors", "restart", "nums", "--yes"),
)
READS = (
    ("cluster", "show"),
    ("connectors", "list"),
    ("connectors", "show", "nums"),
    ("offsets", "show"),
    ("tasks", "check"),
    ("preflight",),
    ("upgrade", "status"),
)


@pytest.mark.parametrize("words", [*CHANGES, *READS], ids=lambda words: " ".join(words[:2]))
def test_a_group_that_is_not_seen_is_not_called_dead(seer: Seer, words: tuple[str, ...]) -> None:
    before = workers(seer.guarded).state("nums")
    with seer.denied(DESCRIBE, GROUP, seer.guarded.group_id):
        told(seer.runs(*words, stdin=OFFSETS), 5, f"Describe on Group {seer.guarded.group_id}")
    assert workers(seer.guarded).state("nums") == before


def test_transactions_are_listed_without_their_owners_where_the_group_is_not_seen(
    seer: Seer,
) -> None:
    with seer.denied(DESCRIBE, GROUP, seer.guarded.group_id):
        ran = seer.runs("transactions", "list")
        told(
            ran,
            ran.code,
            f"{seer.guarded.group_id}-nums-0",
            "SIGHT001",
            f"Describe on Group {seer.guarded.group_id}",
        )
        assert ran.code in (0, 1)


# ------------------------------------------------------------------------------------------- topics


def test_a_dedicated_topic_that_is_not_seen_is_not_said_to_be_missing(seer: Seer) -> None:
    with seer.denied(DESCRIBE, TOPIC, OWN):
        said = told(
            seer.runs("offsets", "show", "apart"), 1, "OFFSETS011", f"Describe on Topic {OWN}"
        )
        assert "does not exist" not in said
        told(seer.runs("preflight", "apart"), 1, "UNSEEN001", f"Describe on Topic {OWN}")
        backup = seer.directory / "backup.jsonl"
        told(seer.runs("offsets", "backup", "--out", str(backup)), 5, f"Describe on Topic {OWN}")
        assert not backup.exists()
        for words in (("diff", "apart"), ("diff",), ("copy", "apart", "new", "--yes")):
            told(
                seer.runs("offsets", *words),
                5,
                "Could not read all offsets",
                f"Describe on Topic {OWN}",
            )
        merge = (
            "offsets",
            "merge",
            "apart",
            "--into",
            "global",
            "--unset-topic",
            "--stop",
            "--yes",
        )
        told(seer.runs(*merge), 5, f"Describe on Topic {OWN}")
    with seer.denied(Operation.DESCRIBE_CONFIGS, TOPIC, OWN):
        shown = seer.runs("offsets", "show", "apart")
        assert (
            f"This principal may not describe the configuration of topic {OWN}"
            in shown.out + shown.err
        )
        assert f"DescribeConfigs on Topic {OWN}" in shown.out + shown.err
    assert workers(seer.guarded).state("apart") == ["STOPPED"]


@pytest.mark.parametrize("operation", [DESCRIBE, READ], ids=lambda operation: operation.word)
def test_an_internal_topic_that_is_not_seen_is_told_with_the_right(
    seer: Seer, operation: Operation
) -> None:
    for role, topic in seer.guarded.topics.items():
        with seer.denied(operation, TOPIC, topic):
            if operation is DESCRIBE:
                told(seer.runs("cluster", "show"), 0, "SIGHT001", f"Describe on Topic {topic}")
            if role != "status":
                told(seer.runs("offsets", "show"), 5, f"{operation.word} on Topic {topic}")


def test_a_connector_is_not_stopped_for_offsets_that_may_not_be_written(seer: Seer) -> None:
    topic = seer.guarded.topics["offsets"]
    with seer.denied(Operation.WRITE, TOPIC, topic):
        told(
            seer.runs("offsets", "reset", "nums", "--stop", "--yes"),
            5,
            f"Write on Topic {topic}",
            "nothing was changed",
        )
    assert workers(seer.guarded).state("nums")[0] == "RUNNING"


def test_a_principal_that_sees_nothing_gets_exit_5(seer: Seer) -> None:
    for words in (
        *CHANGES,
        *READS,
        ("fence", "--prefix", "x", "--yes"),
        ("transactions", "hanging", "--topic", "nums"),
    ):
        told(seer.runs(*words, user="nobody", stdin=OFFSETS), 5, "is missing")
    told(seer.runs("transactions", "hanging", user="nobody"), 5, "is missing")
    # Without rights a dry run names the one that is missing.
    told(seer.runs("fence", "--leader", "--dry-run", user="nobody"), 5, "is missing")


def test_with_every_right_nothing_is_said_to_be_missing(seer: Seer) -> None:
    for words in READS:
        said = seer.runs(*words)
        assert "SIGHT" not in said.out + said.err, said
    told(seer.runs("transactions", "hanging"), 0, "Nothing hangs")
