"""All areas of preflight over one context: each sees what it needs and says what it finds, none keeps another from it.

An area that cannot look says so with a finding of its own. Findings come out once, however many areas met them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from connectctl.ops.checks.acls import observe as acls_observe
from connectctl.ops.checks.acls import rules as acls_rules
from connectctl.ops.checks.acls.principals import Principals
from connectctl.ops.checks.brokers import observe as broker_observe
from connectctl.ops.checks.brokers import rules as broker_rules
from connectctl.ops.checks.connector_config import rules as config_rules
from connectctl.ops.checks.connector_config import validations
from connectctl.ops.checks.connector_config.active_topics import active_topics
from connectctl.ops.checks.connector_config.override_rules import POLICY
from connectctl.ops.checks.consumers import observe as consumer_observe
from connectctl.ops.checks.consumers import rules as consumer_rules
from connectctl.ops.checks.context import PATIENCE, CheckContext, unseen_by
from connectctl.ops.checks.fencing import observe as fencing_observe
from connectctl.ops.checks.fencing import rules as fencing_rules
from connectctl.ops.checks.internal_topics import rules as internal_topics_rules
from connectctl.ops.checks.not_checked import finding_of
from connectctl.ops.checks.offset_stores import observe as store_observe
from connectctl.ops.checks.offset_stores import rules as store_rules
from connectctl.ops.checks.tasks_max import observe as tasks_max_observe
from connectctl.ops.checks.tasks_max import rules as tasks_max_rules
from connectctl.ops.checks.transactions import observe as transaction_observe
from connectctl.ops.checks.transactions import rules as transaction_rules
from connectctl.ops.checks.types import Checked, Goal, Unseen
from connectctl.ops.checks.workers import observe as worker_observe
from connectctl.ops.checks.workers import rules as worker_rules
from connectctl.ops.connect.offset_store import Mode
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.errors import ConnectctlError

if TYPE_CHECKING:
    from connectctl.ops.checks.acls.observe import AclFacts
    from connectctl.ops.checks.tasks_max.observe import Release
    from connectctl.ops.core.finding import Finding

Said = Iterable["Finding | Unseen"]


@dataclass
class Judge:
    """Judges ``context`` for ``goal``. ``principals`` are those that the person gave, None where ACLs are of no interest.

    ``release`` is the one of Kafka that is planned, None for the workers' own.
    """

    context: CheckContext
    goal: Goal
    principals: Principals | None = None
    release: Release | None = None
    now: float = field(default_factory=time.time)

    def findings(self) -> list[Finding]:
        """Everything there is to say, in the order of the areas, each finding once."""
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
        areas: dict[str, Callable[[], Said]] = {
            "the brokers": self._brokers,
            "the workers": self._workers,
            "internal topics": self._topics,
            "configurations": self._configurations,
            "offset stores": self._stores,
            "rounds of fencing": self._fencing,
            "transactions": self._transactions,
            "tasks": self._tasks,
            "readers": self._readers,
        }
        if self.principals is not None:
            areas["ACLs"] = self._acls
        return areas

    # ----------------------------------------------------------------------------------------------------- the areas

    def _workers(self) -> Iterator[Finding | Unseen]:
        edges = self.context.edges
        seen = worker_observe.observe(self.context.view, edges.kafka, edges.calls, edges.transactions())
        yield from seen.unseen
        yield from worker_rules.check(seen, self.goal)

    def _brokers(self) -> Iterator[Finding | Unseen]:
        context, edges = self.context, self.context.edges
        sources = broker_observe.BrokerSources(
            edges.brokers(),
            edges.kafka,
            context.sources,
            edges.bootstrap,
            context.enabled,
            context.versions,
            context.worker_property,
        )
        facts = broker_observe.observe(sources, self.goal)
        yield from facts.unseen
        yield from broker_rules.check(facts, self.goal)

    def _topics(self) -> Iterator[Finding | Unseen]:
        context, edges = self.context, self.context.edges
        sources = internal_topics_rules.TopicSources(
            edges.kafka,
            edges.transactions(),
            context.internal,
            context.sources,
            edges.bootstrap,
            context.directory,
            edges.brokers(),
        )
        seen = internal_topics_rules.observe(sources, self.now)
        yield from seen.unseen
        yield from internal_topics_rules.check(seen)

    def _readers(self) -> Iterator[Finding | Unseen]:
        context, edges = self.context, self.context.edges
        sources = consumer_observe.ReaderSources(
            edges.brokers(),
            edges.transactions(),
            edges.kafka,
            edges.calls,
            self._everybody,
            [each.name for each in context.sources],
            edges.bootstrap,
            context.enabled,
            context.internal.get("status"),
            context.worker_property,
        )
        facts = consumer_observe.observe(sources, self.goal)
        yield from facts.unseen
        yield from consumer_rules.check(facts, self.goal)

    @property
    def _everybody(self) -> list[Checked]:
        """All connectors, picked or not: any sink may read what a picked one writes."""
        return [Checked(judged.connector) for judged in self.context.view.connectors]

    def _configurations(self) -> Iterator[Finding | Unseen]:
        context = self.context
        urls = [worker.url for worker in context.view.workers if worker.problem is None]
        configs = {each.name: each.config for each in context.checked}
        answers = validations.ask(context.edges.calls, urls, configs, most=validations.MOST)
        yield from validations.unseen(answers)
        yield from validations.unasked(urls, answers, configs)
        supports = frozenset(worker.support for worker in context.view.workers)
        policy = context.worker_property(POLICY) if self.release else None
        topic = context.internal.get("offsets")
        for each in context.checked:
            asked = replace(each, validations=answers[each.name])
            yield from config_rules.check(
                config_rules.subject_of(
                    asked,
                    self.goal,
                    group_id=context.group.id,
                    offsets_topic=topic,
                    release=self.release,
                    policy=policy,
                    supports=supports,
                )
            )

    def _stores(self) -> Iterator[Finding | Unseen]:
        from connectctl.ops.operations.offsets.observe import Sources
        from connectctl.ops.operations.offsets.snapshot import Workers

        context, edges = self.context, self.context.edges
        offsets = context.internal.get("offsets")
        if offsets is None:
            return  # TOPIC002 tells of it
        version = context.versions[0] if context.versions else None
        config = context.internal.get("config")
        sources = Sources(
            edges.kafka, edges.bootstrap, config, offsets, edges.other_kafka, lambda: Workers(version), PATIENCE
        )
        facts = store_observe.observe(
            store_observe.StoreSources(
                sources,
                context.sources,
                self._mode(),
                version,
                edges.calls,
                context.internal,
                context.worker_property("bootstrap.servers"),
                context.worker_property("producer.bootstrap.servers"),
                context.recorded,
            ),
            self.goal,
            self.now,
        )
        yield from facts.unseen
        yield from store_rules.check(facts, self.goal)

    def _mode(self) -> Mode | None:
        return {True: Mode.ENABLED, False: Mode.NOT_ENABLED, None: None}[self.context.enabled]

    def _fencing(self) -> Iterator[Finding | Unseen]:
        context, edges = self.context, self.context.edges
        facts = fencing_observe.observe(
            fencing_observe.FencingSources(
                edges.transactions(),
                edges.kafka,
                context.group.id,
                edges.bootstrap,
                context.sources,
                context.state,
                context.directory,
                context.enabled,
                context.versions,
                max(1, len(context.view.workers)),
                context.written,
                active=lambda name: active_topics(edges.calls, [name])[0].get(name),
                offsets_topic=context.internal.get("offsets"),
            ),
            self.now,
        )
        yield from facts.unseen
        yield from fencing_rules.check(facts, self.goal)

    def _transactions(self) -> Iterator[Finding | Unseen]:
        context, edges = self.context, self.context.edges
        facts = transaction_observe.observe(
            transaction_observe.TransactionSources(
                edges.transactions(),
                context.group.id,
                edges.bootstrap,
                context.internal.get("offsets", ""),
                context.sources,
                context.state,
                context.directory,
                context.enabled,
                context.written,
                _number(context.worker_property("offset.flush.interval.ms")),
                _number(context.worker_property("producer.transaction.timeout.ms")),
            ),
            self.now,
        )
        yield from facts.unseen
        yield from transaction_rules.check(facts, self.goal)

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
        context, edges = self.context, self.context.edges
        sight = acls_observe.Sight(
            context.group,
            [each.connector for each in context.checked],
            context.internal,
            context.state,
            any(w.support is Support.ENABLED for w in context.view.workers),
            context.recorded,
        )
        return acls_observe.observe(edges.acls, sight, self.principals or Principals())


def _all(look: Callable[[], Said]) -> list[Finding | Unseen]:
    return list(look())


def _number(text: str | None) -> int | None:
    return int(text) if text and text.strip().lstrip("-").isdigit() else None
