"""Commands in this process, many times over."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pytest
import typer.testing
from connectctl.cli.main import app
from typer.main import get_command


@functools.cache
def _built(made: typer.Typer) -> Any:
    return get_command(made)


def invoke(args: Sequence[str], **given: Any) -> typer.testing.Result:
    """As ``CliRunner.invoke``, which builds the whole tree of commands anew each time: that takes as long as the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", _built)
        return typer.testing.CliRunner().invoke(app, args, **given)
