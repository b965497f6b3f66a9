"""Collections that count how often somebody goes through all of them: what grows faster than its
work does that often.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")


class Counted(tuple[T, ...]):
    """A tuple with ``passes``."""

    passes = 0

    def __iter__(self) -> Iterator[T]:
        self.passes += 1
        return super().__iter__()
