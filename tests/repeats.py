"""In a run of the whole suite, a test on real brokers and workers that fails is run once more, and
its first failure is printed whole: it is a fault to understand, not one to hold up other changes.

Kafka's own build repeats tests in the same way. Two tests of a run at most are repeated
(``--max-suite-reruns`` in pyproject.toml); with a third, or where one fails twice, the run fails.
"""

from __future__ import annotations

import os

import pytest
from fileorder import is_whole

_REPEATS = "CONNECTCTL_TEST_REPEATS"
"""The variable by which the first process of a run tells those that it starts."""


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return
    if is_whole(config):
        os.environ[_REPEATS] = "1"
    else:
        os.environ.pop(_REPEATS, None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests on real clusters be repeated."""
    if os.environ.get(_REPEATS):
        for item in items:
            if item.get_closest_marker("live"):
                item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what failed at first."""
    if not (failed := terminalreporter.stats.get("rerun", [])):
        return
    terminalreporter.section("failed once, and were repeated: each of them is a fault")
    for report in failed:
        terminalreporter.write_sep("_", report.nodeid)
        report.toterminal(terminalreporter._tw)
        for title, text in report.sections:
            terminalreporter.write_sep("-", title)
            terminalreporter.line(text)
