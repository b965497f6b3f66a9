"""Who may do what on the secured cluster of the tests: clients of its principals, and topics made
by its super user.
"""

from __future__ import annotations

import secrets
import ssl
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from connectctl.ops.clients.secrets import reveal
from connectctl.ops.config.settings import SecretSource
from connectctl.ops.sandbox.ports import LOOPBACK
from connectctl.ops.sandbox.security import ADMIN, MTLS, SCRAM, Security
from live.real import Workers, await_topic

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

ITERATIONS = 4096


def as_admin(cluster: Sandbox, way: str) -> dict[str, Any]:
    """librdkafka's properties of the administrator on this listener, secrets included."""
    given = Security(cluster.layout.security).client(way, ADMIN)
    read = {
        name: reveal(name, SecretSource("file", value["file"]))
        if isinstance(value, dict)
        else value
        for name, value in given.items()
    }
    return read | {"bootstrap.servers": f"{LOOPBACK}:{cluster.record.listeners[way]}"}


def as_user(cluster: Sandbox, user: str, password: str) -> dict[str, Any]:
    """librdkafka's properties of somebody else, by SCRAM."""
    return as_admin(cluster, SCRAM) | {"sasl.username": user, "sasl.password": password}


def create_user(cluster: Sandbox, user: str) -> str:
    """Make a user who may do nothing; gives the password."""
    password = secrets.token_urlsafe(12)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
    wanted = UserScramCredentialUpsertion(user, info, password.encode())
    admin = super_user(cluster)
    for future in admin.alter_user_scram_credentials([wanted]).values():
        future.result(300)
    return password


def create_topic(cluster: Sandbox, name: str, partitions: int = 1, **config: str) -> str:
    """Make a topic, and wait until the broker knows it."""
    admin = super_user(cluster)
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(300)
    await_topic(admin, name)
    return name


def rest(cluster: Sandbox) -> Workers:
    """The workers' REST API, as the administrator."""
    known = Security(cluster.layout.security)
    trust = ssl.create_default_context(cafile=str(known.authority))
    return Workers(cluster.rest_urls[0], verify=trust, auth=(ADMIN, known.password(ADMIN)))


def super_user(cluster: Sandbox) -> AdminClient:
    """The cluster's super user, by its certificate."""
    assert cluster.client["bootstrap.servers"].endswith(str(cluster.record.listeners[MTLS]))
    return AdminClient(cluster.client)
