"""The Schema Registry of a sandbox: Apicurio Registry, which has Confluent's API besides its own.

The newest of 2.6 is the last that runs on Java 17. Its Avro converter for workers is a plugin of the
sandbox's workers, because Confluent's is in no public Maven repository; with
``apicurio.registry.as-confluent=true`` it has the same wire format.
"""

from __future__ import annotations

import shutil
import tarfile
import time
import zipfile
from pathlib import Path

from connectctl.ops.config import paths
from connectctl.ops.core.errors import TimedOut
from connectctl.ops.sandbox import processes
from connectctl.ops.sandbox.jars import ivy
from connectctl.ops.sandbox.jars.cache import Jars, finished, write_manifest
from connectctl.ops.sandbox.jars.ivy import Dependency
from connectctl.ops.sandbox.jars.older_releases import Fetched
from connectctl.ops.sandbox.launch import PATIENCE, Launcher
from connectctl.ops.sandbox.lock import locked
from connectctl.ops.sandbox.ports import LOOPBACK, answers
from connectctl.ops.sandbox.progress import SandboxProgress
from connectctl.ops.sandbox.record import Node

NAME = "registry"
VERSION = "2.6.13.Final"
CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter"
_ORGANISATION, _APP = "io.apicurio", "apicurio-registry-app"
_CONVERTER = "apicurio-registry-utils-converter"
_SERVICE = "META-INF/services/org.apache.kafka.connect.storage.Converter"
_BETWEEN = 0.2


def registry_jars(launch: Launcher) -> Jars:
    """Return the registry and, in ``plugins``, its converter; downloaded where they are not in the
    cache.
    """
    root = (paths.cache_directory() / "jars").resolve() / NAME / VERSION
    with locked(root.parent, create=True, timeout=PATIENCE) as lock:
        if jars := finished(root):
            return jars
        assert lock is not None
        launch.on_progress(SandboxProgress(f"Downloading Apicurio Registry {VERSION} (only once)"))
        draft = root.with_name(f".{VERSION}.part")
        shutil.rmtree(draft, ignore_errors=True)
        ivy.retrieve(
            [
                Dependency(
                    _ORGANISATION,
                    _APP,
                    VERSION,
                    "app",
                    "all",
                    transitive=False,
                    alone=True,
                    extension="tar.gz",
                ),
                Dependency(_ORGANISATION, _CONVERTER, VERSION, "converter"),
            ],
            draft,
            cache=paths.cache_directory() / "ivy",
            java=launch.java().path,
            java_options=[processes.mark(launch.layout.root)],
            keep_open=(lock,),
        )
        for archive in (draft / "app").glob("*.tar.gz"):
            unpack(archive, draft / "app")
            archive.unlink()
        (draft / "plugins").mkdir()
        plugin = (draft / "converter").rename(draft / "plugins" / "apicurio-converter")
        # Workers that discover plugins by service_load find it by this: its own jar has no such file.
        with zipfile.ZipFile(plugin / "services.jar", "w") as services:
            services.writestr(_SERVICE, f"{CONVERTER}\n")
        write_manifest(draft, Fetched())
        shutil.rmtree(root, ignore_errors=True)
        draft.rename(root)
        return Jars(root)


def unpack(archive: Path, directory: Path) -> None:
    """Unpack it. Python refuses what lies outside of ``directory`` since 3.11.4; Debian 12 has 3.11.2,
    where the archive's checksum, which Ivy has compared, has to do.
    """
    if hasattr(tarfile, "data_filter"):
        shutil.unpack_archive(archive, directory, filter="data")
    else:
        shutil.unpack_archive(archive, directory)


def start(launch: Launcher) -> None:
    """Start the registry, without waiting."""
    jar = next((registry_jars(launch).root / "app").glob("*-runner.jar"))
    port = launch.free_ports(1)[0]
    launch.layout.home(NAME).mkdir(parents=True)
    options = [f"-Dquarkus.http.host={LOOPBACK}", f"-Dquarkus.http.port={port}"]
    launch.start_java(Node(NAME, port, VERSION), [*options, "-jar", str(jar)])


def wait(launch: Launcher) -> None:
    """Wait until the registry answers. Raises ``TimedOut``, and ``ConnectctlError`` with its log if
    it has ended.
    """
    port = launch.record.node(NAME).port
    deadline = time.monotonic() + PATIENCE
    with launch.watching([NAME]) as check:
        while not answers(port):
            check()
            if time.monotonic() > deadline:
                raise TimedOut(f"The registry did not answer within {PATIENCE:g} s")
            time.sleep(_BETWEEN)


def url(port: int) -> str:
    """Return the address of Confluent's API."""
    return f"http://{LOOPBACK}:{port}/apis/ccompat/v7"


def plugins(launch: Launcher) -> Path:
    """Return the directory of the plugins that the workers of such a sandbox have besides Kafka's."""
    return registry_jars(launch).plugins
