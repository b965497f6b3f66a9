"""Configurations of connectors as plans and runs have them: by digest, kept for their owner only, and masked for print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from connectctl.ops.config.json_text import read_json
from connectctl.ops.config.masking import config_of, remember
from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import BadInput, ConnectctlError

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls
    from connectctl.ops.core.journal import Journal

Config = Mapping[str, str]
Changes = Mapping[str, str | None]
"""New values by the names of properties, None for what is removed."""


def content(config: Config) -> bytes:
    """``config`` as the journal keeps it; a file there is called by the SHA-256 of its content."""
    return json.dumps(dict(config), sort_keys=True).encode()


def digest(config: Config) -> str:
    """The name of a configuration in plans, which hold no secrets."""
    return sha256(content(config)).hexdigest()


def keep(configs: Iterable[Config], journal: Journal) -> None:
    """Keep ``configs`` for later steps and for the way back, readable for the owner of the journal only."""
    for config in configs:
        journal.store_artifact([content(config)])


def kept(journal: Journal | None, of: str) -> dict[str, str]:
    """The configuration with the digest ``of``. Raises ``BadInput`` where the journal has it no more."""
    assert journal is not None
    path = journal.path("kept", of)
    try:
        raw = path.read_bytes()
    except OSError as e:
        raise BadInput(f"The configuration {path} cannot be read", why=e.strerror, code="journal") from e
    if sha256(raw).hexdigest() != of:
        raise BadInput(f"The configuration {path} was changed since it was kept", code="journal")
    found: dict[str, str] = read_json(raw)
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
