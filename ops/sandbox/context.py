"""The context file of a sandbox, by which every other command reaches it as ``--context sandbox-<name>``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.sandbox.ports import LOOPBACK
from connectctl.ops.sandbox.properties import PLAINTEXT, internal_topics

if TYPE_CHECKING:
    from connectctl.ops.sandbox.layout import Layout
    from connectctl.ops.sandbox.record import Record


def write_context(layout: Layout, record: Record) -> None:
    """Write ``context.yaml``, in the form of the person's own context file."""
    import yaml

    name, group_id = f"sandbox-{layout.name}", record.spec.group_id
    entry = {
        "bootstrap_servers": f"{LOOPBACK}:{record.listeners[PLAINTEXT]}",
        "group_id": group_id,
        "cluster_id": record.cluster_id,
        "topics": internal_topics(group_id),
        "workers": {"driver": "sandbox"},
    }
    layout.context.write_text(yaml.safe_dump({"current": name, "contexts": {name: entry}}, sort_keys=False))
