"""Configurations of connectors as plans and runs have them: by digest, kept for their owner only, and masked for print."""

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
"""By connector and property, where a file says that a secret is, and what it was there."""
REFERRING = ".references"
"""The ending of a kept configuration that has references in the place of its secrets."""
Changes = Mapping[str, str | None]
"""New values by the names of properties, None for what is removed."""


def content(config: Config) -> bytes:
    """``config`` as the journal keeps it; a file there is called by the SHA-256 of its content."""
    return json.dumps(dict(config), sort_keys=True).encode()


def digest(config: Config) -> str:
    """The name of a configuration in plans, which hold no secrets."""
    return sha256(content(config)).hexdigest()


def store_configs(configs: Iterable[Config], journal: Journal, references: References = MappingProxyType({})) -> None:
    """Keep ``configs`` for later steps and for the way back, readable for the owner of the journal only.

    Where a file refers to the secret that a configuration has, the reference is kept and not the secret.
    """
    for config in configs:
        config_references = references.get(config.get("name", ""), {})
        sources = {name: source for name, (source, value) in config_references.items() if config.get(name) == value}
        path = journal.path("kept", digest(config))
        if not sources:
            journal.store_artifact([content(config)])
            continue
        kept_as = dict(config) | {name: {source.kind: source.value} for name, source in sources.items()}
        journal.write("kept", f"{path.name}{REFERRING}", json.dumps(kept_as, sort_keys=True).encode())
        path.unlink(missing_ok=True)


def stored_config(journal: Journal | None, of: str) -> dict[str, str]:
    """The configuration with the digest ``of``. Raises ``BadInput`` where the journal has it no more."""
    assert journal is not None
    path = journal.path("kept", of)
    if not path.exists() and (referring := path.with_name(f"{of}{REFERRING}")).exists():
        return _resolved(journal, referring, of)
    try:
        raw = path.read_bytes()
    except OSError as e:
        raise BadInput(f"The configuration {path} cannot be read", why=e.strerror, code="journal") from e
    if sha256(raw).hexdigest() != of:
        raise BadInput(f"The configuration {path} was changed since it was kept", code="journal")
    found: dict[str, str] = read_json(raw)
    remember(found)
    return found


def _resolved(journal: Journal, path: Path, of: str) -> dict[str, str]:
    """The configuration in ``path`` with the secrets that it refers to. Raises ``BadInput`` where they are others now."""
    try:
        config = read_json(path.read_bytes())
        sources = {
            name: SecretSource(*next(iter(value.items()))) for name, value in config.items() if isinstance(value, dict)
        }
    except (OSError, ValueError, TypeError, StopIteration) as e:
        raise BadInput(f"The configuration {path} cannot be read", why=str(e), code="journal") from e
    reveal = journal.reveal or (lambda name, value: None)
    found: dict[str, str] = config | {name: reveal(name, source) for name, source in sources.items()}
    if digest(found) != of:
        names = ", ".join(f"{name} ({source.kind} {source.value})" for name, source in sources.items())
        raise BadInput(
            f"The configuration {path} refers to secrets that are not what they were: {names}",
            next_step="Set them to what they were, or apply a file that has what you want.",
            code="other-secret",
        )
    remember(found)
    return found


def read_config(calls: ConnectCalls, name: str) -> dict[str, str] | None:
    """The configuration that the workers have of ``name``, None where they say that there is no such connector."""
    try:
        found: dict[str, str] = calls.get(path_of("connectors", name, "config"))
    except ConnectctlError as e:
        if e.code != "not-found":
            raise  # a rebalance, or nobody answers: that is not a connector that is not there
        return None
    remember(found)
    return found


def difference(before: Config, after: Config) -> dict[str, str | None]:
    """What makes ``after`` of ``before``, by name."""
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    return dict(sorted({**dict.fromkeys(before.keys() - after.keys()), **changed}.items()))


def shown(config: Changes, passwords: frozenset[str] = frozenset()) -> dict[str, str | None]:
    """``config`` as it may be printed and kept in plans. ``passwords``: see ``defined_passwords``."""
    return {name: None if value is None else str(value) for name, value in config_of(config, passwords).items()}


def changed(before: Config, changes: Changes) -> dict[str, str]:
    return {name: value for name, value in {**before, **changes}.items() if value is not None}
