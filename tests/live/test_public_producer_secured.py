"""The public producer behind TLS, logins that end after ten seconds, and ACLs."""

from __future__ import annotations

import gc
import secrets
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
)
from connectctl.ops.sandbox.security import MTLS, OAUTH, PLAIN, SCRAM
from connectctl.producer import AbortRequired, ProducerFailed, RequestFailed, TransactionalProducer
from fakes.certificates import certificates
from live.publicproducer import GROUP, insist, seen, write_once
from live.securedcluster import as_admin, as_user, create_topic, create_user, super_user

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
LIFETIME = 10.0
"""Seconds that a session lasts on the SASL listeners of the fixture ``secured``."""
Opened = Callable[..., TransactionalProducer]


@pytest.fixture
def topic(secured: Sandbox) -> str:
    return create_topic(secured, f"public-{secrets.token_hex(4)}", 3)


@pytest.fixture
def opened(topic: str) -> Iterator[Opened]:
    """A producer that was not initialised yet, by its properties."""
    made: list[TransactionalProducer] = []

    def one(client: dict[str, Any], **more: Any) -> TransactionalProducer:
        given = {name.replace("_", "."): value for name, value in more.items()}
        made.append(
            TransactionalProducer(client | {"transactional.id": f"{topic}-{len(made)}"} | given)
        )
        return made[-1]

    yield one
    while made:
        made.pop().close()
    # kafka-python 3.0.12 leaves a socket whose TLS handshake failed to the garbage collector.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def user(secured: Sandbox, topic: str) -> dict[str, Any]:
    """Somebody who may do nothing yet, and is called as the topic is."""
    return as_user(secured, topic, create_user(secured, topic))


def allow(secured: Sandbox, user: str, *rights: tuple[ResourceType, str, AclOperation]) -> None:
    """``user`` may do ``rights``, on resources whose names begin so."""
    principal, any_ = f"User:{user}", "*"
    wanted = [
        AclBinding(
            kind,
            name,
            ResourcePatternType.PREFIXED,
            principal,
            any_,
            operation,
            AclPermissionType.ALLOW,
        )
        for kind, name, operation in rights
    ]
    admin = super_user(secured)
    for future in admin.create_acls(wanted).values():
        future.result(300)


def error(told: pytest.ExceptionInfo[KafkaException]) -> Any:
    return told.value.args[0]


def test_transactions_are_written_by_every_way_in_for_longer_than_a_session_lasts(
    secured: Sandbox, topic: str, opened: Opened
) -> None:
    def written(way: str) -> int:
        producer = opened(as_admin(secured, way), transactional_id=f"{topic}-{way}")
        insist(producer.init_transactions)
        done, end = 0, time.monotonic() + 1.4 * LIFETIME
        while time.monotonic() < end:
            write_once(producer, topic, done, range(3))
            done += 1
            time.sleep(0.1)
        time.sleep(LIFETIME)  # in which its sessions end, while nothing is asked
        write_once(producer, topic, done, range(3))
        return done + 1

    ways = (SCRAM, PLAIN, OAUTH, MTLS)
    with ThreadPoolExecutor(len(ways)) as pool:
        done = dict(zip(ways, pool.map(written, ways), strict=True))
    print(done)
    numbers = sorted(
        str(number) for count in done.values() for number in range(count) for _ in range(3)
    )
    assert seen(as_admin(secured, SCRAM), topic) == numbers


@pytest.mark.drawn
@pytest.mark.parametrize("way", [SCRAM, PLAIN])
def test_a_wrong_password_is_one_line_that_says_so_and_ends_the_producer(
    secured: Sandbox, opened: Opened, way: str
) -> None:
    producer = opened(
        as_admin(secured, way) | {"sasl.password": "wrong-horse"}, socket_timeout_ms=5000
    )
    with pytest.raises(ProducerFailed) as told:
        producer.init_transactions(120)
    said = error(told).str()
    print(said)
    assert (error(told).code(), error(told).fatal()) == (KafkaError._AUTHENTICATION, True)
    assert "the user name, the password or the token is wrong" in said
    assert said.endswith("check the sasl.… properties")
    assert "\n" not in said
    assert "wrong-horse" not in said


