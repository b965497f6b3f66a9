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


@pytest.fixture(autouse=True)
def no_context_file_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Hide the context file of the user who runs the tests: its current context is theirs."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-config"))
