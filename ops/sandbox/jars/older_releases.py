"""Jars of one release from a repository that lacks some of its plugins: of these, the newest older
release that the repository has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from connectctl.ops.sandbox.jars.ivy import Dependency, NotInRepository

Retrieve = Callable[[Sequence[Dependency]], None]
"""Fetches jars, all of them or none. Raises NotInRepository."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The exceptions from a release that was fetched.

    ``older`` has the release that was taken instead for each jar that the repository lacks, and
    ``missing`` the jars that it has of no release.
    """

    older: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def fetch(
    wanted: Iterable[Dependency],
    optional: Collection[Dependency],
    older_releases: Iterable[str],
    retrieve: Retrieve,
) -> Fetched:
    """Fetch what is ``wanted``, and of ``optional`` jars that do not exist in this release the first
    of ``older_releases`` that has them.

    A second jar of a module, with a classifier, is optional, too. Raises NotInRepository for
    modules that are not optional.
    """
    absent = _fetch_available(list(wanted), optional, retrieve)
    older = dict[str, str]()
    for release in older_releases:
        if not absent:
            break
        tried = [replace(dependency, revision=release) for dependency in absent]
        still = {jar.title for jar in _fetch_available(tried, tried, retrieve)}
        older |= {jar.title: release for jar in absent if jar.title not in still}
        absent = [jar for jar in absent if jar.title in still]
    return Fetched(older, tuple(sorted(jar.title for jar in absent)))


def _fetch_available(
    wanted: list[Dependency], optional: Collection[Dependency], retrieve: Retrieve
) -> list[Dependency]:
    """Fetch what the repository has of these; return the rest."""
    rest: list[Dependency] = []
    while wanted:
        try:
            retrieve(wanted)
            break
        except NotInRepository as error:
            available, absent = _divided(wanted, error)
            if not absent or any(not jar.alone and jar not in optional for jar in absent):
                raise
            wanted, rest = available, rest + absent
    return rest


def _divided(
    wanted: Iterable[Dependency], error: NotInRepository
) -> tuple[list[Dependency], list[Dependency]]:
    """Return what the repository has, and what it lacks. Of a module whose second jar is not there
    it has the first one.
    """
    available, absent = list[Dependency](), list[Dependency]()
    for dependency in wanted:
        if dependency.name in error.modules:
            absent.append(dependency)
        elif dependency.classifier and dependency.file in error.jars:
            absent.append(replace(dependency, alone=True, transitive=False))
            if not dependency.alone:
                available.append(replace(dependency, classifier=""))
        else:
            available.append(dependency)
    return available, absent
