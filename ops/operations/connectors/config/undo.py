"""The undo of a run that created, changed or deleted connectors, from the configurations that it
stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.connector import State
from connectctl.ops.connect.partition_fate import Fate
from connectctl.ops.operations.connectors.carried_offsets import (
    CarryOffsets,
    DeleteCarried,
    reversed_pairs,
    was_carried,
)
from connectctl.ops.operations.connectors.config.offsets import (
    SetConnectorOffsets,
    file_of,
    refuse_moved,
    undo_of,
)
from connectctl.ops.operations.connectors.config.plan import VERBS, ConfigPlan, Planner
from connectctl.ops.operations.connectors.config.steps import (
    ChangeConnector,
    CreateConnector,
    DeleteConnector,
    ReadOffsets,
    RestoreOffsets,
)
from connectctl.ops.operations.connectors.config.values import Config, digest, shown, stored_config
from connectctl.ops.operations.connectors.state_operations import changed_since
from connectctl.ops.operations.connectors.steps import (
    WANTED,
    Await,
    ConnectorStep,
    SetTargetState,
    former_state,
)

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal, Run
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.operations.connectors.observe import ConnectorHealth


def plan_undo(
    journal: Journal,
    run: Run,
    plan: Plan,
    current: Mapping[str, ConnectorHealth],
    passwords: Callable[[Config], frozenset[str]],
    stored: Callable[[str], Any],
    *,
    wait: bool,
) -> ConfigPlan:
    """Return the plan that reverts the steps of ``run`` that were done or begun, from the last to
    the first.

    ``passwords`` returns the secret properties of a configuration, ``stored`` the source offsets of
    a connector. Raises ``Refused`` if a connector was changed after the run, or has committed
    offsets since that would be reset.
    """
    deleted = (step for step in plan.steps if isinstance(step, DeleteConnector))
    hidden = {step.subject: passwords(stored_config(journal, step.before)) for step in deleted}
    planner = Planner("connectors undo", plan.cluster_id, plan.group_id, current, hidden, wait=wait)
    carried = {step.subject: step for step in plan.steps if isinstance(step, CarryOffsets)}
    undo = _UndoPlanner(journal, run, current, planner, stored, carried)
    for number, step in reversed(list(enumerate(plan.steps))):
        if run.did(number):
            undo.add(number, step)
    undo.restore_states()
    undo.await_final_states()
    planned = undo.planner.planned()
    return replace(planned, plan=replace(planned.plan, undoes=run.id))


class _UndoPlanner:
    """Plans an undo. ``carried`` are the run's copies of offsets by connector. ``states`` are the
    states of connectors that are created again, ``stopped`` the former states of those that the
    undo stops.
    """

    def __init__(
        self,
        journal: Journal,
        run: Run,
        current: Mapping[str, ConnectorHealth],
        planner: Planner,
        stored: Callable[[str], Any],
        carried: Mapping[str, CarryOffsets],
    ) -> None:
        self.journal, self.run, self.current, self.planner, self.stored = (
            journal,
            run,
            current,
            planner,
            stored,
        )
        self.carried = carried
        self.states: dict[str, str] = {}
        self.stopped: dict[str, str] = {}

    def add(self, number: int, step: ConnectorStep) -> None:
        if isinstance(step, CreateConnector):
            self._delete(step)
        elif isinstance(step, ChangeConnector):
            self._change(step)
        elif isinstance(step, DeleteConnector):
            self._create(step)
        elif isinstance(step, SetConnectorOffsets):
            self._offsets(number, step)
        elif isinstance(step, CarryOffsets) and step.subject in self.current:
            self._uncarried(step)
        elif isinstance(step, SetTargetState) and step.subject in self.current:
            self._state(step)

    def _delete(self, step: CreateConnector) -> None:
        if self._is_unchanged(step.subject, step.after):
            self.planner.delete(step.subject)

    def _change(self, step: ChangeConnector) -> None:
        now = self.current.get(step.subject)
        if now is not None and digest(now.connector.config) == step.before:
            return
        if self._is_unchanged(step.subject, step.after):
            former = stored_config(self.journal, step.before)
            self.planner.configs += [now.connector.config, former] if now else [former]
            former_values = {name: step.was.get(name) for name in step.changes}
            was = {name: step.changes.get(name) for name in step.changes}
            change = ChangeConnector(step.subject, former_values, was, step.after, step.before)
            if now is not None and (copied := self.carried.get(step.subject)):
                pairs, state = reversed_pairs(copied.pairs), self._at_rest(step.subject)
                carry = CarryOffsets(
                    step.subject, pairs, step.after, step.before, state, copied.force
                )
                self.planner.steps += [carry, change]
            elif now is None or step.former is None:
                self.planner.steps.append(change)
            else:
                begun = (
                    *step.partitions.get(Fate.BEGUN, ()),
                    *step.partitions.get(Fate.RESUMED, ()),
                )
                restore = RestoreOffsets(step.subject, step.before, begun, step.former)
                self.planner.steps += self.planner.at_rest(step.subject, (change, restore))
            self._await(
                step.subject, "RUNNING" if now is None else self.planner.state(step.subject)
            )
            if step.partitions:
                self.planner.shows.append(ReadOffsets(step.subject))

    def _create(self, step: DeleteConnector) -> None:
        name, former = step.subject, stored_config(self.journal, step.before)
        if name in self.current:
            if digest(self.current[name].connector.config) != step.before:
                raise changed_since(self.run, name)
            return
        self.states[name] = step.state or "RUNNING"
        self.planner.configs.append(former)
        state = None if self.states[name] == "RUNNING" else self.states[name]
        self.planner.steps.append(
            CreateConnector(
                name,
                shown(former, self.planner.passwords.get(name, frozenset())),
                step.before,
                state,
            )
        )
        self._await(name, self.states[name])

    def _offsets(self, number: int, step: SetConnectorOffsets) -> None:
        """Plan to restore offsets while their connector is stopped: before it is deleted, after it
        is created.
        """
        name = step.subject
        if not self.journal.path(self.run.id, file_of(number)).exists():
            return
        steps = self.planner.steps
        at = next(
            (
                n
                for n, planned_step in enumerate(steps)
                if isinstance(planned_step, CreateConnector) and planned_step.subject == name
            ),
            None,
        )
        if at is None and name not in self.current:
            return
        was = "STOPPED" if at is not None else self.planner.state(name)
        restore = undo_of(
            step, self.journal, self.run.id, number, None if was == "STOPPED" else was
        )
        if at is None:
            if restore.run is not None:
                refuse_moved(restore, self.journal, self.stored(name))
            self._at_rest(name)
            steps.append(restore)
            return
        created = steps[at]
        assert isinstance(created, CreateConnector)
        verb = VERBS[self.states[name]]
        again = [] if verb == "stop" else [SetTargetState(name, verb, now="STOPPED")]
        stopped = CreateConnector(name, created.config, created.after, "STOPPED")
        steps[at : at + 1] = [stopped, restore, *again]

    def _uncarried(self, step: CarryOffsets) -> None:
        """Plan to delete the copies that a run made of offsets; their connector continues with the
        former configuration.
        """
        name, steps = step.subject, self.planner.steps
        is_carried_back = any(
            isinstance(step_, CarryOffsets) and step_.subject == name for step_ in steps
        )
        if is_carried_back or was_carried(self.journal, self.run.id, name):
            self._at_rest(name)
            steps.append(
                DeleteCarried(
                    name,
                    reversed_pairs(step.pairs),
                    step.before,
                    None if is_carried_back else self.run.id,
                )
            )

    def _at_rest(self, name: str) -> str | None:
        """Plan to stop the connector; return its former state, None if it is already stopped."""
        steps, state = self.planner.steps, self.planner.state(name)
        if not any(isinstance(step, SetTargetState) and step.subject == name for step in steps):
            steps.append(SetTargetState(name, "stop", now=str(self.current[name].verdict)))
            self.stopped[name] = state
        if Await(name, State.STOPPED) not in steps:
            steps.append(Await(name, State.STOPPED))
        return None if state == "STOPPED" else state

    def _state(self, step: SetTargetState) -> None:
        """Plan to restore the state of a connector before an apply changed it, from the step."""
        verb = VERBS[former_state(step).value]
        if verb != step.verb:
            self.planner.steps.append(
                SetTargetState(step.subject, verb, now=str(self.current[step.subject].verdict))
            )

    def _is_unchanged(self, name: str, after: str) -> bool:
        """Return whether the connector exists. Raises ``Refused`` if its configuration is not the
        one that the run left.
        """
        found = self.current.get(name)
        if found is not None and digest(found.connector.config) != after:
            raise changed_since(self.run, name)
        return found is not None

    def restore_states(self) -> None:
        """Plan to restore the states of connectors that the undo stopped, unless another step
        does.
        """
        last = {
            step.subject: step.verb
            for step in self.planner.steps
            if isinstance(step, SetTargetState)
        }
        deleted = {step.subject for step in self.planner.steps if isinstance(step, DeleteConnector)}
        for name, state in self.stopped.items():
            if name not in deleted and last[name] == "stop" != VERBS[state]:
                self.planner.steps.append(SetTargetState(name, VERBS[state], now="STOPPED"))

    def await_final_states(self) -> None:
        """Change each wait to the state that the last step of the connector sets: the stop of the
        run is undone last.
        """
        last = {
            step.subject: step.verb
            for step in self.planner.steps
            if isinstance(step, SetTargetState)
        }
        self.planner.waits = [
            replace(step, wanted=WANTED[last[step.subject]])
            if isinstance(step, Await) and last.get(step.subject) in WANTED
            else step
            for step in self.planner.waits
        ]

    def _await(self, name: str, state: str) -> None:
        if self.planner.wait:
            self.planner.waits.append(Await(name, State(state)))
