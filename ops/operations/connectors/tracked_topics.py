"""The active topics of a connector, as its workers track them in the status topic (KIP-558)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import BadInput, ConnectctlError, NoRestApi, NotAuthorized
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.core.step import ResourceStep
from connectctl.ops.core.unseen import Unseen, reason

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import ConnectCalls
    from connectctl.ops.operations.connectors.context import StepContext

_OFF = {
    "Topic tracking is disabled.": "topic.tracking.enable",
    "Topic tracking reset is disabled.": "topic.tracking.allow.reset",
}
"""Messages of workers with the status 403, and the property that each of them is about."""

PATIENCE = 3.0
"""The most seconds in which workers may answer about one connector's topics."""
FEW = 20
"""The most connectors for which workers receive one request each."""
MOST = 1_000
"""The same where no other source has the topics."""
Recorded = Mapping[str, frozenset[str]]

_NONE: Mapping[str, list[str]] = {"topics": []}


def read(calls: ConnectCalls, connector: str) -> tuple[str, ...]:
    """Return the topics that tasks of ``connector`` have used since its creation or the last reset.

    Raises ``ConnectctlError`` with the code ``topic-tracking-off`` if workers do not track topics,
    and ``BadInput`` for an unknown connector, for which workers return an empty list.
    """
    try:
        found = tuple(
            sorted(
                calls.get(path_of("connectors", connector, "topics")).get(connector, _NONE)[
                    "topics"
                ]
            )
        )
        if not found:
            calls.get(path_of("connectors", connector))
    except NotAuthorized as e:
        raise explained(e) from e
    except ConnectctlError as e:
        if e.code != "not-found":
            raise
        hint = "See connectctl connectors list."
        raise BadInput(
            f"Connector not found: {connector}", next_step=hint, code="unknown-connector"
        ) from e
    return found


def explained(error: NotAuthorized) -> ConnectctlError:
    """Return ``error``, or the error that tracking is off if this is the message of the workers."""
    name = next(
        (name for message, name in _OFF.items() if message.rstrip(".") in str(error.why)), None
    )
    if name is None:
        return error
    hint = f"Set {name}=true on the workers, which is the default, and restart them."
    what = "Topics are not tracked" if name.endswith("enable") else "Active topics cannot be reset"
    return ConnectctlError(
        f"{what}: {name} is off", why=error.why, next_step=hint, code="topic-tracking-off"
    )


def active_topics(
    calls: ConnectCalls | None, names: Sequence[str], recorded: Recorded | None = None
) -> tuple[dict[str, frozenset[str]], tuple[Unseen, ...]]:
    """Return the topics that each connector has written to, and one gap for the workers' failed
    answers.

    For more than a few connectors these are the ``recorded`` topics of the status topic, from which
    workers answer as well. Then one request only checks that the workers track topics.
    """
    if calls is None or not names:
        return {}, ()

    def ask(name: str) -> frozenset[str] | ConnectctlError:
        try:
            answer = calls.get(path_of("connectors", name) + "/topics", timeout=PATIENCE)
        except ConnectctlError as e:
            return e
        return frozenset(answer.get(name, {}).get("topics", ()))

    known = recorded if len(names) > FEW else None
    asked = names[: MOST if known is None else 1]
    with ThreadPoolExecutor(8) as pool:
        answers = dict(zip(asked, pool.map(ask, asked), strict=True))
    failed = {
        name: answer for name, answer in answers.items() if isinstance(answer, ConnectctlError)
    }
    if known is not None and not any(isinstance(error, NotAuthorized) for error in failed.values()):
        return {name: known.get(name, frozenset()) for name in names}, ()
    if recorded is not None and any(isinstance(error, NoRestApi) for error in failed.values()):
        return {name: recorded.get(name, frozenset()) for name in names}, ()
    found = {name: answer for name, answer in answers.items() if isinstance(answer, frozenset)}
    remaining = list(names[len(asked) :])
    if failed:
        what = f"the active topics of {some_of([*failed, *remaining], FEW)}"
        error = next(iter(failed.values()))
        error = explained(error) if isinstance(error, NotAuthorized) else error
        return found, (Unseen(what, reason(error), error.next_step),)
    why = (
        f"the status topic could not be read, and workers are asked about {MOST:,} connectors "
        "at most"
    )
    return found, (
        Unseen(f"the active topics of {some_of(remaining, FEW)}", why, "Name connectors."),
    ) if remaining else ()


@dataclass(frozen=True)
class ResetTopics(ResourceStep["StepContext"]):
    """Reset the active topics of a connector. Workers list a topic again when a task uses it."""

    topics: tuple[str, ...]

    def describe(self) -> str:
        return f"reset the active topics of {self.subject}: {', '.join(self.topics)}"

    def is_done(self, context: StepContext) -> str | None:
        return None if read(context.calls, self.subject) else "no active topics"

    def apply(self, context: StepContext) -> str | None:
        try:
            context.calls.send("PUT", path_of("connectors", self.subject, "topics", "reset"))
        except NotAuthorized as e:
            raise explained(e) from e
        return None


def plan_reset(cluster_id: str, connector: str, topics: tuple[str, ...], group_id: str) -> Plan:
    steps = (ResetTopics(connector, topics),) if topics else ()
    noops = () if topics else (Noop(connector, "no active topics"),)
    return Plan("connectors topics", cluster_id, steps, noops, group_id)
