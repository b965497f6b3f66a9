"""A cluster as one page, for a hand-over or a post-mortem: its state, what could not be read, what
the findings mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from connectctl.cli.output.html_page import grouped, render, sections
from connectctl.cli.views.cluster import DOUBT
from connectctl.cli.views.html_origin import PageOrigin
from connectctl.ops.connect.connector import Connector, State, part_now, requested_state
from connectctl.ops.connect.health import is_healthy
from connectctl.ops.connect.offset_store import TOPIC, client_bootstrap
from connectctl.ops.connect.sink_group import sink_group, unknown_group
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.finding import Finding, counted
from connectctl.ops.operations.cluster.health import health_problems
from connectctl.ops.operations.cluster.observe import ClusterView
from connectctl.ops.operations.connectors.observe import ConnectorHealth

LISTED = 1000
"""The most connectors on a page, the worst first."""
TASKS = 10
"""The most tasks listed of a connector, of those that do not run."""
WORKERS = 500
_RANK = {
    state: n
    for n, state in enumerate(
        (State.FAILED, State.DEGRADED, State.UNASSIGNED, State.PAUSED, State.STOPPED)
    )
}
_CLASS = {state: "bad" for state in State if not is_healthy(state)} | {State.RUNNING: "good"}
_FROM = {
    "workers": "as a worker reports them",
    "topics": "from the config and status topics, because no worker answered",
    "nothing": "",
}


def page(view: ClusterView, origin: PageOrigin) -> str:
    """Return the page of a cluster."""
    findings, missing = grouped(view.findings), list(_missing(view))
    word, kind = _verdict(view, complete=not missing)
    ids = _ids(view.findings)
    worst = sorted(
        view.connectors, key=lambda h: (_RANK.get(h.verdict.state, 9), not h.verdict.detail, h.name)
    )
    offsets_topic = next((topic.name for topic in view.topics if topic.role == "offsets"), None)
    return render(
        "cluster.html",
        title=f"Connect cluster {view.group.id}",
        origin=origin,
        sections=sections(
            findings,
            unseen="What could not be read",
            connectors="Connectors",
            workers="Workers",
            topics="Internal topics",
        ),
        findings=findings,
        view=view,
        word=word,
        kind=kind,
        known=_known(view),
        versions=sorted({worker.version for worker in view.workers if worker.version}),
        missing=missing,
        connectors=[_connector(health, offsets_topic) for health in worst[:LISTED]],
        connectors_caption=_connectors_caption(view),
        ids=lambda *subjects: [id_ for subject in subjects for id_ in ids.get(subject, ())],
        doubt=DOUBT,
        most_tasks=TASKS,
        most_workers=WORKERS,
    )


def _verdict(view: ClusterView, *, complete: bool) -> tuple[str, str]:
    """Return the health of the cluster in words, and the style of the words."""
    if any(health_problems(view.connectors, view.findings)):
        return "not healthy", "bad"
    if view.connectors_from == "nothing":
        return "unknown", "doubt"
    return ("healthy", "good") if complete else ("healthy, as far as could be read", "doubt")


def _known(view: ClusterView) -> str:
    if view.connectors_from == "nothing":
        return "connectors could not be read"
    states = Counter(health.verdict.state for health in view.connectors)
    counts = ", ".join(f"{states[state]:,} {state}" for state in State if states[state])
    return counted(len(view.connectors), "connector") + (f": {counts}" if counts else "")


def _connectors_caption(view: ClusterView) -> str:
    found = len(view.connectors)
    cut = (
        f"; {LISTED:,} of {found:,}, connectctl connectors list has them all"
        if found > LISTED
        else ""
    )
    return f"the worst first, {_FROM[view.connectors_from]}{cut}"


def _ids(findings: tuple[Finding, ...]) -> dict[str, list[str]]:
    """Return the ids of findings by subject."""
    found: dict[str, list[str]] = {}
    for finding in findings:
        for subject in dict.fromkeys((finding.subject, *finding.subject.split(", "))):
            found.setdefault(subject, []).append(finding.id)
    return found


def _missing(view: ClusterView) -> Iterator[str]:
    if not view.workers:
        yield "Workers: none is in the group."
    if not view.group.settled:
        yield f"Which worker runs what: the group is rebalancing ({view.group.state})."
    for worker in view.workers:
        if worker.without_rest:
            yield (
                f"Worker {worker.address}: it has no REST API that would tell its version and mode."
            )
        elif worker.problem is not None:
            yield f"Worker {worker.address}: its REST server did not answer ({worker.problem})."
        elif worker.support is Support.UNKNOWN:
            yield f"Worker {worker.address}: whether exactly-once source support is enabled."
    for topic in view.topics:
        if topic.facts is None:
            named = (
                f" {topic.name}: it may not be described" if topic.name else ": it was not found"
            )
            yield f"The {topic.role} topic{named}; its layout is unknown."
        elif not topic.facts.config:
            yield f"The settings of the {topic.role} topic {topic.name}."
    if view.connectors_from == "nothing":
        yield "Connectors: neither the workers nor the topics could be read; connectors may exist."
    elif view.connectors_from == "topics":
        yield (
            "The workers' own view of the connectors: they are shown as in the config and "
            "status topics."
        )


def _connector(health: ConnectorHealth, offsets_topic: str | None) -> Mapping[str, object]:
    """Return a connector with its running tasks as a count, and the state of each other task."""
    connector, verdict = health.connector, health.verdict
    requested = requested_state(connector) if connector.target_state else State.RUNNING
    return {
        "name": health.name,
        "class": connector.config.get("connector.class"),
        "type": connector.type,
        "verdict": verdict,
        "kind": _CLASS.get(verdict.state, ""),
        "requested": "" if requested is State.RUNNING else requested,
        "count": f"{verdict.running}/{len(connector.tasks)}",
        "other_tasks": [task for task in _tasks(connector) if task[1] != State.RUNNING],
        "workers": health.workers,
        "offsets": offsets_of(connector, offsets_topic),
    }


def _tasks(connector: Connector) -> Iterator[tuple[int, str, str]]:
    """Yield the number, the state and the worker of each task, or why it has none."""
    for number, status in connector.tasks.items():
        state, remark = part_now(connector, number, status, connector.owners)
        yield (
            number,
            state,
            f"on {status.worker}" if status and status.worker and not remark else remark,
        )


def offsets_of(connector: Connector, offsets_topic: str | None) -> str:
    """Return where the connector's offsets are, according to its configuration."""
    config = connector.config
    if not config or connector.type not in ("sink", "source"):
        return "unknown"
    if connector.type == "sink":
        why = unknown_group(connector.name, config)
        return f"group unknown: {why}" if why else f"group {sink_group(connector.name, config)}"
    topic = config.get(TOPIC) or offsets_topic
    if client_bootstrap(config, "producer", ""):
        named = f"topic {topic}" if TOPIC in config else "unknown"
        return f"{named}, by producer.override.bootstrap.servers perhaps on another Kafka cluster"
    return f"topic {topic}" if topic else "unknown: the offsets topic was not found"
