"""The security of a sandbox: its listeners, users, passwords, and the properties that name them.

::

    $XDG_STATE_HOME/connectctl/sandbox/<name>/security/     0700, and every file in it 0600
        ca.pem  broker.pem  worker.pem  admin.pem           an authority, and keys with certificates of it
        worker.p12  keystore.password                       the worker's once more, for its REST server
        <user>.password                                     of SCRAM, PLAIN and the workers' REST servers
        oauth.claims                                        librdkafka's sasl.oauthbearer.config of admin
        rest-users.properties  rest-login.conf              the users of the workers' basic authentication

A principal is called the same on every listener, so that one ACL counts on all of them. The only
super user is the broker itself, by its certificate; people and workers have ACLs (``grants``). The
broker takes unsigned OAUTHBEARER tokens, as Kafka's own test validator does: what makes one good is
the name of the claim that holds its principal, which is a secret of this sandbox. A required scope
is no secret: the broker sends it to every client whose token lacks it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectctl.ops.config import whole_file
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox import certificates
from connectctl.ops.sandbox.ports import LOOPBACK

SCRAM, PLAIN, OAUTH, MTLS = "SCRAM", "PLAIN", "OAUTH", "MTLS"
PROTOCOLS = {SCRAM: "SASL_SSL", PLAIN: "SASL_SSL", OAUTH: "SASL_SSL", MTLS: "SSL"}
MECHANISMS = {SCRAM: "SCRAM-SHA-512", PLAIN: "PLAIN", OAUTH: "OAUTHBEARER"}
BROKER, WORKER, ADMIN, NOBODY = "broker", "worker", "admin", "nobody"
USERS = (WORKER, ADMIN, NOBODY)

_ACLS_PATIENCE = 60.0
_KEYSTORE = "keystore"
_LOGIN = "org.apache.kafka.common.security"
_REST_LOGIN = "org.apache.kafka.connect.rest.basic.auth.extension"


@dataclass(frozen=True, slots=True)
class Security:
    """The secrets of one sandbox, and what its processes and clients get of them."""

    directory: Path

    def create(self) -> None:
        """Make passwords and certificates of its own; nothing of it is known to another sandbox."""
        self.directory.mkdir(mode=0o700)
        for user in (*USERS, _KEYSTORE):
            whole_file.write(self._password_file(user), secrets.token_urlsafe(24))
        claim = secrets.token_hex(24)
        whole_file.write(
            self.claims_file, f"principalClaimName={claim} principal={ADMIN} lifeSeconds=3600"
        )
        users = self.directory / "rest-users.properties"
        whole_file.write(users, f"{ADMIN}={self.password(ADMIN)}\n")
        login = (
            f"KafkaConnect {{\n  {_REST_LOGIN}.PropertyFileLoginModule required "
            f'file="{users}";\n}};\n'
        )
        whole_file.write(self._rest_login, login)
        names = {BROKER: True, WORKER: True, ADMIN: False}
        certificates.issue(self.directory, names, self.password(_KEYSTORE), WORKER)

    @property
    def authority(self) -> Path:
        """Return the certificate that signed all others."""
        return self.directory / f"{certificates.AUTHORITY}.pem"

    @property
    def claims_file(self) -> Path:
        return self.directory / "oauth.claims"

    @property
    def _rest_login(self) -> Path:
        return self.directory / "rest-login.conf"

    def identity(self, name: str) -> Path:
        """Key and certificate of ``broker``, ``worker`` or ``admin``, in one file."""
        return self.directory / f"{name}.pem"

    @property
    def principal_claim(self) -> str:
        """Return the name of the claim in which the broker looks for a token's principal."""
        return self.claims_file.read_text().partition("principalClaimName=")[2].split()[0]

    def _password_file(self, user: str) -> Path:
        return self.directory / f"{user}.password"

    def password(self, user: str) -> str:
        return self._password_file(user).read_text()

    def format_arguments(self, cluster_id: str, properties: Path) -> Path:
        """A file of arguments for ``kafka-storage``: SCRAM users are made when the storage is.
        See ``forget_arguments``.
        """
        lines = ["format", "-t", cluster_id, "-c", str(properties)]
        for user in USERS:
            lines += [
                "--add-scram",
                f"{MECHANISMS[SCRAM]}=[name={user},password={self.password(user)}]",
            ]
        return whole_file.write(self.directory / "format.arguments", "\n".join(lines) + "\n")

    def forget_arguments(self) -> None:
        """Remove the file of arguments, which has every password in it."""
        (self.directory / "format.arguments").unlink(missing_ok=True)

    def of_broker(self) -> dict[str, str]:
        """Properties of the broker, which is also a controller."""
        claim = self.principal_claim
        plain = " ".join(f'user_{user}="{self.password(user)}"' for user in USERS)
        found = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{BROKER}",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+)$/$1/",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.identity(BROKER)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            # No listener takes a client that is not known, and controllers are clients of each
            # other.
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.controller.ssl.client.auth": "required",
            "listener.name.scram.scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
            "listener.name.plain.plain.sasl.jaas.config": f"{_LOGIN}.plain.PlainLoginModule required {plain};",
            "listener.name.oauth.oauthbearer.sasl.jaas.config": (
                f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required"
                f' unsecuredLoginPrincipalClaimName="{claim}" unsecuredLoginStringClaim_{claim}="{BROKER}"'
                f' unsecuredValidatorPrincipalClaimName="{claim}";'
            ),
        }
        listed = {
            f"listener.name.{name.lower()}.sasl.enabled.mechanisms": each
            for name, each in MECHANISMS.items()
        }
        return found | listed

    def of_worker(self, port: int) -> dict[str, str]:
        """Properties of a worker that logs in by SCRAM and serves REST on HTTPS, to those who have
        a password.
        """
        module = f"{_LOGIN}.scram.ScramLoginModule"
        client = {
            "security.protocol": PROTOCOLS[SCRAM],
            "sasl.mechanism": MECHANISMS[SCRAM],
            "sasl.jaas.config": f'{module} required username="{WORKER}" '
            f'password="{self.password(WORKER)}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
        }
        # What tasks are given, workers do not take from their own: each kind of client has its own
        # settings.
        clients = {
            f"{kind}{key}": value
            for kind in ("", "producer.", "consumer.", "admin.")
            for key, value in client.items()
        }
        return clients | {
            "listeners": f"https://{LOOPBACK}:{port}",
            "rest.advertised.listener": "https",
            "rest.extension.classes": f"{_REST_LOGIN}.BasicAuthSecurityRestExtension",
            **self._rest_stores(),
        }

    def _rest_stores(self) -> dict[str, str]:
        # Workers send each other requests. All show the same certificate, so that their keystore
        # also has the trusted authority.
        store = {
            "type": "PKCS12",
            "location": f"{self.directory / WORKER}.p12",
            "password": self.password(_KEYSTORE),
        }
        return {
            f"listeners.https.ssl.{role}.{key}": value
            for role in ("keystore", "truststore")
            for key, value in store.items()
        }

    def java_options(self) -> list[str]:
        """Options of a worker's JVM: where its REST extension reads logins from."""
        return [f"-Djava.security.auth.login.config={self._rest_login}"]

    def client(self, listener: str, principal: str) -> dict[str, object]:
        """librdkafka's properties of a client, as a context file has them: secrets by the names of
        their files.
        """
        known: dict[str, object] = {
            "security.protocol": PROTOCOLS[listener],
            "ssl.ca.location": str(self.authority),
        }
        if listener == MTLS:
            identity = str(self.identity(principal))
            return known | {"ssl.certificate.location": identity, "ssl.key.location": identity}
        known["sasl.mechanism"] = MECHANISMS[listener]
        if listener == OAUTH:
            claims = {"sasl.oauthbearer.config": {"file": str(self.claims_file)}}
            return known | {"enable.sasl.oauthbearer.unsecure.jwt": "true"} | claims
        return known | {
            "sasl.username": principal,
            "sasl.password": {"file": str(self._password_file(principal))},
        }

    def rest(self) -> dict[str, object]:
        """Return the entries of a context file by which ``admin`` reaches workers."""
        password = {"file": str(self._password_file(ADMIN))}
        return {
            "rest_auth": {"username": ADMIN, "password": password},
            "rest_tls": {"ca": str(self.authority)},
        }


