"""What every test may use: a state directory of its own, and one real cluster for the whole
session.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import bytecode  # noqa: F401  # first: what is imported after it is compiled once for all processes
import guardian
import pytest
from connectctl.cli import invocation
from connectctl.cli.output import terminal, waiting
from connectctl.ops.core import journal_database
from depth import deep
from fakes.runner import build_commands_once
from hypothesis import HealthCheck, settings
from nextsteps import NextSteps
from otherbrokers import up_as_asked
from sparkjvm import Archive, java_options, submit_args

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

# How quick an example is depends on what else the machine does, and is no property of the code.
# Where the variable CI is set, Hypothesis tries the same examples for ever, unless told otherwise.
EXAMPLES = deep(100, 25)
settings.register_profile(
    "any machine",
    deadline=None,
    derandomize=False,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")

pytest_plugins = ["draws", "units", "fileorder", "turns", "repeats", "sandboxlogs"]

OFFLINE = "not live"
WIDTH, MEMORY = 5, 3 << 30
"""Processes that share the whole suite, and the bytes that each may need: at most times it waits
for a cluster of its own.

Four of them left two processors idle for a third of the time.
"""
LONG = ("slow", "campaign")
"""Marks of tests that only run where the expression of ``-m`` names them."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while modules and tests are made, of which none is any, and never look at
    them again: each search for garbage would go through all of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what no expression names: ``-m "not live"`` replaces the one of pyproject.toml, and
    is to add nothing.
    """
    unnamed = [mark for mark in LONG if mark not in config.option.markexpr]
    left_out = [item for item in items if any(item.get_closest_marker(mark) for mark in unnamed)]
    if left_out and config.option.markexpr:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def pytest_configure(config: pytest.Config) -> None:
    """Whatever ends this process, what it starts ends with it.

    What is started in the background of a script ignores ^C, and so would every process that a test
    starts.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    leave_files_to_the_system()
    config.stash[_DIRECTORY] = guardian.begin()
    build_commands_once()
    config.pluginmanager.register(NextSteps())


def leave_files_to_the_system() -> None:
    """Wait for no disk in this process: what it wrote is there for others, and after it was killed.
    Only a machine that loses power would miss it. Commands in processes of their own wait.
    """
    patch = pytest.MonkeyPatch()
    patch.setattr(os, "fsync", lambda file: None)
    patch.setattr(journal_database, "SYNCHRONOUS", "OFF")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Several processes for the whole suite; none for what somebody looks at, whose output is to
    come as it is printed.
    """
    from fileorder import ALL  # a plugin, which pytest imports itself

    looked_at = config.option.capture == "no" or config.option.keyword or config.option.collectonly
    if looked_at or not _whole(config):
        return 0
    # Tests without clusters compute, and a part of them waits for time-outs and for processes: one
    # more than there are processors. Each further one would only collect once more.
    offline = min(4, (os.cpu_count() or 1) + 1)
    return {ALL: _wide(), OFFLINE: offline}.get(config.option.markexpr, 0)


def _wide() -> int:
    import psutil

    return max(2, min(WIDTH, psutil.virtual_memory().total // MEMORY))


def _whole(config: pytest.Config) -> bool:
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS


def pytest_sessionstart(session: pytest.Session) -> None:
    """The process that has others test makes what their Sparks start with, beside the first tests,
    if it is not kept.
    """
    from fileorder import cache_of

    live = session.config.option.markexpr != OFFLINE
    config, cache = session.config, cache_of(session.config)
    if live and config.getoption("numprocesses", None) and _whole(config) and cache is not None:
        config.stash[_CLASSES] = Archive(config.stash[_DIRECTORY], cache.mkdir("spark-classes"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (made := session.config.stash.get(_CLASSES, None)) is not None:
        made.close()


SPARK = "PYSPARK_SUBMIT_ARGS"
_CLASSES = pytest.StashKey[Archive]()
_SECURED = pytest.StashKey["Sandbox"]()
_DIRECTORY = pytest.StashKey[Path]()


@pytest.fixture(scope="session", autouse=True)
def waits_are_not_told() -> Iterator[None]:
    """Whether a command is silent for long depends on the machine; see ``cli/test_waiting.py``."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ON_TERMINAL", "ELSEWHERE"):
            patch.setattr(waiting, name, 86_400.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def state_home(pytestconfig: pytest.Config) -> Iterator[Path]:
    """An empty XDG_STATE_HOME and XDG_CONFIG_HOME, so that no test meets the person's own sandboxes,
    journal and contexts.

    The cache stays the person's: jars are downloaded once.
    """
    directory = pytestconfig.stash[_DIRECTORY] / "state"
    directory.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(directory))
        patch.setenv("XDG_CONFIG_HOME", str(directory.with_name("config")))
        if SPARK not in os.environ:
            patch.setenv(SPARK, submit_args(java_options()))
        yield directory


@pytest.fixture(autouse=True)
def no_command_was_given_before() -> None:
    """Forget the command line of the last command of this process: printed commands repeat the
    options of it that name the cluster.
    """
    invocation.arguments.clear()
    invocation.cluster_options.clear()
    terminal.without_headers = False


PATIENT = {"fetch.max.wait.ms": "5000"}
"""How long workers wait for records of their topics. To ask every half second is a third of what a
cluster costs that does nothing; records come at once all the same, and only the end of a worker
waits for the answer.
"""


@pytest.fixture(scope="session")
def cluster(state_home: Path) -> Iterator[Sandbox]:
    """A broker and two workers with exactly-once support enabled, shared by all live tests.

    Tests give their connectors and topics names of their own, and leave both workers running.
    """
    from connectctl.ops.sandbox.cluster import SandboxSpec, down

    spec = SandboxSpec(
        name="tests",
        workers=2,
        support="enabled",
        extra_worker_properties=PATIENT,
    )
    sandbox = up_as_asked(spec)
    yield sandbox
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state_home))
        down("tests")


@pytest.fixture(scope="module")
def secured(state_home: Path, pytestconfig: pytest.Config) -> Iterator[Sandbox]:
    """A cluster behind TLS, logins that have to be renewed every ten seconds, and ACLs; with two
    workers, exactly-once.

    It is there as long as the files of its unit follow each other.
    """
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up
    from units import goes_on  # a plugin, which pytest imports itself

    if (sandbox := pytestconfig.stash.get(_SECURED, None)) is None:
        sandbox = up(
            SandboxSpec(
                name="secured",
                support="enabled",
                secured=True,
                extra_broker_properties={"connections.max.reauth.ms": "10000"},
            )
        )
        pytestconfig.stash[_SECURED] = sandbox
    yield sandbox
    if not goes_on(pytestconfig, "secured"):
        del pytestconfig.stash[_SECURED]
        down("secured")
