"""The principals of a connector's clients: as the user gave them, else by the connector's
configuration.

A connector has three clients, and each may have its own credentials (KIP-458): a producer, a
consumer of its offsets, and an admin client, which also fences. Credentials that are not in its
configuration are in the workers' properties, which no request returns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from connectctl.ops.config import jaas
from connectctl.ops.connect.connector_class import has_reference
from connectctl.ops.connect.offset_store import client_overrides
from connectctl.ops.core.errors import BadInput

ANONYMOUS = "User:ANONYMOUS"


class Client(StrEnum):
    """The kind of a client: the workers' own, or one of a connector's three."""

    WORKER = "worker"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"

    @property
    def prefix(self) -> str:
        """Return the prefix of a connector's properties for this client."""
        return f"{self.value}.override."


CLIENTS = (Client.PRODUCER, Client.CONSUMER, Client.ADMIN)
IN_WORKERS_PROPERTIES = "the credentials are in the workers' properties"
_SUPER = "super"
_GIVEN = re.compile(
    r"(?:(?:(?P<connector>.+):)?(?P<role>worker|producer|consumer|admin|super)=)?(?P<principal>[A-Za-z]\w*:.+)",
    re.DOTALL,
)
_MODULE = re.compile(r"\s*([\w.$]+)")
_BY_NAME = ("PlainLoginModule", "ScramLoginModule")
_HOW = (
    "Give User:NAME, ROLE=User:NAME or CONNECTOR:ROLE=User:NAME; roles are worker, producer, "
    "consumer, admin and super."
)


@dataclass(frozen=True)
class Principals:
    """The values of ``--principal``. ``super_users`` may do everything, as the operator
    declared.
    """

    roles: Mapping[Client, str] = field(default_factory=dict)
    connectors: Mapping[tuple[str, Client], str] = field(default_factory=dict)
    super_users: frozenset[str] = frozenset()

    @property
    def worker(self) -> str | None:
        return self.roles.get(Client.WORKER)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of ``--principal`` from which ``parse_principals`` made this."""
        roles = (f"{role}={who}" for role, who in self.roles.items())
        connectors = (
            f"{connector}:{role}={who}" for (connector, role), who in self.connectors.items()
        )
        return (*roles, *connectors, *(f"{_SUPER}={who}" for who in sorted(self.super_users)))


@dataclass(frozen=True)
class Identity:
    """A principal; or None, with the reason why it is unknown."""

    principal: str | None
    why: str = ""


def parse_principals(given: Sequence[str]) -> Principals:
    """Return the principals in the arguments of ``--principal``.

    Raises ``BadInput`` for an invalid argument, and for two principals of one client. ``User:w`` is
    the workers', and that of all clients without another; ``producer=User:x`` is that of every
    connector's producer; ``CONNECTOR:producer=User:x`` is that of one connector's; ``super=User:x``
    declares a super user.
    """
    roles: dict[Client, str] = {}
    connectors: dict[tuple[str, Client], str] = {}
    users: set[str] = set()
    for text in given:
        connector, word, principal = _parts(text)
        if word == _SUPER:
            users.add(principal)
            continue
        role = Client(word)
        known = roles.get(role) if connector is None else connectors.get((connector, role))
        if known not in (None, principal):
            owner = f"the {role}" if connector is None else f"the {role} of {connector}"
            raise BadInput(
                f"--principal gives {owner} twice: {known} and {principal}",
                next_step="Give one of them.",
            )
        if connector is None:
            roles[role] = principal
        else:
            connectors[connector, role] = principal
    return Principals(roles, connectors, frozenset(users))


def _parts(text: str) -> tuple[str | None, str, str]:
    found = _GIVEN.fullmatch(text.strip())
    if found is None or re.match(r"\w+:User:", found["principal"]):
        raise BadInput(
            f"--principal {text!r} is not a principal",
            why="it must have the form User:NAME",
            next_step=_HOW,
        )
    connector, role = found["connector"], found["role"] or Client.WORKER.value
    if connector is not None and role in (Client.WORKER, _SUPER):
        raise BadInput(f"--principal {text!r}: a connector has no {role}", next_step=_HOW)
    return connector, role, found["principal"]


def principal_of(
    connector: str, role: Client, config: Mapping[str, str], options: Principals
) -> Identity:
    """Return the principal of this client of ``connector``.

    The order is: the option for this client, its overrides, the option for its role, the workers'
    principal.
    """
    if (declared := options.connectors.get((connector, role))) is not None:
        return Identity(declared)
    if (found := identity(client_overrides(config, role))) is not None:
        return found
    principal = options.roles.get(role) or options.worker
    return Identity(principal, "" if principal else IN_WORKERS_PROPERTIES)


def identity(properties: Mapping[str, str]) -> Identity | None:
    """Return the identity of a Java client with these properties; None if they do not determine
    it.
    """
    protocol = properties.get("security.protocol", "").upper()
    if protocol == "PLAINTEXT":
        return Identity(ANONYMOUS)
    if protocol == "SSL" or (not protocol.startswith("SASL_") and _has_certificate(properties)):
        return Identity(
            None,
            "it comes from a certificate, whose name the brokers' ssl.principal.mapping.rules "
            "translate",
        )
    if text := properties.get("sasl.jaas.config"):
        return _of_jaas(text)
    if any(name.startswith(("sasl.oauthbearer.", "sasl.login.callback.")) for name in properties):
        return Identity(None, "it comes from a token")
    return None


def _has_certificate(properties: Mapping[str, str]) -> bool:
    return (
        any(name.startswith("ssl.keystore.") for name in properties)
        and "sasl.jaas.config" not in properties
    )


def _of_jaas(text: str) -> Identity:
    module = _MODULE.match(text)
    name = module.group(1).rpartition(".")[2] if module else ""
    if has_reference(text) and "username" not in text:
        return Identity(None, "its sasl.jaas.config is a reference to a config provider")
    if name not in _BY_NAME:
        source = f"the login module {name}" if name else "a sasl.jaas.config without a login module"
        return Identity(None, f"it comes from {source}, not from a name")
    options = jaas.options(text)
    if options.get("tokenauth", "").lower() == "true":
        return Identity(None, "it logs in with a delegation token, which is its owner's")
    user = options.get("username")
    if not user:
        return Identity(None, "its sasl.jaas.config has no username")
    if has_reference(user):
        return Identity(None, "its username is a reference to a config provider")
    return Identity(f"User:{user}")