def grants() -> list[tuple[str, str, str, str]]:
    """Return ``(principal, resource type, name, operation)`` of the ACLs to begin with, as
    librdkafka calls them.

    Workers run what they are given, so that they may use every topic, group and transactional id;
    they administer nothing.
    """
    every = {"TOPIC": "*", "GROUP": "*", "TRANSACTIONAL_ID": "*", "BROKER": "kafka-cluster"}
    worker = {
        "TOPIC": ("CREATE", "READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"),
        "GROUP": ("READ", "DESCRIBE"),
        "TRANSACTIONAL_ID": ("WRITE", "DESCRIBE"),
        "BROKER": ("IDEMPOTENT_WRITE", "DESCRIBE"),
    }
    admin = dict.fromkeys(every, ("ALL",))
    return [
        (f"User:{user}", kind, every[kind], operation)
        for user, rights in ((WORKER, worker), (ADMIN, admin))
        for kind, operations in rights.items()
        for operation in operations
    ]


def grant(client: Mapping[str, Any]) -> None:
    """Make the ACLs of ``grants`` as the super user that ``client`` is. Raises ConnectctlError."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
        ResourceType,
    )

    literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    requests = [
        AclBinding(
            ResourceType[kind], name, literal, principal, "*", AclOperation[operation], allow
        )
        for principal, kind, name, operation in grants()
    ]
    try:
        admin = AdminClient({**client, "log_level": 0})
        for future in admin.create_acls(requests, request_timeout=_ACLS_PATIENCE).values():
            future.result()
    except KafkaException as e:
        raise ConnectctlError(
            "Could not create the ACLs of the sandbox", why=e.args[0].str()
        ) from e
