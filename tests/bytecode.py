"""Compiled modules for the processes of tests, where nobody wants any beside the sources
(PYTHONDONTWRITEBYTECODE).

Tests start thousands of Pythons, and each would compile what it imports: a third of what a command
costs. So would each process of tests, and rewrite the assertions of all that it imports.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_NONE, _WHERE = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"
_KEPT = Path(__file__).parents[1] / ".pytest_cache" / "d" / "bytecode"
"""A directory of pytest's cache: which one is asked for is known only after most is imported."""


if sys.dont_write_bytecode and _NONE in os.environ:
    # This process, and all that it starts, keep what they compile.
    del os.environ[_NONE]
    os.environ[_WHERE] = sys.pycache_prefix = str(_KEPT)
    sys.dont_write_bytecode = False
