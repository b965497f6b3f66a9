"""Which jars of a release are fetched where the repository lacks some, on a repository in memory."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from connectctl.ops.sandbox.jars.ivy import Dependency, NotInRepository
from connectctl.ops.sandbox.jars.older_releases import Fetched, fetch

WORKER = Dependency("org", "worker", "4", "connect", classifier="test")
FILE, MIRROR = (Dependency("org", name, "4", name, transitive=False) for name in ("file", "mirror"))
OLDER = ("3", "2", "1")
ALL = {"worker-4", "worker-4-test", "file-4", "mirror-4"}


class Repository:
    """Answers as Ivy does: fetches nothing where one jar is not there."""

    def __init__(self, jars: set[str]):
        self._jars, self.fetched, self.requests = jars, set[str](), 0

    def retrieve(self, wanted: Sequence[Dependency]) -> None:
        self.requests += 1
        asked, modules, second = set(), [], []
        for each in wanted:
            jar = f"{each.name}-{each.revision}"
            if not each.alone:
                asked.add(jar)
                if jar not in self._jars:
                    modules.append(each.name)
            if each.classifier and jar in self._jars:
                asked.add(f"{jar}-{each.classifier}")
                if f"{jar}-{each.classifier}" not in self._jars:
                    second.append(each.file)
            elif each.alone:
                modules.append(each.name)
        if modules or second:
            raise NotInRepository(modules, second)
        self.fetched |= asked


def fetched(repository: Repository) -> Fetched:
    return fetch([WORKER, FILE, MIRROR], [FILE, MIRROR], OLDER, repository.retrieve)


def test_all_of_one_release_is_one_request() -> None:
    repository = Repository(ALL | {"file-3"})
    assert fetched(repository) == Fetched()
    assert (repository.fetched, repository.requests) == (ALL, 1)


@pytest.mark.parametrize(
    ("lacking", "has", "older", "missing"),
    [
        ({"file-4"}, {"file-3", "file-2"}, {"file": "3"}, ()),
        ({"file-4"}, {"file-1"}, {"file": "1"}, ()),
        ({"file-4", "mirror-4"}, {"file-3", "mirror-2"}, {"file": "3", "mirror": "2"}, ()),
        ({"file-4", "mirror-4"}, {"mirror-3"}, {"mirror": "3"}, ("file",)),
        ({"worker-4-test"}, {"worker-3", "worker-3-test"}, {"worker-test": "3"}, ()),
        ({"worker-4-test"}, {"worker-3", "worker-2", "worker-2-test"}, {"worker-test": "2"}, ()),
        ({"worker-4-test"}, set(), {}, ("worker-test",)),
        ({"worker-4-test", "file-4"}, {"file-3"}, {"file": "3"}, ("worker-test",)),
    ],
)
def test_of_a_jar_that_is_lacking_the_newest_older_release_is_taken(
    lacking: set[str], has: set[str], older: dict[str, str], missing: tuple[str, ...]
) -> None:
    repository = Repository(ALL - lacking | has)
    assert fetched(repository) == Fetched(older, missing)
    taken = {f"{jar.removesuffix('-test')}-{release}" for jar, release in older.items()}
    assert repository.fetched == {
        *(ALL - lacking),
        *(f"{each}-test" if each.startswith("worker") else each for each in taken),
    }


@pytest.mark.parametrize("lacking", [{"worker-4"}, {"worker-4", "file-4"}])
def test_what_is_not_optional_is_not_taken_of_another_release(lacking: set[str]) -> None:
    repository = Repository(ALL - lacking | {"worker-3", "worker-3-test", "file-3"})
    with pytest.raises(NotInRepository, match="worker"):
        fetched(repository)
    assert repository.fetched == set()
