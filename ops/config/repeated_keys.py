"""Keys that occur twice in one object: JSON and YAML silently take the last one, which may not be the intended one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml


def repeated(text: str) -> str | None:
    """The first key that an object of a JSON or YAML text has twice, with both lines; None where there is none.

    ``text`` was read before: it is well-formed, and its depth is bounded. Lines count from 1.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = yaml.compose(text, Loader=loader)
    except yaml.YAMLError:
        return None  # JSON that is not YAML, such as a text with a tab in front of a line
    return _in(node) if node is not None else None


def _in(root: yaml.Node) -> str | None:
    import yaml

    waiting, met = [root], set()
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
                            f"in line {first}, and in line {line} again" if first != line else f"twice in line {line}"
                        )
                        return f"the key {key.value!r} is {again}"
                    lines[(key.tag, key.value)] = line
                waiting.append(value)
    return None
