"""Executes changes of configurations: read, validate, plan, confirm, store the configurations, run."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree

import typer
from connectctl.cli.commands.connectors import cluster as connectors_cluster
from connectctl.cli.commands.connectors import offsets as connectors_offsets
from connectctl.cli.commands.connectors.directory import Directory
from connectctl.cli.commands.connectors.options import ConfigOptions
from connectctl.cli.commands.connectors.outlook import ConfigOutlook
from connectctl.cli.commands.connectors.versions import versions_of
from connectctl.cli.options import PENDING, ApplyOptions, WaitOptions
from connectctl.cli.session import Session
from connectctl.ops.checks import offline
from connectctl.ops.checks.connector_config.validations import MOST
from connectctl.ops.checks.types import Goal
from connectctl.ops.clients.editor import edit as open_editor
from connectctl.ops.clients.secrets import reveal
from connectctl.ops.config.masking import MASK
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.operations.connectors.access import ConnectorAccess
from connectctl.ops.operations.connectors.config import files as config_files
from connectctl.ops.operations.connectors.config import outlook as config_outlook
from connectctl.ops.operations.connectors.config.directory import PruneRequest
from connectctl.ops.operations.connectors.config.files import given_of, read, refuse_unusable, usable, warnings_of
from connectctl.ops.operations.connectors.config.history import chosen_version
from connectctl.ops.operations.connectors.config.offsets import check_initial, check_removable, initial, removal
from connectctl.ops.operations.connectors.config.outlook import OffsetsOfChange
from connectctl.ops.operations.connectors.config.plan import ConfigPlan, Desired, Planner, assignments, refuse_existing
from connectctl.ops.operations.connectors.config.values import changed, difference, keep, shown
from connectctl.ops.operations.connectors.observe import ConnectorHealth, matching, the_one
from connectctl.ops.operations.connectors.plugin_passwords import defined_passwords
from connectctl.ops.operations.connectors.remaining_resources import remaining_resources


def planner_of(cluster: ConnectorAccess, operation: str, found: Iterable[ConnectorHealth], *, wait: bool) -> Planner:
    """Return a planner for the current connectors ``found``."""
    where = cluster.cluster_id(), cluster.group_id
    return Planner(operation, *where, {each.name: each for each in found}, wait=wait)


def read_desired(files: Sequence[Path]) -> list[Desired]:
    """Return the connectors in ``files``, with their secrets."""
    return config_files.desired(files, reveal)


def create(
    session: Session, files: Sequence[Path], stopped: bool, offsets: Path | None, options: ConfigOptions
) -> None:
    """Create the connectors in ``files``, with initial ``offsets`` of one of them, or with those of a former name."""
    given = read_desired(files)
    entries = check_initial(given, offsets)
    cluster = connectors_cluster.observed(session)
    planner = planner_of(cluster, "connectors create", cluster.connectors(), wait=options.wait)
    refuse_existing(given, planner.current)
    outlook = ConfigOutlook(session, cluster, planner.current.values(), given)
    if options.carry:
        entries = outlook.carried(given, entries)

    def effect_of(each: Desired) -> OffsetsOfChange:
        return outlook.of_new(each, entries)

    _validate_changed(session, cluster, planner, given, force=options.force)
    state = "STOPPED" if stopped else None
    wanted = [replace(each, state=state or each.state) for each in given]
    if connectors_offsets.by_topic(cluster, entries) and wanted[0].state in (None, "RUNNING"):
        planner.create(wanted[0], OffsetsOfChange(effect_of(wanted[0]).sentences))
        connectors_offsets.create(session, planner.planned(), wanted[0].name, entries, options=options)
        return
    initial(cluster.calls, planner, wanted, entries, effect_of, force=options.force)
    carry_out(session, cluster, planner.planned(), options)


def apply_files(
    session: Session,
    files: Sequence[Path],
    exit_code: bool,
    options: ConfigOptions,
    *,
    prune: tuple[bool, Sequence[str]] = (False, ()),
) -> None:
    """Create or change the connectors in ``files``; ``prune``: whether to delete connectors that were applied from existing,
    and globs of others to delete.
    """
    request = PruneRequest.of(files, *prune)
    given = read_desired(files)
    cluster = connectors_cluster.observed(session)
    planner = planner_of(cluster, "connectors apply", cluster.connectors(), wait=options.wait)
    planner.declared = True
    directory = Directory.of(session, cluster, planner, given, request)
    change(session, cluster, planner, given, options, exit_code=exit_code, directory=directory)


def patch(session: Session, pattern: str, texts: Sequence[str], options: ConfigOptions) -> None:
    """Set and remove single properties of the connectors that ``pattern`` matches."""
    properties = assignments(texts)
    cluster = connectors_cluster.observed(session)
    found = cluster.connectors()
    planner = planner_of(cluster, "connectors patch", matching(found, [pattern]), wait=options.wait)
    wanted = [Desired(name, changed(h.connector.config, properties)) for name, h in planner.current.items()]
    change(session, cluster, planner, wanted, options, existing=found)


def rollback(session: Session, name: str, to: int, options: ConfigOptions) -> None:
    """Restore the configuration of the connector ``name`` from its version ``to``."""
    cluster, found, _ = versions_of(session, name)
    config = chosen_version(found, name, to).config
    if config is None:
        hint = f"Delete it: connectctl connectors delete {name}."
        raise BadInput(f"Version {to} of {name} is its deletion", next_step=hint, code="unknown-version")
    planner = planner_of(cluster, "connectors rollback", cluster.connectors(), wait=options.wait)
    change(session, cluster, planner, [Desired(name, config)], options)


def change(
    session: Session,
    cluster: ConnectorAccess,
    planner: Planner,
    wanted: Sequence[Desired],
    options: ConfigOptions,
    *,
    exit_code: bool = False,
    directory: Directory | None = None,
    existing: Collection[ConnectorHealth] | None = None,
) -> None:
    """Create missing connectors and change the others. ``exit_code``: a dry run with changes exits with 3;
    ``directory`` is a directory applied as a whole; ``existing`` are all connectors, if the planner does not have all.
    """
    _validate_changed(session, cluster, planner, wanted, force=options.force)
    connectors = planner.current.values() if existing is None else existing
    outlook = ConfigOutlook(session, cluster, connectors, wanted, directory.pruned.delete if directory else ())
    for each in wanted:
        if each.name in planner.current:
            former = planner.current[each.name].connector
            offsets = config_outlook.of_change(
                cluster.calls, former, each.config, carry=options.carry, force=options.force
            )
            if each.config != former.config:
                offsets += config_outlook.of_others(each.name, each.config, outlook.others(each.name))
            planner.change(each, offsets, force=options.force)
            continue
        new = replace(each, state=each.state or each.kept_state)
        entries = outlook.carried([each], ()) if options.carry and outlook.has_former(each) else ()
        if entries:
            of_new = partial(outlook.of_new, entries=entries)
            initial(cluster.calls, planner, [new], entries, of_new, force=options.force)
        else:
            planner.create(new, outlook.of_new(each))
    if directory is not None:
        directory.finish(planner)
    planned = planner.planned()
    carry_out(session, cluster, planned, options)
    pending = planner.drifted or any(not step.read_only for step in planned.plan.steps)
    if exit_code and options.dry_run and pending:
        raise typer.Exit(PENDING)


def _validate_changed(
    session: Session, cluster: ConnectorAccess, planner: Planner, wanted: Sequence[Desired], *, force: bool
) -> None:
    """Validate changed configurations as ``validate`` does, and record their warnings and their secret properties."""
    found = planner.current
    differing = [
        each for each in wanted if each.name not in found or each.config != dict(found[each.name].connector.config)
    ]
    former = {each.name: found[each.name].connector.config for each in differing if each.name in found}
    planner.passwords = {
        each.name: defined_passwords(cluster.calls, each.config)
        | defined_passwords(cluster.calls, former.get(each.name, {}))
        | each.hidden
        for each in differing
    }
    if not differing:
        return
    given = given_of(differing)
    where = cluster.calls, given, cluster.kafka, cluster.group, session.named_topics
    known = offline.look(*where, group_id=cluster.group_id or None, most=MOST)
    planner.warnings = warnings_of(offline.report(given, Goal.NOW, known), force=force)


def delete(session: Session, names: Sequence[str], with_offsets: bool, options: WaitOptions) -> None:
    """Delete connectors, and report the resources that remain."""
    cluster = connectors_cluster.observed(session)
    planner = planner_of(cluster, "connectors delete", cluster.connectors(names), wait=options.wait)
    group = cluster.group_id
    calls = (lambda: session.transactions) if cluster.kafka is not None else None
    if with_offsets:
        check_removable(cluster.calls, planner.current.values())
    for name, health in planner.current.items():
        leaves = remaining_resources(cluster.calls, health.connector, group, calls, with_offsets=with_offsets)
        planner.delete(name, leaves, removal(health) if with_offsets else ())
    carry_out(session, cluster, planner.planned(), options)


def differences(session: Session, wanted: Desired) -> list[tuple[str, str | None, str | None]]:
    """Return ``(property, now, in the file)`` of each difference, masked. Raises ``BadInput`` for an unknown connector."""
    cluster = connectors_cluster.observed(session)
    ((health,),) = (cluster.connectors([wanted.name]),)
    former = health.connector.config
    changes = difference(former, wanted.config)
    hidden = defined_passwords(cluster.calls, wanted.config) | wanted.hidden
    now, then = shown({name: former.get(name) for name in changes}, hidden), shown(changes, hidden)
    return [(name, now[name], _other(now[name], then[name])) for name in changes]


def _other(now: str | None, then: str | None) -> str | None:
    return f"{then} (another one)" if now == then and then is not None else then


def carry_out(session: Session, cluster: ConnectorAccess, planned: ConfigPlan, options: ApplyOptions) -> None:
    """Print the plan, or execute it after confirmation; its configurations are stored before any change."""

    begin = partial(keep, planned.configs, references=planned.references)
    connectors_cluster.perform(session, cluster, planned.plan, options, begin=begin, verified=planned.verified)


def edit(session: Session, pattern: str, options: ConfigOptions) -> None:
    """Edit the one connector that ``pattern`` matches. The edited file is kept if it is not sent."""
    cluster = connectors_cluster.observed(session)
    found = the_one(cluster.connectors(), pattern)
    planner = planner_of(cluster, "connectors edit", [found], wait=options.wait)
    name, former = found.name, found.connector.config
    masked = shown(former, defined_passwords(cluster.calls, former))
    text = json.dumps(masked, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    directory = Path(tempfile.mkdtemp(prefix="connectctl-edit-"))  # for its owner only
    path = directory / "connector.json"
    path.write_text(text)
    try:
        open_editor(path, os.environ)
        wanted = [_edited(path, name, former, masked)]
        # Connectors may have been created during the edit.
        change(session, cluster, planner, wanted, options, existing=cluster.connectors())
    except ConnectctlError as e:
        if path.exists() and path.read_text() != text:
            e.next_step = f"{e.next_step or ''} Your edit is saved in {path}.".strip()
        else:
            rmtree(directory)
        raise
    rmtree(directory)


def _edited(path: Path, name: str, former: Mapping[str, str], masked: Mapping[str, str | None]) -> Desired:
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
