"""Connectors that ask for the source partitions of well-known ones: compiled here, and put on the
plugin path of workers.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.clients.java import find_java
from connectctl.ops.sandbox.cluster import SandboxSpec, down, up
from connectctl.ops.sandbox.jars.cache import cached
from connectctl.ops.sandbox.jars.versions import LATEST, parse_version
from sparkjvm import SHORT_LIVED

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

SOURCE = Path(__file__).with_name("StandIn.java")
CLASSES = (
    "io.confluent.connect.jdbc.JdbcSourceConnector",
    "io.debezium.connector.mysql.MySqlConnector",
    "io.debezium.connector.sqlserver.SqlServerConnector",
    "com.example.AccountSource",
)


def compiled(
    connect: Path,
    directory: Path,
    source: Path = SOURCE,
    classes: Sequence[str] = CLASSES,
    base: str = "standin.StandIn",
) -> Path:
    """A plugin directory with the classes. Skips where Java has no compiler."""
    java = find_java().path
    modules = subprocess.run(
        [java, "--list-modules"], capture_output=True, text=True, check=True, timeout=600
    ).stdout
    if "jdk.compiler" not in modules:
        pytest.skip("the connectors are compiled here, and this Java has no compiler")
    sources = [source]
    for path in classes:
        package, _, name = path.rpartition(".")
        sources.append(directory / f"{name}.java")
        sources[-1].write_text(f"package {package};\npublic class {name} extends {base} {{}}\n")
    plugin = directory / "plugins/standins"
    services = plugin / "META-INF/services"
    services.mkdir(parents=True)
    (services / "org.apache.kafka.connect.source.SourceConnector").write_text(
        "\n".join(classes) + "\n"
    )
    jars = os.pathsep.join(map(str, sorted(connect.glob("*.jar"))))
    compiler = [
        java,
        *SHORT_LIVED.split(),
        "-m",
        "jdk.compiler/com.sun.tools.javac.Main",
        "-cp",
        jars,
        "-d",
        str(plugin),
    ]
    subprocess.run([*compiler, *map(str, sources)], check=True, timeout=600)
    return plugin.parent


@contextmanager
def cluster_with_stand_ins(directory: Path) -> Iterator[Sandbox]:
    """A cluster of one worker that has them beside Kafka's own connectors."""
    with cluster_with(directory, "standins") as sandbox:
        yield sandbox


FAULTY = "com.example.FaultySource"


@contextmanager
def cluster_with_faults(directory: Path, name: str = "faults", **spec: Any) -> Iterator[Sandbox]:
    """A cluster of one worker with a source whose tasks fail as files tell; see Faulty.java."""
    source = SOURCE.with_name("Faulty.java")
    with cluster_with(directory, name, source, [FAULTY], "faulty.Faulty", **spec) as sandbox:
        yield sandbox


@contextmanager
def cluster_with(directory: Path, name: str, *plugin: Any, **spec: Any) -> Iterator[Sandbox]:
    """A cluster of one worker that has the classes of ``compiled``, with more of ``SandboxSpec``."""
    jars = cached(parse_version(LATEST))
    assert jars is not None
    own = compiled(jars.root / "connect", directory, *plugin)
    properties = {"plugin.path": f"{jars.plugins},{own}"}
    sandbox = up(
        SandboxSpec(
            name=name, workers=1, support="enabled", extra_worker_properties=properties, **spec
        )
    )
    try:
        yield sandbox
    finally:
        down(name)
