"""All areas of preflight over one context: each sees what it needs and says what it finds, none keeps another from it.

An area that cannot look says so with a finding of its own. Findings come out once, however many areas met them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

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
from connectctl.ops.checks.workers import rules as worker_rules
from connectctl.ops.checks.workers.observe import WorkersSeen
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding

Said = Iterable["Finding | Unseen"]


class _AreaFacts(Protocol):
    @property
    def unseen(self) -> Sequence[Unseen]: ...


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
        """All findings in the order of the areas, each once."""
        areas = self._areas()
        with ThreadPoolExecutor(len(areas)) as pool:
            asked = [(name, pool.submit(_all, look)) for name, look in areas.items()]
            said: list[Finding | Unseen] = [*self.context.view.findings]
            for name, answer in asked:
                try:
                    said += answer.result()
                except ConnectctlError as e:
                    said.append(unseen_by(name, e))
        said += self.context.unseen
        found = [finding_of(each) if isinstance(each, Unseen) else each for each in said]
        return list(dict.fromkeys(found))

    def _areas(self) -> dict[str, Callable[[], Said]]:
        context, edges, goal, now = self.context, self.context.edges, self.goal, self.now

        def workers() -> WorkersSeen:
            return worker_observe.observe(context.view, edges.kafka, edges.transactions())

        areas: dict[str, Callable[[], Said]] = {
            "the brokers": lambda: _said(broker_observe.observe(context, goal), broker_rules.check, goal),
            "the workers": lambda: _said(workers(), worker_rules.check, goal),
            "rolls of the workers": lambda: worker_rules.check_roll(edges.roll(context.view)),
            "internal topics": lambda: _said(internal_topics_rules.observe(context, now), internal_topics_rules.check),
            "configurations": self._configurations,
            "offset stores": lambda: _said(store_observe.observe(context, goal, now), store_rules.check, goal),
            "rounds of fencing": lambda: _said(fencing_observe.observe(context, now), fencing_rules.check, goal),
            "transactions": lambda: _said(transaction_observe.observe(context, now), transaction_rules.check, goal),
            "tasks": self._tasks,
            "readers": lambda: _said(consumer_observe.observe(context, goal), consumer_rules.check, goal),
        }
        if "offsets" not in context.internal:
            del areas["offset stores"]  # TOPIC002 reports it
        if self.principals is not None:
            areas["ACLs"] = self._acls
        return areas

    # -------------------------------------------------------------------------- the areas that need more than the context

    def _configurations(self) -> Iterator[Finding | Unseen]:
        context = self.context
        urls = [worker.url for worker in context.view.workers if worker.problem is None]
        configs = {each.name: each.config for each in context.checked}
        answers = validations.ask(context.edges.calls, urls, configs, most=validations.MOST)
        yield from validations.unseen(answers)
        yield from validations.unasked(urls, answers, configs)
        supports = frozenset(worker.support for worker in context.view.workers)
        policy = context.worker_property(POLICY) if self.release else None
        for each in context.checked:
            subject = Subject(
                each.name,
                each.config,
                self.goal,
                answers[each.name],
                context.group.id,
                context.internal.get("offsets"),
                running=True,
                release=self.release,
                policy=policy,
                supports=supports,
                named_servers=context.edges.named_servers,
            )
            yield from config_rules.evaluate(subject).findings

    def _tasks(self) -> Iterator[Finding | Unseen]:
        seen = tasks_max_observe.look(self.context.view, self.context.edges.kafka).only(self.context.names)
        # That a worker is silent, or that no connector is known, is CLUSTER004 and CLUSTER011 already.
        yield from (each for each in seen.unseen if not each.what.startswith(("worker ", "connectors")))
        yield from tasks_max_rules.check(seen, self.release)

    def _acls(self) -> Iterator[Finding | Unseen]:
        facts, unseen = self.acl_facts()
        yield from unseen
        if facts is not None:
            yield from acls_rules.check(facts, self.goal)

    def acl_facts(self) -> tuple[AclFacts | None, tuple[Unseen, ...]]:
        """What there is to know of ACLs; for what is printed of the missing ones, too."""
        return acls_observe.observe(self.context, self.principals or Principals())


def _all(look: Callable[[], Said]) -> list[Finding | Unseen]:
    return list(look())


def _said(seen: _AreaFacts, check: Callable[..., Iterable[Finding]], *goal: Goal) -> Iterator[Finding | Unseen]:
    """What was not seen of an area, then what ``check`` finds in what was."""
    yield from seen.unseen
    yield from check(seen, *goal)
