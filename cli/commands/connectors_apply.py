"""From wanted configurations to a run: read, validate, plan, ask once, keep what the plan means, carry out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from connectctl.cli.commands import connectors_cluster, connectors_offsets
from connectctl.cli.commands.connectors_stored import stored_offsets
from connectctl.cli.commands.connectors_versions import versions_of
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.connectors import config_files, config_outlook
from connectctl.ops.operations.connectors.config_history import chosen_version
from connectctl.ops.operations.connectors.config_offsets import (
    SetConnectorOffsets,
    check_initial,
    check_removable,
    initial,
    removal,
)
from connectctl.ops.operations.connectors.config_plan import ConfigPlan, Desired, Planner, assignments, refuse_existing
from connectctl.ops.operations.connectors.config_validation import refuse_invalid
from connectctl.ops.operations.connectors.config_values import changed, difference, keep, shown
from connectctl.ops.operations.connectors.leftovers import leftovers
from connectctl.ops.operations.connectors.observe import defined_passwords

if TYPE_CHECKING:
    from connectctl.cli.commands.connectors_cluster import Cluster
    from connectctl.cli.output.terminal import Output
    from connectctl.cli.session import Session
    from connectctl.ops.operations.connectors.config_values import Config
    from connectctl.ops.operations.connectors.observe import ConnectorHealth

PENDING = 3


def planner_of(cluster: Cluster, operation: str, found: Iterable[ConnectorHealth], *, wait: bool) -> Planner:
    """A planner for the connectors as they are now, with ``found`` of them."""
    where = connectors_cluster.cluster_id_of(cluster), connectors_cluster.group_id_of(cluster)
    return Planner(operation, *where, {each.name: each for each in found}, wait=wait)


def create(
    session: Session, files: Sequence[Path], stopped: bool, offsets: Path | None, *, wait: bool, **how: Any
) -> None:
    """Create the connectors in ``files``, with initial ``offsets`` of one of them."""
    given = config_files.desired(files)
    entries = check_initial(given, offsets)
    cluster = connectors_cluster.observed(session)
    planner = planner_of(cluster, "connectors create", connectors_cluster.chosen(cluster, None), wait=wait)
    refuse_existing(given, planner.current)
    stored, others = stored_offsets(session, cluster, [each.name for each in given]), _others(cluster, planner, given)

    def sentences(each: Desired) -> tuple[str, ...]:
        found = () if entries else config_outlook.of_new(each.config, stored(each.name))
        return (*found, *config_outlook.of_others(each.config, others(each.name)))

    _learn(cluster, planner, given)
    state = "STOPPED" if stopped else None
    wanted = [replace(each, state=state or each.state) for each in given]
    if connectors_offsets.by_topic(cluster, entries) and wanted[0].state in (None, "RUNNING"):
        planner.create(wanted[0], sentences(wanted[0]))
        connectors_offsets.create(session, planner.planned(), wanted[0].name, entries, **how)
        return
    initial(cluster.calls, planner, wanted, entries, sentences)
    carry_out(session, cluster, planner.planned(), **how)


def apply_files(
    session: Session, files: Sequence[Path], wait: bool, exit_code: bool, *, carry: bool = False, **how: Any
) -> None:
    """Create or change the connectors in ``files``."""
    given = config_files.desired(files)
    cluster = connectors_cluster.observed(session)
    planner = planner_of(cluster, "connectors apply", connectors_cluster.chosen(cluster, None), wait=wait)
    change(session, cluster, planner, given, exit_code=exit_code, carry=carry, **how)


def patch(session: Session, pattern: str, texts: Sequence[str], wait: bool, **how: Any) -> None:
    """Set and remove single properties of the connectors that ``pattern`` means."""
    properties = assignments(texts)
    cluster = connectors_cluster.observed(session)
    planner = planner_of(cluster, "connectors patch", connectors_cluster.chosen(cluster, [pattern]), wait=wait)
    wanted = [Desired(name, changed(h.connector.config, properties)) for name, h in planner.current.items()]
    change(session, cluster, planner, wanted, **how)


def rollback(session: Session, name: str, to: int, wait: bool, *, carry: bool, **how: Any) -> None:
    """Give the connector ``name`` the configuration of its version ``to`` again."""
    cluster, found, _ = versions_of(session, name)
    config = chosen_version(found, name, to).config
    if config is None:
        hint = f"Delete it: connectctl connectors delete {name}."
        raise BadInput(f"Version {to} of {name} is its deletion", next_step=hint, code="unknown-version")
    planner = planner_of(cluster, "connectors rollback", connectors_cluster.chosen(cluster, None), wait=wait)
    change(session, cluster, planner, [Desired(name, config)], carry=carry, **how)


def change(
    session: Session,
    cluster: Cluster,
    planner: Planner,
    wanted: Sequence[Desired],
    *,
    exit_code: bool = False,
    carry: bool = False,
    **how: Any,
) -> None:
    """Create what is not there, and change the rest. ``exit_code``: a dry run with something to do exits with 3; ``carry``:
    source offsets go with the change.
    """
    _learn(cluster, planner, wanted)
    stored = stored_offsets(session, cluster, [each.name for each in wanted if each.name not in planner.current])
    others = _others(cluster, planner, wanted)
    for each in wanted:
        if each.name in planner.current:
            former = planner.current[each.name].connector
            offsets = config_outlook.of_change(cluster.calls, former, each.config, carry=carry)
            same = config_outlook.of_others(each.config, others(each.name)) if each.config != former.config else ()
            steps = [SetConnectorOffsets(each.name, offsets.entries)] if offsets.entries else []
            planner.change(each, (*offsets.sentences, *same), steps)
        else:
            sentences = config_outlook.of_new(each.config, stored(each.name))
            same = config_outlook.of_others(each.config, others(each.name))
            planner.create(replace(each, state=each.state or each.kept_state), (*sentences, *same))
    planned = planner.planned()
    carry_out(session, cluster, planned, **how)
    if exit_code and how["dry_run"] and planned.plan.steps:
        raise typer.Exit(PENDING)


def _others(cluster: Cluster, planner: Planner, wanted: Sequence[Desired]) -> Callable[[str], dict[str, Config]]:
    """The configurations that other connectors than one will have."""
    there = {each.name: each.connector.config for each in connectors_cluster.chosen(cluster, None)}
    all_ = {**there, **{each.name: each.config for each in wanted}}
    return lambda name: {other: config for other, config in all_.items() if other != name}


def _learn(cluster: Cluster, planner: Planner, wanted: Sequence[Desired]) -> None:
    """Have what differs validated by a worker, and learn which of its properties are secrets."""
    found = planner.current
    differing = [
        each for each in wanted if each.name not in found or each.config != dict(found[each.name].connector.config)
    ]
    former = {each.name: found[each.name].connector.config for each in differing if each.name in found}
    planner.passwords = {
        each.name: defined_passwords(cluster.calls, each.config)
        | defined_passwords(cluster.calls, former.get(each.name, {}))
        for each in differing
    }
    refuse_invalid(cluster.calls, {each.name: each.config for each in differing})


def delete(session: Session, names: Sequence[str], with_offsets: bool, wait: bool, **how: Any) -> None:
    """Delete connectors, and say what stays."""
    cluster = connectors_cluster.observed(session)
    planner = planner_of(cluster, "connectors delete", connectors_cluster.chosen(cluster, names), wait=wait)
    group = connectors_cluster.group_id_of(cluster)
    asked = (lambda: session.transactions) if cluster.kafka is not None else None
    if with_offsets:
        check_removable(cluster.calls, planner.current.values())
    for name, health in planner.current.items():
        leaves = leftovers(cluster.calls, health.connector, group, asked, with_offsets=with_offsets)
        planner.delete(name, leaves, removal(health) if with_offsets else ())
    carry_out(session, cluster, planner.planned(), **how)


def differences(session: Session, wanted: Desired) -> list[tuple[str, str | None, str | None]]:
    """``(property, now, in the file)`` of what differs, masked. Raises ``BadInput`` for a connector that is not there."""
    cluster = connectors_cluster.observed(session)
    ((health,),) = (connectors_cluster.chosen(cluster, [wanted.name]),)
    former = health.connector.config
    changes = difference(former, wanted.config)
    hidden = defined_passwords(cluster.calls, wanted.config)
    now, then = shown({name: former.get(name) for name in changes}, hidden), shown(changes, hidden)
    return [(name, now[name], _other(now[name], then[name])) for name in changes]


def _other(now: str | None, then: str | None) -> str | None:
    return f"{then} (another one)" if now == then and then is not None else then


def carry_out(
    session: Session, cluster: Cluster, planned: ConfigPlan, *, dry_run: bool, yes: bool, output: Output
) -> None:
    """Print the plan, or ask and carry it out, with its configurations kept before anything is done."""

    connectors_cluster.perform(
        session, cluster, planned.plan, dry_run, yes, output, begin=partial(keep, planned.configs)
    )
