"""The topics that source connectors write to: by their configurations, and by what their workers saw (KIP-558)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from connectctl.ops.errors import ConnectctlError
from connectctl.ops.model.connector import path_of
from connectctl.ops.preflight.facts import Unseen

if TYPE_CHECKING:
    from connectctl.ops.edges.contract import ConnectCalls

PATIENCE = 3.0
"""Seconds that the workers may take to name one connector's topics."""
_NO_TARGETS = ("offsets.storage.", "errors.", "transforms.", "predicates.", "producer.", "consumer.", "admin.")


def configured_topics(config: Mapping[str, str]) -> frozenset[str]:
    """The topics that a source connector's configuration names as targets, as far as names of properties tell."""
    found: set[str] = set()
    for name, value in config.items():
        if name.rsplit(".", 1)[-1] in ("topic", "topics") and not name.startswith(_NO_TARGETS):
            found |= {part.strip() for part in value.split(",") if part.strip()}
    return frozenset(found)


def active_topics(
    calls: ConnectCalls | None, names: Sequence[str]
) -> tuple[dict[str, frozenset[str]], tuple[Unseen, ...]]:
    """The topics that each connector was seen to write to, and who could not be asked, said once."""
    if calls is None or not names:
        return {}, ()

    def ask(name: str) -> frozenset[str] | ConnectctlError:
        try:
            answer = calls.get(path_of("connectors", name) + "/topics", timeout=PATIENCE)
        except ConnectctlError as e:
            return e
        return frozenset(answer.get(name, {}).get("topics", ()))

    with ThreadPoolExecutor(8) as pool:
        answers = dict(zip(names, pool.map(ask, names), strict=True))
    found = {name: answer for name, answer in answers.items() if isinstance(answer, frozenset)}
    failed = {name: reason(answer) for name, answer in answers.items() if isinstance(answer, ConnectctlError)}
    if not failed:
        return found, ()
    hint = "Set topic.tracking.enable=true on the workers, which is the default."
    return found, (Unseen(f"the active topics of {', '.join(failed)}", next(iter(failed.values())), hint),)


def reason(error: ConnectctlError) -> str:
    """What went wrong, without what to do about it: for a sentence that goes on."""
    return (f"{error.what}: {error.why}" if error.why else error.what).rstrip(".")
