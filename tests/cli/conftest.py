"""Fixtures of the tests of commands."""

from __future__ import annotations

import pytest
from connectctl.ops.config import ignored_input


@pytest.fixture(autouse=True)
def nothing_was_ignored_before() -> None:
    """Forget the records that other tests of this process ignored: a command that ends prints all
    that are left.
    """
    ignored_input.take()
