"""Whether two lists of bootstrap servers are the same Kafka cluster: as Connect decides it, and as
far as the lists prove it.
"""

from __future__ import annotations

from functools import lru_cache

NAME_IT = "Name that cluster under clusters: in the context, with the client properties it needs."
"""The next step for a Kafka cluster that cannot be reached, or may not be."""


@lru_cache
def servers(bootstrap: str) -> frozenset[str]:
    """Return the servers of ``bootstrap``, as Java reads the list: ``a:1,`` has two entries, one of
    them empty; blank has none.
    """
    return (
        frozenset(part.strip() for part in bootstrap.split(","))
        if bootstrap.strip()
        else frozenset()
    )


def same_to_connect(one: str, other: str) -> bool:
    """Return whether workers take both lists for the same cluster: equal sets of texts, whatever
    they resolve to.

    An empty entry makes a difference: workers of 3.9.2 then write offsets twice, tasks of 4.3.1
    fail.
    """
    return servers(one) == servers(other)


def share_a_server(one: str, other: str) -> bool:
    """Return whether both lists name the same server, which proves that they are the same cluster.
    False proves nothing.
    """
    return bool(servers(one) & servers(other) - {""})
