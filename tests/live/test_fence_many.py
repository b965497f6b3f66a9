"""Many ids at once on a broker with ACLs: some unknown, some forbidden, some just being committed;
the broker killed.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from connectctl.ops.clients.kafka_protocol import init_producer_ids
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.fencing.batch_fencer import BatchFencer
from connectctl.ops.operations.fencing.observe import FencingSources, observe
from connectctl.ops.operations.fencing.planning import select
from connectctl.ops.operations.fencing.snapshot import FenceOutcome, FenceRequest, FenceSelection
from fakes.sandboxes import kill_broker, start_broker
from live.rawproducer import RawProducers
from live.real import Ran, connectctl, create_topic

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

# kafka-python forgets to close the sockets of connections that are refused.
pytestmark = [
    pytest.mark.live,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
SCHEMAS = {
    path.stem: json.loads(path.read_text())
    for path in (Path(__file__).parents[2] / "docs/schema").glob("*.json")
}
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_ops="secret";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
BROKER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.sasl.plain.sasl.jaas.config": JAAS,
    "listener.name.sasl.scram-sha-512.sasl.jaas.config": SCRAM,
    # Lets a test write behind the coordinator's back, as clients and brokers with bugs have done.
    "transaction.partition.verification.enable": "false",
}


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate that signs itself, for 127.0.0.1."""
    directory = tmp_path_factory.mktemp("tls")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=broker",
    ]
    command += [
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        "key.pem",
        "-out",
        "certificate.pem",
    ]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="module")
def broker(state_home: Path, identity: Path) -> Iterator[Sandbox]:
    """A broker of its own, for tests that kill it; ``ops`` may fence ``open-``, see ``seen-`` and
    not even see ``shut-``.
    """
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    tls = {
        "listener.name.tls.ssl.keystore.type": "PEM",
        "listener.name.tls.ssl.keystore.certificate.chain": (
            identity / "certificate.pem"
        ).read_text(),
        "listener.name.tls.ssl.keystore.key": (identity / "key.pem").read_text(),
    }
    listeners = {"SASL": "SASL_PLAINTEXT", "TLS": "SSL"}
    sandbox = up(
        SandboxSpec(
            "acls", workers=0, extra_broker_properties=BROKER | tls, extra_listeners=listeners
        )
    )
    allow(sandbox, "open-", AclOperation.WRITE)
    allow(sandbox, "open-", AclOperation.DESCRIBE)
    allow(sandbox, "seen-", AclOperation.DESCRIBE)
    yield sandbox
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state_home))
        down("acls")


@pytest.fixture
def raw(broker: Sandbox) -> Iterator[RawProducers]:
    producers = RawProducers(broker.bootstrap_servers)
    yield producers
    producers.close()
    gc.collect()


def allow(sandbox: Sandbox, prefix: str, operation: AclOperation) -> None:
    binding = AclBinding(
        ResourceType.TRANSACTIONAL_ID,
        prefix,
        ResourcePatternType.PREFIXED,
        "User:ops",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_servers})
    for future in admin.create_acls([binding]).values():
        future.result()


