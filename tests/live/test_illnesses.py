"""``connectctl doctor`` over its catalogue: every illness is named with its cause, and what is healthy
raises no alarm.

They are planted side by side on the cluster that tests share, in parts of which each commit draws
one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from live.illnesses.bed import Bed, Situation
from live.illnesses.bundled import bundle_agrees
from live.illnesses.catalogue import page, parts
from live.real import connectctl, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
ALARMS = ("error", "warning")
PARTS = 3


@pytest.mark.drawn
@pytest.mark.parametrize("part", range(PARTS))
def test_illnesses_are_named_and_what_is_healthy_raises_no_alarm(
    cluster: Sandbox, tmp_path: Path, part: int
) -> None:
    _side_by_side(cluster, tmp_path, parts(PARTS)[part])


def _side_by_side(cluster: Sandbox, directory: Path, wanted: Mapping[str, Situation]) -> None:
    mark = secrets.token_hex(3)
    beds = {name: _bed(cluster, name, mark, directory) for name in wanted}
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda name: wanted[name].plant(beds[name]), wanted))
        assert eventually(lambda: _all_right(wanted, beds))
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
        bed.age()
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


def _doctor(bed: Bed, *names: str) -> list[dict[str, Any]]:
    ran = connectctl(*bed.options, "doctor", *names, "-o", "json")
    assert ran.code in (0, 1), ran.err
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
