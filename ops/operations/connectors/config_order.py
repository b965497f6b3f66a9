"""The order in which connectors are created, changed and deleted: whoever gives source partitions up comes first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from connectctl.ops.connect.partition_changes import shared
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.step import Step
from connectctl.ops.operations.connectors.config_steps import ChangeConnector, CreateConnector, DeleteConnector
from connectctl.ops.operations.connectors.config_values import Config, digest, read_config

if TYPE_CHECKING:
    from connectctl.ops.operations.connectors.context import StepContext
    from connectctl.ops.operations.connectors.steps import ConnectorStep


@dataclass(frozen=True)
class AwaitRelease(Step["StepContext"]):
    """Wait until the connector ``of`` reads the source partitions no more that ``subject`` is to read.

    ``after`` is the digest of the configuration that ``of`` gets before, None where it is deleted. Where that failed, the
    later steps of ``subject`` are left out: two connectors would read the same.
    """

    read_only: ClassVar[bool] = True

    subject: str
    of: str
    after: str | None = None
    now: str = ""

    def describe(self) -> str:
        if self.after is not None:
            return f"check that {self.of} no longer reads source partitions that {self.subject} is to read"
        return f"wait until no worker runs {self.of}, whose source partitions {self.subject} reads"

    def apply(self, context: StepContext) -> str | None:
        found = read_config(context.calls, self.of)
        if (None if found is None else digest(found)) != self.after:
            raise Refused(
                f"{self.of} still reads source partitions that {self.subject} is to read; {self.subject} is left as it is",
                next_step=f"See connectctl connectors show {self.of}, and apply again.",
                code="stale",
            )
        context.await_gone(self.of, deleted=self.after is None)
        return None


def takeovers(former: Mapping[str, Config], wanted: Mapping[str, Config]) -> dict[str, tuple[str, ...]]:
    """By connector, whose source partitions it is to read that it did not read before.

    ``former`` are the configurations of what is changed and deleted, ``wanted`` those of what is created and changed.
    """
    given_up = {name: old for name, old in former.items() if _gives_up(name, old, wanted)}
    found: dict[str, tuple[str, ...]] = {}
    for name, config in wanted.items() if given_up else ():
        others = {each: old for each, old in given_up.items() if each != name}
        known = set(shared(former[name], others)) if name in former else set()
        if gained := [each for each in shared(config, others) if each not in known]:
            found[name] = tuple(gained)
    return found


def _gives_up(name: str, old: Config, wanted: Mapping[str, Config]) -> bool:
    """Whether source partitions of a connector are known, and it does not read the same ones any more."""
    itself = {name: old}
    return bool(shared(old, itself)) and not (name in wanted and shared(wanted[name], itself))


def arranged(steps: Sequence[ConnectorStep], after: Mapping[str, Sequence[str]]) -> list[ConnectorStep]:
    """``steps`` with those of each connector together: deletions that others wait for, then what is created and changed, in
    order of names, then the other deletions. ``after``: see ``takeovers``.
    """
    groups: dict[str, list[ConnectorStep]] = {}
    for step in steps:
        groups.setdefault(step.subject, []).append(step)
    results = {step.subject: step for step in steps if isinstance(step, CreateConnector | ChangeConnector)}
    awaited = {each for names in after.values() for each in names}
    left = {name: (_rank(group, name in awaited), name) for name, group in groups.items()}
    found: list[ConnectorStep] = []
    done: set[str] = set()
    while left:
        ready = [name for name in left if done.issuperset(set(after.get(name, ())) & groups.keys())]
        # Two that exchange their source partitions wait for each other: then the order of names has to do.
        name = min(ready or left, key=left.__getitem__)
        del left[name]
        before = [each for each in after.get(name, ()) if each in done]
        found += [AwaitRelease(name, each, results[each].after if each in results else None) for each in before]
        found += groups[name]
        done.add(name)
    return found


def _rank(steps: Iterable[ConnectorStep], awaited: bool) -> int:
    deletes = any(isinstance(step, DeleteConnector) for step in steps)
    return 0 if deletes and awaited else 2 if deletes else 1
