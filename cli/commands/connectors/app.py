"""``connectctl connectors``: list connectors, and stop, pause, resume and restart them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import apply, completed_names, flow
from connectctl.cli.commands.connectors import config as connectors_config
from connectctl.cli.commands.connectors.options import StateOptions
from connectctl.cli.garbage_collection import without_collection
from connectctl.cli.options import (
    ApplyOptions,
    ConnectorArgument,
    DryRunOption,
    HealthOption,
    ListOption,
    OutputOption,
    YesOption,
    command_group,
    with_options,
)
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.cli.views import connectors as connectors_view
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.connectors.access import listing_of, open_cluster

if TYPE_CHECKING:
    from connectctl.ops.operations.connectors.state_operations import ChangeState

app = command_group("See, create, change and delete connectors.")

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CONNECTOR]...",
        help="Connectors by name or by glob, or --all.",
        autocompletion=completed_names.connectors,
    ),
]


@app.command("list")
def list_(
    ctx: typer.Context,
    connectors: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CONNECTOR]...",
            help="Only these, by name or by glob.",
            autocompletion=completed_names.connectors,
        ),
    ] = None,
    exit_code: HealthOption = False,
    output: ListOption = Output.TABLE,
) -> None:
    """List connectors, with the state of each.

    \b
    Examples:
      connectctl connectors list
      connectctl connectors list 'orders-*'
      connectctl connectors list -o wide      with classes and full causes
      connectctl connectors list --exit-code > /dev/null || page-somebody
      connectctl connectors list -o json | jq -r '.connectors[] | select(.state == "FAILED").name'

    DEGRADED: some tasks do not run. UNASSIGNED: no worker runs it, whatever its last status is.
    With no worker answering, connectors are read from the config and status topics. With
    --exit-code the exit code is 1 if a connector is FAILED, DEGRADED or UNASSIGNED, if a finding is
    an error, or if something could not be read; stopped and paused connectors are healthy.
    """
    from connectctl.ops.operations.connectors.observe import matching

    session: Session = ctx.obj
    with without_collection():
        seen = listing_of(open_cluster(session))
    found = matching(seen.connectors, connectors) if connectors else seen.connectors
    data = {
        "connectorsFrom": seen.read_from,
        "connectors": list(map(connectors_view.as_json, found)),
        "findings": [finding.as_json() for finding in seen.findings],
    }
    terminal.emit(
        "ConnectorList",
        data,
        output,
        lambda wide: terminal.blocks([connectors_view.block(found, wide)]),
        seen.findings,
    )
    if exit_code:
        apply.exit_unless_healthy(found, seen.findings)


@app.command()
def show(
    ctx: typer.Context, connector: ConnectorArgument, output: OutputOption = Output.TABLE
) -> None:
    """Show one connector: its tasks and where they run, why they failed, its configuration.

    \b
    Examples:
      connectctl connectors show orders
      connectctl connectors show orders -o wide                       with full stack traces
      connectctl connectors show orders -o json | jq .config

    Values of properties that are named like secrets are masked. The target state, the task count
    record (for how many tasks producers were last fenced) and whether fencing is pending are from
    the config topic.
    """
    from connectctl.cli.commands.connectors import show as connectors_show

    connectors_show.show(open_cluster(ctx.obj), connector, output)


@app.command()
def topics(
    ctx: typer.Context,
    connector: ConnectorArgument,
    reset: Annotated[
        bool, typer.Option("--reset", help="Reset the list; this is a change, with a plan.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: ListOption = Output.TABLE,
) -> None:
    """List the topics that a connector's tasks have used since it was created, or since a reset
    (KIP-558).

    \b
    Examples:
      connectctl connectors topics orders
      connectctl connectors topics orders --reset --yes

    Topics that its tasks still use are listed again after their next records. This cannot be
    undone.
    """
    if output is Output.NAME if reset else dry_run or yes:
        what = (
            "-o name cannot be combined with --reset"
            if reset
            else "--dry-run and --yes require --reset"
        )
        raise BadInput(what, next_step="Leave one of them out.", code="usage")
    from connectctl.ops.operations.connectors import tracked_topics
    from connectctl.ops.operations.connectors.state_operations import ResetActiveTopics

    if reset:
        flow.perform(ctx.obj, ResetActiveTopics(), connector, ApplyOptions(dry_run, yes, output))
        return
    found = tracked_topics.read(open_cluster(ctx.obj).calls, connector)
    data = {"connector": connector, "topics": [{"name": topic} for topic in found]}
    empty = (
        f"{connector} has used no topic since it was created, or since its active topics were "
        "reset."
    )
    terminal.emit(
        "ConnectorTopics",
        data,
        output,
        lambda wide: terminal.table(["TOPIC"], [[t] for t in found], empty=empty),
    )


@app.command()
@with_options
def stop(
    ctx: typer.Context, connectors: Names = None, options: StateOptions = StateOptions()
) -> None:
    """Stop connectors: their tasks end, their configuration and offsets stay. Needs workers of
    Kafka 3.5 or newer.

    \b
    Examples:
      connectctl connectors stop orders --wait
      connectctl connectors stop --all --dry-run       what would be stopped
    """
    from connectctl.ops.operations.connectors.state_operations import Stop

    _change_state(ctx.obj, Stop(), connectors, options)


@app.command()
@with_options
def pause(
    ctx: typer.Context, connectors: Names = None, options: StateOptions = StateOptions()
) -> None:
    """Pause connectors: their tasks stay assigned, and process no records.

    \b
    Examples:
      connectctl connectors pause orders --wait
      connectctl connectors pause --all --yes
    """
    from connectctl.ops.operations.connectors.state_operations import Pause

    _change_state(ctx.obj, Pause(), connectors, options)


@app.command()
@with_options
def resume(
    ctx: typer.Context, connectors: Names = None, options: StateOptions = StateOptions()
) -> None:
    """Resume connectors that are stopped or paused.

    \b
    Examples:
      connectctl connectors resume orders --wait --timeout 60
      connectctl connectors resume --all --yes

    With --wait, the state must have been RUNNING for five seconds.
    """
    from connectctl.ops.operations.connectors.state_operations import Resume

    _change_state(ctx.obj, Resume(), connectors, options)


@app.command()
@with_options
def restart(
    ctx: typer.Context,
    connectors: Names = None,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Restart only what has failed.")
    ] = False,
    task: Annotated[
        int | None, typer.Option("--task", min=0, metavar="N", help="Restart only this task.")
    ] = None,
    options: StateOptions = StateOptions(),
) -> None:
    """Restart connectors with their tasks. Needs workers of Kafka 3.0 or newer.

    \b
    Examples:
      connectctl connectors restart orders --wait
      connectctl connectors restart --all --only-failed --yes --wait
      connectctl connectors restart orders --task 2        any release of the workers

    With --wait, a FAILED status from before the restart is ignored, and the state must have been
    RUNNING for five seconds. Exit code 1: something failed; 6: not RUNNING in time.
    """
    from connectctl.ops.operations.connectors.state_operations import (
        RestartConnectors,
        RestartRequest,
    )

    if task is not None and only_failed:
        raise BadInput(
            "--only-failed cannot be combined with --task",
            next_step="Leave out --only-failed.",
            code="usage",
        )
    names = picked(connectors, options.every)
    request = RestartRequest(names, options.wait, only_failed, task, named=not options.every)
    flow.perform(ctx.obj, RestartConnectors(), request, options)


@app.command()
@with_options
def cure(
    ctx: typer.Context, connector: ConnectorArgument, options: ApplyOptions = ApplyOptions()
) -> None:
    """Cure slow zombie fencing of a connector, or task configurations that compaction can remove
    (TASK010).

    \b
    Examples:
      connectctl connectors cure orders --dry-run
      connectctl connectors cure orders --yes

    A leader fences about one task producer per second, and a round of fencing fails after 90 s. The
    cure sets admin.override.retry.backoff.ms and admin.override.retry.backoff.max.ms to 10 in the
    connector's configuration, waits until the current round has ended, and restarts the tasks that
    it failed.

    If the connector's configuration follows the commit of its tasks in the config topic, workers
    that start have no task configurations. The cure then stops and resumes the connector, so that
    it publishes its tasks again. If this is interrupted, the connector may stay stopped: connectctl
    connectors resume NAME.
    """
    from connectctl.ops.operations.connectors.cure_operation import Cure

    flow.perform(ctx.obj, Cure(), connector, options)


for command in (
    connectors_config.create,
    connectors_config.apply,
    connectors_config.edit,
    connectors_config.patch,
    connectors_config.delete,
    connectors_config.diff,
    connectors_config.history,
    connectors_config.rollback,
):
    app.command()(command)


def _change_state(
    session: Session, operation: ChangeState, connectors: list[str] | None, options: StateOptions
) -> None:
    from connectctl.ops.operations.connectors.state_operations import StateRequest

    request = StateRequest(picked(connectors, options.every), options.wait)
    flow.perform(session, operation, request, options)


def picked(names: list[str] | None, every: bool) -> tuple[str, ...] | None:
    """Return the names that the user gave, None for ``--all``. Raises ``BadInput`` for both or
    none.
    """
    if bool(names) == every:
        what = "Name connectors or give --all, not both" if every else "No connector given"
        raise BadInput(what, next_step="Give the names of connectors, or --all.", code="usage")
    return None if every else tuple(names or ())
