"""The table of a campaign: every fault, and what was seen of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from live.campaignprocesses import Running
    from live.oracle import Verdict


@dataclass
class Row:
    """A fault of the table: when, whom, and who tells what came of it."""

    second: float
    kind: str
    target: str
    whose: Running | None = None
    successors: list[tuple[Running, int]] = field(default_factory=list)
    """Each with how many of its producers had committed by then."""
    seen: str = ""

    def followed(self, successors: Iterable[Running]) -> None:
        """These are to commit from now on."""
        self.successors = [(running, running.commits) for running in successors]

    @property
    def outcome(self) -> str:
        """What was seen of it in the end."""
        told = [self.seen] if self.seen else []
        if self.whose is not None:
            told.append(f"ended {self.whose.over}")
        if self.successors:
            well = all(running.commits > before for running, before in self.successors)
            told.append("successors commit" if well else "a successor met the next")
        return ", ".join(told)


def table(
    seed: int,
    rows: Sequence[Row],
    more: Sequence[str],
    verdict: Verdict,
    transactions: tuple[int, int],
) -> str:
    """Every fault, how often each kind was seen to end how, ``more`` lines, and what the topics
    say. ``transactions`` were committed and aborted, counted by partition.
    """
    lines = [f"seed {seed}", "", f"{'#':>3} {'s':>6}  {'fault':24} {'where':12} seen"]
    lines += [
        f"{n:3} {row.second:6.1f}  {row.kind:24} {row.target:12} {row.outcome}"
        for n, row in enumerate(rows, 1)
    ]
    lines += ["", f"{'fault':24} {'times':>5}  seen"]
    for kind in dict.fromkeys(row.kind for row in rows):
        seen = Counter(row.outcome for row in rows if row.kind == kind)
        told = "; ".join(f"{outcome} ({n})" for outcome, n in seen.most_common())
        lines.append(f"{kind:24} {seen.total():5}  {told}")
    lines += [
        "",
        *more,
        f"{sum(verdict.records.values())} records of {len(verdict.records)} sources; transactions "
        f"by partition: {transactions[0]} committed, {transactions[1]} aborted",
        f"findings: {', '.join(verdict.findings) or 'none'}",
    ]
    return "\n".join(lines)
