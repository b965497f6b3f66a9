"""``connectctl cluster``: a Connect cluster at a glance."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from connectctl.cli import apply
from connectctl.cli.garbage_collection import without_collection
from connectctl.cli.options import HealthOption, ListOption
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Block, Output
from connectctl.cli.session import Session
from connectctl.ops.core.errors import BadInput, ConnectctlError

if TYPE_CHECKING:
    from connectctl.ops.connect.worker import Worker
    from connectctl.ops.operations.cluster.observe import ClusterView, InternalTopic

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, add_completion=False, help="See a Connect cluster.")

SHORTEST = 0.5
"""Seconds between two looks, so that a watch is no load on the cluster."""
DOUBT = {"not enabled": "not enabled (preparing or disabled)"}


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
    output: ListOption = Output.TABLE,
) -> None:
    """Show the group, its workers, the internal topics, and every connector with one verdict.

    \b
    Examples:
      connectctl cluster show                     from the context, or --bootstrap-servers and --group-id
      connectctl cluster show -o wide             with whole causes, classes, and why a worker is silent
      connectctl cluster show -o name             the workers, one HOST:PORT a line
      connectctl cluster show --watch             drawn again in place every 2 seconds
      connectctl cluster show -o json | jq '.connectors[] | select(.state != "RUNNING").name'

    Workers are found through the group, topics by their records. A worker that does not answer is shown as such. With
    no worker answering, connectors are read from the config and status topics. A status counts only if its worker still
    has the connector or task; the others are UNASSIGNED.
    EXACTLY-ONCE is what each worker proves when asked: whether one that is not enabled is preparing or disabled cannot
    be seen from outside. What is wrong is a finding on standard error, and in the JSON.
    Exit code 0 if the cluster could be looked at, whatever was seen; --watch ends with ^C, and that is 0, too. With
    --exit-code it is 1 where a connector is FAILED, DEGRADED or UNASSIGNED, where a finding is an error, or where not
    everything could be seen.
    """
    session: Session = ctx.obj
    if interval < SHORTEST:
        raise BadInput(f"--interval {interval:g} is too short", next_step=f"Give at least {SHORTEST:g} seconds.")
    if watch and exit_code:
        raise BadInput("--exit-code does not go with --watch", next_step="Leave one of them out.")
    if watch:
        _watch(session, interval, output)
        return
    with without_collection():
        view = _look(session)
        terminal.emit("Cluster", _as_json(view), output, lambda wide: terminal.blocks(_blocks(view, wide)))
    if output in (Output.TABLE, Output.WIDE):
        terminal.findings(view.findings)
    if exit_code:
        apply.exit_unless_healthy(view.connectors, view.findings)


def _look(session: Session) -> ClusterView:
    from connectctl.ops.operations.cluster.connect_groups import is_unknown, unknown_group
    from connectctl.ops.operations.cluster.observe import look

    kafka = session.kafka
    group = session.group(patience=0)
    view = look(kafka, session.connect_to(group), group, session.named_topics)
    if is_unknown(group) and not view.connectors:
        raise unknown_group(group, session.transactions.connect_groups)
    return view


def _watch(session: Session, interval: float, output: Output) -> None:
    """Look until ^C. Every look opens new connections, because a connection remembers the topics it first saw.

    After the first, a failed read is reported and does not end the watch: such failures are what it is for.
    """
    view: ClusterView | None = None
    try:
        with terminal.live() as draw:
            while True:
                title = f"{datetime.now():%H:%M:%S}   every {interval:g} s, ^C to end"
                try:
                    view = _look(session)
                except ConnectctlError as e:
                    if view is None:
                        raise
                    title = f"{title}   as last seen; error: {e}"
                if output in (Output.TABLE, Output.WIDE):
                    draw(title, _blocks(view, output is Output.WIDE), view.findings)
                else:
                    terminal.emit("Cluster", _as_json(view), output, lambda wide: None)
                session = _afresh(session, view)
                time.sleep(interval)
    except KeyboardInterrupt:
        return


def _afresh(session: Session, view: ClusterView) -> Session:
    """The same session without its connections, with topics that were found named, to find them but once."""
    proven = {t.role: t.name for t in view.topics if t.name and not any(f.subject == t.name for f in view.findings)}
    named = {f"topics.{role}": name for role, name in proven.items()}
    return replace(session, flags={**session.flags, **named})


# ---------------------------------------------------------------------------------------------------------- for people


def _blocks(view: ClusterView, wide: bool) -> list[Block]:
    return [_group(view, wide), _workers(view, wide), _topics(view, wide), _connectors(view, wide)]


def _connectors(view: ClusterView, wide: bool) -> Block:
    from connectctl.cli.views import connectors

    return connectors.block(view.connectors, wide, seen=view.connectors_from != "nothing")


def _group(view: ClusterView, wide: bool) -> Block:
    group = view.group
    delay = f"{group.delay_ms / 1000:g} s" if group.delay_ms else "-"
    columns = ["GROUP", "STATE", "PROTOCOL", "WORKERS", "REBALANCE-DELAY", "KAFKA-CLUSTER"]
    row = [group.id, group.state, group.protocol or "-", str(len(group.members)), delay, view.cluster_id]
    return Block(columns, [row], spare=() if wide else ("REBALANCE-DELAY", "PROTOCOL", "KAFKA-CLUSTER"))


def _workers(view: ClusterView, wide: bool) -> Block:
    columns = ["WORKER", "LEADER", "VERSION", "REST", "EXACTLY-ONCE", "CONNECTORS", "TASKS"]
    more = ["CONFIG-OFFSET", "URL", "PROBLEM"] if wide else []
    rows = [_worker(worker, wide) for worker in view.workers]
    return Block(columns + more, rows, "No worker is in the group.", () if wide else ("VERSION", "CONNECTORS", "REST"))


def _worker(worker: Worker, wide: bool) -> list[str]:
    support = worker.support.value
    row = [
        worker.address,
        "leader" if worker.leader else "",
        worker.version or "-",
        "ok" if worker.problem is None else "no answer",
        DOUBT.get(support, support),
        str(worker.connectors),
        str(worker.tasks),
    ]
    return row + ([str(worker.config_offset), worker.url, worker.problem or ""] if wide else [])


def _topics(view: ClusterView, wide: bool) -> Block:
    columns = ["TOPIC", "NAME", "PARTITIONS", "REPLICAS", "IN-SYNC", "CLEANUP", "FINDINGS"]
    return Block(columns, [_topic(topic, view) for topic in view.topics], spare=() if wide else SPARE_OF_TOPICS)


SPARE_OF_TOPICS = ("CLEANUP", "REPLICAS", "PARTITIONS", "IN-SYNC")


def _topic(topic: InternalTopic, view: ClusterView) -> list[str]:
    ids = [f.id for f in view.findings if f.subject in (topic.name, f"{topic.role} topic")]
    if topic.facts is None:
        return [topic.role, topic.name or "not found", "-", "-", "-", "-", ",".join(ids)]
    facts = topic.facts
    replicas, in_sync = sum(facts.replicas.values()), sum(facts.in_sync.values())
    policy = facts.config.get("cleanup.policy", "?") or "none"
    each = "/".join(map(str, sorted(set(facts.replicas.values()))))
    whole = "all" if in_sync == replicas else f"{in_sync} of {replicas}"
    return [topic.role, facts.name, str(facts.partitions), each, whole, policy, ",".join(ids) or "-"]


# --------------------------------------------------------------------------------------------------------- for scripts


def _as_json(view: ClusterView) -> dict[str, Any]:
    from connectctl.cli.views import connectors

    leader = next((worker.url for worker in view.workers if worker.leader), None)
    return {
        "clusterId": view.cluster_id,
        "groupId": view.group.id,
        "group": {
            "state": view.group.state,
            "protocol": view.group.protocol or None,
            "leader": leader,
            "rebalanceDelayMs": view.group.delay_ms,
        },
        "workers": list(map(_worker_json, view.workers)),
        "topics": list(map(_topic_json, view.topics)),
        "connectorsFrom": view.connectors_from,
        "connectors": list(map(connectors.as_json, view.connectors)),
        "findings": [finding.as_json() for finding in view.findings],
    }


def _worker_json(worker: Worker) -> dict[str, Any]:
    return {
        "address": worker.address,
        "url": worker.url or None,
        "leader": worker.leader,
        "version": worker.version,
        "reachable": worker.problem is None,
        "problem": worker.problem,
        "exactlyOnceSupport": worker.support.value,
        "connectors": worker.connectors,
        "tasks": worker.tasks,
        "configOffset": worker.config_offset,
    }


def _topic_json(topic: InternalTopic) -> dict[str, Any]:
    facts = topic.facts
    return {
        "role": topic.role,
        "name": topic.name,
        "partitions": facts.partitions if facts else None,
        "replicationFactor": min(facts.replicas.values(), default=None) if facts else None,
        "underReplicated": sum(facts.in_sync.get(p, 0) < n for p, n in facts.replicas.items()) if facts else None,
        "cleanupPolicy": facts.config.get("cleanup.policy") if facts else None,
    }
