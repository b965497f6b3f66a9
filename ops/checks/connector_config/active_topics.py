"""The topics that source connectors write to: by their configurations, and as workers recorded (KIP-558)."""

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
"""Seconds that the workers may take to name one connector's topics."""
FEW = 20
"""Most connectors for which workers get one request each."""
MOST = 1_000
"""As ``FEW``, where nothing else reports them."""
Recorded = Mapping[str, frozenset[str]]
_NO_TARGETS = ("offsets.storage.", "errors.", "transforms.", "predicates.", "producer.", "consumer.", "admin.")


def configured_topics(config: Mapping[str, str]) -> frozenset[str]:
    """The topics that a source connector's configuration names as targets, as far as names of properties tell."""
    found: set[str] = set()
    for name, value in config.items():
        if name.rsplit(".", 1)[-1] in ("topic", "topics") and not name.startswith(_NO_TARGETS):
            found |= {part.strip() for part in value.split(",") if part.strip()}
    return frozenset(found)


def active_topics(
    calls: ConnectCalls | None, names: Sequence[str], recorded: Recorded | None = None
) -> tuple[dict[str, frozenset[str]], tuple[Unseen, ...]]:
    """The topics that each connector was seen to write to, and who could not be asked, said once.

    Of more than a few connectors it is what is ``recorded`` in the status topic, from which workers answer, too; a worker
    is then only asked whether they keep track at all.
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
    failed = {name: answer for name, answer in answers.items() if isinstance(answer, ConnectctlError)}
    if known is not None and not any(isinstance(error, NotAuthorized) for error in failed.values()):
        return {name: known.get(name, frozenset()) for name in names}, ()
    if recorded is not None and any(isinstance(error, NoRestApi) for error in failed.values()):
        return {name: recorded.get(name, frozenset()) for name in names}, ()
    found = {name: answer for name, answer in answers.items() if isinstance(answer, frozenset)}
    left = list(names[len(asked) :])
    if failed:
        what = f"the active topics of {some_of([*failed, *left], FEW)}"
        error = next(iter(failed.values()))
        error = explained(error) if isinstance(error, NotAuthorized) else error
        return found, (Unseen(what, reason(error), error.next_step),)
    why = f"the status topic could not be read, and workers are asked about {MOST:,} connectors at most"
    return found, (Unseen(f"the active topics of {some_of(left, FEW)}", why, "Name connectors."),) if left else ()
