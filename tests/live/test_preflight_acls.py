"""ACLs on a broker with an authorizer: our verdicts, what the broker decides, and what a worker's
tasks make of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from connectctl.cli.session import Session
from connectctl.ops.checks.acls import rules
from connectctl.ops.checks.acls.emit import emit
from connectctl.ops.checks.acls.observe import AclFacts, observe
from connectctl.ops.checks.acls.principals import parse_principals
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.rule import check
from connectctl.ops.core.unseen import Unseen
from connectctl.ops.kafka.acls import Acls, Action, Binding, Operation, Resource
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.connectors.observe import from_workers
from contract.guarded_acls import BINDINGS, GuardedContract
from fakes.acl_documents import read
from fakes.acls import allow
from fakes.check_context import check_context
from live.grants import OPERATIONS, Grants
from live.real import Workers, connector, create_topic, eventually, workers, write

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import AclReads
    from connectctl.ops.kafka.fence_attempt import InitProducerIdResponse
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORD = "correct-horse-battery"
USERS = ("ops", "probe", "pia", "carl", "anna", "nobody")
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = list(Operation)[1:8]
TOPIC, GROUP, CLUSTER, ID = (
    Resource.TOPIC,
    Resource.GROUP,
    Resource.CLUSTER,
    Resource.TRANSACTIONAL_ID,
)
PROBE, T, NEW, X = "User:probe", "acls-truth", "acls-truth-new", "acls-truth-id-0"
READER = "acls-truth-reader"
HERE = "127.0.0.1"


@pytest.fixture(scope="module")
def guarded(state_home: Path) -> Iterator[Sandbox]:
    """A broker with an authorizer and users, and a worker that is a super user."""
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    passwords = " ".join(f'user_{user}="{PASSWORD}"' for user in USERS)
    spec = SandboxSpec(
        name="acls",
        workers=1,
        support="enabled",
        extra_listeners={"SECURED": "SASL_PLAINTEXT"},
        extra_broker_properties={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:ops",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secured.plain.sasl.jaas.config": f"{LOGIN} {passwords};",
        },
    )
    yield up(spec)
    down("acls")


@pytest.fixture(scope="module")
def grants(guarded: Sandbox) -> Iterator[Grants]:
    found = Grants(guarded)
    yield found
    found.close()


def client(guarded: Sandbox, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": guarded.listeners["SECURED"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }


class TestRealGuarded(GuardedContract):
    @pytest.fixture
    def reads(self, grants: Grants) -> Iterator[AclReads]:
        with grants.given(*BINDINGS):
            yield grants.reads


# ---------------------------------------------------------------------- what the broker really does


@dataclass
class Probe:
    """The user ``probe``, with real clients: each method says whether the broker let it."""

    properties: dict[str, Any]

    @cached_property
    def wire(self) -> KafkaProtocolClient:
        return KafkaProtocolClient(self.properties, timeout=120)

    @cached_property
    def transactions(self) -> TransactionClient:
        return TransactionClient(self.properties, timeout=120)

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(self.properties)

    def close(self) -> None:
        self.wire.close()
        self.transactions.close()

    def produces(self) -> bool:
        said: list[Any] = []
        producer = Producer(self.properties)
        producer.produce(T, b"x", on_delivery=lambda error, _: said.append(error))
        assert producer.flush(300) == 0
        return _allowed(said[0], "TOPIC_AUTHORIZATION_FAILED")

    def consumes(self) -> bool:
        consumer = Consumer(self.properties | {"group.id": READER, "enable.auto.commit": False})
        try:
            # Of a topic that it may not describe it is never told where to read, and would wait for
            # ever.
            if not _allowed(
                consumer.list_topics(T, 60).topics[T].error, "TOPIC_AUTHORIZATION_FAILED"
            ):
                return False
            consumer.assign([TopicPartition(T, 0, 0)])
            message = eventually(lambda: consumer.poll(1))
            return _allowed(message.error(), "TOPIC_AUTHORIZATION_FAILED")
        finally:
            consumer.close()

    def creates(self) -> bool:
        made = self.admin.create_topics([NewTopic(NEW, 1, 1)], validate_only=True)[NEW]
        try:
            made.result(300)
        except KafkaException as e:
            return _allowed(e.args[0], "TOPIC_AUTHORIZATION_FAILED")
        return True

    def initialises(self) -> bool:
        """Whether it gets a producer id for the transactional id: what fencing is, too."""
        told: dict[str, InitProducerIdResponse] = {}

        def ask() -> bool:
            self.transactions.fence({X: 60_000}, 30.0, told.__setitem__)
            return told[X].code in (Code.NONE, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

        eventually(ask)
        return told[X].code is Code.NONE

    def describes_id(self) -> bool:
        def ask() -> Any:
            seen = self.transactions.describe([X])[X]
            known = (Code.TRANSACTIONAL_ID_NOT_FOUND, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            return (seen,) if isinstance(seen, Transaction) or seen in known else None

        return eventually(ask)[0] is not Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    def operations(self) -> set[Operation]:
        """What the broker itself says that the user may do to the topic (KIP-430)."""
        from kafka.protocol.metadata.metadata import MetadataRequest

        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=T)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
            min_version=8,
            max_version=9,
        )
        (topic,) = self.wire.run("describe a topic", lambda: self.wire.ask(request)).topics
        numbers = topic.authorized_operations if topic.error_code == 0 else ()
        return {operation for operation, number in OPERATIONS.items() if number in numbers}


def _allowed(error: Any, refusal: str) -> bool:
    assert error is None or error.name() == refusal, error
    return error is None


@pytest.fixture(scope="module")
def probe(guarded: Sandbox, grants: Grants) -> Iterator[Probe]:
    grants.add([allow(PROBE, ALL, GROUP, READER)])
    create_topic(guarded.bootstrap_servers, T, 1, "delete")
    write(guarded.bootstrap_servers, T, ("k", "v"))
    found = Probe(client(guarded, "probe"))
    yield found
    found.close()


CASES: dict[str, tuple[Binding, ...]] = {
    "nothing": (),
    "somebody else's": (allow("User:other", ALL, TOPIC, T), allow("User:other", ALL, ID, X)),
    "write": (allow(PROBE, WRITE, TOPIC, T), allow(PROBE, WRITE, ID, X)),
    "read": (allow(PROBE, READ, TOPIC, T),),
    "describe": (allow(PROBE, DESCRIBE, TOPIC, T), allow(PROBE, DESCRIBE, ID, X)),
    "create": (allow(PROBE, CREATE, TOPIC, NEW), allow(PROBE, DELETE, TOPIC, T)),
    "create on the cluster": (
        allow(PROBE, CREATE, CLUSTER, "kafka-cluster"),
        allow(PROBE, ALTER, TOPIC, T),
    ),
    "configs": (allow(PROBE, Operation.ALTER_CONFIGS, TOPIC, T), allow(PROBE, DESCRIBE, TOPIC, T)),
    "all": (allow(PROBE, ALL, TOPIC, T), allow(PROBE, ALL, ID, X)),
    "prefix": (
        allow(PROBE, ALL, TOPIC, "acls-tr", prefixed=True),
        allow(PROBE, WRITE, ID, "acls-truth-", prefixed=True),
    ),
    "prefix that is longer": (
        allow(PROBE, ALL, TOPIC, T + "-", prefixed=True),
        allow(PROBE, WRITE, ID, X + "0", prefixed=True),
    ),
    "literal that is a prefix": (
        allow(PROBE, ALL, TOPIC, "acls-tr"),
        allow(PROBE, WRITE, ID, "acls-truth-"),
    ),
    "wildcard": (allow(PROBE, ALL, TOPIC, "*"), allow(PROBE, WRITE, ID, "*")),
    "everybody": (
        allow("User:*", WRITE, TOPIC, T),
        allow("User:*", WRITE, ID, "acls", prefixed=True),
    ),
    "another host": (
        allow(PROBE, ALL, TOPIC, T, host="10.9.8.7"),
        allow(PROBE, ALL, ID, X, host="10.9.8.7"),
    ),
    "this host": (allow(PROBE, READ, TOPIC, T, host=HERE), allow(PROBE, WRITE, ID, X, host=HERE)),
    "deny write": (
        allow(PROBE, ALL, TOPIC, "*"),
        allow(PROBE, WRITE, TOPIC, T, deny=True),
        allow(PROBE, ALL, ID, "*"),
        allow("User:*", WRITE, ID, "acls-truth-id", prefixed=True, deny=True),
    ),
    "deny describe": (
        allow(PROBE, ALL, TOPIC, T),
        allow(PROBE, DESCRIBE, TOPIC, T, deny=True),
        allow(PROBE, WRITE, ID, X),
        allow(PROBE, DESCRIBE, ID, "*", deny=True),
    ),
    "deny from another host": (
        allow(PROBE, ALL, TOPIC, T),
        allow(PROBE, ALL, TOPIC, T, host="10.9.8.7", deny=True),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_broker_decides_as_we_say(grants: Grants, probe: Probe, case: str) -> None:
    with grants.given(*CASES[case]):
        acls = Acls(tuple(grants.there()), grants.reads.authorizer())

        def we_say(operation: Operation, resource: Resource, name: str) -> bool:
            return acls.decide(Action(PROBE, operation, resource, name), HERE).allowed

        listed = we_say(DESCRIBE, TOPIC, T)
        topics = [o for o in OPERATIONS if o not in (ALL, Operation.IDEMPOTENT_WRITE)]
        assert probe.operations() == {o for o in topics if listed and we_say(o, TOPIC, T)}
        assert probe.produces() is (listed and we_say(WRITE, TOPIC, T))
        assert probe.consumes() is (listed and we_say(READ, TOPIC, T))
        assert probe.creates() is (
            we_say(CREATE, TOPIC, NEW) or we_say(CREATE, CLUSTER, "kafka-cluster")
        )
        assert probe.describes_id() is we_say(DESCRIBE, ID, X)
        # Whoever may not describe an id does not find its coordinator.
        assert probe.initialises() is (we_say(DESCRIBE, ID, X) and we_say(WRITE, ID, X))


# ------------------------------------------------------------------------ what a worker makes of it

SOURCE, OUT = "acls-source", "acls-out"


def look(session: Session, *said: str) -> tuple[AclFacts | None, tuple[Unseen, ...]]:
    group = session.group()
    calls = session.connect_to(group)
    context = check_context(
        *from_workers(calls),
        calls=calls,
        transactions=session.transactions,
        acls=session.acls,
        other_acls=session.other_acls,
        group=group,
        internal=session.named_topics,
    )
    return observe(context, parse_principals(said))


def found(session: Session) -> tuple[AclFacts, dict[str, str]]:
    """The facts, and the messages of all findings about the connector by their ids."""
    facts, unseen = look(session, "User:ANONYMOUS", "super=User:ANONYMOUS")
    assert facts is not None
    assert unseen == ()
    return facts, {f.id: f.message for f in check(rules, facts, Goal.NOW) if f.subject == SOURCE}


@pytest.fixture
def session(guarded: Sandbox) -> Iterator[Session]:
    opened = Session(config=guarded.context_path)
    yield opened
    opened.close()


def config(guarded: Sandbox, **more: str) -> dict[str, str]:
    made = {
        "connector.class": "org.apache.kafka.connect.tools.VerifiableSourceConnector",
        "tasks.max": "2",
        "topic": OUT,
        "throughput": "5",
    }
    for role, user in (("producer", "pia"), ("consumer", "carl"), ("admin", "anna")):
        made |= {
            f"{role}.override.bootstrap.servers": guarded.listeners["SECURED"],
            f"{role}.override.security.protocol": "SASL_PLAINTEXT",
            f"{role}.override.sasl.mechanism": "PLAIN",
            f"{role}.override.sasl.jaas.config": f'{LOGIN} username="{user}" '
            f'password="{PASSWORD}";',
        }
    return made | more


def test_what_preflight_says_is_missing_makes_tasks_fail_and_what_it_emits_makes_them_run(
    guarded: Sandbox, grants: Grants, session: Session
) -> None:
    create_topic(guarded.bootstrap_servers, OUT, 1)
    grants.add([allow("User:pia", WRITE, TOPIC, OUT)])
    rest = workers(guarded)
    with connector(guarded, SOURCE, config(guarded)):
        facts, messages = found(session)
        assert {i: m.partition(",")[0] for i, m in messages.items()} == {
            "ACL002": "User:pia",
            "ACL003": "User:carl",
            "ACL004": "User:anna",
        }
        eventually(lambda: "FAILED" in rest.state(SOURCE))

        # Without the ids of the admin client there is nothing to fence at first, and the connector
        # runs.
        (wanted,) = read(emit(facts, Goal.ENABLED, "yaml"))
        fencing = [b for b in wanted.bindings if (b.principal, b.resource) == ("User:anna", ID)]
        assert {b.name for b in fencing} == {f"{guarded.group_id}-{SOURCE}-{n}" for n in range(2)}
        grants.add(set(wanted.bindings) - set(fencing))
        eventually(lambda: runs_again(rest))
        _, messages = found(session)
        assert list(messages) == ["ACL004"]
        assert "lacks Write and Describe on TransactionalId" in messages["ACL004"]

        # Other tasks, and the old ones cannot be fenced.
        rest.call("PUT", f"/connectors/{SOURCE}/config", config(guarded, throughput="6"))
        eventually(lambda: rest.state(SOURCE) == ["RUNNING", "FAILED", "FAILED"])
        trace = rest.call("GET", f"/connectors/{SOURCE}/status").json()["tasks"][0]["trace"]
        assert "TransactionalIdAuthorizationException" in trace

        grants.add(fencing)
        assert found(session)[1] == {}
        eventually(lambda: runs_again(rest))


def runs_again(rest: Workers, name: str = SOURCE) -> bool:
    """Whether all runs; what has failed is restarted, for a failure may be told after the first
    restart.
    """
    state = rest.state(name)
    if "FAILED" in state:
        rest.call("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")
    return state == ["RUNNING"] * 3


SINK, IN = "acls-sink", "acls-in"


def test_what_preflight_says_a_sink_lacks_makes_its_tasks_fail_and_what_it_emits_makes_them_run(
    guarded: Sandbox, grants: Grants, session: Session
) -> None:
    create_topic(guarded.bootstrap_servers, IN, 1, "delete")
    rest = workers(guarded)
    sink = config(guarded) | {
        "connector.class": "org.apache.kafka.connect.tools.VerifiableSinkConnector",
        "topics": IN,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{IN}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    del sink["topic"], sink["throughput"]

    def lacks() -> list[tuple[str, str]]:
        facts, _ = look(session, "User:ANONYMOUS", "super=User:ANONYMOUS")
        assert facts is not None
        return [
            (f.id, f.message.partition(",")[0])
            for f in check(rules, facts, Goal.NOW)
            if f.subject == SINK
        ]

    def needs(principal: str) -> list[Binding]:
        facts, _ = look(session, "User:ANONYMOUS", "super=User:ANONYMOUS")
        assert facts is not None
        (wanted,) = read(emit(facts, Goal.NOW, "yaml"))
        return [binding for binding in wanted.bindings if binding.principal == principal]

    def failures_after(former: set[str]) -> set[str]:
        """Why all tasks failed, none of them for a former reason; empty while it is not so."""
        tasks = rest.call("GET", f"/connectors/{SINK}/status").json()["tasks"]
        traces = {str(task.get("trace", "")) for task in tasks}
        return set() if traces & (former | {""}) else traces

    with connector(guarded, SINK, sink):
        assert lacks() == [("ACL009", "User:pia"), ("ACL008", "User:carl"), ("ACL009", "User:anna")]
        # Without its admin client's permissions the topic of dead letters is not made, and no
        # consumer is opened.
        failures = set[str]()
        for principal in ("User:anna", "User:carl"):
            # A restart is asynchronous: for a moment the status is still that of the task before.
            failures = eventually(partial(failures_after, failures))
            assert all("AuthorizationException" in trace for trace in failures)
            grants.add(needs(principal))
            rest.call("POST", f"/connectors/{SINK}/restart?includeTasks=true&onlyFailed=true")
        eventually(lambda: runs_again(rest, SINK))
        assert lacks() == [("ACL009", "User:pia")]
        grants.add(needs("User:pia"))
        assert lacks() == []


def test_whoever_may_not_list_acls_learns_that_none_were_checked(
    guarded: Sandbox, session: Session
) -> None:
    nobody = Session(
        flags={f"client.{name}": value for name, value in client(guarded, "nobody").items()}
        | {"bootstrap_servers": guarded.listeners["SECURED"], "group_id": guarded.group_id}
    )
    group = session.group()
    context = check_context(
        transactions=nobody.transactions,
        acls=nobody.acls,
        other_acls=nobody.other_acls,
        group=group,
        internal=session.named_topics,
    )
    facts, (unseen,) = observe(context, parse_principals(["User:w"]))
    nobody.close()
    assert facts is None
    assert unseen.what == "the ACLs of the workers' Kafka cluster"
    assert "Describe on Cluster kafka-cluster is missing" in unseen.why
