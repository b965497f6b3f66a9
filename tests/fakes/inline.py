"""Pools without threads, for tests that carry a command out at each of its calls: requests come in
one order.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest


def _submit(
    self: ThreadPoolExecutor, work: Callable[..., Any], /, *args: Any, **more: Any
) -> Future[Any]:
    """Do ``work`` in the thread that submits it; what it raises is raised where its result is asked
    for.
    """
    done: Future[Any] = Future()
    try:
        done.set_result(work(*args, **more))
    except BaseException as e:  # noqa: BLE001
        done.set_exception(e)
    return done


def without_threads(patch: pytest.MonkeyPatch) -> None:
    """Have every pool do its work in the caller's thread."""
    patch.setattr(ThreadPoolExecutor, "submit", _submit)
