"""The areas of preflight and of doctor over one context: each observes its facts and reports findings,
independently of the others.

An area that cannot observe reports this as a finding. A finding of several areas is returned once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from connectctl.ops.checks.acls import observe as acls_observe
from connectctl.ops.checks.acls import principals as acl_principals
from connectctl.ops.checks.acls import rules as acls_rules
from connectctl.ops.checks.acls.observe import AclFacts
from connectctl.ops.checks.acls.principals import Principals
from connectctl.ops.checks.brokers import observe as broker_observe
from connectctl.ops.checks.brokers import rules as broker_rules
from connectctl.ops.checks.consumers import observe as consumer_observe
from connectctl.ops.checks.consumers import rules as consumer_rules
from connectctl.ops.checks.context import CheckContext, Edges, observe_cluster
from connectctl.ops.checks.failures import observe as failure_observe
from connectctl.ops.checks.failures import rules as failure_rules
from connectctl.ops.checks.fencing import observe as fencing_observe
from connectctl.ops.checks.fencing import rules as fencing_rules
from connectctl.ops.checks.history import observe as history_observe
from connectctl.ops.checks.history import workers as history_workers
from connectctl.ops.checks.internal_topics import retained_rules
from connectctl.ops.checks.internal_topics import rules as internal_topics_rules
from connectctl.ops.checks.offset_stores import observe as store_observe
from connectctl.ops.checks.offset_stores import rules as store_rules
from connectctl.ops.checks.progress import observe as progress_observe
from connectctl.ops.checks.progress import rules as progress_rules
from connectctl.ops.checks.rebalances import observe as rebalance_observe
from connectctl.ops.checks.rebalances import rules as rebalance_rules
from connectctl.ops.checks.sinks import observe as sink_observe
from connectctl.ops.checks.sinks import rules as sink_rules
from connectctl.ops.checks.tasks_max import rules as tasks_max_rules
from connectctl.ops.checks.transactions import observe as transaction_observe
from connectctl.ops.checks.transactions import rules as transaction_rules
from connectctl.ops.checks.workers import observe as worker_observe
from connectctl.ops.checks.workers import roll_rules
from connectctl.ops.checks.workers import rules as worker_rules
from connectctl.ops.checks.workers.observe import WorkersSeen
from connectctl.ops.clients.protocols import Clients
from connectctl.ops.config import paths
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connector_config import evaluation, validations
from connectctl.ops.connector_config.override_rules import POLICY
from connectctl.ops.connector_config.subject import Subject
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.journal import Journal
from connectctl.ops.core.rule import check
from connectctl.ops.core.unseen import Unseen, finding_of, unseen_by
from connectctl.ops.operations.cluster.observe import ClusterView
from connectctl.ops.operations.tasks_max import observe as tasks_max_observe
from connectctl.ops.operations.tasks_max.observe import Release
from connectctl.ops.operations.upgrade.observe import ClusterReader
from connectctl.ops.operations.upgrade.run_state import RollState, roll_state

Reports = Iterable["Finding | Unseen"]
Area = Callable[["CheckRun"], Reports]
"""An area: it observes its facts in the context of a run, and returns what it found."""


@dataclass
class CheckRun:
    """An evaluation of ``context`` for ``goal``. ``principals`` are those that the user gave, None
    without ACL checks.

    ``release`` is the planned one of Kafka, None for the workers' own. ``areas`` are ``AREAS`` of
    preflight or ``DOCTOR_AREAS``; ``left_out`` are ids that are not reported.
    """

    context: CheckContext
    goal: Goal
    principals: Principals | None = None
    release: Release | None = None
    now: float = field(default_factory=time.time)
    areas: Mapping[str, Area] = field(default_factory=lambda: AREAS)
    left_out: frozenset[str] = frozenset()

    def findings(self) -> list[Finding]:
        """Return all findings in the order of the areas, each once."""
        with ThreadPoolExecutor(len(self.areas)) as pool:
            pending = [
                (name, pool.submit(_reports_of, area, self)) for name, area in self.areas.items()
            ]
            reports: list[Finding | Unseen] = [*self.context.view.findings]
            for name, future in pending:
                try:
                    reports += future.result()
                except ConnectctlError as e:
                    reports.append(unseen_by(name, e))
        reports += self.context.unseen
        found = [finding_of(report) if isinstance(report, Unseen) else report for report in reports]
        return [each for each in dict.fromkeys(found) if each.id not in self.left_out]

    def findings_in(self, area: str) -> list[Finding]:
        """Return the findings of one area, and those of the observation of the cluster."""
        return replace(self, areas={area: self.areas[area]}).findings()

    def acl_facts(self) -> tuple[AclFacts | None, tuple[Unseen, ...]]:
        """Return the input of the ACL checks, which the output of missing ACLs needs as well."""
        return acls_observe.observe(self.context, self.principals or Principals())


def _reports_of(area: Area, run: CheckRun) -> list[Finding | Unseen]:
    return list(area(run))


def _area(observe: Callable[[CheckRun], Any], rules: ModuleType) -> Area:
    """Return the reports of an area: first the failed observations, then the findings of its
    rules.
    """

    def report(run: CheckRun) -> Reports:
        facts = observe(run)
        yield from getattr(facts, "unseen", ())
        yield from check(rules, facts, run.goal)

    return report


def _workers(run: CheckRun) -> WorkersSeen:
    edges = run.context.edges
    return worker_observe.observe(run.context.view, edges.kafka, edges.transactions(), run.now)


def _configurations(run: CheckRun) -> Reports:
    context = run.context
    urls = [worker.url for worker in context.view.workers if worker.problem is None]
    configs = {connector.name: connector.config for connector in context.checked}
    answers = validations.ask(context.edges.calls, urls, configs, most=validations.MOST)
    yield from validations.unseen(answers)
    yield from validations.not_validated(urls, answers, configs)
    supports = frozenset(worker.support for worker in context.view.workers)
    policy = context.worker_property(POLICY) if run.release else None
    for connector in context.checked:
        subject = Subject(
            connector.name,
            connector.config,
            run.goal,
            answers[connector.name],
            context.group.id,
            context.internal.get("offsets"),
            running=True,
            release=run.release,
            policy=policy,
            supports=supports,
            named_servers=context.edges.named_servers,
        )
        yield from evaluation.evaluate(subject).findings


def _offset_stores(run: CheckRun) -> Reports:
    if "offsets" in run.context.internal:  # otherwise TOPIC002 reports it
        yield from _area(
            lambda run: store_observe.observe(run.context, run.goal, run.now), store_rules
        )(run)


def _tasks(run: CheckRun) -> Reports:
    facts = tasks_max_observe.observe(run.context.view, run.context.edges.kafka).only(
        run.context.names
    )
    # CLUSTER004 and CLUSTER011 already report workers that do not answer and unknown connectors.
    yield from (gap for gap in facts.unseen if not gap.what.startswith(("worker ", "connectors")))
    yield from check(tasks_max_rules, facts, run.release)


def _acls(run: CheckRun) -> Reports:
    if run.principals is not None:
        facts, unseen = run.acl_facts()
        yield from unseen
        yield from check(acls_rules, facts, run.goal) if facts is not None else ()


AREAS: dict[str, Area] = {
    "the brokers": _area(lambda run: broker_observe.observe(run.context, run.goal), broker_rules),
    "the workers": _area(_workers, worker_rules),
    "rolls of the workers": _area(lambda run: run.context.edges.roll(run.context.view), roll_rules),
    "internal topics": _area(
        lambda run: internal_topics_rules.observe(run.context, run.now), internal_topics_rules
    ),
    "configurations": _configurations,
    "offset stores": _offset_stores,
    "rounds of fencing": _area(
        lambda run: fencing_observe.observe(run.context, run.now), fencing_rules
    ),
    "transactions": _area(
        lambda run: transaction_observe.observe(run.context, run.now), transaction_rules
    ),
    "tasks": _tasks,
    "readers": _area(lambda run: consumer_observe.observe(run.context, run.goal), consumer_rules),
    "ACLs": _acls,
}
"""The areas of ``preflight``, by the name that the finding about a failed observation has."""

ADVICE = frozenset(
    (
        *("WORKER002", "WORKER003", "WORKER005", "WORKER006", "FENCE001", "FENCE011", "FENCE013"),
        *("TOPIC006", "TOPIC009", "TOPIC010", "TOPIC011", "TOPIC012", "TOPIC013", "TXN008"),
        *("BROKER002", "BROKER003", "BROKER004", "BROKER009", "BROKER010", "BROKER011"),
        *("BROKER012", "BROKER016", "BROKER017"),
    )
)
"""Findings of preflight that are advice about settings: nothing is wrong now."""

DOCTOR_AREAS: dict[str, Area] = {
    **{
        name: AREAS[name]
        for name in (
            "the brokers",
            "the workers",
            "rolls of the workers",
            "internal topics",
            "rounds of fencing",
            "transactions",
        )
    },
    "records that internal topics retain": _area(
        lambda run: retained_rules.observe(run.context, run.now), retained_rules
    ),
    "the progress of sources": _area(
        lambda run: progress_observe.observe(run.context, run.now), progress_rules
    ),
    "the progress of sinks": _area(
        lambda run: sink_observe.observe(run.context, run.now), sink_rules
    ),
    "the rebalances": _area(
        lambda run: rebalance_observe.observe(run.context, run.now), rebalance_rules
    ),
    "connectors and tasks": _area(
        lambda run: failure_observe.observe(run.context, run.now), failure_rules
    ),
}
"""The areas of ``doctor``: those of preflight that report what is wrong now, and its own, which use
the history of the cluster.
"""


def check_run(
    clients: Clients,
    connectors: Sequence[str],
    goal: Goal,
    principals: Principals | None = None,
    *,
    acls: bool = False,
    release: Release | None = None,
) -> CheckRun:
    """Return the checks of the cluster; ``acls`` also without a named principal."""
    given = principals or acl_principals.Principals()
    group = clients.group()
    scene = observe_cluster(edges_of(clients, group), group, clients.named_topics, connectors)
    known = any(acl_principals.identity(each.config) for each in scene.sources)
    return CheckRun(scene, goal, given if principals or acls or known else None, release)


def doctor_run(clients: Clients, connectors: Sequence[str], now: float | None = None) -> CheckRun:
    """Return the checks of ``doctor``: of what is wrong at ``now``, in seconds since the epoch, with
    the history of the cluster; None: at present.
    """
    group = clients.group()
    edges = edges_of(clients, group)
    if now is not None:
        edges = replace(edges, pause=lambda seconds: None)
    context = observe_cluster(edges, group, clients.named_topics, connectors, past=True)
    at = round(time.time(), 3) if now is None else now
    context.history = history_observe.observe(context, at)
    context.unseen += context.history.unseen
    context.view = history_workers.with_past(context.view, context.history, edges.calls, at)
    return CheckRun(context, Goal.NOW, now=at, areas=DOCTOR_AREAS, left_out=ADVICE)


def edges_of(clients: Clients, group: ConnectGroup) -> Edges:
    """Return the clients for preflight and doctor."""
    driver = clients.driver()

    def configured(worker: str, name: str) -> str | None:
        with suppress(ConnectctlError):
            found = driver.configured(worker, name)
            return found.value if found else None
        return None

    return Edges(
        clients.kafka,
        clients.connect_to(group),
        lambda: clients.transactions,
        lambda: clients.brokers,
        lambda: clients.acls,
        clients.other_acls,
        clients.other_kafka,
        str(clients.settings.get("bootstrap_servers")),
        configured,
        clients.settings.named_servers,
        lambda view: _roll(clients, view),
    )


def _roll(clients: Clients, view: ClusterView) -> RollState:
    """Return how far a rolling change of the workers is; a journal that does not exist is not
    created.
    """
    directory = paths.journal_directory()
    journal = Journal(directory) if (directory / "journal.db").exists() else None
    calls = clients.connect_to(view.group)
    reader = ClusterReader(
        clients.kafka, calls, view.group.id, clients.transactions, clients.driver()
    )
    return roll_state(reader, journal, view.group, view.workers)
