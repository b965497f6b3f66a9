"""The plugins of a Connect cluster's workers, their versions and their configuration definitions
(KIP-769, KIP-891).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.connect.connector import path_of
from connectctl.ops.connect.internal_topics import address
from connectctl.ops.core.errors import BadInput, ConnectctlError

_ALIAS_ENDS = ("Connector", "Converter", "ConfigProvider")
MOST_AT_ONCE = 16
"""Concurrent requests to workers."""


@dataclass(frozen=True)
class Plugin:
    """One version of a class of one type (source, sink, converter, …), and the workers that have
    it, as host:port.

    ``version`` is None if the plugin has none.
    """

    type: str
    name: str
    version: str | None
    workers: tuple[str, ...]


@dataclass(frozen=True)
class WorkersPlugins:
    """The plugins of all workers. ``silent`` are the workers without an answer, with their
    errors.
    """

    plugins: tuple[Plugin, ...]
    workers: tuple[str, ...]
    silent: Mapping[str, ConnectctlError]

    def differing(self) -> tuple[Plugin, ...]:
        return tuple(plugin for plugin in self.plugins if len(plugin.workers) < len(self.workers))

    def named(self, name: str) -> tuple[Plugin, ...]:
        """Return the versions of the class ``name``: a full name, its last part, or Connect's
        alias. Raises ``BadInput``.
        """
        found = [plugin for plugin in self.plugins if plugin.name == name]
        found = found or [plugin for plugin in self.plugins if name in _aliases(plugin.name)]
        classes = sorted({plugin.name for plugin in found})
        if len(classes) > 1:
            raise BadInput(
                f"Several plugins are called {name}",
                next_step=f"Name one of: {', '.join(classes)}.",
            )
        if found:
            return tuple(found)
        known = {
            alias: plugin.name
            for plugin in self.plugins
            for alias in (plugin.name, *_aliases(plugin.name))
        }
        similar = get_close_matches(name, known, n=1)
        hint = f"Did you mean {known[similar[0]]}?" if similar else "See connectctl plugins list."
        raise BadInput(f"No worker has a plugin {name}", next_step=hint, code="unknown-plugin")


def read(calls: ConnectCalls) -> WorkersPlugins:
    """Return the plugins of every worker of ``calls``. Raises the error of a worker if none
    answers.

    Workers before Kafka 3.2 list connectors only.
    """

    def ask(url: str) -> list[Mapping[str, Any]] | ConnectctlError:
        try:
            found: list[Mapping[str, Any]] = calls.get(
                "/connector-plugins?connectorsOnly=false", url=url
            )
        except ConnectctlError as e:
            return e
        return found

    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        answers = {
            address(url): answer
            for url, answer in zip(calls.urls, pool.map(ask, calls.urls), strict=True)
        }
    answered = {
        worker: answer
        for worker, answer in answers.items()
        if not isinstance(answer, ConnectctlError)
    }
    silent = {
        worker: answer for worker, answer in answers.items() if isinstance(answer, ConnectctlError)
    }
    if not answered:
        if silent:
            raise next(iter(silent.values()))
        calls.get("/connector-plugins")  # raises: no worker is known
    return WorkersPlugins(tuple(_merged(answered)), tuple(sorted(answered)), silent)


def definitions(
    calls: ConnectCalls, plugins: Sequence[Plugin], version: str | None
) -> list[dict[str, Any]]:
    """Return the configuration definitions of a class, Kafka's ``ConfigKeyInfo``, from a worker
    that has it.

    ``version`` selects one of several, None the newest. Raises ``BadInput`` for a version that no
    worker has, and ``ConnectctlError`` with the code ``unsupported`` for workers before Kafka 3.2
    (KIP-769).
    """
    having = [plugin for plugin in plugins if version in (None, plugin.version)]
    if not having:
        versions = ", ".join(sorted({plugin.version or "without a version" for plugin in plugins}))
        raise BadInput(
            f"No worker has {plugins[0].name} in version {version}",
            next_step=f"Available versions: {versions}.",
        )
    url = next(url for url in calls.urls if address(url) in having[0].workers)
    # Only with several versions: workers before 4.1 have no parameter for it.
    several = version is not None and len({plugin.version for plugin in plugins}) > 1
    query = f"?version={path_of(str(version))[1:]}" if several else ""
    try:
        found: list[dict[str, Any]] = calls.get(
            f"{path_of('connector-plugins', plugins[0].name, 'config')}{query}", url=url
        )
    except ConnectctlError as e:
        if e.code not in ("not-found", "not-connect", "starting", "unsupported"):
            raise
        raise ConnectctlError(
            f"The worker has no configuration definitions of {plugins[0].name}",
            why=f"{e.why}; available since Kafka 3.2 for connectors, converters, transformations "
            "and predicates",
            next_step="For a connector of an older worker: connectctl validate -f FILE.",
            code="unsupported",
        ) from e
    return found


def _aliases(name: str) -> tuple[str, ...]:
    last = name.rpartition(".")[2].rpartition("$")[2]
    return (
        last,
        *(last.removesuffix(end) for end in _ALIAS_ENDS if last.endswith(end) and last != end),
    )


def _merged(answered: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Plugin]:
    having: dict[tuple[str, str, str | None], list[str]] = {}
    for worker, plugins in sorted(answered.items()):
        for plugin in plugins:
            version = plugin.get("version")
            # Kafka's value for a plugin without a version; null in some releases.
            key = (
                str(plugin.get("type")),
                str(plugin.get("class")),
                None if version == "undefined" else version,
            )
            having.setdefault(key, []).append(worker)
    order = sorted(having.items(), key=lambda item: (*item[0][:2], item[0][2] or ""))
    return [Plugin(*key, tuple(dict.fromkeys(workers))) for key, workers in order]
