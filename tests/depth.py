"""How deep tests go that have no end of cases: some in each run, more with CONNECTCTL_TEST_DEEP=1,
as in .ci/run.
"""

from __future__ import annotations

import os

DEEP = os.environ.get("CONNECTCTL_TEST_DEEP") == "1"


def deep(whole: int, quick: int) -> int:
    """Return the number of examples, or the stride between cases, for this run."""
    return whole if DEEP else quick
