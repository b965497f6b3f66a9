"""Observes the Kafka clusters that workers and connectors use: ACLs, authorizer and topics, each
requested once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from connectctl.ops.checks.acls.principals import CLIENTS, Principals
from connectctl.ops.clients.protocols import AclReads
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.offset_store import client_overrides
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.unseen import Unseen, unseen_by
from connectctl.ops.kafka.acls import Acls, Authorizer
from connectctl.ops.kafka.bootstrap import share_a_server

MOST_AT_ONCE = 16
Open = Callable[[str, Mapping[str, str]], "AclReads"]
CanonicalServers = Mapping[str | None, str]


@dataclass(frozen=True)
class ClusterAcls:
    """A Kafka cluster: its ACLs, None without an authorizer, and the existing topics."""

    bootstrap: str
    cluster_id: str
    acls: Acls | None
    topics: frozenset[str] = frozenset()
    wants_idempotent_write: bool = False


def observe_clusters(
    opened: Open, sources: Iterable[Connector], home: ClusterAcls, options: Principals
) -> tuple[dict[str, ClusterAcls], CanonicalServers, list[Unseen]]:
    """Return the Kafka clusters of the workers and of connectors' overrides, by bootstrap servers.

    Also return the canonical spelling of the bootstrap servers in each override, that of the
    workers' own under the key None, and the failed observations. A cluster is observed with the
    overrides of the first connector that names it; all are observed concurrently. Another listener
    of a known cluster counts as that cluster: a client that connects to it may list its ACLs.
    """
    overrides: dict[str, Mapping[str, str]] = {}
    canonical: dict[str | None, str] = {None: home.bootstrap}
    for connector in sources:
        for role in CLIENTS:
            if bootstrap := connector.config.get(f"{role.prefix}bootstrap.servers"):
                same = [b for b in (home.bootstrap, *overrides) if share_a_server(b, bootstrap)]
                canonical[bootstrap] = same[0] if same else bootstrap
                if not same:
                    overrides[bootstrap] = client_overrides(connector.config, role)
    answers = _observe_concurrently(opened, overrides, home, options)
    found, unseen = {home.bootstrap: home}, []
    for bootstrap, answer in answers.items():
        if isinstance(answer, Unseen):
            unseen.append(answer)
            continue
        first = next(
            (c.bootstrap for c in found.values() if c.cluster_id == answer.cluster_id),
            answer.bootstrap,
        )
        found.setdefault(first, answer)
        canonical = {name: first if used == bootstrap else used for name, used in canonical.items()}
    return found, canonical, unseen


def _observe_concurrently(
    opened: Open, overrides: Mapping[str, Mapping[str, str]], home: ClusterAcls, options: Principals
) -> dict[str, ClusterAcls | Unseen]:
    def observe(bootstrap: str) -> ClusterAcls | Unseen:
        what = f"the ACLs of the Kafka cluster at {bootstrap}"
        return observe_cluster(
            what, partial(opened, bootstrap, overrides[bootstrap]), options, home
        )

    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        return dict(zip(overrides, pool.map(observe, overrides), strict=True))


def observe_cluster(
    what: str, opened: Callable[[], AclReads], options: Principals, home: ClusterAcls | None = None
) -> ClusterAcls | Unseen:
    """Return the Kafka cluster, ``home`` if it is the same one; ``Unseen`` with ``what`` if it
    cannot be observed.
    """
    try:
        reads = opened()
        if home is not None and reads.cluster_id() == home.cluster_id:
            return home
        bindings = reads.bindings()
        if bindings is None:
            return ClusterAcls(reads.bootstrap, reads.cluster_id(), None)
        topics, old_brokers = reads.topic_names(), reads.wants_idempotent_write()
    except ConnectctlError as e:
        return unseen_by(what, e)
    return ClusterAcls(
        reads.bootstrap,
        reads.cluster_id(),
        Acls(bindings, _authorizer(reads, options)),
        topics,
        old_brokers,
    )


def _authorizer(reads: AclReads, options: Principals) -> Authorizer:
    """Return the authorizer's settings that the brokers report, with the super users that the user
    gave.
    """
    try:
        authorizer = reads.authorizer()
    except ConnectctlError:
        # The ACLs are then evaluated as if they alone decided; findings have a next step for super
        # users.
        authorizer = Authorizer()
    users = (authorizer.super_users or frozenset()) | options.super_users
    return Authorizer(
        authorizer.class_name, users or authorizer.super_users, authorizer.open_by_default
    )
