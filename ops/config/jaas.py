"""The options of a login module in ``sasl.jaas.config``. Pure."""

from __future__ import annotations

import re

_OPTION = re.compile(r"""\b(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""")


def options(text: str) -> dict[str, str]:
    """Return the options, without the quotes and escapes of their values."""
    return {
        name: re.sub(r"\\(.)", r"\1", double or single) or bare
        for name, double, single, bare in _OPTION.findall(text)
    }
