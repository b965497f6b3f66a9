"""The tables of ``docs/versions.md``, made of what tests declare: ``python tests/versions.py``.

A test that runs on a release of its own has the mark ``versions(workers="3.9.2", brokers=…)``, which
may name parameters: ``versions(workers="{version}")``. All other live tests run on the release that
a sandbox has by default. What CI runs on which PySpark is read from its scripts.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/versions.md"
MARK = "mark.versions("
KAFKA = ("workers", "brokers")
OTHERS = {
    "registry": "Schema Registry: Apicurio, by Confluent's API",
    "hadoop": "YARN: Apache Hadoop",
    "streams": "Kafka Streams",
}
"""What else has releases, by its name in marks."""
_EACH, _TURNS, _DRAWN, _SLOW = "each commit", "by turns", "drawn", "`-m slow`"
_BLOCK = re.compile(r"(<!-- (\w+): python tests/versions\.py -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Proof:
    """A test that runs on ``release`` of ``what``, and when it runs."""

    what: str
    release: str
    test: str
    runs: str

    @property
    def file(self) -> str:
        return Path(self.test.partition("::")[0]).stem

    @property
    def sentence(self) -> str:
        return self.test.partition("::test_")[2].replace("_", " ")

    @property
    def number(self) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", self.release))


class Collector:
    """A plugin of pytest that reads the marks of all collected tests."""

    def __init__(self) -> None:
        self.proofs: set[Proof] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            values = item.callspec.params if hasattr(item, "callspec") else {}
            for mark in item.iter_markers("versions"):
                for what, release in mark.kwargs.items():
                    test = item.nodeid.partition("[")[0]
                    self.proofs.add(Proof(what, release.format(**values), test, _runs(item)))


def _runs(item: pytest.Item) -> str:
    from turns import taking_turns  # a plugin, which pytest imports itself

    for mark, runs in (("drawn", _DRAWN), ("slow", _SLOW)):
        if item.get_closest_marker(mark) is not None:
            return runs
    return _TURNS if item.path.name in set(taking_turns()) else _EACH


def declared() -> set[Proof]:
    """Return what the marks of all tests declare."""
    files = [str(path) for path in sorted(ROOT.glob("tests/**/test_*.py")) if _marks(path)]
    collector = Collector()
    everything = "slow or not slow or campaign"
    options = ["-c", str(ROOT / "pyproject.toml"), "--collect-only", "-qqqq", "-n0"]
    code = pytest.main([*options, "-m", everything, *files], plugins=[collector])
    assert code == pytest.ExitCode.OK, code
    return collector.proofs


def _marks(path: Path) -> bool:
    return MARK in path.read_text()


def tables(proofs: set[Proof]) -> dict[str, str]:
    """Return the tables of the page by name."""
    unknown = {proof.what for proof in proofs} - {*KAFKA, *OTHERS}
    assert not unknown, unknown
    return {
        "kafka": _kafka(proofs),
        "runtimes": _runtimes(),
        "others": _others(proofs),
        "tests": "".join(f"- {sentence}\n" for sentence in _sentences(proofs)),
    }


def _kafka(proofs: set[Proof]) -> str:
    from connectctl.ops.sandbox.spec import SandboxSpec

    latest = SandboxSpec("any").kafka_version
    releases = {p.number: p.release for p in proofs if p.what in KAFKA}
    rows = [
        (release, *(_cell(proofs, what, release, release == latest) for what in KAFKA))
        for _, release in sorted(releases.items())
    ]
    return _table(("release", *KAFKA), rows)


def _others(proofs: set[Proof]) -> str:
    found = {(p.what, p.number): p.release for p in proofs if p.what in OTHERS}
    rows = [
        (OTHERS[what], release, _cell(proofs, what, release))
        for (what, _), release in sorted(found.items())
    ]
    return _table(("what", "release", "tests"), rows)


def _cell(proofs: set[Proof], what: str, release: str, default: bool = False) -> str:
    """Return the files whose tests run on the release, and when, if not with each commit."""
    runs = defaultdict(set)
    for proof in proofs:
        if (proof.what, proof.release) == (what, release):
            runs[proof.file].add(proof.runs)
    files = [f"`{file}`{_less(runs[file])}" for file in sorted(runs)]
    return ", ".join(files + default * ["all other live tests"]) or "no test"


def _less(runs: set[str]) -> str:
    often = min(runs, key=(_EACH, _TURNS, _DRAWN, _SLOW).index)
    return "" if often == _EACH else f" ({often})"


def _sentences(proofs: set[Proof]) -> list[str]:
    """Return each test as a sentence, by file."""
    by_test = defaultdict(set)
    for proof in proofs:
        by_test[proof.file, proof.sentence].add(proof.runs)
    return [
        f"`{file}`: {sentence}{_less(runs)}" for (file, sentence), runs in sorted(by_test.items())
    ]


def _runtimes() -> str:
    from connectctl.ops.clients.java import OLDEST

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    python = project["requires-python"].removeprefix(">=")
    lowest = _series(" ".join(project["optional-dependencies"]["dev"]))
    newest = (ROOT / ".ci/newest-spark").read_text().replace("\\\n", "")
    found = "`.ci/run`, on the first that it finds"
    rows = [
        ("Python", f"{python} or newer", "all tests", found),
        ("Java", f"{OLDEST} or newer", "all live tests", found),
        ("PySpark", lowest, "all tests", "`.ci/run`"),
    ]
    for options, files in re.findall(r"^pytest (-m slow )?(.+)$", newest, re.MULTILINE):
        runs = f"`.ci/newest-spark`{', ' + _SLOW if options else ''}"
        named = ", ".join(f"`{Path(file).stem}`" for file in files.split())
        rows.append(("PySpark", _series(newest), named, runs))
    return _table(("what", "release", "tests", "run by"), rows)


def _series(requirements: str) -> str:
    """Return the newest series of PySpark that ``requirements`` take: 4.3 of ``pyspark<4.4``."""
    found = re.search(r"pyspark(?:\[\w+\])?<(\d+)\.(\d+)", requirements)
    assert found is not None
    return f"{found[1]}.{int(found[2]) - 1}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def made(page: str, of: dict[str, str]) -> str:
    """Return ``page`` with its tables replaced by those of ``of``, which it has all."""
    assert sorted(name for _, name, _ in _BLOCK.findall(page)) == sorted(of)
    return _BLOCK.sub(lambda block: f"{block[1]}\n{of[block[2]]}\n{block[3]}", page)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    target.write_text(made(PAGE.read_text(), tables(declared())))
