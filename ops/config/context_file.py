"""The context file, read with the line of every value.

Its shape is specified in docs/commands/context.md: ``current`` and ``contexts``, each context with
the cluster's addresses, the client properties under librdkafka's own names, and how workers are
restarted. An unknown key is an error that reports its line and the nearest known key, because a
misspelt ``protected`` must not be ignored. An error in one context is an error of that context: the
others can be used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from connectctl.ops.config import yaml_text
from connectctl.ops.config.application_section import ApplicationSection
from connectctl.ops.config.worker_section import WorkerSettings, WorkersSection
from connectctl.ops.core.errors import BadInput, did_you_mean
from pydantic import BaseModel, ConfigDict, Field, ValidationError

if TYPE_CHECKING:
    import yaml
    from pydantic_core import ErrorDetails

Scalar = str | int | float | bool


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SecretRef(_Strict):
    """The source of a secret: exactly one of an environment name, a file, or a command that prints
    it.
    """

    env: str | None = None
    file: str | None = None
    command: str | None = None


class RestAuth(_Strict):
    """Basic authentication (``username`` and ``password``) or a bearer ``token`` for the workers'
    REST servers.

    ``hosts`` are patterns of the hosts that receive it, besides those in ``rest``; ``http``: also
    without encryption.
    """

    username: str | None = None
    password: SecretRef | str | None = None
    token: SecretRef | str | None = None
    hosts: list[str] | None = None
    http: bool = False


class RestTls(_Strict):
    """PEM files for the workers' REST servers: ``ca`` to trust, ``certificate`` and ``key`` to
    present.
    """

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    verify: bool = True


class Topics(_Strict):
    """The worker's three internal topics; one that is not named is found by its records."""

    config: str | None = None
    offsets: str | None = None
    status: str | None = None


class SparkSettings(_Strict):
    """The settings of the Spark session for bulk work."""

    master: str = "local[*]"
    conf: dict[str, Scalar] = Field(default_factory=dict)


class OtherCluster(_Strict):
    """Another Kafka cluster that connectors write to, with the client properties to reach it."""

    bootstrap_servers: str
    client: dict[str, SecretRef | Scalar] = Field(default_factory=dict)


class ContextEntry(_Strict):
    """The settings of one Connect cluster."""

    bootstrap_servers: str | None = None
    group_id: str | None = None
    cluster_id: str | None = None
    rest: list[str] = Field(default_factory=list)
    rest_is_group: bool = False
    rest_auth: RestAuth = RestAuth()
    rest_tls: RestTls = RestTls()
    topics: Topics = Topics()
    client: dict[str, SecretRef | Scalar] = Field(default_factory=dict)
    clusters: dict[Annotated[str, Field(pattern=r"^[\w-]+$")], OtherCluster] = Field(
        default_factory=dict
    )
    workers: WorkersSection = WorkersSection()
    applications: dict[Annotated[str, Field(pattern=r"^[\w.-]+$")], ApplicationSection] = Field(
        default_factory=dict
    )
    spark: SparkSettings = SparkSettings()
    protected: bool = False
    lock: Literal["cluster", "local"] = "cluster"
    lock_wait: float = 0.0


class ContextFile(_Strict):
    current: str | None = None
    contexts: dict[str, ContextEntry] = Field(default_factory=dict)


