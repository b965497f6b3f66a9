"""Matrices of which each push tries some cells: drawn by the commit, named in the output, all of
them with ``-m slow``.

A test marked ``drawn`` runs one cell of its parameters, ``drawn(3)`` three of them. The others
become ``slow``. ``drawn(each="case")`` draws for each value of the parameter ``case``, which is
another behaviour. ``drawn(3, matrix="name")`` draws from all tests with this name, wherever they
are. Examples of Hypothesis are drawn by the commit, too: what fails once fails again.
``--hypothesis-seed`` draws others. ``CONNECTCTL_TEST_DRAW`` draws as another commit does.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

VARIABLE = "CONNECTCTL_TEST_DRAW"
_LEFT_OUT = pytest.StashKey[list[str]]()
_DRAWN = pytest.StashKey[set[str]]()
_NOT_ASKED_FOR = pytest.StashKey[set[str]]()
"""Tests of which the run has no cell at all, because it was asked for others."""
_OUTPUT = "cells left out"


def drawn_by() -> str:
    """The commit that draws, ``none`` where there is no repository."""
    if VARIABLE in os.environ:
        return os.environ[VARIABLE]
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "none"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Have Hypothesis draw by the commit, unless somebody asked for a seed."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = int.from_bytes(
            hashlib.sha256(drawn_by().encode()).digest()[:8]
        )


def chosen(cells: list[str], number: int, seed: str) -> set[str]:
    """So many of the cells; each comes as often as any other over many seeds."""
    return set(
        sorted(cells, key=lambda cell: hashlib.sha256(f"{seed} {cell}".encode()).digest())[:number]
    )


def _matrix(item: pytest.Item, each: str | None = None, matrix: str | None = None) -> str:
    """The name of a cell's matrix, or its test with the cell's value of the parameter ``each``."""
    if matrix is not None:
        return matrix
    test = item.nodeid.partition("[")[0]
    return test if each is None else f"{test} {item.callspec.params[each]!r}"  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as ``slow`` what is not drawn, before marks are looked at."""
    everything = config.stash[_DRAWN] = set()
    matrices: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if (marker := item.get_closest_marker("drawn")) is not None:
            matrices[_matrix(item, **marker.kwargs)].append(item)
    seed = drawn_by() if matrices else ""
    for matrix in matrices.values():
        marker = matrix[0].get_closest_marker("drawn")
        number = marker.args[0] if marker is not None and marker.args else 1
        drawn = chosen([item.nodeid for item in matrix], number, seed)
        everything |= drawn
        for item in matrix:
            if item.nodeid not in drawn:
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_deselected(items: list[pytest.Item]) -> None:
    """Remember the cells that this run leaves out."""
    for item in items:
        if item.get_closest_marker("drawn") is not None:
            stash, test = item.config.stash, item.nodeid.partition("[")[0]
            if item.nodeid in stash[_DRAWN]:
                stash.setdefault(_NOT_ASKED_FOR, set()).add(test)
            stash.setdefault(_LEFT_OUT, []).append(item.nodeid)


def _left_out(config: pytest.Config) -> list[str]:
    others = config.stash.get(_NOT_ASKED_FOR, set())
    return [
        cell for cell in config.stash.get(_LEFT_OUT, []) if cell.partition("[")[0] not in others
    ]


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_OUTPUT] = _left_out(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take over what a process of tests has left out; all leave out the same."""
    config: pytest.Config = node.config  # type: ignore[attr-defined]
    config.stash.setdefault(_LEFT_OUT, getattr(node, "workeroutput", {}).get(_OUTPUT, []))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name what was left out, by test."""
    matrices: dict[str, list[str]] = defaultdict(list)
    for cell in _left_out(config):
        test, _, parameters = cell.partition("[")
        matrices[test] += [parameters.removesuffix("]")] if parameters else []
    if matrices:
        terminalreporter.section(
            f"cells that commit {drawn_by()} does not draw ({VARIABLE}; -m slow has them all)"
        )
    for test, cells in sorted(matrices.items()):
        terminalreporter.line(f"{test}: {', '.join(cells)}" if cells else test)
