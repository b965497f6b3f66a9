"""A cluster as one page, for a hand-over or a post-mortem: its state, what could not be read, what the findings mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from connectctl.cli.output import html_findings
from connectctl.cli.output.html_page import (
    Column,
    Html,
    Section,
    code,
    details,
    document,
    joined,
    paragraph,
    table,
    text,
)
from connectctl.cli.views.cluster import DOUBT
from connectctl.cli.views.html_origin import PageOrigin
from connectctl.ops.connect.connector import Connector, State, part_now, requested_state
from connectctl.ops.connect.health import is_healthy
from connectctl.ops.connect.offset_store import TOPIC, client_bootstrap
from connectctl.ops.connect.sink_group import sink_group, unknown_group
from connectctl.ops.connect.worker import Support, Worker
from connectctl.ops.core.finding import counted
from connectctl.ops.operations.cluster.health import complaints
from connectctl.ops.operations.cluster.observe import ClusterView, InternalTopic
from connectctl.ops.operations.connectors.observe import ConnectorHealth

LISTED = 1000
"""The most connectors on a page, the worst first."""
TASKS = 10
"""The most tasks listed of a connector, of those that do not run."""
WORKERS = 500
_RANK = {
    state: n for n, state in enumerate((State.FAILED, State.DEGRADED, State.UNASSIGNED, State.PAUSED, State.STOPPED))
}
_CLASS = {state: "bad" for state in State if not is_healthy(state)} | {State.RUNNING: "good"}
_FROM = {
    "workers": "as a worker reports them",
    "topics": "from the config and status topics, because no worker answered",
    "nothing": "",
}

Ids = Mapping[str, list[str]]
"""The ids of findings by subject."""


def page(view: ClusterView, origin: PageOrigin) -> str:
    ids = _ids(view)
    found, meanings = html_findings.sections(view.findings)
    sections = [
        found,
        Section("unseen", "What could not be read", list(_unseen(view))),
        Section("connectors", "Connectors", list(_connectors(view, ids))),
        Section("workers", "Workers", [_workers(view, ids)]),
        Section("topics", "Internal topics", [_topics(view, ids)]),
        *meanings,
    ]
    return document(f"Connect cluster {view.group.id}", [_headline(view), origin.shown(*_group(view))], sections)


def _headline(view: ClusterView) -> Html:
    if any(complaints(view.connectors, view.findings)):
        word, kind = "not healthy", "bad"
    elif view.connectors_from == "nothing":
        word, kind = "unknown", "doubt"
    else:
        word, kind = ("healthy, as far as could be read", "doubt") if any(_missing(view)) else ("healthy", "good")
    states = Counter(health.verdict.state for health in view.connectors)
    counts = ", ".join(f"{states[state]:,} {state}" for state in State if states[state])
    known = counted(len(view.connectors), "connector") + (f": {counts}" if counts else "")
    known = "connectors could not be read" if view.connectors_from == "nothing" else known
    workers = counted(len(view.workers), "worker")
    return Html(f'<p class="verdict {kind}">{word} <small>{known}; {workers} in the group.</small></p>')


def _group(view: ClusterView) -> Iterator[tuple[str, object]]:
    group = view.group
    yield "Group", f"{group.id}: {group.state}" + (f", protocol {group.protocol}" if group.protocol else "")
    if versions := sorted({worker.version for worker in view.workers if worker.version}):
        yield "Workers' version", ", ".join(versions)
    if group.delay_ms:
        yield "Rebalance delay", f"{group.delay_ms / 1000:g} s, counted from the last rebalance"


def _ids(view: ClusterView) -> Ids:
    found: dict[str, list[str]] = {}
    for finding in view.findings:
        for subject in dict.fromkeys((finding.subject, *finding.subject.split(", "))):
            found.setdefault(subject, []).append(finding.id)
    return found


# ------------------------------------------------------------------------------------------------------ what is missing


def _unseen(view: ClusterView) -> Iterator[Html]:
    missing = list(_missing(view))
    if not missing:
        yield paragraph("All requests were answered.", "dim")
        return
    yield Html(f"<ul>{''.join(f'<li>{text(each)}</li>' for each in missing[:WORKERS])}</ul>")
    if len(missing) > WORKERS:
        yield paragraph(f"… and {len(missing) - WORKERS:,} more.", "dim")


def _missing(view: ClusterView) -> Iterator[str]:
    if not view.workers:
        yield "Workers: none is in the group."
    if not view.group.settled:
        yield f"Which worker runs what: the group is rebalancing ({view.group.state})."
    for worker in view.workers:
        if worker.without_rest:
            yield f"Worker {worker.address}: it has no REST API that would tell its version and mode."
        elif worker.problem is not None:
            yield f"Worker {worker.address}: its REST server did not answer ({worker.problem})."
        elif worker.support is Support.UNKNOWN:
            yield f"Worker {worker.address}: whether exactly-once source support is enabled."
    for topic in view.topics:
        if topic.facts is None:
            named = f" {topic.name}: it may not be described" if topic.name else ": it was not found"
            yield f"The {topic.role} topic{named}; its layout is unknown."
        elif not topic.facts.config:
            yield f"The settings of the {topic.role} topic {topic.name}."
    if view.connectors_from == "nothing":
        yield "Connectors: neither the workers nor the topics could be read; connectors may exist."
    elif view.connectors_from == "topics":
        yield "The workers' own view of the connectors: they are shown as in the config and status topics."


# ---------------------------------------------------------------------------------------------------------- connectors


def _connectors(view: ClusterView, ids: Ids) -> Iterator[Html]:
    if not view.connectors:
        unknown = view.connectors_from == "nothing"
        yield paragraph("The connectors could not be read." if unknown else "There are no connectors.")
        return
    found = sorted(
        view.connectors, key=lambda h: (_RANK.get(h.verdict.state, len(_RANK)), not h.verdict.detail, h.name)
    )
    columns = (
        Column("connector", "code"),
        Column("type", "nowrap"),
        Column("state", "long"),
        Column("tasks", "nowrap"),
        Column("workers", "code"),
        Column("offsets", "code"),
        Column("findings"),
    )
    rows = [_connector(health, view, ids) for health in found[:LISTED]]
    cut = f"; {len(rows):,} of {len(found):,}, connectctl connectors list has them all" if len(found) > LISTED else ""
    yield table(columns, rows, f"the worst first, {_FROM[view.connectors_from]}{cut}")


def _connector(health: ConnectorHealth, view: ClusterView, ids: Ids) -> list[object]:
    connector, verdict = health.connector, health.verdict
    class_ = connector.config.get("connector.class")
    state = [Html(f"<b{_good(verdict.state)}>{text(verdict.state)}</b> {text(verdict.detail)}")]
    if verdict.cause:
        state.append(paragraph(verdict.cause))
    if connector.target_state and (requested := requested_state(connector)) is not State.RUNNING:
        state.append(paragraph(f"target state {requested}", "dim"))
    return [
        Html(text(health.name) + (paragraph(class_, "dim") if class_ else "")),
        connector.type or "unknown",
        joined(state, ""),
        _tasks(health),
        joined(health.workers, "<br>") or "-",
        offsets_of(connector, next((t.name for t in view.topics if t.role == "offsets"), None)),
        html_findings.links(ids.get(health.name, ())),
    ]


def _good(state: State) -> str:
    return f' class="{_CLASS[state]}"' if state in _CLASS else ""


def _tasks(health: ConnectorHealth) -> object:
    """Return the count of running tasks, and the state of each other task."""
    connector = health.connector
    count = f"{health.verdict.running}/{len(connector.tasks)}"
    others = [(n, *state) for n, state in _states(connector) if state[0] != State.RUNNING]
    if not others:
        return count
    items = "".join(f"<li>{n}: {text(state)} {text(remark)}</li>" for n, state, remark in others[:TASKS])
    more = f"<li>… and {len(others) - TASKS:,} more</li>" if len(others) > TASKS else ""
    return details(f"{count} running", Html(f"<ul>{items}{more}</ul>"))


def _states(connector: Connector) -> Iterator[tuple[int, tuple[str, str]]]:
    for number, status in connector.tasks.items():
        state, remark = part_now(connector, number, status, connector.owners)
        place = f"on {status.worker}" if status and status.worker and not remark else remark
        yield number, (state, place)


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


# --------------------------------------------------------------------------------------------------- workers and topics


def _workers(view: ClusterView, ids: Ids) -> Html:
    if not view.workers:
        return paragraph("No worker is in the group.")
    columns = (
        Column("worker", "code"),
        Column("leader"),
        Column("version", "nowrap"),
        Column("REST", "long"),
        Column("exactly-once support"),
        Column("connectors", "n"),
        Column("tasks", "n"),
        Column("config offset", "n"),
        Column("findings"),
    )
    rows = [_worker(worker, ids) for worker in view.workers[:WORKERS]]
    cut = f"the first {len(rows):,} of {len(view.workers):,}" if len(view.workers) > WORKERS else "all of the group"
    return table(columns, rows, cut)


def _rest(worker: Worker) -> str:
    if worker.without_rest:
        return "none"
    return "answers" if worker.problem is None else f"no answer: {worker.problem}"


def _worker(worker: Worker, ids: Ids) -> list[object]:
    return [
        worker.address,
        "leader" if worker.leader else "",
        worker.version or "unknown",
        _rest(worker),
        DOUBT.get(worker.support.value, worker.support.value),
        f"{worker.connectors:,}",
        f"{worker.tasks:,}",
        "unknown" if worker.config_offset is None else f"{worker.config_offset:,}",
        html_findings.links([*ids.get(worker.address, ()), *ids.get(worker.url, ())]),
    ]


def _topics(view: ClusterView, ids: Ids) -> Html:
    columns = (
        Column("topic"),
        Column("name", "code"),
        Column("partitions", "n"),
        Column("replicas", "n"),
        Column("in sync"),
        Column("cleanup.policy", "code"),
        Column("findings"),
    )
    return table(columns, [_topic(topic, ids) for topic in view.topics], "the workers' own, found by their records")


def _topic(topic: InternalTopic, ids: Ids) -> list[object]:
    found = html_findings.links([*ids.get(topic.name or "", ()), *ids.get(f"{topic.role} topic", ())])
    if topic.facts is None:
        return [topic.role, topic.name or "not found", *["unknown"] * 4, found]
    facts = topic.facts
    replicas, in_sync = sum(facts.replicas.values()), sum(facts.in_sync.values())
    policy = facts.config.get("cleanup.policy")
    return [
        topic.role,
        code(facts.name),
        f"{facts.partitions:,}",
        "/".join(map(str, sorted(set(facts.replicas.values())))),
        "all" if in_sync == replicas else f"{in_sync} of {replicas}",
        "unknown" if policy is None else policy or "none",
        found,
    ]
