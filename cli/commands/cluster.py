"""``connectctl cluster``: the state of a Connect cluster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import apply, html_file, watching
from connectctl.cli.garbage_collection import without_collection
from connectctl.cli.options import HealthOption, HtmlOption, ListOption, command_group
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

    from connectctl.ops.operations.cluster.observe import ClusterView

app = command_group("Show a Connect cluster.")

REBALANCE = 3.0
"""Seconds to wait for the end of a rebalance, which hides the workers' addresses and what they
run.
"""


@app.callback()
def cluster() -> None:
    """Show workers, internal topics and connectors of a Connect cluster."""


@app.command()
def show(
    ctx: typer.Context,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until ^C.")] = False,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", help="Refresh interval of --watch, at least 0.5.")
    ] = 2.0,
    exit_code: HealthOption = False,
    html: HtmlOption = None,
    output: ListOption = Output.TABLE,
) -> None:
    """Show the group, its workers, the internal topics, and the state of every connector.

    \b
    Examples:
      connectctl cluster show                     from the context, or --bootstrap-servers and --group-id
      connectctl cluster show -o wide             with full causes, classes, and why a worker does not answer
      connectctl cluster show -o name             the workers, one HOST:PORT a line
      connectctl cluster show --html cluster.html  a page for a hand-over or a post-mortem
      connectctl cluster show --watch             refreshed in place every 2 seconds
      connectctl cluster show -o json | jq '.connectors[] | select(.state != "RUNNING").name'

    Workers are found through the group, topics by their records. A worker that does not answer is
    shown as such. If no worker answers, connectors are read from the config and status topics. A
    status is used only if its worker still has the connector or task; otherwise the connector or
    task is UNASSIGNED. EXACTLY-ONCE is what each worker's responses prove: preparing and disabled
    cannot be distinguished from outside. Problems are findings, on standard error and in the JSON.
    Exit code 0 if the cluster could be read, healthy or not, and when --watch is ended with ^C.
    With --exit-code it is 1 if a connector is FAILED, DEGRADED or UNASSIGNED, if a finding is an
    error, or if something could not be read.
    """
    session: Session = ctx.obj
    watching.check_interval(interval)
    if watch and exit_code:
        raise BadInput(
            "--exit-code cannot be combined with --watch", next_step="Leave one of them out."
        )
    if watch and html:
        raise BadInput("--html cannot be combined with --watch", next_step="Leave one of them out.")
    html_file.check(html)
    if watch:
        _watch(session, interval, output)
    else:
        _show(session, html, exit_code, output)


def _show(session: Session, html: Path | None, exit_code: bool, output: Output) -> None:
    from connectctl.cli.views import cluster as cluster_view

    began = time.time()
    with without_collection():
        view = _observe(session)
        if html:
            from connectctl.cli.views import cluster_html, html_origin

            html_file.write(
                html, cluster_html.page(view, html_origin.origin(session, began, view.cluster_id))
            )
        terminal.emit(
            "Cluster",
            cluster_view.as_json(view),
            output,
            lambda wide: terminal.blocks(cluster_view.blocks(view, wide)),
            view.findings,
        )
    if exit_code:
        apply.exit_unless_healthy(view.connectors, view.findings)


def _observe(session: Session) -> ClusterView:
    from connectctl.ops.operations.cluster import group_workers, observe

    kafka = session.kafka
    group = session.group(patience=REBALANCE)
    view = observe.observe_cluster(kafka, session.connect_to(group), group, session.named_topics)
    group_workers.refuse_unknown(group, session, view.connectors)
    return view


def _watch(session: Session, interval: float, output: Output) -> None:
    from connectctl.cli.views import cluster as cluster_view

    with terminal.live() as draw:

        def show(title: str, view: ClusterView) -> None:
            if output.for_people:
                draw(title, cluster_view.blocks(view, output is Output.WIDE), view.findings)
            else:
                terminal.emit("Cluster", cluster_view.as_json(view), output, lambda wide: None)

        watching.repeat(session, interval, _observe, show, lambda view: view)
