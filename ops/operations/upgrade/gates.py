"""Whether a cluster is healthy enough to go on: pure verdicts from one look after another.

A gate passes after several healthy looks in a row, between which no task moved to another worker, and stops at its
deadline. A cooperative rebalance is two or more: what the first takes from a worker, the next one gives to another, and
between them the group is Stable (KIP-415). The clock of the deadline does not count a pending rebalance delay
(``scheduled.rebalance.max.delay.ms``): what a worker gave up is then on its way back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE

FENCING = (
    "Failed to perform round of zombie fencing",
    "Failed to perform zombie fencing",
    "Failed to perform preflight check for task",
    "IO Error trying to forward REST request",
)
"""Kafka's own words in the trace of a task whose round of fencing met a leader that was being restarted (Worker,
ExactlyOnceWorkerSourceTask, RestClient). Workers do not try again; whoever restarts the leader restarts such tasks."""

Part = tuple[str, int]
Layout = tuple[Mapping[str, str], Mapping[Part, str]]
WELL = ("RUNNING", "PAUSED", "STOPPED")


@dataclass(frozen=True)
class Trouble:
    """A connector or task that is not well. ``task`` is ``CONNECTOR_INSTANCE`` for the connector itself."""

    connector: str
    task: int
    state: str
    cause: str | None = None
    fencing: bool = False

    @property
    def part(self) -> Part:
        """Connector and task."""
        return self.connector, self.task

    @property
    def rank(self) -> int:
        """How bad it is: FAILED stays so, the others pass."""
        return rank(self.state)

    @property
    def passes(self) -> bool:
        """Whether it is a state between two others, which a rebalance or a restart under way explains."""
        return self.rank == 1

    @property
    def name(self) -> str:
        """The connector, or connector and task: ``orders/0``."""
        return self.connector if self.task == CONNECTOR_INSTANCE else f"{self.connector}/{self.task}"

    def __str__(self) -> str:
        return f"{self.name} is {self.state}" + (f" ({self.cause})" if self.cause else "")


def rank(state: str) -> int:
    """0 for a state that is well, 1 for one that passes, 2 for FAILED."""
    return 0 if state in WELL else 2 if state == "FAILED" else 1


@dataclass(frozen=True)
class Look:
    """The cluster at one moment; ``at`` in seconds of any clock.

    ``members`` are the workers in the group, address to member id; ``silent`` those whose REST server gives no answer,
    with the reason. ``assigned`` has the member id of the worker to which the group gives each connector and task.
    ``problem`` is why nothing could be seen.
    """

    at: float
    state: str = "Unknown"
    members: Mapping[str, str] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)
    delay_ms: int = 0
    leader: str | None = None
    troubles: tuple[Trouble, ...] = ()
    problem: str | None = None
    assigned: Mapping[Part, str] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        """Who is in the group and what is assigned to whom: as long as this is the same, no rebalance moved anything."""
        return dict(self.members), dict(self.assigned)


@dataclass(frozen=True)
class Demand:
    """What a gate wants. ``expected`` are the workers that must be there; ``baseline`` the ranks from before the roll.

    ``looks`` healthy ones in a row, over at least ``settle`` seconds in which the group's members and assignments stay the
    same; ``timeout`` in seconds; ``max_failures`` parts may be worse than the baseline.
    ``forgives_fencing``: tasks that cannot reach the fencing endpoint are left for later (KIP-618, Single-step downgrade).
    """

    expected: tuple[str, ...]
    baseline: Mapping[Part, int] = field(default_factory=dict)
    looks: int = 3
    timeout: float = 300.0
    max_failures: int = 0
    forgives_fencing: bool = False
    settle: float = 0.0


@dataclass(frozen=True)
class Watch:
    """A gate that is being waited for. ``failed`` are the parts that were FAILED at every look of the last ``sick`` ones.

    ``healthy`` looks in a row, all of the same ``layout``, the first of them at ``since``.
    """

    began: float
    healthy: int = 0
    sick: int = 0
    failed: frozenset[Part] = frozenset()
    delay: float = 0.0
    since: float = 0.0
    layout: Layout | None = None


@dataclass(frozen=True)
class Seen:
    """The gate after one more look: passed, stopped for a reason, or still waiting, with what is not healthy."""

    watch: Watch
    unwell: tuple[str, ...] = ()
    passed: bool = False
    stopped: str | None = None
    fenced: tuple[Trouble, ...] = ()


def worse(look: Look, demand: Demand) -> list[Trouble]:
    """The parts that are worse than before the roll and that nobody forgives."""
    found = [t for t in look.troubles if t.rank > demand.baseline.get(t.part, 0)]
    return [t for t in found if not (demand.forgives_fencing and t.fencing)]


def unwell(look: Look, demand: Demand) -> tuple[str, ...]:
    """All that keeps the look from being healthy, in words."""
    if look.problem:
        return (look.problem,)
    found = [] if look.state == "Stable" else [f"the group is {look.state}"]
    found += [f"{worker} is not in the group" for worker in demand.expected if worker not in look.members]
    found += [f"{worker} does not answer: {why}" for worker, why in look.silent.items() if worker in demand.expected]
    if look.delay_ms:
        found.append(f"lost tasks wait for {look.delay_ms / 1000:g} s (scheduled.rebalance.max.delay.ms)")
    troubles = worse(look, demand)
    if len([t for t in troubles if t.rank == 2]) > demand.max_failures or any(t.rank < 2 for t in troubles):
        found += [str(t) for t in troubles]
    return tuple(found)


def take(watch: Watch, look: Look, demand: Demand) -> Seen:
    """Take one more look into account."""
    found = unwell(look, demand)
    failed = _failed(look, demand)
    sick = watch.sick + 1 if failed and failed == watch.failed and _settled(look, demand) else 1 if failed else 0
    same = not found and watch.healthy > 0 and look.layout == watch.layout
    watch = replace(
        watch,
        healthy=watch.healthy + 1 if same else 0 if found else 1,
        since=watch.since if same else look.at,
        layout=look.layout,
        sick=sick,
        failed=failed,
        delay=max(watch.delay, look.delay_ms / 1000),
    )
    fenced = tuple(t for t in worse(look, demand) if t.fencing and t.rank == 2) if _settled(look, demand) else ()
    if watch.healthy >= demand.looks and look.at - watch.since >= demand.settle:
        return Seen(watch, passed=True)
    if found and len(failed) > demand.max_failures and sick > demand.looks:
        return Seen(watch, found, stopped=_sentence(found), fenced=fenced)
    if look.at - watch.began >= demand.timeout + watch.delay:
        waited = f"after {look.at - watch.began:.0f} s"
        why = _sentence(found) or "connectors and tasks keep moving between workers"
        return Seen(watch, found, stopped=f"{waited}: {why}", fenced=fenced)
    return Seen(watch, found, fenced=fenced)


def _failed(look: Look, demand: Demand) -> frozenset[Part]:
    return frozenset(t.part for t in worse(look, demand) if t.rank == 2)


def _settled(look: Look, demand: Demand) -> bool:
    """Whether statuses can be believed: everybody is there and nothing is on its way from one worker to another."""
    return not look.problem and look.state == "Stable" and not look.delay_ms and not look.silent


MOST_TOLD = 6


def _sentence(found: Iterable[str]) -> str:
    words = list(found)
    more = f"; and {len(words) - MOST_TOLD} more" if len(words) > MOST_TOLD else ""
    return "; ".join(words[:MOST_TOLD]) + more
