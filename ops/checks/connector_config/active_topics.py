"""The topics that source connectors write to: by their configurations, and as workers recorded them
(KIP-558).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from connectctl.ops.checks.types import Unseen, reason
from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import ConnectctlError, NoRestApi, NotAuthorized
from connectctl.ops.core.finding import some_of
from connectctl.ops.operations.connectors.tracked_topics import explained

PATIENCE = 3.0
"""The most seconds in which workers may answer about one connector's topics."""
FEW = 20
"""The most connectors for which workers receive one request each."""
MOST = 1_000
"""The same where no other source has the topics."""
Recorded = Mapping[str, frozenset[str]]
_NO_TARGETS = (
    "offsets.storage.",
    "errors.",
    "transforms.",
    "predicates.",
    "producer.",
    "consumer.",
    "admin.",
)


def configured_topics(config: Mapping[str, str]) -> frozenset[str]:
    """Return the target topics that a source connector's configuration names, by the names of
    properties.
    """
    found: set[str] = set()
    for name, value in config.items():
        if name.rsplit(".", 1)[-1] in ("topic", "topics") and not name.startswith(_NO_TARGETS):
            found |= {part.strip() for part in value.split(",") if part.strip()}
    return frozenset(found)


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
