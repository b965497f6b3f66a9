"""Plans that create, change and delete connectors, from the desired and the current configurations.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from connectctl.ops.config.settings import SecretSource
from connectctl.ops.config.strimzi import Doubled
from connectctl.ops.connect.connector import State, requested_state
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.operations.connectors.carried_offsets import CarryOffsets, DeleteCarried
from connectctl.ops.operations.connectors.config.outlook import NONE, OffsetsOfChange
from connectctl.ops.operations.connectors.config.steps import (
    AwaitGone,
    ChangeConnector,
    CreateConnector,
    DeleteConnector,
    ReadOffsets,
)
from connectctl.ops.operations.connectors.config.values import (
    Config,
    References,
    difference,
    digest,
    shown,
    store_configs,
)
from connectctl.ops.operations.connectors.contradictions import refuse_doubtful
from connectctl.ops.operations.connectors.observe import ConnectorHealth
from connectctl.ops.operations.connectors.steps import (
    VERB_OF,
    WANTED,
    Await,
    ConnectorStep,
    SetTargetState,
    VerifyState,
    already_satisfied,
    other_state,
)
from connectctl.ops.operations.operation import Planned

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal

VERBS = {"RUNNING": "resume", "PAUSED": "pause", "STOPPED": "stop"}
RESTARTS = "restarts the connector and its tasks"


@dataclass(frozen=True)
class Desired:
    """A desired connector. ``state`` is its initial state, ``kept_state`` the state that every
    apply sets.

    Both are RUNNING, PAUSED or STOPPED. ``file`` is its file, None if it has none. ``secrets`` are
    the references of the file to secrets, whose values are in ``config``. ``doubled`` are values
    that a manifest sets twice.
    """

    name: str
    config: Config
    state: str | None = None
    kept_state: str | None = None
    file: str | None = None
    secrets: Mapping[str, SecretSource] = field(default_factory=dict, compare=False)
    doubled: Mapping[str, Doubled] = field(default_factory=dict)

    @property
    def hidden(self) -> frozenset[str]:
        """Return the properties whose values are secrets that the file refers to."""
        return frozenset(self.secrets)

    @property
    def references(self) -> dict[str, tuple[SecretSource, str]]:
        """Return each reference with its secret."""
        return {
            name: (source, self.config[name])
            for name, source in self.secrets.items()
            if name in self.config
        }


@dataclass(frozen=True)
class ConfigPlan(Planned):
    """A plan, and the configurations of its steps, which have their digests, with the references to
    secrets.

    ``verified`` are the unchanged connectors whose states it verifies. ``drifted``: a connector is
    in another state than its file declares.
    """

    configs: tuple[Config, ...] = ()
    references: References = field(default_factory=dict)
    verified: tuple[str, ...] = ()
    drifted: bool = False

    def store(self, journal: Journal) -> None:
        """Store the configurations."""
        store_configs(self.configs, journal, self.references)


@dataclass
class Planner:
    """Plans changes of configurations. ``current`` are the connectors by name; ``passwords`` are
    the secret properties of their plugins.

    ``declared``: files declare the connectors and their states; ``drifted`` are the connectors in
    other states.
    """

    operation: str
    cluster_id: str
    group_id: str
    current: Mapping[str, ConnectorHealth]
    passwords: Mapping[str, frozenset[str]] = field(default_factory=dict)
    wait: bool = False
    steps: list[ConnectorStep] = field(default_factory=list)
    waits: list[ConnectorStep] = field(default_factory=list)
    shows: list[ConnectorStep] = field(default_factory=list)
    noops: list[Noop] = field(default_factory=list)
    configs: list[Config] = field(default_factory=list)
    references: dict[str, Mapping[str, tuple[SecretSource, str]]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    declared: bool = False
    drifted: list[str] = field(default_factory=list)

    def planned(self) -> ConfigPlan:
        """Return the plan of all steps; the waits are last, so that they run concurrently."""
        steps = (*self.steps, *self.waits, *self.shows)
        plan = Plan(
            self.operation,
            self.cluster_id,
            steps,
            tuple(self.noops),
            self.group_id,
            independent=True,
            warnings=self.warnings,
        )
        verified = tuple(step.subject for step in self.waits if isinstance(step, VerifyState))
        return ConfigPlan(
            plan,
            configs=tuple(self.configs),
            references=dict(self.references),
            verified=verified,
            drifted=bool(self.drifted),
        )

    def create(self, desired: Desired, offsets: OffsetsOfChange = NONE) -> None:
        self.configs.append(desired.config)
        self.references[desired.name] = desired.references
        config = shown(desired.config, self._hidden(desired.name))
        state = None if desired.state == "RUNNING" else desired.state
        config_digest = digest(desired.config)
        self.steps.append(
            CreateConnector(
                desired.name, config, config_digest, state, desired.file, **offsets.of_step
            )
        )
        self.wait_for(desired.name, desired.state or "RUNNING")
        self.show(desired.name, offsets)

    def change(
        self, desired: Desired, offsets: OffsetsOfChange = NONE, *, force: bool = False
    ) -> None:
        """Plan the change of an existing connector to ``desired``. ``force``: offsets that it would
        refuse are carried over as well.
        """
        health = self.current[desired.name]
        refuse_doubtful([health.connector])
        former, name = health.connector.config, desired.name
        changes = difference(former, desired.config)
        verb = VERBS[desired.kept_state] if desired.kept_state else None
        moves = verb is not None and already_satisfied(verb, health.connector) is None
        if changes:
            self.configs += [former, desired.config]
            self.references[name] = desired.references
            was = {property_: former.get(property_) for property_ in changes}
            hidden = self._hidden(name)
            configs = shown(changes, hidden), shown(was, hidden)
            digests = digest(former), digest(desired.config)
            state, carried = self.state(name), offsets.carried
            restarts = RESTARTS if state == "RUNNING" and not carried else ""
            change = ChangeConnector(
                name,
                *configs,
                *digests,
                desired.file,
                now=str(health.verdict.state),
                **offsets.of_step,
                former=offsets.former,
                restarts=restarts,
            )
            if carried:
                copy = CarryOffsets(
                    name, carried, *digests, None if state == "STOPPED" else state, force
                )
                around = (copy, change, DeleteCarried(name, carried, digests[1]))
                self.steps += self.at_rest(name, around, desired.kept_state)
            else:
                self.steps.append(change)
        if moves and verb and not offsets.carried:
            self.steps.append(SetTargetState(name, verb, now=str(health.verdict)))
        if self.declared and not moves:
            self._verify(health, self._declared_state(desired), changed=bool(changes))
        elif changes or moves:
            self.wait_for(name, desired.kept_state or self.state(name))
        else:
            self.noops.append(Noop(name, "unchanged"))
        if changes or moves:
            self.show(name, offsets)

    def _declared_state(self, desired: Desired) -> State:
        """Return the state that a file declares: the kept state, or the initial state if the
        connector is in it, else RUNNING.
        """
        if desired.kept_state:
            return State(desired.kept_state)
        now = self.state(desired.name)
        return State(now) if now == desired.state else State.RUNNING

    def _verify(self, health: ConnectorHealth, declared_state: State, *, changed: bool) -> None:
        """Report a connector in another state than ``declared_state``, or an unhealthy one; with
        ``wait``, plan its verification.
        """
        name = health.name
        words = ["unchanged"]
        if other := other_state(health.connector, declared_state):
            self.drifted.append(name)
            step = f"connectctl connectors {VERB_OF[declared_state]} {name}"
            words.append(
                f"it is {other}, and its file means {declared_state} (to change that: {step})"
            )
            if changed:
                self.warnings = (*self.warnings, f"{name}: {words[-1]}")
        elif health.verdict.state is not declared_state:
            words.append(f"it is {health.verdict}")
        if not changed:
            self.noops.append(Noop(name, "; ".join(words)))
        if self.wait:
            verify = VerifyState(name, declared_state)
            self.waits.append(Await(name, declared_state) if changed and not other else verify)

    def delete(
        self, name: str, leaves: Sequence[str] = (), before: Iterable[ConnectorStep] = ()
    ) -> None:
        health = self.current[name]
        refuse_doubtful([health.connector])
        config = health.connector.config
        self.configs.append(config)
        self.steps += before
        self.steps.append(
            DeleteConnector(
                name, digest(config), self.state(name), tuple(leaves), now=str(health.verdict)
            )
        )
        if self.wait:
            self.waits.append(AwaitGone(name))

    def show(self, name: str, offsets: OffsetsOfChange) -> None:
        """Plan to read its offsets from the workers at the end, if the change affects offsets."""
        if offsets.partitions:
            self.shows.append(ReadOffsets(name, offsets.partitions.get("orphaned", ())))

    def at_rest(
        self, name: str, steps: Sequence[ConnectorStep], state: str | None = None
    ) -> list[ConnectorStep]:
        """Return ``steps`` between the stop of the connector and its return to ``state``, or to its
        former state.
        """
        verb, now = VERBS[state or self.state(name)], str(self.current[name].verdict)
        before = (
            []
            if self.state(name) == "STOPPED"
            else [SetTargetState(name, "stop", now=now), Await(name, State.STOPPED)]
        )
        after = [] if verb == "stop" else [SetTargetState(name, verb, now="STOPPED")]
        return [*before, *steps, *after]

    def state(self, name: str) -> str:
        """Return the target state of a connector; without brokers, the state that workers
        report.
        """
        return requested_state(self.current[name].connector).value

    def wait_for(self, name: str, state: str) -> None:
        """Plan to wait at the end until the connector is in ``state``, with ``wait``."""
        if self.wait:
            self.waits.append(Await(name, WANTED[VERBS[state]]))

    def _hidden(self, name: str) -> frozenset[str]:
        return self.passwords.get(name, frozenset())


def assignments(texts: Sequence[str]) -> dict[str, str | None]:
    """Return the properties in arguments of ``patch``: ``name=value`` sets one, ``name-`` removes
    one. Raises ``BadInput``.
    """
    found: dict[str, str | None] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign and text.endswith("-"):
            name, sign, value = text[:-1], "-", ""
        if not sign or not name.strip():
            raise BadInput(
                f"{text!r} is neither name=value nor name-",
                next_step="Write tasks.max=2, or tasks.max- to remove it.",
            )
        if name in found:
            raise BadInput(f"{name} is given twice", next_step="Leave one of them out.")
        if name == "name":
            raise BadInput(
                "A connector cannot be renamed", next_step="Create it with the new name."
            )
        found[name] = None if sign == "-" else value
    return found


def refuse_existing(desired: Sequence[Desired], current: Mapping[str, ConnectorHealth]) -> None:
    """Raise ``Refused`` if a connector to create exists."""
    if existing := [connector.name for connector in desired if connector.name in current]:
        raise Refused(
            f"Connector already exists: {', '.join(existing)}",
            next_step="To change it: connectctl connectors apply -f FILE.",
            code="exists",
        )
