"""Apache Ivy, which PySpark ships: fetches jars from the default Maven repository, or from the one
that the user configured.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from connectctl.ops.core.errors import BadInput, ConnectctlError, Unreachable

SETTINGS_VARIABLE = "CONNECTCTL_IVY_SETTINGS"

# Names no host: Ivy's own default is the public Maven repository. m2compatible reads POMs. Without
# this file Ivy would read ~/.m2 first, and fail where that holds a POM without its jar.
SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""

_NOT_FOUND = re.compile(r"module not found: ([\w.-]+)#([\w.-]+);([\w.-]+)")
_NO_JAR = re.compile(r"\[NOT FOUND\s*\] \S+?;([\w.-]+)!([\w.-]+)\.(\w+)")
_TRIED_JAR = re.compile(r"^\s+\S+/([\w.-]+\.jar)$")
_NO_ANSWER = re.compile(
    r"^\s*(?:WARN: )?(.*(?:Server access error|Host .+ not found|Connection (?:refused|timed out)).*)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Dependency:
    """A module wanted in a configuration: its jar, with ``classifier`` a second one or, if
    ``alone``, only that, and all it needs if ``transitive``. ``extension`` is the kind of its file.
    """

    organisation: str
    name: str
    revision: str
    configuration: str
    classifier: str = ""
    transitive: bool = True
    alone: bool = False
    extension: str = "jar"

    @property
    def title(self) -> str:
        """Return its name without the release; one with a classifier has that, too."""
        return f"{self.name}-{self.classifier}" if self.alone else self.name

    @property
    def file(self) -> str:
        """Return the name of the file with the classifier, as in a Maven repository."""
        return f"{self.name}-{self.revision}-{self.classifier}.{self.extension}"


class NotInRepository(ConnectctlError):
    """The repository answers that it does not have these.

    ``modules`` are names of modules, ``jars`` names of files that it lacks of other modules.
    """

    code = "not-in-repository"

    def __init__(self, modules: Sequence[str], jars: Sequence[str] = ()):
        super().__init__(f"Not found in the Maven repository: {', '.join([*modules, *jars])}")
        self.modules, self.jars = tuple(modules), tuple(jars)


def retrieve(
    dependencies: Sequence[Dependency],
    into: Path,
    *,
    cache: Path,
    java: str,
    java_options: Sequence[str] = (),
    keep_open: Sequence[int] = (),
    on_line: Callable[[str], None] = lambda line: None,
) -> None:
    """Put the jars of each configuration into ``into/<configuration>/``.

    ``cache`` is Ivy's own directory: what was fetched before a kill is not fetched again.
    ``keep_open`` are file descriptors that Ivy's process holds while it lives, such as a lock on
    the cache. ``on_line`` gets its output. Raises NotInRepository, Unreachable when the repository
    does not answer, BadInput for a bad settings file.
    """
    cache.mkdir(parents=True, exist_ok=True)
    module_file = cache / "connectctl-ivy.xml"
    module_file.write_text(module_xml(dependencies))
    command = [java, "-Xmx256m", "-XX:+UseSerialGC", *java_options, "-jar", str(ivy_jar())]
    command += [
        "-settings",
        str(_settings_file(cache)),
        "-ivy",
        str(module_file),
        "-cache",
        str(cache),
    ]
    # "bundle" is how OSGi-minded projects call their jars (snappy-java, scala-logging …).
    command += ["-types", "jar", "bundle", "tar.gz"]
    command += ["-retrieve", f"{into}/[conf]/[artifact]-[revision](-[classifier]).[ext]"]
    output, code = _run(command, keep_open, on_line)
    if code != 0:
        raise failure(output)


def module_xml(dependencies: Iterable[Dependency]) -> str:
    """Return the ivy.xml that requests these dependencies."""
    required = list(dependencies)
    configurations = dict.fromkeys(dependency.configuration for dependency in required)
    lines = [
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
        '  <info organisation="connectctl" module="jars"/>',
        "  <configurations>",
        *(f"    <conf name={quoteattr(name)}/>" for name in configurations),
        "  </configurations>",
        "  <dependencies>",
        *(_dependency_xml(dependency) for dependency in required),
        "  </dependencies>",
        "</ivy-module>",
    ]
    return "\n".join(lines) + "\n"


def _dependency_xml(dependency: Dependency) -> str:
    scope = "default" if dependency.transitive else "master"
    mapping = f"{dependency.configuration}->{scope}"
    name = quoteattr(dependency.name)
    opening = (
        f"    <dependency org={quoteattr(dependency.organisation)} name={name} "
        f"rev={quoteattr(dependency.revision)} conf={quoteattr(mapping)}"
    )
    if not dependency.classifier:
        return f"{opening}/>"
    kind = quoteattr(dependency.extension)
    artifact = f"<artifact name={name} type={kind} ext={kind}"
    first = "" if dependency.alone else f"{artifact}/>"
    return (
        f"{opening}>{first}{artifact} "
        f"m:classifier={quoteattr(dependency.classifier)}/></dependency>"
    )


def ivy_jar() -> Path:
    """Return Ivy's jar in the installed PySpark, without importing it. Raises ConnectctlError with
    what to install.
    """
    spec = importlib.util.find_spec("pyspark")
    homes = list(spec.submodule_search_locations or []) if spec else []
    for jar in (jar for home in homes for jar in sorted(Path(home).glob("jars/ivy-*.jar"))):
        return jar
    raise ConnectctlError(
        "The embedded cluster downloads its jars with the Ivy of PySpark, which is not installed",
        next_step="Run: pip install 'connectctl[spark]'.",
        code="no-pyspark",
    )


def _settings_file(cache: Path) -> Path:
    if named := os.environ.get(SETTINGS_VARIABLE):
        if not Path(named).is_file():
            raise BadInput(f"{SETTINGS_VARIABLE}={named}: file not found", code="no-ivy-settings")
        return Path(named)
    path = cache / "connectctl-settings.xml"
    path.write_text(SETTINGS)
    return path


def _run(
    command: Sequence[str], keep_open: Sequence[int], on_line: Callable[[str], None]
) -> tuple[list[str], int]:
    output: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=tuple(keep_open),
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                output.append(line.rstrip())
                on_line(output[-1])
        except BaseException:
            process.kill()
            raise
    return output, process.returncode


def failure(output: Sequence[str]) -> ConnectctlError:
    """Ivy says "not found" also without an answer, so that is checked first."""
    for line in output:
        if unanswered := _NO_ANSWER.match(line):
            return Unreachable(
                "The Maven repository does not respond",
                why=unanswered.group(1).strip(),
                next_step=f"Check the network, or set {SETTINGS_VARIABLE} to an Ivy settings file.",
                code="no-maven-repository",
            )
    missing = dict.fromkeys(found.group(2) for line in output if (found := _NOT_FOUND.search(line)))
    jars = _missing_jars(output)
    if missing or jars:
        return NotInRepository(list(missing), jars)
    last = next((line.strip() for line in reversed(output) if line.strip()), "it printed no error")
    return ConnectctlError("Apache Ivy failed", why=last, code="ivy-failed")


def _missing_jars(output: Sequence[str]) -> list[str]:
    """Return the names of the jars that the repository lacks of modules that it has.

    Ivy's line has no classifier; the address that it tried, some lines below, has it.
    """
    jars: list[str] = []
    named: re.Match[str] | None = None
    for line in output:
        if found := _NO_JAR.search(line):
            named = found
            jars.append(f"{found.group(2)}-{found.group(1)}.{found.group(3)}")
        elif named and (tried := _TRIED_JAR.match(line)):
            jars[-1], named = tried.group(1), None
    return list(dict.fromkeys(jars))
