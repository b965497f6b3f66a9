"""How deep tests go that have no end of cases: some in each run, more with CONNECTCTL_TEST_DEEP=1,
before a release.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sized
from functools import cache

DEEP = os.environ.get("CONNECTCTL_TEST_DEEP") == "1"


def deep(whole: int, quick: int) -> int:
    """Return the number of examples, or the stride between cases, for this run."""
    return whole if DEEP else quick


def strided(cases: Sized, stride: int) -> range:
    """Return the numbers, from 1, of one of ``stride`` cases; the commit draws the first, so that
    each has its turn (``draws``).
    """
    first = 1 + random.Random(_seed()).randrange(stride)
    return range(first, len(cases) + 1, stride)


@cache
def _seed() -> str:
    from draws import drawn_by  # a plugin, which pytest imports itself

    return drawn_by()
