"""Compiled modules for the processes of tests, where nobody wants any beside the sources
(PYTHONDONTWRITEBYTECODE).

Tests start thousands of Pythons, and each would compile what it imports: a third of what a command
costs.
"""

from __future__ import annotations

import os
import sys

import pytest

_NONE, _WHERE = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"


def keep(cache: pytest.Cache) -> None:
    """Let this process, and all that it starts, keep what they compile in pytest's cache."""
    if sys.dont_write_bytecode and _NONE in os.environ:
        del os.environ[_NONE]
        os.environ[_WHERE] = sys.pycache_prefix = str(cache.mkdir("bytecode"))
        sys.dont_write_bytecode = False