@dataclass(frozen=True)
class Parsed:
    """A parsed context file, and the line of each value by its dotted path
    (``contexts.prod.group_id``).

    ``content`` has the valid contexts, ``broken`` the error of each of the others.
    """

    path: Path
    content: ContextFile
    lines: dict[str, int]
    broken: dict[str, BadInput] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Return the names of all contexts, valid or not."""
        return [*self.content.contexts, *self.broken]

    def entry(self, context: str) -> ContextEntry:
        """Return the context of that name. Raises ``BadInput`` if it is not valid, ``KeyError`` if
        it does not exist.
        """
        if context in self.broken:
            raise self.broken[context]
        return self.content.contexts[context]


def read(path: Path, text: str | None = None) -> Parsed:
    """Read and validate a context file. Raises ``BadInput`` with the line of an error outside of
    its contexts.

    ``text`` is the intended content of the file, if it differs from the present one.
    """
    import yaml

    try:
        text = path.read_text() if text is None else text
        node = yaml_text.compose(text)
        data = yaml_text.read_yaml(text)
    except OSError as e:
        raise BadInput(
            f"The context file {path} cannot be read",
            why=e.strerror,
            next_step="Name another one with --config.",
        ) from e
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        mark = getattr(e, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else f"{path}"
        why = getattr(e, "problem", None) or "it is not UTF-8 text"
        raise BadInput(f"{where}: invalid YAML", why=why, next_step="Correct the file.") from e
    lines = _lines(node)
    content, broken = _validated(path, data or {}, lines)
    for name, entry in content.contexts.items():
        for location, why in _problems(name, entry):
            where = (
                f"{path}, line {lines[known]}"
                if (known := _longest_known(location, lines))
                else f"{path}"
            )
            broken.setdefault(
                name, BadInput(f"{where}: {'.'.join(location)} does not fit", why=why)
            )
    valid = {name: entry for name, entry in content.contexts.items() if name not in broken}
    return Parsed(path, content.model_copy(update={"contexts": valid}), lines, broken)


def _validated(
    path: Path, data: Any, lines: dict[str, int]
) -> tuple[ContextFile, dict[str, BadInput]]:
    """Return the file without its invalid contexts, and the error of each of these."""
    broken: dict[str, BadInput] = {}
    try:
        return ContextFile.model_validate(data), broken
    except ValidationError as e:
        for error in e.errors(include_url=False):
            if len(error["loc"]) < 2 or error["loc"][0] != "contexts":
                raise _explain(path, error, lines) from e
            broken.setdefault(str(error["loc"][1]), _explain(path, error, lines))
    rest = {name: entry for name, entry in data["contexts"].items() if str(name) not in broken}
    return ContextFile.model_validate({**data, "contexts": rest}), broken


def _problems(name: str, entry: ContextEntry) -> Iterator[tuple[list[str], str]]:
    """Yield the inconsistencies in a context's sections of workers and applications, each with its
    path.
    """
    for path, why in entry.workers.problems():
        yield ["contexts", name, "workers", *path], why
    for application, section in entry.applications.items():
        for path, why in section.problems():
            yield ["contexts", name, "applications", application, *path], why


def _lines(node: yaml.Node | None, prefix: str = "") -> dict[str, int]:
    """Return the line, from 1, of every mapping key under ``node``, by dotted path."""
    import yaml

    found: dict[str, int] = {}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            path = f"{prefix}.{key.value}" if prefix else str(key.value)
            found[path] = key.start_mark.line + 1
            found |= _lines(value, path)
    return found


def _explain(path: Path, first: ErrorDetails, lines: dict[str, int]) -> BadInput:
    # pydantic adds the model that it tried, and a mark for an invalid key.
    location = [str(part) for part in first["loc"] if part not in (SecretRef.__name__, "[key]")]
    dotted = _longest_known(location, lines)
    where = f"{path}, line {lines[dotted]}" if dotted else f"{path}"
    name = str(first["loc"][-1]) if first["loc"] else "the file"
    if first["type"] == "extra_forbidden":
        known = _siblings(location)
        hint = did_you_mean(name, known, f"Known keys here: {', '.join(known)}.")
        return BadInput(f"{where}: unknown key {name}", next_step=hint)
    text = first["msg"].removeprefix("Value error, ")
    why = re.sub(r"a valid dictionary( or instance of \w+)?", "a mapping", text)
    why = why.replace("Input should", "it should")
    return BadInput(f"{where}: the value of {'.'.join(location) or name} does not fit", why=why)


def _longest_known(location: list[str], lines: dict[str, int]) -> str | None:
    for size in range(len(location), 0, -1):
        dotted = ".".join(location[:size])
        if dotted in lines:
            return dotted
    return None


def is_list_setting(parts: Iterable[str]) -> bool:
    """Return whether the setting of a context at the path ``parts`` is a list."""
    kind: Any = ContextEntry
    for part in parts:
        field = getattr(kind, "model_fields", {}).get(part)
        kind = field.annotation if field is not None else (get_args(kind) or (None,))[-1]
    return any(get_origin(type_) is list for type_ in (kind, *get_args(kind)))


_SECTIONS: dict[str, type[BaseModel]] = {
    "rest_auth": RestAuth,
    "rest_tls": RestTls,
    "topics": Topics,
    "spark": SparkSettings,
    "workers": WorkersSection,
}


def _siblings(location: list[str]) -> list[str]:
    """Return the keys that are known at the last part of ``location``."""
    if len(location) == 1:
        return list(ContextFile.model_fields)
    if len(location) == 3:
        return list(ContextEntry.model_fields)
    if location[2] == "applications":
        return list(
            ApplicationSection.model_fields if len(location) == 5 else WorkerSettings.model_fields
        )
    section = _SECTIONS.get(location[2], SecretRef)
    if section is WorkersSection and len(location) > 4:
        return list(WorkerSettings.model_fields)
    return list(section.model_fields if len(location) == 4 else SecretRef.model_fields)
