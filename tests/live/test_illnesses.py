"""``connectctl doctor`` over the whole catalogue at once: every illness is named with its cause, and
what is healthy raises no alarm.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from live.illnesses import SITUATIONS, Bed
from live.real import connectctl, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
ALARMS = ("error", "warning")


@pytest.fixture(scope="module")
def planted(cluster: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Bed]]:
    """Every situation of the catalogue, side by side: the connectors by title."""
    mark = secrets.token_hex(3)
    beds = {
        title: Bed(cluster, f"{title}-{mark}", tmp_path_factory.mktemp(title))
        for title in SITUATIONS
    }
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda title: SITUATIONS[title].plant(beds[title]), SITUATIONS))
        yield beds
    finally:
        for bed in beds.values():
            bed.rest.delete(bed.name)
            for close in bed.closing:
                close()


def test_illnesses_are_named_and_what_is_healthy_raises_no_alarm(planted: dict[str, Bed]) -> None:
    wrong = eventually(lambda: _right(planted))
    assert wrong == ["nothing"]


def _right(planted: dict[str, Bed]) -> list[str] | None:
    """Look at all of them; None while doctor says something else than the catalogue."""
    for bed in planted.values():
        bed.age()
    names = [bed.name for bed in planted.values()]
    ran = connectctl("--context", "sandbox-tests", "doctor", *names, "-o", "json")
    findings = ran.json["findings"]
    wrong = [
        line
        for title, bed in planted.items()
        for line in _wrong(title, [f for f in findings if _about(f, bed.name)])
    ]
    print(*wrong, sep="\n")
    return None if wrong else ["nothing"]


def _about(finding: dict[str, Any], name: str) -> bool:
    return bool(
        finding["subject"] == name or finding["subject"].startswith((f"{name}/", f"{name} "))
    )


def _wrong(title: str, findings: list[dict[str, Any]]) -> list[str]:
    """Return what doctor says of a situation and should not, or does not say and should."""
    expected = SITUATIONS[title]
    named = [f for f in findings if f["id"] == expected.finding and expected.words in f["message"]]
    alarms = [f for f in findings if f["severity"] in ALARMS and f["id"] != expected.finding]
    missing = [f"{title}: no {expected.finding}"] if expected.finding and not named else []
    return missing + [f"{title}: {f['id']} {f['message']}" for f in alarms]


def test_the_page_of_the_catalogue_is_made_of_it() -> None:
    from live.illnesses import page

    assert (Path(__file__).parents[2] / "docs/illnesses.md").read_text() == page()
