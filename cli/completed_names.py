"""Names for the shell's completion: fast, and without messages if the cluster does not respond.

What was read from a cluster is kept for some seconds, because a person presses TAB several times
for one command.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from connectctl.cli.session import Session

PATIENCE = 1.5
"""Seconds before a completion times out."""
KEPT = 10.0
"""Seconds for which names are taken from the cache."""
Complete = Callable[[typer.Context, str], list[str]]


def completes(read: Callable[[Session, typer.Context], Iterable[str]]) -> Complete:
    """Return the completion with the names that ``read`` returns of a cluster."""

    def names(ctx: typer.Context, incomplete: str) -> list[str]:
        # A shell prints its candidates raw; a completion prints no errors.
        with suppress(Exception):
            found = _kept(read.__name__, ctx, lambda: sorted(set(read(_session(ctx), ctx))))
            return [name for name in found if name.startswith(incomplete) and name.isprintable()]
        return []

    return names


def one_of(*values: str) -> Callable[[str], list[str]]:
    """Return the completion of an option with these values."""
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


def _session(ctx: typer.Context) -> Session:
    from connectctl.cli.session import Session

    # Completion parses the words typed so far, but runs no callback.
    given = ctx.find_root().params
    names = ("bootstrap_servers", "group_id", "rest", "rest_is_group")
    flags = {name: given.get(name) or None for name in names} | {
        f"topics.{role}": given.get(f"{role}_topic") for role in ("config", "offsets", "status")
    }
    flags["timeout"] = PATIENCE
    return Session(flags=flags, context=given.get("context"), config=given.get("config"))


def _kept(kind: str, ctx: typer.Context, read: Callable[[], list[str]]) -> list[str]:
    """Return names of the cache, if they are of this cluster and recent; else read and keep them.

    Names of connectors are no secrets, but nobody else's business: only the user reads the files.
    """
    from connectctl.ops.config import paths, whole_file

    environment = {n: v for n, v in os.environ.items() if n.startswith("CONNECTCTL_")}
    given = [ctx.find_root().params, ctx.params.get("connector"), environment]
    changed = [file.stat().st_mtime for file in [_context_file(ctx)] if file.is_file()]
    of = [kind, *given, *changed]
    digest = hashlib.sha256(json.dumps(of, sort_keys=True, default=str).encode()).hexdigest()
    file = paths.cache_directory() / "completion" / digest[:32]
    with suppress(OSError, ValueError):
        if 0 <= time.time() - file.stat().st_mtime < KEPT:
            return list(json.loads(file.read_text()))
    found = read()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in file.parent.iterdir():
            if time.time() - old.stat().st_mtime > KEPT:
                old.unlink(missing_ok=True)
        whole_file.write(file, json.dumps(found))
    return found


@completes
def connectors(session: Session, ctx: typer.Context) -> Iterable[str]:
    from connectctl.ops.connect import config_topic
    from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics

    kafka = session.kafka
    group = kafka.group(session.group_id)
    topic = find_internal_topics(kafka, group, session.named_topics, needed=("config",)).config
    assert topic is not None
    return config_topic.parse(kafka.image([topic], patience=0)[topic].latest, topic).connectors


@completes
def plugin_classes(session: Session, ctx: typer.Context) -> Iterable[str]:
    from connectctl.ops.operations.cluster import plugins
    from connectctl.ops.operations.connectors.access import open_cluster

    return (plugin.name for plugin in plugins.read(open_cluster(session).calls).plugins)


@completes
def properties(session: Session, ctx: typer.Context) -> Iterable[str]:
    """Return ``NAME=`` for the properties of the plugin, and those that the connector sets."""
    from connectctl.ops.connect.connector import path_of
    from connectctl.ops.operations.cluster import plugins
    from connectctl.ops.operations.connectors.access import open_cluster

    calls = open_cluster(session).calls
    config = calls.get(path_of("connectors", ctx.params["connector"], "config"))
    named = plugins.read(calls).named(config["connector.class"])
    defined = [str(each["name"]) for each in plugins.definitions(calls, named, None)]
    return (f"{name}=" for name in [*config, *defined] if name != "name")


@completes
def loggers(session: Session, ctx: typer.Context) -> Iterable[str]:
    from connectctl.ops.operations.cluster import loggers
    from connectctl.ops.operations.connectors.access import open_cluster

    return (
        name for levels in loggers.read(open_cluster(session).calls).values() for name in levels
    )


@completes
def workers(session: Session, ctx: typer.Context) -> Iterable[str]:
    from connectctl.ops.connect.internal_topics import address

    return (address(member.url) or member.url for member in session.group().members)


@completes
def transactional_ids(session: Session, ctx: typer.Context) -> Iterable[str]:
    return (listing.id for listing in session.transactions.listed().seen)


@completes
def topics(session: Session, ctx: typer.Context) -> Iterable[str]:
    return session.kafka.topic_names()


def contexts(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the contexts of the context file, and those of the sandboxes that are up."""
    from connectctl.ops.config import paths

    return _contexts([_context_file(ctx), *paths.sandbox_contexts()], incomplete)


def own_contexts(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the contexts of the context file."""
    return _contexts([_context_file(ctx)], incomplete)


def _context_file(ctx: typer.Context) -> Path:
    from connectctl.ops.config import paths

    return ctx.find_root().params.get("config") or paths.config_file()


def _contexts(files: Iterable[Path], incomplete: str) -> list[str]:
    from connectctl.ops.config import context_file

    found: set[str] = set()
    for file in files:
        with suppress(Exception):
            found.update(context_file.read(file).names)
    return sorted(name for name in found if name.startswith(incomplete))


def sandboxes(incomplete: str) -> list[str]:
    """Return the sandboxes of this user."""
    from connectctl.ops.config import paths

    found = paths.sandbox_directory("_").parent.glob("*/")
    return sorted(each.name for each in found if each.name.startswith(incomplete))


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the runs of the journal that the command takes, the newest first."""
    from connectctl.cli.session import Session

    command = " ".join(ctx.command_path.split()[1:])
    with suppress(Exception):
        found = Session().journal(read_only=True).runs()
        return [run.id for run in found if run.id.startswith(incomplete) and _taken(command, run)]
    return []


def _taken(command: str, run: Any) -> bool:
    """Whether ``command`` may do something with ``run``."""
    group, _, verb = command.rpartition(" ")
    if group in ("offsets", "loggers", "upgrade") and run.operation.partition(" ")[0] != group:
        return False
    if verb in ("undo", "abort"):
        return bool(run.changed)
    return verb != "resume" or bool(run.is_unfinished)


def findings(incomplete: str) -> list[str]:
    """Return the ids of all findings."""
    from connectctl.ops.core.rule_docs import rule_docs

    return [id_ for id_ in rule_docs() if id_.startswith(incomplete)]
