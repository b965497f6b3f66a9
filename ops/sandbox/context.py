"""The context file of a sandbox, with which other commands connect to it: ``--context
sandbox-<name>``.

A secured sandbox also has a context for each kind of login: ``sandbox-<name>-plain``, ``-oauth``,
``-mtls``, all as ``admin``, and ``-nobody`` of a principal without rights.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from connectctl.ops.config import whole_file
from connectctl.ops.sandbox.layout import SandboxLayout
from connectctl.ops.sandbox.properties import internal_topics
from connectctl.ops.sandbox.record import SandboxRecord
from connectctl.ops.sandbox.security import ADMIN, MTLS, NOBODY, OAUTH, PLAIN, SCRAM, Security

_WAYS = {"": SCRAM, "-plain": PLAIN, "-oauth": OAUTH, "-mtls": MTLS}


def write_context(layout: SandboxLayout, record: SandboxRecord) -> None:
    """Write ``context.yaml``, in the format of the operator's context file."""
    import yaml

    name = f"sandbox-{layout.name}"
    text = yaml.safe_dump(
        {"current": name, "contexts": _contexts(name, layout, record)}, sort_keys=False
    )
    whole_file.write(layout.context, text)


def _contexts(name: str, layout: SandboxLayout, record: SandboxRecord) -> dict[str, Any]:
    group_id = record.spec.group_id
    entry = {
        "bootstrap_servers": record.bootstrap_servers,
        "group_id": group_id,
        "cluster_id": record.cluster_id,
        "topics": internal_topics(group_id),
        "workers": {"driver": "sandbox"},
    }
    if not record.spec.secured:
        return {name: entry}
    entry["workers"] = {"driver": "sandbox", "sandbox": layout.name}
    known = Security(layout.security)
    at = {
        listener: {"bootstrap_servers": record.addresses(listener)} for listener in record.listeners
    }
    contexts: dict[str, Any] = {
        f"{name}{suffix}": deepcopy(entry)
        | at[listener]
        | known.rest()
        | {"client": known.client(listener, ADMIN)}
        for suffix, listener in _WAYS.items()
    }
    return contexts | {f"{name}-nobody": deepcopy(entry) | {"client": known.client(SCRAM, NOBODY)}}
