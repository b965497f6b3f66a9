"""``connectctl doctor`` over its catalogue: every illness is named with its cause, and what is healthy
raises no alarm.

What concerns connectors is planted side by side on the cluster that tests share, in parts of which
each commit draws one. What concerns a group or brokers has a cluster of its own, one after the other.
"""

from __future__ import annotations

import secrets
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.sandbox.cluster import SandboxSpec, down, up
from live.illnesses.bed import Bed, Situation, Where
from live.illnesses.bundled import bundle_agrees
from live.illnesses.catalogue import page, parts, situations
from live.illnesses.workers import OLDER
from live.real import connectctl, eventually
from live.rightsworld import sandbox_with_authorizer

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
ALARMS = ("error", "warning")
FOUND = (0, 1)
"""The exit codes of doctor without and with findings."""
PARTS = 10
"""Situations that are planted side by side on a cluster that other files share: some five."""


@pytest.mark.drawn
@pytest.mark.parametrize("part", range(PARTS))
def test_illnesses_are_named_and_what_is_healthy_raises_no_alarm(
    cluster: Sandbox, tmp_path: Path, part: int
) -> None:
    _side_by_side(cluster, tmp_path, parts(PARTS)[part])


@pytest.mark.slow
@pytest.mark.versions(workers=OLDER)
def test_illnesses_of_a_group_of_workers_are_named(state_home: Path, tmp_path: Path) -> None:
    spec = replace(sandbox_with_authorizer("ill"), workers=2)
    _one_by_one(spec, tmp_path, situations(Where.WORKERS))


@pytest.mark.slow
def test_illnesses_of_brokers_and_topics_are_named(state_home: Path, tmp_path: Path) -> None:
    spec = SandboxSpec(
        "ill-topics",
        brokers=3,
        support="enabled",
        extra_worker_properties={"scheduled.rebalance.max.delay.ms": "300000"},
    )
    _one_by_one(spec, tmp_path, situations(Where.BROKERS))


def _side_by_side(cluster: Sandbox, directory: Path, wanted: Mapping[str, Situation]) -> None:
    began, mark = time.monotonic(), secrets.token_hex(3)
    beds = {name: _bed(cluster, name, mark, directory) for name in wanted}
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda name: wanted[name].plant(beds[name]), wanted))
        assert eventually(lambda: _all_right(wanted, beds))
        print(f"{len(wanted)} situations: right after {time.monotonic() - began:.0f} s")
        assert bundle_agrees([*beds.values()], directory)
    finally:
        for bed in beds.values():
            bed.close()


def _bed(cluster: Sandbox, name: str, mark: str, directory: Path) -> Bed:
    own = directory / name
    own.mkdir()
    options = ("--context", f"sandbox-{cluster.spec.name}")
    return Bed(cluster, f"{name}-{mark}", own, options=options)


def _all_right(wanted: Mapping[str, Situation], beds: Mapping[str, Bed]) -> bool:
    """Look at all of them; False while doctor says something else than the catalogue."""
    for bed in beds.values():
        bed.before_look()
    names = dict.fromkeys(name for bed in beds.values() for name in bed.connectors)
    findings = _doctor(next(iter(beds.values())), *names)
    wrong = [
        f"{name}: {line}"
        for name, bed in beds.items()
        for line in _wrong(wanted[name], [f for f in findings if _concerns(f, bed)])
    ]
    print(*wrong, sep="\n")
    return not wrong


def _concerns(finding: dict[str, Any], bed: Bed) -> bool:
    return bed.name in finding["subject"] or bed.name in finding["message"]


def _one_by_one(spec: SandboxSpec, directory: Path, wanted: Mapping[str, Situation]) -> None:
    """Plant each on one cluster, and go on with the next where doctor is wrong about one."""
    with _sandbox(spec) as cluster:
        wrong = [
            name for name, each in wanted.items() if not _planted(cluster, directory, name, each)
        ]
    assert not wrong


def _planted(cluster: Sandbox, directory: Path, name: str, wanted: Situation) -> bool:
    """Return whether doctor was right about a situation, in the end."""
    began = time.monotonic()
    bed = _bed(cluster, name, secrets.token_hex(3), directory)
    try:
        wanted.plant(bed)
        right = bool(eventually(lambda: _is_right(wanted, bed)))
    except AssertionError:
        right = False
        traceback.print_exc(file=sys.stdout)
    finally:
        bed.close()
    print(f"{name}: {'right' if right else 'WRONG'} after {time.monotonic() - began:.0f} s")
    return right


@contextmanager
def _sandbox(spec: SandboxSpec) -> Iterator[Sandbox]:
    cluster = up(spec)
    try:
        yield cluster
    finally:
        down(spec.name)


def _is_right(wanted: Situation, bed: Bed) -> bool:
    """Return whether doctor is right by now; brokers do not answer at all for a while after one of
    them was killed.
    """
    ran = connectctl(*bed.options, "doctor", "-o", "json")
    wrong = _wrong(wanted, ran.json["findings"]) if ran.code in FOUND else [ran.err]
    print(*wrong, sep="\n")
    return not wrong


def _doctor(bed: Bed, *names: str) -> list[dict[str, Any]]:
    ran = connectctl(*bed.options, "doctor", *names, "-o", "json")
    assert ran.code in FOUND, ran.err
    return list(ran.json["findings"])


def _wrong(wanted: Situation, findings: list[dict[str, Any]]) -> list[str]:
    """Return what doctor says of a situation and should not, or does not say and should."""
    named = [f for f in findings if f["id"] == wanted.finding and wanted.words in f["message"]]
    expected = {wanted.finding, *wanted.also}
    alarms = [f for f in findings if f["severity"] in ALARMS and f["id"] not in expected]
    missing = [f"no {wanted.finding}"] if wanted.finding and not named else []
    return missing + [f"{f['id']} {f['subject']}: {f['message']}" for f in alarms]


def test_the_page_of_the_catalogue_is_made_of_it() -> None:
    assert (Path(__file__).parents[2] / "docs/illnesses.md").read_text() == page()
