"""The owner of a transactional id by its name: a task of a connector, or the leader of a group
(KIP-618).

``<group.id>-<connector>-<task>`` is not a unique name: group ``a`` with connector ``b-c`` and group
``a-b`` with connector ``c`` have the same ids, and fence each other. Within one group no two tasks
have the same id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.core.rule import Rule
from connectctl.ops.kafka.transactions import Transaction

AMBIGUOUS = Rule("FENCE001", Severity.WARNING)
LEADER = "connect-cluster-"
_TASK_ID = re.compile(r".+-.+-(0|[1-9][0-9]*)", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class TaskRef:
    """A task: ``connector`` and ``task`` in the Connect cluster ``group``."""

    group: str
    connector: str
    task: int

    def __str__(self) -> str:
        return f"task {self.task} of {self.connector} in {self.group}"


def task_id_prefix(group: str, connector: str) -> str:
    """Return what the transactional ids of a connector's tasks begin with. It ends with a dash:
    otherwise connector ``c`` would also have the ids of connector ``c2``.
    """
    return f"{group}-{connector}-"


def task_id(group: str, connector: str, task: int) -> str:
    return f"{task_id_prefix(group, connector)}{task}"


def may_be_task_id(id: str) -> bool:
    """Return whether the transactional id has the form of a task's id; the connector need not be
    known.
    """
    return _TASK_ID.fullmatch(id) is not None


def leader_id(group: str) -> str:
    """Return the transactional id with which the leader of ``group`` writes to the config topic."""
    return f"{LEADER}{group}"


@dataclass(frozen=True)
class LeaderId:
    """The leader's transactional id as its coordinator describes it; ``transaction`` is None if no
    coordinator has it.
    """

    transaction: Transaction | None

    @property
    def who(self) -> tuple[int, int] | None:
        """Return the producer id and epoch, None if no coordinator has the id."""
        return self.transaction.who if self.transaction else None

    @property
    def fresh(self) -> bool:
        """Return whether nothing has been written with the id since it was initialized."""
        return self.transaction is not None and self.transaction.state == "Empty"


@dataclass(frozen=True)
class TransactionalIdIndex:
    """The visible connectors, by group; deleted connectors may be among them."""

    connectors: Mapping[str, frozenset[str]]

    @cached_property
    def _stems(self) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {}
        for group, names in sorted(self.connectors.items()):
            for name in sorted(names):
                found.setdefault(f"{group}-{name}", []).append((group, name))
        return found

    def owners(self, id: str) -> tuple[TaskRef, ...]:
        """Return every task with this id; none if no visible connector fits."""
        stem, _, number = id.rpartition("-")
        if not (number.isascii() and number.isdigit()) or (
            number != "0" and number.startswith("0")
        ):
            return ()
        return tuple(TaskRef(group, name, int(number)) for group, name in self._stems.get(stem, ()))

    def is_leader(self, id: str) -> bool:
        """Return whether this is a leader's id; an id of the same form with a known connector is a
        task's.
        """
        return id.startswith(LEADER) and not self.owners(id)

    def ambiguity(self, id: str) -> Finding | None:
        owners = [str(owner) for owner in self.owners(id)]
        group = id.removeprefix(LEADER)
        if id.startswith(LEADER) and group in self.connectors:
            owners.append(f"the leader of {group}")
        if len(owners) < 2:
            return None
        message = f"This id belongs to {' and to '.join(owners)}: fencing one fences the other."
        hint = "Rename one of the connectors, or give one cluster another group.id."
        return AMBIGUOUS.found(id, message, hint)


def ambiguities(directory: TransactionalIdIndex, ids: Iterable[str]) -> list[Finding]:
    return [finding for id in ids if (finding := directory.ambiguity(id)) is not None]


def of_connector(ids: Iterable[str], group: str, connector: str) -> list[str]:
    """Return those of ``ids`` that are of tasks of ``connector``, by task number."""
    known = TransactionalIdIndex({group: frozenset((connector,))})
    found = [(owner, id) for id in ids for owner in known.owners(id)]
    return [id for _, id in sorted(found)]
