"""Records what clients answer, and answers from the record.

A call is known by the path of its client, its method and its arguments. Functions and patience in
the arguments do not count, and neither does the order of a list. A call that was made several times
is answered in the same order; after the last answer that one is repeated.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar, cast

from connectctl.ops.checks.bundle.codec import decode, encode
from connectctl.ops.clients.protocols import Clients
from connectctl.ops.core.errors import ConnectctlError

OPENED = frozenset(
    {"kafka", "transactions", "transaction_log", "brokers", "acls", "own_rights", "group_offsets"}
    | {"client_groups", "settings"}
)
"""Members of ``Clients`` that are clients themselves."""
OPENING = frozenset(
    {"connect_to", "driver", "other_kafka", "other_acls", "other_brokers", "other_transactions"}
)
"""Methods of ``Clients`` that return a client. Their first argument tells one from another, if it
is a text.
"""
UNRECORDED = frozenset({"note", "reveal", "journal", "in_context", "offsets_engine"})
"""Members of ``Clients`` that read nothing of a cluster, or whose reads are recorded themselves."""
LEFT_OUT = "leftOut"
"""The member of an answer that could not be recorded."""
_NOT_COMPARED = frozenset({"timeout", "patience"})
T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """A call with its answers, as JSON values; an answer has a ``value`` or an ``error``."""

    name: str
    arguments: Any
    answers: list[dict[str, Any]]

    @property
    def key(self) -> tuple[str, str]:
        given = self.arguments and [_unordered(each) for each in self.arguments]
        return self.name, json.dumps(given, sort_keys=True)


def _unordered(data: Any) -> Any:
    """Return ``data`` with lists in one order: many are made from sets."""
    if isinstance(data, dict):
        return {name: _unordered(each) for name, each in data.items()}
    if isinstance(data, list):
        return sorted((_unordered(each) for each in data), key=repr)
    return data


@dataclass
class Tape:
    """The calls of a check in the order of their first answers. They are encoded at the end."""

    _answers: dict[tuple[str, str], tuple[Any, list[dict[str, Any]]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, name: str, arguments: Any, ask: Callable[[], T]) -> T:
        """Return the answer of ``ask``, and keep it; an error is kept and raised.

        ``arguments`` are JSON values, None for an attribute that is not a
        method.
        """
        try:
            value = ask()
        except ConnectctlError as e:
            self._keep(name, arguments, {"error": e})
            raise
        self._keep(name, arguments, {"value": value})
        return value

    def _keep(self, name: str, arguments: Any, answer: dict[str, Any]) -> None:
        with self._lock:
            key = Call(name, arguments, []).key
            _, answers = self._answers.setdefault(key, (arguments, []))
            answers.append(answer)

    def calls(self) -> list[Call]:
        """Return the calls that were recorded."""
        with self._lock:
            kept = list(self._answers.items())
        return [
            Call(name, arguments, list(map(_encoded, answers)))
            for (name, _), (arguments, answers) in kept
        ]


def _arguments(args: Iterable[Any], named: Mapping[str, Any]) -> Any:
    kept = {name: each for name, each in named.items() if name not in _NOT_COMPARED}
    return [
        {str(n): _argument(each) for n, each in enumerate(args) if not callable(each)},
        {name: _argument(each) for name, each in kept.items() if not callable(each)},
    ]


def _argument(value: Any) -> Any:
    """Return an argument as JSON values; of a kind that no client returns, its name."""
    try:
        return encode(value)
    except TypeError:
        return type(value).__name__


def _encoded(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer as JSON values; one of a kind that is not known is left out."""
    try:
        return {kind: encode(each) for kind, each in answer.items()}
    except TypeError as e:
        return {LEFT_OUT: str(e)}


class Recorder:
    """A client whose answers are kept on ``tape``. ``path`` is its name there, empty for
    ``Clients``.
    """

    def __init__(self, target: Any, tape: Tape, path: str = "") -> None:
        self._target, self._tape, self._path = target, tape, path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        path = f"{self._path}.{name}" if self._path else name
        if not self._path and name in UNRECORDED:
            return getattr(self._target, name)
        if not self._path and name in OPENED:
            return self._opened(path, lambda: getattr(self._target, name))
        if isinstance(getattr(type(self._target), name, None), property | cached_property):
            return self._tape.call(path, None, lambda: getattr(self._target, name))
        found = getattr(self._target, name)
        if not callable(found):
            return self._tape.call(path, None, lambda: found)
        opening = not self._path and name in OPENING
        return partial(self._opened if opening else self._called, path, found)

    def _called(self, path: str, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return self._tape.call(path, _arguments(args, named), lambda: method(*args, **named))

    def _opened(self, path: str, open_: Callable[..., Any], *args: Any, **named: Any) -> Recorder:
        path, found = _client_path(path, args), []
        self._tape.call(path, None, lambda: found.append(open_(*args, **named)))
        return Recorder(found[0], self._tape, path)


def _client_path(path: str, args: tuple[Any, ...]) -> str:
    """Return the name of a client on the tape: without its properties, which have credentials."""
    return f"{path}({args[0]})" if args and isinstance(args[0], str) else path


class Answers:
    """The answers to recorded calls, in their order."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self._of = {call.key: call.answers for call in calls}
        self._asked: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def has(self, name: str, arguments: Any) -> bool:
        """Return whether the call was recorded."""
        return Call(name, arguments, []).key in self._of

    def next(self, name: str, arguments: Any) -> Any:
        """Return, or raise, the next answer. Raises ``ConnectctlError`` for a call that was not
        recorded.
        """
        key = Call(name, arguments, []).key
        answers = self._of.get(key) or [{LEFT_OUT: "it was not asked"}]
        with self._lock:
            answer = answers[min(self._asked[key], len(answers) - 1)]
            self._asked[key] += 1
        if LEFT_OUT in answer:
            what = f"The bundle has no answer of {name}"
            raise ConnectctlError(what, why=answer[LEFT_OUT], code="not-in-bundle")
        if "error" in answer:
            raise decode(answer["error"])
        return decode(answer["value"])


class Player:
    """A client that gives the answers that were recorded of the client at ``path``."""

    def __init__(self, answers: Answers, path: str = "") -> None:
        self._answers, self._path = answers, path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        path = f"{self._path}.{name}" if self._path else name
        if not self._path and name in OPENED:
            return self._opened(path)
        if not self._path and name in OPENING:
            return partial(self._opened, path)
        if self._answers.has(path, None):
            return self._answers.next(path, None)
        return partial(self._called, path)

    def _called(self, path: str, *args: Any, **named: Any) -> Any:
        return self._answers.next(path, _arguments(args, named))

    def _opened(self, path: str, *args: Any, **named: Any) -> Player:
        path = _client_path(path, args)
        self._answers.next(path, None)
        return Player(self._answers, path)


def recorded(clients: Clients, tape: Tape) -> Clients:
    """Return ``clients`` whose answers are kept on ``tape``."""
    return cast("Clients", Recorder(clients, tape))


def played(answers: Answers) -> Clients:
    """Return clients that give ``answers``, without a network."""
    return cast("Clients", Player(answers))
