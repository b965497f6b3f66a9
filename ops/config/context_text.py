"""The printable text of a context file, with secrets masked, for differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from connectctl.ops.config import masking, yaml_text

if TYPE_CHECKING:
    import yaml


def masked_text(text: str) -> str:
    """Return ``text`` without its secrets, values of several lines included. The result is valid
    YAML.
    """
    spans = sorted(_secrets(yaml_text.compose(text), ""), reverse=True)
    for start, end in spans:
        value = text[start:end]
        text = text[:start] + masking.MASK + value[len(value.rstrip()) :] + text[end:]
    return masking.masked(text)


def _secrets(node: Any, name: str) -> Iterator[tuple[int, int]]:
    """Yield the range of each scalar that is a secret, or that has one and spans several lines."""
    kind = getattr(node, "id", None)
    if kind == "mapping":
        for key, value in node.value:
            yield from _secrets(value, str(key.value))
    elif kind == "sequence":
        for item in node.value:
            yield from _secrets(item, name)
    elif kind == "scalar" and _has_secret(node, name):
        yield node.start_mark.index, node.end_mark.index


def _has_secret(node: yaml.ScalarNode, name: str) -> bool:
    value = str(node.value)
    several = node.start_mark.line != node.end_mark.line
    return (masking.is_secret(name) or several) and masking.value_of(name, value) != value
