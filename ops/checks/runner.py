"""All areas of preflight over one context: each sees what it needs and says what it finds, none keeps another from it.

An area that cannot look says so with a finding of its own. Findings come out once, however many areas met them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from connectctl.ops.checks.acls import observe as acls_observe
from connectctl.ops.checks.acls import rules as acls_rules
from connectctl.ops.checks.acls.observe import AclFacts
from connectctl.ops.checks.acls.principals import Principals
from connectctl.ops.checks.brokers import observe as broker_observe
from connectctl.ops.checks.brokers import rules as broker_rules
from connectctl.ops.checks.connector_config import rules as config_rules
from connectctl.ops.checks.connector_config import validations
from connectctl.ops.checks.connector_config.observe import Subject
from connectctl.ops.checks.connector_config.override_rules import POLICY
from connectctl.ops.checks.consumers import observe as consumer_observe
from connectctl.ops.checks.consumers import rules as consumer_rules
from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.fencing import observe as fencing_observe
from connectctl.ops.checks.fencing import rules as fencing_rules
from connectctl.ops.checks.internal_topics import rules as internal_topics_rules
from connectctl.ops.checks.offset_stores import observe as store_observe
from connectctl.ops.checks.offset_stores import rules as store_rules
from connectctl.ops.checks.tasks_max import observe as tasks_max_observe
from connectctl.ops.checks.tasks_max import rules as tasks_max_rules
from connectctl.ops.checks.tasks_max.observe import Release
from connectctl.ops.checks.transactions import observe as transaction_observe
from connectctl.ops.checks.transactions import rules as transaction_rules
from connectctl.ops.checks.types import Goal, Unseen, finding_of, unseen_by
from connectctl.ops.checks.workers import observe as worker_observe
from connectctl.ops.checks.workers import roll_rules
from connectctl.ops.checks.workers import rules as worker_rules
from connectctl.ops.checks.workers.observe import WorkersSeen
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.rule import check

Said = Iterable["Finding | Unseen"]


@dataclass
class CheckRun:
    """Evaluates ``context`` for ``goal``. ``principals`` are those that the person gave, None where ACLs are of no interest.

    ``release`` is the one of Kafka that is planned, None for the workers' own.
    """

    context: CheckContext
    goal: Goal
    principals: Principals | None = None
    release: Release | None = None
    now: float = field(default_factory=time.time)

    def findings(self) -> list[Finding]:
        """Return all findings in the order of the areas, each once."""
        with ThreadPoolExecutor(len(AREAS)) as pool:
            asked = [(name, pool.submit(_all, look, self)) for name, look in AREAS.items()]
            said: list[Finding | Unseen] = [*self.context.view.findings]
            for name, answer in asked:
                try:
                    said += answer.result()
                except ConnectctlError as e:
                    said.append(unseen_by(name, e))
        said += self.context.unseen
        found = [finding_of(each) if isinstance(each, Unseen) else each for each in said]
        return list(dict.fromkeys(found))

    def acl_facts(self) -> tuple[AclFacts | None, tuple[Unseen, ...]]:
        """What there is to know of ACLs; for what is printed of the missing ones, too."""
        return acls_observe.observe(self.context, self.principals or Principals())


def _all(look: Callable[[CheckRun], Said], run: CheckRun) -> list[Finding | Unseen]:
    return list(look(run))


def _area(observe: Callable[[CheckRun], Any], rules: ModuleType) -> Callable[[CheckRun], Said]:
    """Return what an area reports: what was not seen, then what its rules find in what was."""

    def look(run: CheckRun) -> Said:
        facts = observe(run)
        yield from getattr(facts, "unseen", ())
        yield from check(rules, facts, run.goal)

    return look


def _workers(run: CheckRun) -> WorkersSeen:
    edges = run.context.edges
    return worker_observe.observe(run.context.view, edges.kafka, edges.transactions())


def _configurations(run: CheckRun) -> Said:
    context = run.context
    urls = [worker.url for worker in context.view.workers if worker.problem is None]
    configs = {each.name: each.config for each in context.checked}
    answers = validations.ask(context.edges.calls, urls, configs, most=validations.MOST)
    yield from validations.unseen(answers)
    yield from validations.unasked(urls, answers, configs)
    supports = frozenset(worker.support for worker in context.view.workers)
    policy = context.worker_property(POLICY) if run.release else None
    for each in context.checked:
        subject = Subject(
            each.name,
            each.config,
            run.goal,
            answers[each.name],
            context.group.id,
            context.internal.get("offsets"),
            running=True,
            release=run.release,
            policy=policy,
            supports=supports,
            named_servers=context.edges.named_servers,
        )
        yield from config_rules.evaluate(subject).findings


def _offset_stores(run: CheckRun) -> Said:
    if "offsets" in run.context.internal:  # otherwise TOPIC002 reports it
        yield from _area(lambda run: store_observe.observe(run.context, run.goal, run.now), store_rules)(run)


def _tasks(run: CheckRun) -> Said:
    seen = tasks_max_observe.look(run.context.view, run.context.edges.kafka).only(run.context.names)
    # That a worker is silent, or that no connector is known, is CLUSTER004 and CLUSTER011 already.
    yield from (each for each in seen.unseen if not each.what.startswith(("worker ", "connectors")))
    yield from check(tasks_max_rules, seen, run.release)


def _acls(run: CheckRun) -> Said:
    if run.principals is not None:
        facts, unseen = run.acl_facts()
        yield from unseen
        yield from check(acls_rules, facts, run.goal) if facts is not None else ()


AREAS: dict[str, Callable[[CheckRun], Said]] = {
    "the brokers": _area(lambda run: broker_observe.observe(run.context, run.goal), broker_rules),
    "the workers": _area(_workers, worker_rules),
    "rolls of the workers": _area(lambda run: run.context.edges.roll(run.context.view), roll_rules),
    "internal topics": _area(lambda run: internal_topics_rules.observe(run.context, run.now), internal_topics_rules),
    "configurations": _configurations,
    "offset stores": _offset_stores,
    "rounds of fencing": _area(lambda run: fencing_observe.observe(run.context, run.now), fencing_rules),
    "transactions": _area(lambda run: transaction_observe.observe(run.context, run.now), transaction_rules),
    "tasks": _tasks,
    "readers": _area(lambda run: consumer_observe.observe(run.context, run.goal), consumer_rules),
    "ACLs": _acls,
}
"""What each area of ``preflight`` looks at, by its name in the finding that it could not."""