@pytest.fixture
def as_ops(broker: Sandbox, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Global options of the principal ``ops``, whose password comes from the environment."""
    client = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "ops",
    }
    with_client(monkeypatch, **client, sasl_password="secret")
    return ["--bootstrap-servers", broker.listeners["SASL"]]


def with_client(patch: pytest.MonkeyPatch, **properties: str) -> None:
    """Client properties in the environment, dots written as ``_``."""
    for name, value in properties.items():
        patch.setenv(f"CONNECTCTL_CLIENT_{name.upper()}", value)


def run(broker: Sandbox, *args: str, code: int = 0) -> Any:
    ran = connectctl("--bootstrap-servers", broker.bootstrap_servers, *args, "-o", "json")
    return checked(ran, code)


def checked(ran: Ran, code: int) -> Any:
    assert ran.code == code, ran.out + ran.err
    kinds = {schema["properties"]["kind"]["const"]: schema for schema in SCHEMAS.values()}
    jsonschema.validate(ran.json, kinds[ran.json["kind"]])
    return ran.json


def file_of(directory: Path, ids: list[str]) -> str:
    path = directory / "ids.txt"
    path.write_text("\n".join(ids))
    return str(path)


def plan(raw: RawProducers, ids: list[str]) -> FenceSelection:
    sources = FencingSources(
        raw.calls, None, lambda name: ConnectGroup(name, "Dead", "", ()), lambda group: frozenset()
    )
    request = FenceRequest(ids=tuple(ids))
    return select(observe(sources, request), request)


def being_committed(raw: RawProducers, ids: list[str], topic: str) -> list[str]:
    """Those of ``ids`` that commit transactions, the last of which their coordinator is seen at."""
    for first in range(0, len(ids), 40):
        some = ids[first : first + 40]
        raw.begin(some, topic, list(range(100)))
        raw.commit(some)
        if any(
            t.state == "PrepareCommit"
            for t in raw.calls.describe(some).values()
            if isinstance(t, Transaction)
        ):
            return ids[: first + 40]
    pytest.fail("every commit was over before it was seen")


def test_a_thousand_ids_some_unknown_some_unauthorized_some_in_prepare_commit(
    broker: Sandbox, raw: RawProducers, as_ops: list[str], tmp_path: Path
) -> None:
    known = [f"open-{n}" for n in range(600)]
    seen, shut = [f"seen-{n}" for n in range(100)], [f"shut-{n}" for n in range(100)]
    raw.init([*known, *seen, *shut])
    topic = create_topic(broker.bootstrap_servers, "wide", 100, "delete")
    left_open, committed = known[:40], being_committed(raw, known[40:], topic)
    raw.begin(left_open, topic, list(range(100)))

    unknown = [f"open-never-{n}" for n in range(200)]
    ids = [*known, *seen, *shut, *unknown]
    done = checked(
        connectctl(*as_ops, "fence", "-f", file_of(tmp_path, ids), "--yes", "-o", "json"), 1
    )
    by_id = {result["transactionalId"]: result for result in done["results"]}
    assert {by_id[id]["outcome"] for id in known} == {"fenced"}
    assert {by_id[id]["abortedTransaction"] for id in left_open} == {True}
    assert {by_id[id]["abortedTransaction"] for id in committed} == {False}, (
        "what is being committed stays committed"
    )
    assert {by_id[id]["outcome"] for id in unknown} == {"unknown"}
    assert {(by_id[id]["outcome"], by_id[id]["error"]["code"]) for id in [*seen, *shut]} == {
        ("failed", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    }
    assert done["summary"] | {"seconds": 0} == {
        "fenced": 600,
        "unknown": 200,
        "failed": 200,
        "skipped": 0,
        "seconds": 0,
    }
    # What was forbidden was not touched, and what was unknown was not created.
    untouched = raw.calls.describe([*seen, *shut])
    assert all(t.who == raw.who[id] for id, t in untouched.items() if isinstance(t, Transaction))
    assert not any(isinstance(found, Transaction) for found in raw.calls.describe(unknown).values())


def test_create_makes_an_id_that_nobody_knew(broker: Sandbox) -> None:
    done = run(broker, "fence", "--transactional-id", "open-created", "--create", "--yes")
    assert done["results"][0] | {"producerId": 0} == {
        "transactionalId": "open-created",
        "connector": None,
        "task": None,
        "outcome": "fenced",
        "producerId": 0,
        "epochBefore": None,
        "epochAfter": 0,
        "abortedTransaction": False,
        "error": None,
    }


def test_scram_and_tls_reach_the_coordinators_and_a_wrong_password_does_not(
    broker: Sandbox,
    raw: RawProducers,
    identity: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = [f"open-secure-{n}-x" for n in range(init_producer_ids.MANY)]
    raw.init(ids)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    for future in admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion("ops", info, b"scr4m")]
    ).values():
        future.result()
    fence = ("fence", "-f", file_of(tmp_path, ids), "--yes", "-o", "json")
    with monkeypatch.context() as patch:
        client = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": "ops",
        }
        with_client(patch, **client, sasl_password="scr4m")
        secure = ("--bootstrap-servers", broker.listeners["SASL"])
        assert checked(connectctl(*secure, *fence), 0)["summary"]["fenced"] == len(ids)
        with_client(patch, sasl_password="wrong")
        refused = connectctl(*secure, "--timeout", "60", *fence)
        assert refused.code == 5
        assert json.loads(refused.err)["error"]["code"] == "not-authorized"
    with monkeypatch.context() as patch:
        with_client(
            patch, security_protocol="SSL", ssl_ca_location=str(identity / "certificate.pem")
        )
        done = connectctl("--bootstrap-servers", broker.listeners["TLS"], *fence)
        # Over TLS without a certificate of our own we are ANONYMOUS, who may do everything here.
        assert checked(done, 0)["summary"]["fenced"] == len(ids)


def test_the_output_of_a_list_is_what_fence_reads(broker: Sandbox, raw: RawProducers) -> None:
    raw.init(["piped-1", "piped-2"])
    listed = connectctl(
        "--bootstrap-servers",
        broker.bootstrap_servers,
        "transactions",
        "list",
        "--prefix",
        "piped-",
        "-ojson",
    )
    assert [t["transactionalId"] for t in checked(listed, 0)["transactions"]] == [
        "piped-1",
        "piped-2",
    ]
    ran = connectctl(
        "--bootstrap-servers",
        broker.bootstrap_servers,
        "fence",
        "-f",
        "-",
        "--yes",
        "-ojson",
        stdin=listed.out,
    )
    assert checked(ran, 0)["summary"]["fenced"] == 2


def test_the_broker_killed_and_restarted_in_the_middle(broker: Sandbox, raw: RawProducers) -> None:
    ids = [f"kill-{n}" for n in range(4000)]
    raw.init(ids)
    middle = threading.Event()
    done: list[str] = []

    def told(result: Any) -> None:
        done.append(result.id)
        if len(done) == 1000:
            middle.set()

    fencer = BatchFencer(raw.calls, plan(raw, ids).rows, 90, told)
    work = threading.Thread(target=fencer.run)
    work.start()
    assert middle.wait(300)
    kill_broker(broker)
    assert len(done) < len(ids)
    time.sleep(1)
    start_broker(broker)
    work.join(300)
    assert Counter(result.outcome for result in fencer.results.values()) == {
        FenceOutcome.FENCED: len(ids)
    }
    now = raw.calls.describe(ids)
    spent = [now[id].epoch - raw.who[id][1] for id in ids]  # type: ignore[union-attr]
    assert max(spent) <= 2, "an id whose answer was lost is looked at before it is asked again"
    assert all(fencer.results[id].epoch_after == now[id].epoch for id in ids)  # type: ignore[union-attr]


def test_an_interruption_tells_which_ids_are_done(
    broker: Sandbox, raw: RawProducers, tmp_path: Path
) -> None:
    ids = [f"stop-{n}" for n in range(15_000)]
    raw.init(ids)
    command = [
        sys.executable,
        "-m",
        "connectctl.cli",
        "--bootstrap-servers",
        broker.bootstrap_servers,
    ]
    command += ["fence", "-f", file_of(tmp_path, ids), "--yes", "-o", "json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = init_producer_ids.IN_FLIGHT + 2_000
    while raw.calls.describe([ids[first]])[ids[first]].who == raw.who[ids[first]]:  # type: ignore[union-attr]
        assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=900)
    assert process.returncode == 130, err
    results = checked(Ran(0, out, err), 0)["results"]
    assert [r["transactionalId"] for r in results] == ids
    outcomes = Counter(r["outcome"] for r in results)
    assert outcomes["fenced"] > first - init_producer_ids.IN_FLIGHT, (
        "those in flight may have been done, and not heard of"
    )
    assert outcomes["fenced"] < len(ids)
    assert {r["error"]["code"] for r in results if r["outcome"] != "fenced"} == {"interrupted"}
    now = raw.calls.describe(ids)
    for r in results:
        if r["outcome"] == "fenced":
            assert now[r["transactionalId"]].who == (r["producerId"], r["epochAfter"])  # type: ignore[union-attr]
    assert json.loads(err.splitlines()[-1])["error"]["exitCode"] == 130


def test_a_hanging_transaction_is_found_named_and_aborted(
    broker: Sandbox, raw: RawProducers
) -> None:
    topic = create_topic(broker.bootstrap_servers, "haunted", 2, "delete")
    raw.init(["ghost"])
    raw.write_behind("ghost", topic, 1)
    found = run(broker, "transactions", "hanging", code=1)
    (hanging,) = found["hanging"]
    assert (hanging["topic"], hanging["partition"], hanging["startOffset"]) == (topic, 1, 0)
    assert hanging["formerTransactionalId"] == "ghost"

    lag = run(broker, "transactions", "lag", "--topic", topic, code=1)
    assert [(p["partition"], p["lag"]) for p in lag["partitions"]] == [(0, 0), (1, 1)]
    assert lag["partitions"][1]["suspect"]["hangs"] is True

    place = ("--topic", topic, "--partition", "1")
    assert (
        connectctl(
            "--bootstrap-servers", broker.bootstrap_servers, "transactions", "abort", *place
        ).code
        == 2
    )
    run(broker, "transactions", "abort", *place, "--start-offset", "0", "--yes")
    assert run(broker, "transactions", "hanging")["hanging"] == []
    assert run(broker, "transactions", "lag", "--topic", topic)["partitions"][1]["lag"] == 0
    again = connectctl(
        "--bootstrap-servers", broker.bootstrap_servers, "transactions", "abort", *place, "--yes"
    )
    assert again.code == 4


def test_an_open_transaction_is_listed_shown_and_aborted_by_its_id(
    broker: Sandbox, raw: RawProducers
) -> None:
    topic = create_topic(broker.bootstrap_servers, "held", 3, "delete")
    raw.init(["holder"], timeout_ms=120_000)
    raw.begin(["holder"], topic, [0, 2])
    listed = run(broker, "transactions", "list", "--open", "--prefix", "hold")
    assert [(t["transactionalId"], t["state"]) for t in listed["transactions"]] == [
        ("holder", "Ongoing")
    ]
    assert run(broker, "transactions", "list", "--longer-than", "3600")["transactions"] == []
    shown = run(broker, "transactions", "show", "holder")["transaction"]
    assert shown["topicPartitions"] == [
        {"topic": topic, "partition": 0},
        {"topic": topic, "partition": 2},
    ]
    assert shown["timeoutMs"] == 120_000
    run(broker, "transactions", "abort", "holder", "--yes")
    after = run(broker, "transactions", "show", "holder")["transaction"]
    assert (after["state"], after["timeoutMs"]) == ("Empty", 120_000)
    assert after["producerEpoch"] > shown["producerEpoch"]
    assert (
        connectctl(
            "--bootstrap-servers",
            broker.bootstrap_servers,
            "transactions",
            "abort",
            "holder",
            "--yes",
        ).code
        == 4
    )
