"""Changes of the context file by ``connectctl context use``, ``add`` and ``remove``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.cli import apply
from connectctl.cli.output import terminal
from connectctl.cli.session import SANDBOX, Session, sandbox_file
from connectctl.ops.config import context_edit, context_source, masking, paths, yaml_text
from connectctl.ops.config.settings import SECRET_KINDS
from connectctl.ops.config.worker_source import Source
from connectctl.ops.core.errors import BadInput, Refused, did_you_mean

if TYPE_CHECKING:
    from connectctl.ops.config.context_file import Parsed

NAME = re.compile(r"[\w.-]+")
FROM_FLAGS = (
    "bootstrap_servers",
    "group_id",
    "rest",
    "rest_is_group",
    "topics.config",
    "topics.offsets",
    "topics.status",
    "lock",
    "lock_wait",
)
SCALAR = re.compile(r"[\w.+-]+")


def use(session: Session, name: str, *, dry_run: bool) -> None:
    """Make ``name`` the current context; it may be a sandbox's, which is in a file of its own.
    Raises ``BadInput`` if it does not exist.
    """
    path, former, text = _read(session)
    if not (name.startswith(SANDBOX) and sandbox_file(name)):
        _check_exists(path, text, name)
    _write(path, former, text, lambda: context_edit.use(text, name), dry_run=dry_run)
    terminal.note(f"{'Would be' if dry_run else 'Now'} current: {name}")


def add(
    session: Session,
    name: str,
    settings: Sequence[str],
    source: str | None,
    *,
    current: bool,
    dry_run: bool,
) -> None:
    """Add the context ``name`` with the flags and ``settings``, and what the file ``source`` has
    besides. Raises ``BadInput`` for values not
    allowed in the file.
    """
    if not NAME.fullmatch(name):
        raise BadInput(
            f"Invalid context name: {name!r}",
            next_step="Use letters, digits, dots, dashes and underscores.",
        )
    path, former, text = _read(session)
    if name in _parsed(path, text).names:
        hint = f"Give another name, or remove it first: connectctl context remove {name}"
        raise BadInput(f"Context {name} already exists in {path}", next_step=hint, code="exists")
    known = context_source.read_source(source, name) if source else Source()
    entry = _entry(session, settings, known.entry)
    if not entry.get("bootstrap_servers") and not entry.get("rest"):
        raise BadInput(
            "The context has no cluster", next_step="Give --bootstrap-servers, or --rest."
        )

    def changed() -> str:
        added = context_edit.add(text, name, entry)
        problem = _parsed(path, added).broken.get(name)
        if problem is not None:
            where = problem.what.partition(": ")[2] or problem.what
            raise BadInput(
                f"{where}; nothing was written", why=problem.why, next_step=problem.next_step
            )
        return context_edit.use(added, name) if current else added

    _write(path, former, text, changed, dry_run=dry_run)
    for note in known.notes:
        terminal.note(note)
    terminal.note(f"{'Would add' if dry_run else 'Added'} the context {name} to {path}")


def remove(session: Session, name: str, *, dry_run: bool, yes: bool) -> None:
    """Remove the context ``name`` after confirmation. Raises ``BadInput`` if it does not exist,
    ``Refused`` if declined.
    """
    path, former, text = _read(session)
    _check_exists(path, text, name)
    changed = context_edit.remove(text, name)
    if not dry_run and not yes:
        if not apply.somebody_is_there():
            hint = "Give --yes to remove it, or --dry-run to print the change."
            raise BadInput(
                "Confirmation required, but standard input is not a terminal; nothing was done",
                next_step=hint,
            )
        if not apply.agrees(f"Remove the context {name} from {path}?"):
            raise Refused("Not confirmed; nothing was done", code="not-confirmed")
    _write(path, former, text, lambda: changed, dry_run=dry_run)
    terminal.note(f"{'Would remove' if dry_run else 'Removed'} the context {name} from {path}")


def _read(session: Session) -> tuple[Path, bytes | None, str]:
    """Return the context file, its bytes (None if it does not exist) and its text. Raises
    ``BadInput``.
    """
    path = session.config or paths.config_file()
    if not path.exists():
        return path, None, ""
    _parsed(path)
    former = path.read_bytes()
    return path, former, former.decode()


def _parsed(path: Path, text: str | None = None) -> Parsed:
    from connectctl.ops.config import context_file

    return context_file.read(path, text)


def _check_exists(path: Path, text: str, name: str) -> None:
    known = _parsed(path, text).names
    if name not in known:
        if name.startswith(SANDBOX) and (own := sandbox_file(name)):
            raise BadInput(
                f"{name} is the context of a sandbox: it is in {own}, and not in {path}",
                next_step="It goes with its sandbox: connectctl sandbox down --name "
                f"{own.parent.name}",
                code="unknown-context",
            )
        hint = did_you_mean(name, known, "See connectctl context list.")
        raise BadInput(
            f"Context not found in {path}: {name}", next_step=hint, code="unknown-context"
        )


def _write(
    path: Path, former: bytes | None, text: str, change: Callable[[], str], *, dry_run: bool
) -> None:
    changed = change()
    _parsed(path, changed)
    if dry_run:
        # The file may contain secrets in plain text.
        old, new = (context_edit.masked_text(each).splitlines() for each in (text, changed))
        for line in difflib.unified_diff(old, new, str(path), str(path), n=1, lineterm=""):
            terminal.print_line(line)
    elif changed != text:
        context_edit.replace_file(path, changed, former)


def _entry(session: Session, settings: Sequence[str], known: dict[str, Any]) -> dict[str, Any]:
    """Return the context's entry for the flags and ``KEY=VALUE`` settings, and for what is
    ``known`` besides; lists have commas.
    """
    from connectctl.ops.config.context_file import is_list_setting

    entry = dict(known)
    if session.flags.get("rest"):
        entry.pop("rest_is_group", None)  # it was about the other addresses
    for name in FROM_FLAGS:
        if (value := session.flags.get(name)) not in (None, []):
            _put(entry, name, list(value) if isinstance(value, (list, tuple)) else value)
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key or not value:
            raise BadInput(
                f"--set requires KEY=VALUE, not {masking.masked(setting)!r}", code="usage"
            )
        listed = is_list_setting(_parts(key))
        _put(entry, key, re.split(r"\s*,\s*", value.strip()) if listed else _value(key, value))
    for url in entry.get("rest", []):
        if masking.addresses_masked(url) != url:
            hint = "Give --set rest_auth.username=NAME and --set rest_auth.password=env:NAME."
            raise BadInput(
                "The address of a worker contains a password, which is not written", next_step=hint
            )
    return entry


def _put(entry: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = _parts(key)
    for section in sections:
        entry = entry.setdefault(section, {})
        if not isinstance(entry, dict):
            raise BadInput(f"--set {key} conflicts with a value given before", code="usage")
    entry[last] = value


def _parts(key: str) -> Iterator[str]:
    """Split a key as the file nests it: names of properties contain dots."""
    section, dot, rest = key.partition(".")
    yield section
    if section == "spark" and rest.startswith("conf."):
        yield from ("conf", rest.removeprefix("conf."))
    elif dot:
        yield from [rest] if section == "client" else rest.split(".")


def _value(key: str, value: str) -> Any:
    """Parse a value of ``--set``. Raises ``BadInput`` for a secret that is not a reference."""
    kind, colon, where = value.partition(":")
    if masking.is_secret(key):
        if colon and kind in SECRET_KINDS and where:
            return {kind: where}
        hint = "Name its source: env:NAME, file:FILE or command:COMMAND."
        raise BadInput(
            f"{key} is a secret, which is not written to the context file", next_step=hint
        )
    if "\n" in value or "\r" in value:
        raise BadInput(f"The value of {key} has more than one line", code="usage")
    typed = yaml_text.read_yaml(value) if SCALAR.fullmatch(value) else None
    return typed if isinstance(typed, bool | int | float) else value
