"""Configurations of connectors in plans and runs: by digest, in files that only their owner can
read, and masked in output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING

from connectctl.ops.config.json_text import read_json
from connectctl.ops.config.masking import config_of, remember
from connectctl.ops.config.settings import SecretSource
from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import BadInput, ConnectctlError

if TYPE_CHECKING:
    from pathlib import Path

    from connectctl.ops.clients.protocols import ConnectCalls
    from connectctl.ops.core.journal import Journal

Config = Mapping[str, str]
References = Mapping[str, Mapping[str, tuple[SecretSource, str]]]
"""The reference of a file to a secret, and its value, by connector and property."""
REFERRING = ".references"
"""The suffix of a stored configuration with references instead of secrets."""
Changes = Mapping[str, str | None]
"""New values of properties, None to remove one."""


def content(config: Config) -> bytes:
    """Return the content of the journal's file for ``config``; its name is the SHA-256 of its
    content.
    """
    return json.dumps(dict(config), sort_keys=True).encode()


def digest(config: Config) -> str:
    """Return the identifier of a configuration in plans, which hold no secrets."""
    return sha256(content(config)).hexdigest()


def store_configs(
    configs: Iterable[Config], journal: Journal, references: References = MappingProxyType({})
) -> None:
    """Store ``configs`` for later steps and for an undo, readable only for the owner of the
    journal.

    If a file refers to a secret, the reference is stored instead of the secret.
    """
    for config in configs:
        config_references = references.get(config.get("name", ""), {})
        sources = {
            name: source
            for name, (source, value) in config_references.items()
            if config.get(name) == value
        }
        path = journal.path("kept", digest(config))
        if not sources:
            journal.store_artifact([content(config)])
            continue
        kept_as = dict(config) | {
            name: {source.kind: source.value} for name, source in sources.items()
        }
        journal.write(
            "kept", f"{path.name}{REFERRING}", json.dumps(kept_as, sort_keys=True).encode()
        )
        path.unlink(missing_ok=True)


def stored_config(journal: Journal | None, of: str) -> dict[str, str]:
    """Return the configuration with the digest ``of``. Raises ``BadInput`` if the journal no longer
    has it.
    """
    assert journal is not None
    path = journal.path("kept", of)
    if not path.exists() and (referring := path.with_name(f"{of}{REFERRING}")).exists():
        return _resolved(journal, referring, of)
    try:
        raw = path.read_bytes()
    except OSError as e:
        raise BadInput(
            f"The configuration {path} cannot be read", why=e.strerror, code="journal"
        ) from e
    if sha256(raw).hexdigest() != of:
        raise BadInput(f"The configuration {path} was changed since it was kept", code="journal")
    found: dict[str, str] = read_json(raw)
    remember(found)
    return found


def _resolved(journal: Journal, path: Path, of: str) -> dict[str, str]:
    """Return the configuration in ``path`` with the secrets that it refers to. Raises ``BadInput``
    if they have changed.
    """
    try:
        config = read_json(path.read_bytes())
        sources = {
            name: SecretSource(*next(iter(value.items())))
            for name, value in config.items()
            if isinstance(value, dict)
        }
    except (OSError, ValueError, TypeError, StopIteration) as e:
        raise BadInput(
            f"The configuration {path} cannot be read", why=str(e), code="journal"
        ) from e
    reveal = journal.reveal or (lambda name, value: None)
    found: dict[str, str] = config | {
        name: reveal(name, source) for name, source in sources.items()
    }
    if digest(found) != of:
        names = ", ".join(
            f"{name} ({source.kind} {source.value})" for name, source in sources.items()
        )
        raise BadInput(
            f"The configuration {path} refers to secrets that are not what they were: {names}",
            next_step="Set them to what they were, or apply a file that has what you want.",
            code="other-secret",
        )
    remember(found)
    return found


def read_config(calls: ConnectCalls, name: str) -> dict[str, str] | None:
    """Return the configuration of ``name`` from the workers, None if they report that there is no
    such connector.
    """
    try:
        found: dict[str, str] = calls.get(path_of("connectors", name, "config"))
    except ConnectctlError as e:
        if e.code != "not-found":
            # An error during a rebalance, or without an answer, does not prove that the connector
            # does not exist.
            raise
        return None
    remember(found)
    return found


def difference(before: Config, after: Config) -> dict[str, str | None]:
    """Return the changes from ``before`` to ``after``, by property."""
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    return dict(sorted({**dict.fromkeys(before.keys() - after.keys()), **changed}.items()))


def shown(config: Changes, passwords: frozenset[str] = frozenset()) -> dict[str, str | None]:
    """Return ``config`` masked, for output and for plans. ``passwords``: see
    ``defined_passwords``.
    """
    return {
        name: None if value is None else str(value)
        for name, value in config_of(config, passwords).items()
    }


def changed(before: Config, changes: Changes) -> dict[str, str]:
    return {name: value for name, value in {**before, **changes}.items() if value is not None}
