"""A cluster behind SASL and TLS: right and wrong credentials, missing rights, and no secret in
sight.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from connectctl.ops.clients.kafka_protocol.batch_fetcher import BatchFetcher
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import NotAuthorized
from connectctl.ops.kafka.record_batch_encoder import RecordColumns
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.transaction_batch import ColumnBatch, TransactionBatch
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from fakes.certificates import Certificates, certificates
from live.real import Ran, connectctl, create_topic, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
PASSWORD = "correct-horse-battery"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def guarded(certificate: Certificates, state_home: Path) -> Iterator[Sandbox]:
    """A broker that wants TLS and a password, and gives the user ``nobody`` no rights."""
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    spec = SandboxSpec(
        name="guarded",
        workers=0,
        extra_listeners={"SECURED": "SASL_SSL"},
        extra_broker_properties={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:ops",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secured.plain.sasl.jaas.config": f'{LOGIN} user_ops="{PASSWORD}" user_nobody="{PASSWORD}";',
            "listener.name.secured.ssl.keystore.type": "PEM",
            "listener.name.secured.ssl.keystore.location": certificate.keystore,
        },
    )
    sandbox = up(spec)
    create_topic(sandbox.bootstrap_servers, "config", 1)
    create_topic(sandbox.bootstrap_servers, "offsets", 5)
    write(
        sandbox.bootstrap_servers,
        "config",
        ("connector-c", {"properties": {"connector.class": "X"}}),
    )
    write(sandbox.bootstrap_servers, "offsets", (["c", {"p": 1}], {"o": 1}))
    yield sandbox
    down("guarded")


def run(
    guarded: Sandbox,
    authority: str,
    tmp_path: Path,
    user: str = "ops",
    password: str = PASSWORD,
    timeout: int = 60,
) -> Ran:
    (tmp_path / "password").write_text(password + "\n")
    (tmp_path / "config.yaml").write_text(f"""
contexts:
  secured:
    bootstrap_servers: {guarded.listeners["SECURED"]}
    group_id: nobody-there
    topics: {{config: config, offsets: offsets}}
    client:
      security.protocol: SASL_SSL
      ssl.ca.location: {authority}
      sasl.mechanism: PLAIN
      sasl.username: {user}
      sasl.password: {{file: {tmp_path / "password"}}}
""")
    ran = connectctl(
        "--config", str(tmp_path / "config.yaml"), "--timeout", str(timeout), "offsets", "show"
    )
    assert password not in ran.out + ran.err
    return ran


def test_offsets_are_read_over_tls_with_a_password_from_a_file(
    guarded: Sandbox, certificate: Certificates, tmp_path: Path
) -> None:
    ran = run(guarded, certificate.authority, tmp_path)
    assert ran.code == 0, ran.err
    assert '{"o":1}' in ran.out


def test_a_wrong_password_is_exit_5_in_one_line(
    guarded: Sandbox, certificate: Certificates, tmp_path: Path
) -> None:
    ran = run(guarded, certificate.authority, tmp_path, password="wrong-horse")
    assert (ran.code, ran.err.count("\n")) == (5, 1)
    assert "uthentication failed" in ran.err


def test_what_a_principal_may_not_see_is_told_with_the_right_that_is_missing(
    guarded: Sandbox, certificate: Certificates, tmp_path: Path
) -> None:
    ran = run(guarded, certificate.authority, tmp_path, user="nobody")
    assert (ran.code, ran.err.count("\n")) == (5, 1)
    assert "Describe on Group nobody-there is missing" in ran.err


def test_an_untrusted_certificate_is_exit_5_in_one_line(guarded: Sandbox, tmp_path: Path) -> None:
    # A client tries again until the time is over: the broker may get another certificate meanwhile.
    ran = run(guarded, certificates(tmp_path).authority, tmp_path, timeout=20)
    assert (ran.code, ran.err.count("\n")) == (5, 1)
    assert "its certificate is signed by an authority that is not trusted here" in ran.err


def test_an_audit_reads_headers_and_records_over_tls(
    guarded: Sandbox, certificate: Certificates, tmp_path: Path
) -> None:
    run(guarded, certificate.authority, tmp_path)  # writes the context
    ran = connectctl(
        "--config",
        str(tmp_path / "config.yaml"),
        "audit",
        "offsets",
        "--sequence",
        "$.o",
        "-o",
        "json",
    )
    assert ran.code == 0, ran.err
    assert ran.json["recordsRead"] == ran.json["records"]["committed"] == 1


def test_batches_of_a_frame_are_written_over_tls_with_a_login(
    guarded: Sandbox, certificate: Certificates
) -> None:
    topic = create_topic(guarded.bootstrap_servers, "batches", 2, "delete")
    handle = batch_handle(guarded, certificate, "ops")
    handle.initialise(20)
    handle.begin()
    handle.send(
        TransactionBatch(
            record_batches=[ColumnBatch(topic, RecordColumns(pa.array([b"one", b"two"])))]
        )
    )
    handle.commit(20)
    handle.discard()
    kafka = Kafka({"bootstrap.servers": guarded.bootstrap_servers}, timeout=120)
    image = kafka.image([topic], patience=20, superseded=True)[topic]
    assert sorted(record.value or b"" for record in (*image.latest, *image.superseded)) == [
        b"one",
        b"two",
    ]


def test_a_transactional_id_that_a_principal_may_not_use_is_told_as_such(
    guarded: Sandbox, certificate: Certificates
) -> None:
    handle = batch_handle(guarded, certificate, "nobody")
    with pytest.raises(NotAuthorized, match="Not authorized to use the transactional id g-c-0"):
        handle.initialise(20)
    handle.discard()


def test_batches_are_fetched_behind_tls_and_a_login_without_rights_is_told(
    guarded: Sandbox, certificate: Certificates
) -> None:
    topic = create_topic(guarded.bootstrap_servers, "fetched", 1)
    for n in range(30):
        write(guarded.bootstrap_servers, topic, (b"k", b"x" * 100_000 + b"%d" % n), partition=0)
    reader = BatchFetcher(client_of(guarded, certificate, "ops"), timeout=120, committed=True)
    reader.begin({TopicPartition(topic, 0): 0})
    records = 0
    while reader.has_more:
        records += sum(batch.records for part in reader.fetch(1.0) for batch in part.batches)
    reader.close()
    assert records == 30
    stranger = BatchFetcher(client_of(guarded, certificate, "nobody"), timeout=120, committed=True)
    stranger.begin({TopicPartition(topic, 0): 0})
    with pytest.raises(NotAuthorized, match="Not authorized to describe the topic fetched"):
        stranger.fetch(1.0)
    stranger.close()


def batch_handle(guarded: Sandbox, certificate: Certificates, user: str) -> TaskProducer:
    return TaskProducer(
        Kafka(client_of(guarded, certificate, user), timeout=120), "g-c-0", timeout_ms=15_000
    )


def client_of(guarded: Sandbox, certificate: Certificates, user: str) -> dict[str, str]:
    return {
        "bootstrap.servers": guarded.listeners["SECURED"],
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(certificate.authority),
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }
