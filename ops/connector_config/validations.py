"""The workers' validations of configurations: unchanged, and with exactly-once required.

A validation accesses nothing outside the worker. Each configuration is validated once unchanged,
and once with ``exactly.once.support=required``, for which every worker since 3.3 reports the answer
of the connector's class. If the configuration overrides clients that exist with exactly-once only,
the second request also has an offsets topic, so that the worker validates those overrides; the
topic is not created.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

from connectctl.ops.clients.protocols import ConnectCalls
from connectctl.ops.connect.connector import path_of
from connectctl.ops.connect.health import reason_of
from connectctl.ops.connect.internal_topics import address
from connectctl.ops.connect.missing_class import missing_class, needs_class
from connectctl.ops.connect.offset_store import TOPIC as OFFSETS_TOPIC
from connectctl.ops.connect.worker import NOT_ENABLED, Support
from connectctl.ops.connector_config.exactly_once_rules import (
    FAILED,
    NO_ANSWER_OF_CLASS,
    NOT_SUPPORTED_BY_CLASS,
    SUPPORT,
)
from connectctl.ops.connector_config.subject import PluginAnswer, Validation
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.unseen import Unseen

PATIENCE = 8.0
"""The most seconds of one validation; a plugin may read its source meanwhile."""
MOST_AT_ONCE = 16
MOST = 500
"""The most validations in one check, a configuration by a worker each: one to three requests."""
Configs = Mapping[str, Mapping[str, str | None]]
_PREFIX = re.compile(r"^(?:(?:[a-z]+\.)+[A-Z]\w*(?:Exception|Error): )+")
_ABOUT_CONFIG = re.compile(
    r"^[\w.]*(?:BadRequestException|ConfigException|PluginLoadingException): "
)
"""A response with status 500 that is certainly about the configuration."""
_HINT = "Check that the worker runs, and its address: connectctl context show."


@dataclass(frozen=True)
class _Answer:
    """Errors by property, and all properties; ``problem`` if the validation failed."""

    errors: Mapping[str, tuple[str, ...]]
    properties: frozenset[str] = frozenset()
    problem: str | None = None


def ask(
    calls: ConnectCalls, urls: Sequence[str], configs: Configs, *, most: int | None = None
) -> dict[str, tuple[Validation, ...]]:
    """Return the validations of each configuration by the workers at ``urls``. Raises nothing.

    A configuration without a class is not validated: the request's path needs the class. ``most``
    limits the number of validations, which ``questions`` distributes.
    """
    pairs = assignments(urls, configs, most)
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        found = list(
            pool.map(
                lambda pair: _validation(calls, pair[1], {**configs[pair[0]], "name": pair[0]}),
                pairs,
            )
        )
    answers: dict[str, tuple[Validation, ...]] = dict.fromkeys(configs, ())
    for (name, _), validation in zip(pairs, found, strict=True):
        answers[name] = (*answers[name], validation)
    return answers


def assignments(
    urls: Sequence[str], configs: Configs, most: int | None = None
) -> list[tuple[str, str]]:
    """Return the pairs of configuration and worker to validate: all of them, or ``most``.

    Then one configuration of every class is validated by all workers, which may have different
    plugins, in up to half of the validations. The others are validated by one worker each, in turn:
    first one of every class and set of properties.
    """
    classes = {
        name: kind
        for name, config in configs.items()
        if (kind := (config.get("connector.class") or "").strip())
    }
    if most is None or len(classes) * len(urls) <= most:
        return [(name, url) for name in classes for url in urls]
    first = {kind: name for name, kind in reversed(classes.items())}
    common = Counter(classes.values()).most_common(max(1, most // (2 * len(urls))))
    everywhere = {first[kind]: None for kind, _ in common}
    shapes: dict[Any, str] = {}
    for name, kind in classes.items():
        shapes.setdefault((kind, frozenset(configs[name])), name)
    rest = [name for name in dict.fromkeys([*shapes.values(), *classes]) if name not in everywhere]
    pairs = [(name, url) for name in everywhere for url in urls][:most]
    return pairs + list(zip(rest[: most - len(pairs)], cycle(urls), strict=False))


def not_validated(
    urls: Sequence[str], answers: Mapping[str, Sequence[Validation]], configs: Configs
) -> Iterator[Unseen]:
    """Yield a gap for the configurations that no worker validated, because requests are limited."""
    missing = [
        name
        for name, found in answers.items()
        if not found and (configs[name].get("connector.class") or "").strip()
    ]
    if missing and urls:
        per_worker = -(-sum(map(len, answers.values())) // len(urls))
        why = (
            f"with {len(urls)} workers a check asks each worker to validate at most "
            f"{per_worker} of them"
        )
        what = f"the workers' validation of {len(missing):,} of {len(answers):,} configurations"
        yield Unseen(
            what,
            why,
            f"Name connectors, up to {MOST // len(urls) or 1}: connectctl preflight {missing[0]}",
        )


def unseen(answers: Mapping[str, Sequence[Validation]]) -> Iterator[Unseen]:
    """Yield the workers that did not respond, once each, with the connectors that they should have
    validated.
    """
    failed: dict[tuple[str, str], list[str]] = {}
    for name, validations in answers.items():
        for validation in validations:
            if validation.problem is not None:
                failed.setdefault((validation.worker, validation.problem), []).append(name)
    for (worker, problem), names in failed.items():
        owner = names[0] if len(names) == 1 else f"{len(names)} connectors"
        yield Unseen(f"the validation of {owner} on {worker}", problem, _HINT)


def _validation(calls: ConnectCalls, url: str, config: Mapping[str, str | None]) -> Validation:
    worker = address(url) or url
    plain = _ask(calls, url, config)
    if plain.problem is not None:
        return Validation(worker, problem=plain.problem)
    kind = _kind(plain.properties)
    found = Validation(worker, plain.errors, kind=kind, properties=plain.properties)
    if kind == "sink" or ("" in plain.errors and not plain.properties):
        return found
    if kind == "source" and SUPPORT not in plain.properties:
        return replace(found, support=Support.NOT_SUPPORTED)
    return _with_probe(calls, url, config, found)


def _with_probe(
    calls: ConnectCalls, url: str, config: Mapping[str, str | None], found: Validation
) -> Validation:
    """Return ``found`` with the worker's errors when exactly-once is required."""
    required = {**config, SUPPORT: "required"}
    clients = any(name.startswith(("consumer.override.", "admin.override.")) for name in config)
    probe = (
        {**required, OFFSETS_TOPIC: config.get(OFFSETS_TOPIC) or "connectctl-probe"}
        if clients
        else required
    )
    answer = _ask(calls, url, probe)
    additional: Mapping[str, tuple[str, ...]] = {}
    if answer.problem is None:
        additional = {
            p: new for p, texts in answer.errors.items() if (new := _additional(found, p, texts))
        }
    if clients and "" in answer.errors:
        answer = _ask(calls, url, required)
    if answer.problem is not None or SUPPORT not in answer.properties:
        return replace(found, once_enabled=additional)
    errors = [text for text in answer.errors.get(SUPPORT, ()) if text != NOT_ENABLED]
    enabled = NOT_ENABLED not in answer.errors.get(SUPPORT, ())
    plugin, detail = _plugin(errors)
    return replace(
        found,
        support=Support.ENABLED if enabled else Support.NOT_ENABLED,
        plugin=plugin,
        detail=detail,
        once_enabled=additional,
    )


def _additional(found: Validation, name: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the probe's errors that the worker does not report for the unchanged configuration."""
    if name == SUPPORT:
        return ()
    return tuple(text for text in texts if text not in found.errors.get(name, ()))


def _plugin(errors: Sequence[str]) -> tuple[PluginAnswer, str | None]:
    """Return the plugin's answer from the errors that are not the worker's own."""
    for text in errors:
        if text == NOT_SUPPORTED_BY_CLASS:
            return PluginAnswer.UNSUPPORTED, None
        if text.startswith(NO_ANSWER_OF_CLASS[:70]):
            return PluginAnswer.UNKNOWN, None
        if text.startswith(FAILED):
            return PluginAnswer.FAILS, text
    return PluginAnswer.SUPPORTED, None


def _ask(calls: ConnectCalls, url: str, config: Mapping[str, str | None]) -> _Answer:
    path = path_of(
        "connector-plugins", (config["connector.class"] or "").strip(), "config", "validate"
    )
    try:
        answer = calls.send("PUT", path, dict(config), url=url, timeout=PATIENCE)
    except ConnectctlError as e:
        if _is_about_config(calls, url, e):
            return _Answer({"": (_PREFIX.sub("", e.why or e.what),)})
        return _Answer({}, problem=reason_of(e))
    return _read(answer)


def _is_about_config(calls: ConnectCalls, url: str, error: ConnectctlError) -> bool:
    """Return whether ``error`` is about the configuration, and not about the worker or a proxy
    before it.

    A worker also answers 500 for an exception of its own or of a plugin that a configuration
    causes. The error is about the configuration if the worker answers other requests.
    """
    if error.code != "worker-error":
        return error.code == "rejected"
    text = error.why or ""
    if _ABOUT_CONFIG.match(text) or missing_class(text) is not None or needs_class(text):
        return True
    return bool(_PREFIX.match(text)) and _answers(calls, url)


def _answers(calls: ConnectCalls, url: str) -> bool:
    try:
        calls.get("/", url=url, timeout=PATIENCE)
    except ConnectctlError:
        return False
    return True


def _read(answer: Any) -> _Answer:
    """Return a worker's answer; one of another form than Connect's is a problem."""
    try:
        values = [entry["value"] for entry in answer["configs"]]
        errors: dict[str, tuple[str, ...]] = {}
        for value in values:
            texts = tuple(str(text) for text in value.get("errors") or ())
            if texts:
                errors[str(value["name"])] = (*errors.get(str(value["name"]), ()), *texts)
        return _Answer(errors, frozenset(str(value["name"]) for value in values))
    except (KeyError, TypeError, AttributeError):
        return _Answer({}, problem="its answer is not that of a Connect worker")


def _kind(properties: frozenset[str]) -> str | None:
    """Return ``source`` or ``sink`` by the properties that a worker validated; None if they do not
    determine it.
    """
    if "topics.regex" in properties:
        return "sink"
    return "source" if properties & {SUPPORT, "topic.creation.groups"} else None
