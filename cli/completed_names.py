"""Names for the shell's completion: fast, and without messages if the cluster does not respond."""

from __future__ import annotations

import typer

PATIENCE = 1.5
"""Seconds before a completion times out."""


def connectors(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of connectors that begin with ``incomplete``."""
    try:
        # A shell prints its candidates raw.
        return sorted(
            name for name in _names(ctx) if name.startswith(incomplete) and name.isprintable()
        )
    except Exception:  # noqa: BLE001  # a completion prints no errors
        return []


def _names(ctx: typer.Context) -> list[str]:
    from connectctl.cli.session import Session
    from connectctl.ops.connect import config_topic
    from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics

    # Completion parses the words typed so far, but runs no callback.
    given = ctx.find_root().params
    flags = {
        f"topics.{role}": given.get(f"{role}_topic") for role in ("config", "offsets", "status")
    }
    flags |= {
        "bootstrap_servers": given.get("bootstrap_servers"),
        "group_id": given.get("group_id"),
        "timeout": PATIENCE,
    }
    session = Session(flags=flags, context=given.get("context"), config=given.get("config"))
    kafka = session.kafka
    group = kafka.group(session.group_id)
    topic = find_internal_topics(kafka, group, session.named_topics, needed=("config",)).config
    assert topic is not None
    return list(
        config_topic.parse(kafka.image([topic], patience=0)[topic].latest, topic).connectors
    )
