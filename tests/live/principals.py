"""Twelve principals with too few rights, and what a command may make of each: by the table of
rights, and no all-clear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.rights import Effect, Name, Need, When, needs_of
from connectctl.ops.kafka.acls import ANY, CLUSTER_NAME, Acls, Action, Binding, Operation, Resource
from fakes.acls import allow
from live.rightsways import WAYS
from live.rightsworld import DEDICATED, PRINCIPAL

if TYPE_CHECKING:
    from live.real import Ran
    from live.rightsworld import RightsWorld

EVERYTHING = (Resource.TOPIC, Resource.GROUP, Resource.TRANSACTIONAL_ID, Resource.CLUSTER)


def _on(
    resource: Resource, operation: Operation = Operation.ALL, name: str = ANY, *, deny: bool = False
) -> Binding:
    return allow(
        PRINCIPAL,
        operation,
        resource,
        CLUSTER_NAME if resource is Resource.CLUSTER else name,
        deny=deny,
    )


def principals(world: RightsWorld) -> Mapping[str, tuple[Binding, ...]]:
    """The ACLs of each principal on the cluster of this world, by what it has or lacks."""
    everything = tuple(map(_on, EVERYTHING))
    topics = world.cluster.topics

    def without_topic(name: str) -> tuple[Binding, ...]:
        return (*everything, _on(Resource.TOPIC, name=name, deny=True))

    def without(resource: Resource) -> tuple[Binding, ...]:
        return tuple(_on(each) for each in EVERYTHING if each is not resource)

    configs = (Resource.TOPIC, Resource.CLUSTER)
    return {
        "nothing": (),
        "Describe of topics": (_on(Resource.TOPIC, Operation.DESCRIBE),),
        "Read alone": (_on(Resource.TOPIC, Operation.READ), _on(Resource.GROUP, Operation.READ)),
        "no groups": without(Resource.GROUP),
        "no transactional ids": without(Resource.TRANSACTIONAL_ID),
        "no DescribeConfigs": (
            *everything,
            *(_on(each, Operation.DESCRIBE_CONFIGS, deny=True) for each in configs),
        ),
        "no cluster": without(Resource.CLUSTER),
        "no offsets topic": without_topic(topics["offsets"]),
        "no dedicated topic": without_topic(DEDICATED),
        "no config topic": without_topic(topics["config"]),
        "no status topic": without_topic(topics["status"]),
        "everything": everything,
    }


PRINCIPALS = (
    *(
        "nothing",
        "Describe of topics",
        "Read alone",
        "no groups",
        "no transactional ids",
        "no DescribeConfigs",
    ),
    *(
        "no cluster",
        "no offsets topic",
        "no dedicated topic",
        "no config topic",
        "no status topic",
        "everything",
    ),
)
ALL_CLEAR = (
    "Nothing found",
    "No connector",
    "no connectors",
    "No transaction",
    "No hanging",
    "every connector",
)


@dataclass(frozen=True)
class Cell:
    """What a command did as a principal: its exit code with the reason why that is wrong, if it
    is.
    """

    code: int
    lacking: int
    wrong: str = ""

    def __str__(self) -> str:
        return f"{self.code}{'!' if self.wrong else ''}"


def lacking(world: RightsWorld, command: str, bindings: Sequence[Binding]) -> list[Need]:
    """The rows of the table that this principal does not have, by the authorizer's rules."""
    acls = Acls(tuple(bindings))

    def has(need: Need) -> bool:
        rights = list(world.rights_of(need))
        actions = (Action(PRINCIPAL, r.operation, r.resource, r.name) for r in rights)
        return all(acls.decide(action, ANY).allowed for action in actions)

    return [need for need in needs_of(command) if not has(need)]


def cell(world: RightsWorld, command: str, principal: str, whole: Ran) -> tuple[Cell, Ran]:
    """Run a command as a principal, and judge by the table what it did; ``whole`` is what it does
    with every right.
    """
    bindings = principals(world)[principal]
    run = WAYS[command].run(world)
    with given(world, bindings):
        ran = run()
    missing = lacking(world, command, bindings)
    return Cell(ran.code, len(missing), wrong(ran, whole, missing)), ran


def given(world: RightsWorld, bindings: Sequence[Binding]) -> AbstractContextManager[Any]:
    """The ACLs of a principal for as long as this lasts."""
    return world.grants.given(*bindings) if bindings else nullcontext()


GUARDS = {Name.TASKS, Name.LOG}
"""What a change has to see before it is made: where it does not, it is refused with 4, as by what
it may not see.
"""


def is_refusal(ran: Ran, missing: Sequence[Need]) -> bool:
    """Whether the exit code is that of a refusal for lack of ``missing``: 7 is one of a later step,
    where it says so.
    """
    guarded = ran.code == 4 and any(need.name in GUARDS for need in missing)
    return guarded or ran.code == 5 or (ran.code == 7 and "Not authorized" in ran.out + ran.err)


def wrong(ran: Ran, whole: Ran, missing: Sequence[Need]) -> str:
    """Return how a command contradicts the table of rights, or gives an all-clear that it may
    not.
    """
    said = ran.out + ran.err
    if ran.code == 70 or "Traceback" in said:
        return "a bug"
    # A transactional id or a group that is in a row by an example needs no right where it does not
    # exist.
    refusing = [
        need for need in missing if need.effect is Effect.REFUSED and need.when is When.ALWAYS
    ]
    if not missing:
        as_usual = (
            ran.code == whole.code and "not authorized" not in said.lower() and "SIGHT" not in said
        )
        return "" if as_usual else "less than with every right, and no row is missing"
    named = (
        "uthoriz" in said
        or "SIGHT" in said
        or any(f"on {need.resource.word} " in said for need in missing)
    )
    if refusing and not is_refusal(ran, missing) and not ran.code == whole.code == 4:
        return f"not refused, without {refusing[0].operation.word} on {refusing[0].name}"
    if ran.code in (4, 5) and whole.code not in (4, 5) and not named:
        return "refused, and no right is named"
    if clear := next(
        (each for each in ALL_CLEAR if each in said and each not in whole.out + whole.err), None
    ):
        return "" if named else f"an all-clear: {clear}"
    refusable = [need for need in missing if need.effect is Effect.REFUSED]
    if ran.code in (4, 5) and ran.code != whole.code and not refusable:
        return (
            "refused, and the table says that it sees a part without "
            f"{missing[0].operation.word} on {missing[0].name}"
        )
    return ""
