"""The settings of a command about the cluster, and the origin of each value.

Flags override the environment (``CONNECTCTL_…``), the environment overrides the context file, and
the file overrides defaults. Merging is pure: it merges mappings into one in which every value has
its origin. Secrets stay references until a connection is opened, so that nothing that prints
settings can print one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.config import endpoints, masking
from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from connectctl.ops.config.context_file import Parsed

MASK = masking.MASK
ENVIRONMENT = {
    "CONNECTCTL_BOOTSTRAP_SERVERS": "bootstrap_servers",
    "CONNECTCTL_GROUP_ID": "group_id",
    "CONNECTCTL_CLUSTER_ID": "cluster_id",
    "CONNECTCTL_REST": "rest",
    "CONNECTCTL_REST_IS_GROUP": "rest_is_group",
    "CONNECTCTL_REST_USERNAME": "rest_auth.username",
    "CONNECTCTL_REST_PASSWORD": "rest_auth.password",
    "CONNECTCTL_REST_TOKEN": "rest_auth.token",
    "CONNECTCTL_CONFIG_TOPIC": "topics.config",
    "CONNECTCTL_OFFSETS_TOPIC": "topics.offsets",
    "CONNECTCTL_STATUS_TOPIC": "topics.status",
    "CONNECTCTL_TIMEOUT": "timeout",
    "CONNECTCTL_LOCK": "lock",
    "CONNECTCTL_LOCK_WAIT": "lock_wait",
}
DEFAULTS = {
    "timeout": 30.0,
    "lock": "cluster",
    "lock_wait": 0.0,
    "rest_is_group": False,
    "protected": False,
    "spark.master": "local[*]",
}
SHORTEST, LONGEST = 0.1, 1_000_000.0
"""Bounds of a timeout in seconds: librdkafka counts milliseconds in 31 bits."""
CLIENT_ENVIRONMENT = "CONNECTCTL_CLIENT_"
COMMANDS = ("workers.", "applications.")
"""Sections whose values are commands of the operator: secrets in them are hidden, the commands are
not.
"""
SECTIONS_OF_A_GROUP = ("topics.", "workers.")
"""With ``rest`` and ``rest_is_group``, the settings that are valid for one group of workers
only.
"""


SECRET_KINDS = ("env", "file", "command")


@dataclass(frozen=True)
class SecretSource:
    """A secret that is not read yet; ``kind`` is one of ``SECRET_KINDS``."""

    kind: str
    value: str

    def __str__(self) -> str:
        return f"{MASK} ({self.kind} {self.value})"


@dataclass(frozen=True)
class Setting:
    """A value with its origin as users know it (``--group-id``, ``config.yaml line 4``)."""

    value: Any
    origin: str


@dataclass(frozen=True)
class Settings:
    """All settings of a command, by dotted name (``topics.config``,
    ``client.security.protocol``).
    """

    values: Mapping[str, Setting]
    context: str | None = None
    set_aside: Mapping[str, Setting] = field(default_factory=dict)
    """Settings for another group than the one in use, which do not count."""

    def get(self, name: str, default: Any = None) -> Any:
        found = self.values.get(name)
        return default if found is None else found.value

    def section(self, name: str) -> dict[str, Any]:
        """Return the values under ``name``, without that prefix: ``section("client")`` is
        librdkafka's configuration.
        """
        return {
            key[len(name) + 1 :]: s.value
            for key, s in self.values.items()
            if key.startswith(f"{name}.")
        }

    @property
    def named_servers(self) -> tuple[str, ...]:
        """Return the bootstrap servers of all Kafka clusters in the context."""
        section = self.section("clusters")
        others = (
            str(value)
            for key, value in section.items()
            if key.partition(".")[2] == "bootstrap_servers"
        )
        own = self.get("bootstrap_servers")
        return (*([str(own)] if own else []), *others)

    def secrets(self) -> Iterator[tuple[str, Any]]:
        """Yield ``(name, value)`` of every value that is a secret by its name, or a reference to
        one.
        """
        for name, setting in self.values.items():
            if isinstance(setting.value, SecretSource) or (
                masking.is_secret(name) and not name.startswith(COMMANDS)
            ):
                yield name, setting.value

    def masked(self) -> Iterator[tuple[str, str, str]]:
        """Yield ``(name, printable value, origin)`` of every value, secrets masked."""
        for name, setting in self.values.items():
            yield name, mask(name, setting.value), setting.origin


def mask(name: str, value: Any) -> str:
    """Return ``value`` in printable form: hidden if its name or form marks it as a secret."""
    if isinstance(value, SecretSource):
        return str(value)
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return masking.masked(text) if name.startswith(COMMANDS) else masking.value_of(name, text)


def merge(
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    file: Parsed | None,
    context: str | None,
) -> Settings:
    """Return the settings of the three sources; earlier sources override later ones.

    ``context`` is the entry of ``file`` to use. Topics and workers, with their addresses, belong to
    the group that is set in the same source. If another source sets another group, they are set
    aside: an offset must not be written to another group's topic.
    """
    merged: dict[str, Setting] = {}
    aside: dict[str, Setting] = {}
    entry = dict(_from_file(file, context))
    defaults = {name: Setting(value, "default") for name, value in DEFAULTS.items()}
    for layer in (dict(_from_flags(flags)), dict(_from_environment(environment)), entry, defaults):
        for name, setting in layer.items():
            if _is_of_other_group(name, layer, merged, in_file=layer is entry):
                aside.setdefault(name, setting)
            else:
                merged.setdefault(name, setting)
    for name, setting in merged.items():
        _check(name, setting)
    return Settings(dict(sorted(merged.items())), context, aside)


def _check(name: str, setting: Setting) -> None:
    """Raise ``BadInput``, with the origin, for an address or a time that no client accepts."""
    if name == "timeout":
        if not SHORTEST <= setting.value <= LONGEST:
            raise BadInput(
                f"The timeout {setting.value:g} ({setting.origin}) is out of range",
                next_step=f"Give {SHORTEST:g} to {LONGEST:g} seconds.",
            )
    elif name == "lock_wait":
        if not 0 <= setting.value <= LONGEST:
            raise BadInput(
                f"The lock wait {setting.value:g} ({setting.origin}) is out of range",
                next_step=f"Give 0 to {LONGEST:g} seconds.",
            )
    elif name == "bootstrap_servers" or re.fullmatch(r"clusters\.[\w-]+\.bootstrap_servers", name):
        if problem := endpoints.problem_of_brokers(str(setting.value)):
            raise BadInput(f"The brokers' addresses ({setting.origin}) cannot be used", why=problem)
    elif name == "rest":
        for url in setting.value:
            if problem := endpoints.problem_of_url(str(url)):
                shown = mask("rest", url)
                raise BadInput(f"{shown!r} ({setting.origin}) is not a worker's URL", why=problem)


def _is_of_other_group(
    name: str, layer: Mapping[str, Setting], before: Mapping[str, Setting], *, in_file: bool
) -> bool:
    """Return whether ``name`` in ``layer`` belongs to another group than the one that an earlier
    source named.

    Topics in a context without a group have an unknown owner: they do not count for another
    source's group.
    """
    bound = name in ("rest", "rest_is_group") or name.startswith(SECTIONS_OF_A_GROUP)
    if not bound or (selected := before.get("group_id")) is None:
        return False
    group = layer.get("group_id")
    if group is None:
        return in_file and name.startswith("topics.")
    return bool(group.value != selected.value)


def pick_context(name: str | None, origin: str, file: Parsed | None) -> str | None:
    """Return the context to use: the one in ``wanted``, else the file's ``current``, else its only
    one.
    """
    known = file.names if file else []
    if name is None and file is not None:
        name, origin = file.content.current, f"current in {file.path}"
        if name is None:
            return known[0] if len(known) == 1 else None
    if name is not None and name not in known:
        hint = f"Known contexts: {', '.join(known)}."
        if not known:
            hint = (
                "No context is defined. Add one: connectctl context add NAME "
                "--bootstrap-servers HOST:PORT --group-id ID"
            )
        raise BadInput(f"Context not found: {name} ({origin})", next_step=hint)
    return name


def _from_flags(flags: Mapping[str, Any]) -> Iterator[tuple[str, Setting]]:
    for name, value in flags.items():
        if value not in (None, []):
            flag = {
                "topics.config": "config-topic",
                "topics.offsets": "offsets-topic",
                "topics.status": "status-topic",
            }
            yield name, Setting(value, f"--{flag.get(name, name.replace('_', '-'))}")


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, Setting]]:
    for variable, name in ENVIRONMENT.items():
        if value := environment.get(variable):
            yield name, Setting(_typed(variable, name, value), f"environment {variable}")
    for variable, value in environment.items():
        if variable.startswith(CLIENT_ENVIRONMENT) and value:
            name = variable[len(CLIENT_ENVIRONMENT) :].lower().replace("_", ".")
            yield f"client.{name}", Setting(value, f"environment {variable}")


def _typed(variable: str, name: str, value: str) -> Any:
    if name in ("timeout", "lock_wait"):
        try:
            return float(value)
        except ValueError as e:
            raise BadInput(f"{variable} must be a number of seconds, not {value!r}") from e
    if name == "rest_is_group":
        if value.lower() not in ("true", "false"):
            raise BadInput(f"{variable} must be true or false, not {value!r}")
        return value.lower() == "true"
    return value.split(",") if name == "rest" else value


def _from_file(file: Parsed | None, context: str | None) -> Iterator[tuple[str, Setting]]:
    if file is None or context is None:
        return
    entry = file.entry(context).model_dump(exclude_unset=True)
    for name, value in _flatten(entry, ""):
        line = file.lines.get(f"contexts.{context}.{name}")
        yield name, Setting(value, f"{file.path}" + (f" line {line}" if line else ""))


def _flatten(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if not isinstance(inner, Mapping):
            if inner is not None:
                yield name, inner
        elif prefix.startswith(COMMANDS):
            # A worker's host may have any name, so that ``.client.`` in it is not a section.
            yield from _flatten(inner, f"{name}.")
        elif prefix.startswith(("client.", "rest_auth.")) or ".client." in prefix:
            yield name, _secret(name, inner)
        else:
            yield from _flatten(inner, f"{name}.")


def _secret(name: str, reference: Mapping[str, Any]) -> SecretSource:
    sources = {kind: str(value) for kind, value in reference.items() if value is not None}
    if len(sources) != 1:
        raise BadInput(f"{name} must name its secret by exactly one of env, file or command")
    kind, value = next(iter(sources.items()))
    return SecretSource(kind, value)
