"""Whether a bundle tells of illnesses what a look at the cluster does."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from live.real import connectctl, eventually

if TYPE_CHECKING:
    from live.illnesses.bed import Bed


def bundle_agrees(beds: Sequence[Bed], directory: Path) -> bool:
    """Return whether ``doctor -f`` of a bundle has the findings that doctor has of these beds, which
    are on one cluster; an assertion error where they differ in the end.
    """
    files = (directory / f"bundle-{beds[0].name}-{number}.zip" for number in count())
    return bool(eventually(lambda: _agrees(beds, next(files))))


def _agrees(beds: Sequence[Bed], file: Path) -> bool:
    """Compare a bundle with a look before it and one after it: what is in both is in the bundle,
    which has nothing that is in neither. What is in the bundle is told the same always.
    """
    for bed in beds:
        bed.before_look()
    names = list(dict.fromkeys(name for bed in beds for name in bed.connectors))
    options = beds[0].options
    before = _findings(*options, "doctor", *names)
    made = connectctl(*options, "bundle", *names, "--out", str(file), "-o", "json")
    assert made.code == 0, made.err
    after = _findings(*options, "doctor", *names)
    repeated = _findings("doctor", "-f", str(file))
    with zipfile.ZipFile(file) as archive:
        verdict = json.loads(archive.read("verdict.json"))["findings"]
    assert sorted(map(_line, repeated)) == sorted(map(_line, verdict))
    looked, told = {*map(_about, before)}, {*map(_about, repeated)}
    later = {*map(_about, after)}
    missing, added = (looked & later) - told, told - (looked | later)
    print(*(f"not in the bundle: {each}" for each in missing), sep="\n")
    print(*(f"only in the bundle: {each}" for each in added), sep="\n")
    return not missing and not added


def _findings(*words: str) -> list[dict[str, Any]]:
    ran = connectctl(*words, "-o", "json")
    assert ran.code in (0, 1), ran.err
    return list(ran.json["findings"])


def _about(finding: dict[str, Any]) -> tuple[str, ...]:
    return finding["severity"], finding["id"], finding["subject"]


def _line(finding: dict[str, Any]) -> tuple[str, ...]:
    return (*_about(finding), finding["message"])
