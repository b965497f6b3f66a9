"""Jars come once, whole, and from where the user says; tried on a small Maven repository made of
files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest
from connectctl.ops.clients.java import Java, find_java
from connectctl.ops.core.errors import BadInput, Unreachable
from connectctl.ops.sandbox.jars import cache as jars_cache
from connectctl.ops.sandbox.jars.cache import Jars, jars_of
from connectctl.ops.sandbox.jars.ivy import SETTINGS_VARIABLE, Dependency
from connectctl.ops.sandbox.jars.versions import parse_version
from connectctl.ops.sandbox.progress import SandboxProgress, silent

pytestmark = pytest.mark.live

VERSION = parse_version("4.3.1")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "connectctl"


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Point Ivy to a repository by its URL."""

    def point(url: str) -> None:
        settings = tmp_path / "settings.xml"
        resolver = f'<ibiblio name="own" m2compatible="true" root="{url}"/>'
        settings.write_text(
            "<ivysettings><settings "
            f'defaultResolver="own"/><resolvers>{resolver}</resolvers></ivysettings>'
        )
        monkeypatch.setenv(SETTINGS_VARIABLE, str(settings))

    return point


@pytest.fixture
def repository(tmp_path: Path, use: Callable[[str], None]) -> Path:
    """All that a sandbox needs, except the test plugins."""
    root = tmp_path / "repository"
    root.mkdir()
    for dependency in jars_cache.dependencies(VERSION):
        if dependency.name != "connect-test-plugins":
            publish(root, dependency)
    use(f"{root.as_uri()}/")
    return root


def publish(root: Path, module: Dependency) -> None:
    home = root.joinpath(*module.organisation.split("."), module.name, module.revision)
    home.mkdir(parents=True, exist_ok=True)
    stem = f"{module.name}-{module.revision}"
    (home / f"{stem}.pom").write_text(
        f"<project><modelVersion>4.0.0</modelVersion><groupId>{module.organisation}</groupId>"
        f"<artifactId>{module.name}</artifactId><version>{module.revision}</version></project>"
    )
    for classifier in ("", *(f"-{each}" for each in [module.classifier] if each)):
        (home / f"{stem}{classifier}.jar").write_text(stem + classifier)


def no_java() -> Java:
    raise AssertionError("nothing is to be started")


def names(found: Jars) -> set[str]:
    return {str(path.relative_to(found.root)) for path in found.root.rglob("*.jar")}


def test_jars_come_once_and_then_need_neither_network_nor_java(
    repository: Path, use: Callable[[str], None]
) -> None:
    seen: list[SandboxProgress] = []
    first = jars_of(VERSION, find_java, seen.append)
    assert names(first) >= {
        "broker/kafka_2.13-4.3.1.jar",
        "broker/log4j-slf4j-impl-2.25.4.jar",
        "connect/connect-runtime-4.3.1.jar",
        "connect/connect-runtime-4.3.1-test.jar",
        "connect/log4j-slf4j-impl-2.25.4.jar",
        "plugins/connect-file/connect-file-4.3.1.jar",
        "plugins/connect-mirror/connect-mirror-4.3.1.jar",
        "plugins/connect-mirror/connect-mirror-client-4.3.1.jar",
    }
    assert first.missing == ("connect-test-plugins",)
    assert max(progress.done for progress in seen) >= 7

    shared = "log4j-slf4j-impl-2.25.4.jar"
    assert (first.root / "broker" / shared).samefile(first.root / "connect" / shared)

    use("http://127.0.0.1:1/")
    assert jars_of(VERSION, no_java, silent) == first


def test_plugins_that_the_repository_has_of_an_older_release_only(repository: Path) -> None:
    """The workers are of the newer release, and have the classes that it took from kafka-clients."""
    newer = parse_version("4.4.0")
    lacking = {"connect-file", "connect-basic-auth-extension", "connect-test-plugins"}
    for dependency in jars_cache.dependencies(newer):
        if dependency.name == "connect-runtime":
            publish(repository, replace(dependency, classifier=""))
        elif dependency.name not in lacking:
            publish(repository, dependency)
    for release, classes in (("4.3.1", "moved kept"), ("4.4.0", "kept")):
        publish(repository, Dependency("org.apache.kafka", "kafka-clients", release, ""))
        [jar] = repository.rglob(f"kafka-clients-{release}.jar")
        with ZipFile(jar, "w") as written:
            for name in classes.split():
                written.writestr(f"org/apache/kafka/{name}.class", release)
    depends_on_clients(repository, "connect-runtime", "4.4.0")

    found = jars_of(newer, find_java, silent)
    older = {"connect-file", "connect-basic-auth-extension", "connect-runtime-test"}
    assert found.older == dict.fromkeys(older, "4.3.1")
    assert found.missing == ("connect-test-plugins",)
    assert names(found) >= {
        "broker/kafka_2.13-4.4.0.jar",
        "connect/connect-runtime-4.4.0.jar",
        "connect/connect-runtime-4.3.1-test.jar",
        "connect/kafka-clients-4.4.0.jar",
        "plugins/connect-file/connect-file-4.3.1.jar",
        "plugins/connect-mirror/connect-mirror-4.4.0.jar",
    }
    assert "connect/connect-runtime-4.3.1.jar" not in names(found)
    with ZipFile(found.root / "connect" / "removed-classes.jar") as removed:
        assert removed.namelist() == ["org/apache/kafka/moved.class"]
    assert jars_of(newer, no_java, silent) == found


def depends_on_clients(root: Path, name: str, release: str) -> None:
    [pom] = root.rglob(f"{name}-{release}.pom")
    clients = (
        "<dependencies><dependency><groupId>org.apache.kafka</groupId>"
        f"<artifactId>kafka-clients</artifactId><version>{release}</version>"
        "</dependency></dependencies></project>"
    )
    pom.write_text(pom.read_text().replace("</project>", clients))


def test_what_was_damaged_or_left_half_done_is_fetched_again(repository: Path) -> None:
    first = jars_of(VERSION, find_java, silent)
    (first.root / "connect" / "connect-runtime-4.3.1.jar").write_text("")
    half = first.root.with_name(f".{first.root.name}.part")
    half.mkdir()
    (half / "junk.jar").touch()
    again = jars_of(VERSION, find_java, silent)
    assert again == first
    assert (again.root / "connect" / "connect-runtime-4.3.1.jar").stat().st_size > 0
    assert not (again.root / "junk.jar").exists()
    assert not half.exists()


def test_a_repository_that_does_not_answer(use: Callable[[str], None], cache: Path) -> None:
    use("http://127.0.0.1:1/")
    with pytest.raises(Unreachable, match="The Maven repository does not respond") as silence:
        jars_of(VERSION, find_java, silent)
    assert "\n" not in str(silence.value)
    assert not list(cache.rglob("manifest.json"))


def test_a_version_that_the_repository_does_not_have(repository: Path) -> None:
    with pytest.raises(
        BadInput, match=r"Kafka 9\.9\.9 is not available.*Use another --kafka-version"
    ):
        jars_of(parse_version("9.9.9"), find_java, silent)


def test_settings_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTINGS_VARIABLE, "/nowhere/settings.xml")
    with pytest.raises(
        BadInput, match=r"CONNECTCTL_IVY_SETTINGS=/nowhere/settings\.xml: file not found"
    ):
        jars_of(VERSION, find_java, silent)
