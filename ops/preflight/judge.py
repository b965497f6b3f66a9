"""All areas of preflight over one scene: each sees what it needs and says what it finds, none keeps another from it.

An area that cannot look says so with a finding of its own. Findings come out once, however many areas met them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from connectctl.ops.errors import ConnectctlError
from connectctl.ops.model.offsetstore import Mode
from connectctl.ops.model.worker import Support
from connectctl.ops.preflight import (
    aclfacts,
    acls,
    brokerfacts,
    brokers,
    configrules,
    fencing,
    fencingfacts,
    internaltopics,
    readerfacts,
    readers,
    storefacts,
    stores,
    taskfacts,
    tasksmax,
    transactionfacts,
    transactions,
    validations,
    workerfacts,
    workers,
)
from connectctl.ops.preflight.activetopics import active_topics
from connectctl.ops.preflight.facts import Checked, Unseen, Wish
from connectctl.ops.preflight.overridechecks import POLICY
from connectctl.ops.preflight.principals import Principals
from connectctl.ops.preflight.scene import PATIENCE, Scene, unseen_by
from connectctl.ops.preflight.unseen import finding_of

if TYPE_CHECKING:
    from connectctl.ops.model.finding import Finding
    from connectctl.ops.preflight.aclfacts import AclFacts
    from connectctl.ops.preflight.taskfacts import Release

Said = Iterable["Finding | Unseen"]


@dataclass
class Judge:
    """Judges ``scene`` for ``wish``. ``principals`` are those that the person gave, None where ACLs are of no interest.

    ``release`` is the one of Kafka that is planned, None for the workers' own.
    """

    scene: Scene
    wish: Wish
    principals: Principals | None = None
    release: Release | None = None
    now: float = field(default_factory=time.time)

    def findings(self) -> list[Finding]:
        """Everything there is to say, in the order of the areas, each finding once."""
        areas = self._areas()
        with ThreadPoolExecutor(len(areas)) as pool:
            asked = [(name, pool.submit(_all, look)) for name, look in areas.items()]
            said: list[Finding | Unseen] = [*self.scene.view.findings]
            for name, answer in asked:
                try:
                    said += answer.result()
                except ConnectctlError as e:
                    said.append(unseen_by(name, e))
        said += self.scene.unseen
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
        edges = self.scene.edges
        seen = workerfacts.observe(self.scene.view, edges.kafka, edges.calls, edges.transactions())
        yield from seen.unseen
        yield from workers.check(seen, self.wish)

    def _brokers(self) -> Iterator[Finding | Unseen]:
        scene, edges = self.scene, self.scene.edges
        sources = brokerfacts.BrokerSources(
            edges.brokers(), edges.kafka, scene.sources, edges.bootstrap, scene.enabled, scene.versions, scene.told
        )
        facts = brokerfacts.observe(sources, self.wish)
        yield from facts.unseen
        yield from brokers.check(facts, self.wish)

    def _topics(self) -> Iterator[Finding | Unseen]:
        scene, edges = self.scene, self.scene.edges
        sources = internaltopics.TopicSources(
            edges.kafka,
            edges.transactions(),
            scene.internal,
            scene.sources,
            edges.bootstrap,
            scene.directory,
            edges.brokers(),
        )
        seen = internaltopics.observe(sources, self.now)
        yield from seen.unseen
        yield from internaltopics.check(seen)

    def _readers(self) -> Iterator[Finding | Unseen]:
        scene, edges = self.scene, self.scene.edges
        sources = readerfacts.ReaderSources(
            edges.brokers(),
            edges.transactions(),
            edges.kafka,
            edges.calls,
            self._everybody,
            [each.name for each in scene.sources],
            edges.bootstrap,
            scene.enabled,
            scene.internal.get("status"),
            scene.told,
        )
        facts = readerfacts.observe(sources, self.wish)
        yield from facts.unseen
        yield from readers.check(facts, self.wish)

    @property
    def _everybody(self) -> list[Checked]:
        """All connectors, picked or not: any sink may read what a picked one writes."""
        return [Checked(judged.connector) for judged in self.scene.view.connectors]

    def _configurations(self) -> Iterator[Finding | Unseen]:
        scene = self.scene
        urls = [worker.url for worker in scene.view.workers if worker.problem is None]
        configs = {each.name: each.config for each in scene.checked}
        answers = validations.ask(scene.edges.calls, urls, configs, most=validations.MOST)
        yield from validations.unseen(answers)
        yield from validations.unasked(urls, answers, configs)
        supports = frozenset(worker.support for worker in scene.view.workers)
        policy = scene.told(POLICY) if self.release else None
        topic = scene.internal.get("offsets")
        for each in scene.checked:
            asked = replace(each, validations=answers[each.name])
            yield from configrules.check(
                configrules.subject_of(
                    asked,
                    self.wish,
                    group_id=scene.group.id,
                    offsets_topic=topic,
                    release=self.release,
                    policy=policy,
                    supports=supports,
                )
            )

    def _stores(self) -> Iterator[Finding | Unseen]:
        from connectctl.ops.offsets.observe import Sources
        from connectctl.ops.offsets.snapshot import Workers

        scene, edges = self.scene, self.scene.edges
        offsets = scene.internal.get("offsets")
        if offsets is None:
            return  # TOPIC002 tells of it
        version = scene.versions[0] if scene.versions else None
        config = scene.internal.get("config")
        sources = Sources(
            edges.kafka, edges.bootstrap, config, offsets, edges.other_kafka, lambda: Workers(version), PATIENCE
        )
        facts = storefacts.observe(
            storefacts.StoreSources(
                sources,
                scene.sources,
                self._mode(),
                version,
                edges.calls,
                scene.internal,
                scene.told("bootstrap.servers"),
                scene.told("producer.bootstrap.servers"),
                scene.recorded,
            ),
            self.wish,
            self.now,
        )
        yield from facts.unseen
        yield from stores.check(facts, self.wish)

    def _mode(self) -> Mode | None:
        return {True: Mode.ENABLED, False: Mode.NOT_ENABLED, None: None}[self.scene.enabled]

    def _fencing(self) -> Iterator[Finding | Unseen]:
        scene, edges = self.scene, self.scene.edges
        facts = fencingfacts.observe(
            fencingfacts.FencingSources(
                edges.transactions(),
                edges.kafka,
                scene.group.id,
                edges.bootstrap,
                scene.sources,
                scene.state,
                scene.directory,
                scene.enabled,
                scene.versions,
                max(1, len(scene.view.workers)),
                scene.written,
                active=lambda name: active_topics(edges.calls, [name])[0].get(name),
                offsets_topic=scene.internal.get("offsets"),
            ),
            self.now,
        )
        yield from facts.unseen
        yield from fencing.check(facts, self.wish)

    def _transactions(self) -> Iterator[Finding | Unseen]:
        scene, edges = self.scene, self.scene.edges
        facts = transactionfacts.observe(
            transactionfacts.TransactionSources(
                edges.transactions(),
                scene.group.id,
                edges.bootstrap,
                scene.internal.get("offsets", ""),
                scene.sources,
                scene.state,
                scene.directory,
                scene.enabled,
                scene.written,
                _number(scene.told("offset.flush.interval.ms")),
                _number(scene.told("producer.transaction.timeout.ms")),
            ),
            self.now,
        )
        yield from facts.unseen
        yield from transactions.check(facts, self.wish)

    def _tasks(self) -> Iterator[Finding | Unseen]:
        seen = taskfacts.look(self.scene.view, self.scene.edges.kafka).only(self.scene.names)
        # That a worker is silent, or that no connector is known, is CLUSTER004 and CLUSTER011 already.
        yield from (each for each in seen.unseen if not each.what.startswith(("worker ", "connectors")))
        yield from tasksmax.check(seen, self.release)

    def _acls(self) -> Iterator[Finding | Unseen]:
        facts, unseen = self.acl_facts()
        yield from unseen
        if facts is not None:
            yield from acls.check(facts, self.wish)

    def acl_facts(self) -> tuple[AclFacts | None, tuple[Unseen, ...]]:
        """What there is to know of ACLs; for what is printed of the missing ones, too."""
        scene, edges = self.scene, self.scene.edges
        sight = aclfacts.Sight(
            scene.group,
            [each.connector for each in scene.checked],
            scene.internal,
            scene.state,
            any(w.support is Support.ENABLED for w in scene.view.workers),
            scene.recorded,
        )
        return aclfacts.observe(edges.acls, sight, self.principals or Principals())


def _all(look: Callable[[], Said]) -> list[Finding | Unseen]:
    return list(look())


def _number(text: str | None) -> int | None:
    return int(text) if text and text.strip().lstrip("-").isdigit() else None
