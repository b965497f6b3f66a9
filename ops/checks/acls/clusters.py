"""Observes the Kafka clusters that workers and connectors use: ACLs, authorizer and topics, each requested one time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from connectctl.ops.checks.acls.principals import CLIENTS, Client, Principals
from connectctl.ops.checks.types import Unseen, unseen_by
from connectctl.ops.clients.protocols import AclReads
from connectctl.ops.connect.connector import Connector
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.acls import Acls, Authorizer
from connectctl.ops.kafka.bootstrap import share_a_server

MOST_AT_ONCE = 16
Open = Callable[[str, Mapping[str, str]], "AclReads"]
Spelled = Mapping[str | None, str]


@dataclass(frozen=True)
class ClusterAcls:
    """A Kafka cluster: its ACLs, None if it has no authorizer, and the topics that exist."""

    bootstrap: str
    cluster_id: str
    acls: Acls | None
    topics: frozenset[str] = frozenset()
    wants_idempotent_write: bool = False


def look_elsewhere(
    opened: Open, sources: Iterable[Connector], home: ClusterAcls, said: Principals
) -> tuple[dict[str, ClusterAcls], Spelled, list[Unseen]]:
    """The clusters in connectors' overrides, by bootstrap servers, each with the overrides of the first that names it, all
    concurrently; for each spelling of those the one used here, for None the workers' own; and failed observations.

    Another listener of a known cluster counts as that cluster: a client that connects to it may list its ACLs.
    """
    wanted: dict[str, Mapping[str, str]] = {}
    spelled: dict[str | None, str] = {None: home.bootstrap}
    for connector in sources:
        for role in CLIENTS:
            if bootstrap := connector.config.get(f"{role.prefix}bootstrap.servers"):
                same = [b for b in (home.bootstrap, *wanted) if share_a_server(b, bootstrap)]
                spelled[bootstrap] = same[0] if same else bootstrap
                if not same:
                    wanted[bootstrap] = _overrides(connector, role)
    answers = _observe_concurrently(opened, wanted, home, said)
    found, lost = {home.bootstrap: home}, []
    for bootstrap, answer in answers.items():
        if isinstance(answer, Unseen):
            lost.append(answer)
            continue
        first = next((c.bootstrap for c in found.values() if c.cluster_id == answer.cluster_id), answer.bootstrap)
        found.setdefault(first, answer)
        spelled = {name: first if used == bootstrap else used for name, used in spelled.items()}
    return found, spelled, lost


def _observe_concurrently(
    opened: Open, wanted: Mapping[str, Mapping[str, str]], home: ClusterAcls, said: Principals
) -> dict[str, ClusterAcls | Unseen]:
    def one(bootstrap: str) -> ClusterAcls | Unseen:
        what = f"the ACLs of the Kafka cluster at {bootstrap}"
        return look(what, partial(opened, bootstrap, wanted[bootstrap]), said, home)

    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        return dict(zip(wanted, pool.map(one, wanted), strict=True))


def look(
    what: str, opened: Callable[[], AclReads], said: Principals, home: ClusterAcls | None = None
) -> ClusterAcls | Unseen:
    """The Kafka cluster, ``home`` if it is the same one; ``Unseen`` with ``what`` if it cannot be observed."""
    try:
        edge = opened()
        if home is not None and edge.cluster_id() == home.cluster_id:
            return home
        bindings = edge.bindings()
        if bindings is None:
            return ClusterAcls(edge.bootstrap, edge.cluster_id(), None)
        topics, old = edge.topic_names(), edge.wants_idempotent_write()
    except ConnectctlError as e:
        return unseen_by(what, e)
    return ClusterAcls(edge.bootstrap, edge.cluster_id(), Acls(bindings, _authorizer(edge, said)), topics, old)


def _authorizer(edge: AclReads, said: Principals) -> Authorizer:
    """The authorizer's settings, as far as they are reported, and the super users that were given."""
    try:
        authorizer = edge.authorizer()
    except ConnectctlError:
        # The ACLs are then evaluated as if they alone decided; findings say what to do about super users.
        authorizer = Authorizer()
    users = (authorizer.super_users or frozenset()) | said.super_users
    return Authorizer(authorizer.class_name, users or authorizer.super_users, authorizer.open_by_default)


def _overrides(connector: Connector, role: Client) -> dict[str, str]:
    return {n.removeprefix(role.prefix): v for n, v in connector.config.items() if n.startswith(role.prefix)}
