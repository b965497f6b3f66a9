"""The only reader of YAML from users.

A few lines of YAML can represent more than a machine can hold, by aliases of aliases, or infinite
data, by an alias within its own anchor. Nesting, aliases and the expanded size are counted before
values are built; an excess is a ``yaml.MarkedYAMLError`` with its line, like any other error.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import yaml

DEEPEST = 100
"""The most levels of nesting."""
LARGEST = 10_000_000
"""The most values of a file with its aliases expanded."""
MOST_BY_ALIASES = 100_000
"""The most values among them that come from aliases."""
LONG = 200_000
"""The number of characters above which the faster parser is used."""
T = TypeVar("T")


def compose(text: str) -> yaml.Node | None:
    """Return the only document of ``text`` as a node with lines, None if it is empty. Raises
    ``yaml.YAMLError``.
    """
    import yaml

    check(text)
    return _or_our_error(lambda: yaml.compose(text, Loader=_loader(text)))


def compose_all(text: str) -> list[yaml.Node]:
    """Return every document of ``text`` that is not empty. Raises ``yaml.YAMLError``.

    A directory has hundreds of such files: libyaml reads them in a fifth of the time. Text that it
    refuses is read again by PyYAML's own parser, for its error.
    """
    import yaml

    if (quick := getattr(yaml, "CSafeLoader", None)) is not None:
        with suppress(yaml.YAMLError):
            return _documents(text, quick)
    return _documents(text, _loader(text))


def _documents(text: str, loader: Any) -> list[yaml.Node]:
    import yaml

    check(text, loader)
    return _or_our_error(
        lambda: [node for node in yaml.compose_all(text, Loader=loader) if node is not None]
    )


def read_yaml(text: str) -> Any:
    """Return the value of the only document of ``text``. Raises ``yaml.YAMLError``."""
    import yaml

    check(text)
    return _or_our_error(lambda: yaml.load(text, Loader=_loader(text)))  # a safe one


def _loader(text: str) -> Any:
    """Return PyYAML's own parser, which reports the position of an error best; libyaml's for long
    text.
    """
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader) if len(text) > LONG else yaml.SafeLoader


def _or_our_error(read: Callable[[], T]) -> T:
    """Return the result of ``read``; an invalid value of a YAML type, such as 2026-13-01, is a
    ``yaml.YAMLError``.
    """
    import yaml

    try:
        return read()
    except (ValueError, OverflowError, RecursionError) as e:
        if isinstance(e, yaml.YAMLError):
            raise
        raise yaml.MarkedYAMLError(problem=str(e) or type(e).__name__) from e


def check(text: str, loader: Any = None) -> None:
    """Raise ``yaml.YAMLError`` if ``text`` is not YAML, or expands to too much."""
    import yaml

    sizes = _Sizes()
    for event in _or_our_error(lambda: yaml.parse(text, Loader=loader or _loader(text))):
        if problem := sizes.count(event):
            mark: Any = event.start_mark  # libyaml's is of a type of its own, with the same members
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def repeated(text: str) -> str | None:
    """Return the first key that an object of a JSON or YAML text has twice, with both lines; None
    without one.

    JSON and YAML silently use the last one, which may not be the intended one. ``text`` was read
    before: it is well-formed, and its depth is bounded. Lines count from 1.
    """
    import yaml

    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return None  # JSON that is not YAML, such as a text with a tab at the beginning of a line
    waiting, met = [root] if root is not None else [], set()
    while waiting:
        node = waiting.pop()
        if id(node) in met:
            continue  # an alias
        met.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            lines: dict[tuple[str, str], int] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                if isinstance(key, yaml.ScalarNode):
                    if first := lines.get((key.tag, key.value)):
                        again = (
                            f"in line {first}, and in line {line} again"
                            if first != line
                            else f"twice in line {line}"
                        )
                        return f"the key {key.value!r} is {again}"
                    lines[(key.tag, key.value)] = line
                waiting.append(value)
    return None


class _Sizes:
    """The number of values below each anchor, counted over the events of a file."""

    def __init__(self) -> None:
        self._open: list[tuple[str | None, int]] = []
        self._known: dict[str, int] = {}
        self._values = self._by_aliases = 0

    def count(self, event: yaml.Event) -> str | None:
        """Count one event, and return the exceeded limit, if any."""
        import yaml

        if isinstance(event, yaml.CollectionStartEvent):
            self._values += 1
            self._open.append((event.anchor, self._values))
            if len(self._open) > DEEPEST:
                return f"it is nested deeper than {DEEPEST} levels"
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = self._open.pop()
            if anchor is not None:
                self._known[anchor] = self._values - before + 1
        elif isinstance(event, yaml.ScalarEvent):
            self._values += 1
            if event.anchor is not None:
                self._known[event.anchor] = 1
        elif isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor))
        return f"it expands to more than {LARGEST:,} values" if self._values > LARGEST else None

    def _alias(self, anchor: str) -> str | None:
        if anchor in (name for name, _ in self._open):
            return f"the alias *{anchor} is within its own anchor"
        size = self._known.get(anchor, 0)
        self._values += size
        self._by_aliases += size
        if self._by_aliases > MOST_BY_ALIASES:
            return f"its aliases expand to more than {MOST_BY_ALIASES:,} values"
        return None
