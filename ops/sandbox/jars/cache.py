"""The jars of one Kafka version, in the cache.

::

    $XDG_CACHE_HOME/connectctl/jars/<version>/<digest of the requested jars>/
        broker/                 class path of the broker (from 4.0 on)
        connect/                class path of a worker; Kafka's test connectors are among them, because plugin isolation
                                leaves their packages to the class path; so are classes that plugins of an older
                                release call
        plugins/<plugin>/       one directory for each connector plugin: the worker's plugin.path
        manifest.json           written last

A directory is not changed once it is finished: JVMs of other sandboxes run on it, and another
release of this program that requests other jars has a directory of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from connectctl.ops.clients.java import Java
from connectctl.ops.config import paths, whole_file
from connectctl.ops.core.errors import BadInput
from connectctl.ops.sandbox.jars import ivy
from connectctl.ops.sandbox.jars.ivy import Dependency
from connectctl.ops.sandbox.jars.older_classes import write_removed_classes
from connectctl.ops.sandbox.jars.older_releases import Fetched, fetch
from connectctl.ops.sandbox.jars.versions import (
    LOG4J2,
    SLF4J_RELOAD4J,
    TRIED,
    KafkaVersion,
    parse_version,
)
from connectctl.ops.sandbox.lock import locked
from connectctl.ops.sandbox.progress import OnProgress, SandboxProgress

KAFKA = "org.apache.kafka"
BROKER, CONNECT, PLUGINS = "broker", "connect", "plugins"
_OLDER, _CLIENTS = "older", "kafka-clients"
MANIFEST = "manifest.json"
_PATIENCE = 900.0
"""Seconds to wait for another download: the slowest measured took 90 s."""


@dataclass(frozen=True, slots=True)
class Jars:
    """The jars of one version.

    ``missing`` are plugins that the repository does not have; ``older`` has the release of those
    that it has of an older release only.
    """

    root: Path
    missing: tuple[str, ...] = ()
    older: dict[str, str] = field(default_factory=dict)

    @property
    def plugins(self) -> Path:
        return self.root / PLUGINS


def jars_of(
    version: KafkaVersion,
    find_java: Callable[[], Java],
    on_progress: OnProgress,
    java_options: Sequence[str] = (),
) -> Jars:
    """Return the jars of ``version``: from the cache without starting anything, else downloaded.

    Raises BadInput for a version that the repository does not have, Unreachable when it does not
    answer, TimedOut when another download takes too long.
    """
    if jars := cached(version):
        return jars
    root = _root(version)

    def waiting() -> None:
        on_progress(SandboxProgress("Waiting for another download of jars to finish"))

    with locked(root.parent.parent, create=True, timeout=_PATIENCE, on_wait=waiting) as lock:
        if jars := cached(version):
            return jars
        assert lock is not None
        return _download(version, root, find_java().path, on_progress, java_options, lock)


def dependencies(version: KafkaVersion) -> list[Dependency]:
    release = str(version)
    binding = (
        ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J2)
        if version.logs_with_log4j2
        else ("org.slf4j", "slf4j-reload4j", SLF4J_RELOAD4J)
    )
    required = [
        Dependency(KAFKA, "connect-runtime", release, CONNECT, classifier="test"),
        Dependency(*binding, CONNECT),
    ]
    if version.broker == version:
        required += [Dependency(KAFKA, "kafka_2.13", release, BROKER), Dependency(*binding, BROKER)]
    return required + optional(version)


def optional(version: KafkaVersion) -> list[Dependency]:
    """Return the plugins, which a cluster can be started without: not every repository has all of
    every version.
    """
    mirror = "connect-mirror"
    modules = {"connect-file": "connect-file", mirror: mirror, "connect-mirror-client": mirror}
    # passwords for the REST servers of a secured sandbox
    modules["connect-basic-auth-extension"] = CONNECT
    if version.has_test_plugins:
        # Its package is left out of plugin isolation (PluginUtils), so a plugin directory lists it
        # and cannot load it.
        modules["connect-test-plugins"] = CONNECT
    # One of them holds the ThroughputThrottler without which the tasks of Kafka's test connectors
    # do not start: it moved.
    modules |= dict.fromkeys(
        ["kafka-server-common", *([] if version.major >= 4 else ["kafka-tools"])], CONNECT
    )
    return [
        Dependency(KAFKA, name, str(version), plugin, transitive=False)
        for name, plugin in modules.items()
    ]


def cached(version: KafkaVersion) -> Jars | None:
    """Return the jars of ``version`` if they are all there; None when they have to be downloaded."""
    return finished(_root(version))


def write_manifest(root: Path, fetched: Fetched) -> None:
    """List the jars in ``root`` by their sizes in bytes and their digests, and what the repository
    lacks.
    """
    jars = {str(jar.relative_to(root)): jar for jar in sorted(root.rglob("*.jar"))}
    files = {name: jar.stat().st_size for name, jar in jars.items()}
    digests = {name: _digest(jar) for name, jar in jars.items()}
    lacks = {"missing": fetched.missing, "older": fetched.older}
    content = json.dumps({"files": files, "digests": digests, **lacks}, indent=1)
    whole_file.publish(root / MANIFEST, content)


def finished(root: Path) -> Jars | None:
    """Return the jars in ``root``; None where the list of them is not there, or they are not those
    of the list, byte for byte.
    """
    try:
        data = json.loads((root / MANIFEST).read_text())
        files, missing, older = data["files"], tuple(data["missing"]), dict(data.get("older", {}))
        fits = bool(files) and all(
            (root / name).stat().st_size == size for name, size in files.items()
        )
        if fits:
            digests = data["digests"]
            with ThreadPoolExecutor() as pool:
                found = dict(
                    zip(files, pool.map(lambda name: _digest(root / name), files), strict=True)
                )
            fits = found == digests
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return Jars(root, missing, older) if fits else None


def _digest(jar: Path) -> str:
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _root(version: KafkaVersion) -> Path:
    digest = hashlib.sha256(ivy.module_xml(dependencies(version)).encode()).hexdigest()[:16]
    return (paths.cache_directory() / "jars").resolve() / str(version) / digest


def _download(
    version: KafkaVersion,
    root: Path,
    java: str,
    on_progress: OnProgress,
    java_options: Sequence[str],
    lock: int,
) -> Jars:
    draft = root.with_name(f".{root.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    # Ivy learns how much there is to do while it does it. Measured: 98 modules with the broker, 62
    # without.
    expected = 2 * (98 if version.broker == version else 62)
    counter = _Counter(f"Downloading Kafka {version} (only once)", expected, on_progress)

    def retrieve(wanted: Sequence[Dependency]) -> None:
        ivy.retrieve(
            wanted,
            draft,
            cache=paths.cache_directory() / "ivy",
            java=java,
            java_options=java_options,
            keep_open=(lock,),
            on_line=counter.read,
        )

    releases = [release for release in TRIED[::-1] if _may_replace(parse_version(release), version)]
    try:
        fetched = fetch(dependencies(version), optional(version), releases, retrieve)
        for release in releases:
            if release in fetched.older.values():
                retrieve([Dependency(KAFKA, _CLIENTS, release, _OLDER, transitive=False)])
    except ivy.NotInRepository as error:
        raise BadInput(
            f"Kafka {version} is not available",
            why=error.what,
            next_step=f"Use another --kafka-version; tested versions: {', '.join(TRIED)}.",
            code="unknown-kafka-version",
        ) from error
    _arrange(draft)
    write_manifest(draft, fetched)
    shutil.rmtree(root, ignore_errors=True)
    draft.rename(root)
    return Jars(root, fetched.missing, fetched.older)


def _may_replace(older: KafkaVersion, version: KafkaVersion) -> bool:
    """Return whether plugins of ``older`` load on workers of ``version``: they are of one line of
    Connect's runtime, which changes what plugins may call with a new major version only.
    """
    return older.major == version.major and older < version


def _arrange(draft: Path) -> None:
    """Move the plugins together, and store a jar that broker and worker share once."""
    if (older := draft / _OLDER).is_dir():
        clients = f"{_CLIENTS}-*.jar"
        jars = sorted(older.glob(clients), reverse=True)
        removed = draft / CONNECT / "removed-classes.jar"
        write_removed_classes(jars, [*(draft / CONNECT).glob(clients)], removed)
        shutil.rmtree(older)
    plugins = draft / PLUGINS
    plugins.mkdir()
    for directory in [
        entry for entry in draft.iterdir() if entry.name not in (BROKER, CONNECT, PLUGINS)
    ]:
        directory.rename(plugins / directory.name)
    for shared in (draft / BROKER).glob("*.jar"):
        twin = draft / CONNECT / shared.name
        if twin.exists() and twin.stat().st_size == shared.stat().st_size:
            twin.unlink()
            try:
                os.link(shared, twin)
            except OSError:
                shutil.copy2(shared, twin)  # a file system without hard links


class _Counter:
    """Counts the lines in which Ivy reports that it found a module or fetched a jar."""

    def __init__(self, stage: str, total: int, on_progress: OnProgress):
        self._stage, self._done, self._total, self._on_progress = stage, 0, total, on_progress
        on_progress(SandboxProgress(stage, 0, total))

    def read(self, line: str) -> None:
        if counts(line) and self._done < self._total:
            self._done += 1
            self._on_progress(SandboxProgress(self._stage, self._done, self._total))


def counts(line: str) -> bool:
    """Return whether a line of Ivy's output is a step: a module that was found, or a jar that was
    fetched.
    """
    words = line.strip()
    return (words.startswith("found ") and "#" in words) or words.startswith("[SUCCESSFUL ]")