def test_an_authority_that_is_not_trusted_is_told_as_such(
    secured: Sandbox, opened: Opened, tmp_path: Path
) -> None:
    other = {"ssl.ca.location": str(certificates(tmp_path).authority)}
    producer = opened(as_admin(secured, SCRAM) | other, socket_timeout_ms=3000)
    with pytest.raises(
        RequestFailed, match="signed by an authority that is not trusted here"
    ) as told:
        producer.init_transactions(1)
    assert error(told).code() == KafkaError._SSL
    assert error(told).str().endswith("check security.protocol and the ssl.… properties")


def test_a_client_without_tls_is_told_that_the_port_speaks_it(
    secured: Sandbox, opened: Opened
) -> None:
    server = as_admin(secured, MTLS)["bootstrap.servers"]
    producer = opened({"bootstrap.servers": server}, socket_timeout_ms=3000)
    with pytest.raises(RequestFailed, match="it requires TLS on this port") as told:
        producer.init_transactions(1)
    assert error(told).code() == KafkaError._SSL


def test_a_right_that_is_missing_is_named_where_it_is_missed(
    secured: Sandbox, topic: str, opened: Opened, user: dict[str, Any]
) -> None:
    producer = opened(user)
    with pytest.raises(ProducerFailed, match="Write on this TransactionalId is needed") as told:
        producer.init_transactions(120)
    assert error(told).code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    allow(secured, topic, (ResourceType.TRANSACTIONAL_ID, topic, AclOperation.WRITE))
    producer = opened(user)
    insist(producer.init_transactions)
    for right in (None, AclOperation.DESCRIBE):
        if right is not None:
            allow(secured, topic, (ResourceType.TOPIC, topic, right))
        _refused(
            producer,
            topic,
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            f"topic {topic}: Write and Describe on this",
        )
    allow(secured, topic, (ResourceType.TOPIC, topic, AclOperation.WRITE))
    write_once(producer, topic, 1, range(3))
    producer.begin_transaction()
    with pytest.raises(
        AbortRequired, match=r"of the consumer group g: .*Read on this Group is needed"
    ) as told:
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], GROUP)
    assert error(told).code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    producer.abort_transaction()
    write_once(producer, topic, 2, range(3))
    assert seen(as_admin(secured, SCRAM), topic) == ["1"] * 3 + ["2"] * 3


def _refused(producer: TransactionalProducer, topic: str, code: int, said: str) -> None:
    producer.begin_transaction()
    producer.produce(topic, "x")
    with pytest.raises(AbortRequired, match=said) as told:
        producer.commit_transaction()
    assert error(told).code() == code
    producer.abort_transaction()


def test_a_topic_that_is_not_there_and_may_not_be_made_is_told_at_once(
    secured: Sandbox, topic: str, opened: Opened, user: dict[str, Any]
) -> None:
    rights = (AclOperation.WRITE, AclOperation.DESCRIBE)
    allow(secured, topic, *((ResourceType.TOPIC, topic, right) for right in rights))
    allow(secured, topic, (ResourceType.TRANSACTIONAL_ID, topic, AclOperation.WRITE))
    producer = opened(user)
    insist(producer.init_transactions)
    _refused(
        producer,
        f"{topic}-new",
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        "and Create if it is not there",
    )
    write_once(producer, topic, 1, range(3))
    assert seen(as_admin(secured, SCRAM), topic) == ["1"] * 3


def test_a_login_that_is_taken_away_ends_the_producer_when_it_is_to_be_renewed(
    secured: Sandbox, topic: str, opened: Opened, user: dict[str, Any]
) -> None:
    rights = (
        (ResourceType.TOPIC, topic, AclOperation.WRITE),
        (ResourceType.TRANSACTIONAL_ID, topic, AclOperation.WRITE),
    )
    allow(secured, topic, *rights)
    producer = opened(user)
    insist(producer.init_transactions)
    write_once(producer, topic, 0, range(3))
    gone = UserScramCredentialDeletion(topic, ScramMechanism.SCRAM_SHA_512)
    admin = super_user(secured)
    for future in admin.alter_user_scram_credentials([gone]).values():
        future.result(300)
    done = 0

    def go_on() -> None:
        nonlocal done
        while True:
            done += 1
            write_once(producer, topic, done, range(3))
            time.sleep(0.2)

    with pytest.raises(ProducerFailed) as told:
        go_on()
    print(error(told).str())
    assert error(told).code() == KafkaError._AUTHENTICATION
    assert seen(as_admin(secured, SCRAM), topic) == sorted(
        str(number) for number in range(done) for _ in range(3)
    )
