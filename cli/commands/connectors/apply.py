"""Requests of changes of configurations, from files, patches and an editor; differences of a file
from the cluster.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import typer
from connectctl.cli import flow
from connectctl.cli.commands.connectors.options import ConfigOptions
from connectctl.cli.options import PENDING
from connectctl.cli.output.waiting import quiet
from connectctl.cli.session import Session
from connectctl.ops.clients.editor import edit as open_editor
from connectctl.ops.clients.secrets import reveal
from connectctl.ops.config.masking import MASK
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.operations.connectors.access import observed_cluster
from connectctl.ops.operations.connectors.config import files as config_files
from connectctl.ops.operations.connectors.config import operations
from connectctl.ops.operations.connectors.config.directory import PruneRequest
from connectctl.ops.operations.connectors.config.files import refuse_unusable, usable
from connectctl.ops.operations.connectors.config.plan import ConfigPlan, Desired
from connectctl.ops.operations.connectors.config.reading import Reading, read
from connectctl.ops.operations.connectors.config.values import difference, shown
from connectctl.ops.operations.connectors.observe import exactly_one
from connectctl.ops.operations.connectors.plugin_passwords import defined_passwords


def read_desired(files: Sequence[Path], reading: Reading) -> tuple[Desired, ...]:
    """Return the connectors in ``files``, with their secrets."""
    return tuple(config_files.desired(files, reveal, reading))


def apply_files(
    session: Session,
    files: Sequence[Path],
    reading: Reading,
    exit_code: bool,
    options: ConfigOptions,
    *,
    prune: tuple[bool, Sequence[str]] = (False, ()),
) -> None:
    """Create or change the connectors in ``files``; ``prune``: whether to delete connectors that
    were applied from existing, and globs of others to delete. ``exit_code``: a dry run with changes
    exits with 3.
    """
    pruned = PruneRequest.of(files, *prune, recursive=reading.recursive)
    request = operations.ApplyRequest(
        connectors=read_desired(files, reading), prune=pruned, **options.of_request
    )
    planned = flow.perform(session, operations.ApplyConnectors(), request, options)
    drifted = isinstance(planned, ConfigPlan) and planned.drifted
    pending = drifted or any(not step.read_only for step in planned.plan.steps)
    if exit_code and options.dry_run and pending:
        raise typer.Exit(PENDING)


def differences(session: Session, wanted: Desired) -> list[tuple[str, str | None, str | None]]:
    """Return ``(property, now, in the file)`` of each difference, masked. Raises ``BadInput`` for
    an unknown connector.
    """
    cluster = observed_cluster(session)
    (health,) = cluster.connectors([wanted.name])
    former = health.connector.config
    changes = difference(former, wanted.config)
    hidden = defined_passwords(cluster.calls, wanted.config) | wanted.hidden
    now, then = shown({name: former.get(name) for name in changes}, hidden), shown(changes, hidden)
    return [(name, now[name], _other(now[name], then[name])) for name in changes]


def _other(now: str | None, then: str | None) -> str | None:
    return f"{then} (another value)" if now == then and then is not None else then


def edit(session: Session, pattern: str, options: ConfigOptions) -> None:
    """Edit the one connector that ``pattern`` matches. The edited file is kept if it is not
    sent.
    """
    cluster = observed_cluster(session)
    found = exactly_one(cluster.connectors(), pattern)
    name, former = found.name, found.connector.config
    masked = shown(former, defined_passwords(cluster.calls, former))
    text = json.dumps(masked, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    directory = Path(tempfile.mkdtemp(prefix="connectctl-edit-"))  # for its owner only
    path = directory / "connector.json"
    path.write_text(text)
    try:
        with quiet():
            open_editor(path, os.environ)
        wanted = _edited(path, name, former, masked)
        request = operations.EditRequest(found=found, desired=wanted, **options.of_request)
        flow.perform(session, operations.EditConnector(), request, options)
    except ConnectctlError as e:
        if path.exists() and path.read_text() != text:
            e.next_step = f"{e.next_step or ''} Your edit is saved in {path}.".strip()
        else:
            rmtree(directory)
        raise
    rmtree(directory)


def _edited(
    path: Path, name: str, former: Mapping[str, str], masked: Mapping[str, str | None]
) -> Desired:
    """Return the edited configuration; a secret that is still masked keeps its value."""
    given, *more = read([path], reveal)
    if more:
        raise BadInput("The file has more than one configuration", next_step="Leave one.")
    config = {
        each: former[each] if value and MASK in value and masked.get(each) == value else value
        for each, value in given.config.items()
    }
    refuse_unusable(given := replace(given, config=config, name=config.get("name") or name))
    if given.name != name:
        raise BadInput(f"A connector cannot be renamed: {name} became {given.name}")
    return replace(usable(given), file=None)  # the file is gone when a saved plan is applied
