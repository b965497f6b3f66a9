"""Reads the job file of a user: the configuration of a connector, the Spark cluster on which it
runs, and the end of the run.

``config`` has Connect's own property names, with unchanged values. The error for an unknown key
contains its line and the most similar key that exists.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from connectctl.ops.config import yaml_text
from connectctl.ops.config.masking import remember
from connectctl.ops.core.errors import BadInput
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

if TYPE_CHECKING:
    import yaml

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SHAPE = (
    "A job file is a mapping with config and optionally name, spark, until, patience and plugins."
)
_Seconds = Annotated[float | None, BeforeValidator(lambda value: seconds(str(value)))]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Spark(_Section):
    master: str | None = None
    conf: dict[str, str] = Field(default_factory=dict)
    packages: list[str] = Field(default_factory=list)


class _Until(_Section):
    idle: _Seconds = None
    records: int | None = Field(default=None, gt=0)
    duration: _Seconds = None
    forever: bool = False

    @model_validator(mode="after")
    def _one(self) -> _Until:
        limits = [n for n in ("idle", "records", "duration") if getattr(self, n) is not None]
        if len(limits) + self.forever != 1:
            raise ValueError(
                "it must have exactly one of idle, records, duration and forever: true"
            )
        return self


class _File(_Section):
    name: str | None = None
    config: dict[str, str] = Field(default_factory=dict)
    spark: _Spark = _Spark()
    until: _Until = _Until(forever=True)
    patience: _Seconds = None
    plugins: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class Until:
    """The end of a run: after ``idle`` seconds without a record, after ``records``, or after
    ``duration`` seconds. A run with none of them does not end by itself.
    """

    idle: float | None = None
    records: int | None = None
    duration: float | None = None

    @property
    def ends(self) -> bool:
        """True if the run ends by itself."""
        return self != Until()

    def __str__(self) -> str:
        if self.idle is not None:
            return f"until no records arrive for {self.idle:g} s"
        if self.records is not None:
            return f"until {self.records:,} records are written"
        return "until it is stopped" if self.duration is None else f"for {self.duration:g} s"


@dataclass(frozen=True)
class Job:
    """A job. ``master`` is None for the Spark master of the context. ``plugins`` are wheels and
    zips with connectors.

    ``directory`` is that of the job file, from which connectors can be imported; None for a job
    without a file. ``patience`` is the seconds for which requests to Kafka are retried; None if the
    file does not set it. ``sha256`` is the hash of the file.
    """

    name: str
    config: Mapping[str, str]
    until: Until = Until()
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    plugins: tuple[Path, ...] = ()
    directory: Path | None = None
    patience: float | None = None
    sha256: str | None = None


def seconds(text: str) -> float:
    """Return the seconds of ``5s``, ``500ms``, ``2m``, ``1h`` or ``5``. Raises ``ValueError``."""
    found = _SPAN.fullmatch(text.strip())
    if found is None or not float(found.group(1)):
        raise ValueError(f"invalid duration {text!r} (examples: 500ms, 5s, 2m, 1h)")
    return float(found.group(1)) * _UNITS[found.group(2) or "s"]


def read(path: Path) -> Job:
    """Return the job in the file at ``path``. Raises ``BadInput`` with the line of the first
    error.
    """
    try:
        data = path.read_bytes()
        text = data.decode("utf-8")
    except OSError as e:
        raise BadInput(f"Cannot read the job file {path}", why=e.strerror) from e
    except UnicodeDecodeError as e:
        raise BadInput(
            f"The job file {path} is not UTF-8", next_step="Save the file as UTF-8."
        ) from e
    return replace(parse(text, path), sha256=hashlib.sha256(data).hexdigest())


def parse(text: str, path: Path) -> Job:
    """Return the job in ``text``, which is the content of ``path``. Relative paths of plugins are
    resolved in the directory of ``path``.
    """
    import yaml

    try:
        node = yaml_text.compose(text)
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else f"{path}"
        raise BadInput(
            f"{where}: invalid YAML", why=getattr(e, "problem", None), next_step=_SHAPE
        ) from e
    if not isinstance(node, yaml.MappingNode):
        raise BadInput(
            f"{path} is not a job file",
            why="it is empty" if node is None else None,
            next_step=_SHAPE,
        )
    lines = dict(_lines(node, (), path))
    try:
        file = _File.model_validate(_plain(node))
    except ValidationError as e:
        raise _explained(path, e, lines) from e
    name = (file.name or file.config.get("name") or path.stem).strip()
    if "name" in file.config and file.config["name"] != name:
        raise BadInput(f"{path}: name is {name}, but config.name is {file.config['name']}")
    plugins = tuple((path.parent / plugin).resolve() for plugin in file.plugins)
    for plugin in plugins:
        if not plugin.is_file() or plugin.suffix not in (".whl", ".zip"):
            where = f"{path}, line {lines[('plugins',)]}"
            raise BadInput(
                f"{where}: {plugin} must be a .whl or .zip file", next_step="Correct plugins."
            )
    until = Until(file.until.idle, file.until.records, file.until.duration)
    config = {"name": name} | file.config
    remember(config)
    spark = file.spark
    packages = tuple(spark.packages)
    return Job(
        name, config, until, spark.master, spark.conf, packages, plugins, path.parent, file.patience
    )


def _plain(node: yaml.Node) -> Any:
    """Return the value of a node with unchanged scalars. Booleans are converted to Connect's
    spelling, and null to None.
    """
    import yaml

    if isinstance(node, yaml.MappingNode):
        return {key.value: _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each) for each in node.value]
    if node.tag.endswith(":null"):
        return None
    if node.tag.endswith(":bool"):
        return str(node.value.lower() in ("true", "yes", "on")).lower()
    return node.value


def _lines(
    node: yaml.MappingNode, above: tuple[str, ...], path: Path
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield each key below ``node`` with its line, from 1. Raises ``BadInput`` for a duplicate
    key.
    """
    import yaml

    known: dict[str, int] = {}
    for key, value in node.value:
        line, name = key.start_mark.line + 1, str(key.value)
        if name in known:
            raise BadInput(
                f"{path}, line {line}: duplicate key {name}",
                why=f"first defined in line {known[name]}",
            )
        known[name] = line
        yield (*above, name), line
        if isinstance(value, yaml.MappingNode):
            yield from _lines(value, (*above, name), path)


_SECTIONS: dict[str, type[BaseModel]] = {"spark": _Spark, "until": _Until}


def _explained(
    path: Path, error: ValidationError, lines: Mapping[tuple[str, ...], int]
) -> BadInput:
    first = error.errors(include_url=False)[0]
    location = tuple(str(part) for part in first["loc"])
    known = next((location[:n] for n in range(len(location), 0, -1) if location[:n] in lines), None)
    where = f"{path}, line {lines[known]}" if known else f"{path}"
    if first["type"] == "extra_forbidden":
        model = _File if len(location) == 1 else _SECTIONS[location[0]]
        keys = list(model.model_fields)
        similar = difflib.get_close_matches(location[-1], keys, n=1)
        hint = f"Did you mean {similar[0]}?" if similar else f"Valid keys here: {', '.join(keys)}."
        if len(location) == 1 and "." in location[0]:
            hint = "Properties of the connector belong under config."
        return BadInput(f"{where}: unknown key {location[-1]}", next_step=hint)
    why = first["msg"].removeprefix("Value error, ").replace("Input should", "it must")
    why = why.replace("a valid dictionary", "a mapping").replace(
        "a valid string", "a string, number, true or false"
    )
    return BadInput(f"{where}: invalid value of {'.'.join(known or location)}", why=why)
