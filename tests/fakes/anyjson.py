"""Any JSON, any bytes, and valid input with parts of it replaced: what readers must take without
falling over.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(
    [
        "tasks",
        "task-count",
        "state",
        "state.v2",
        "properties",
        "topic",
        "worker_id",
        "id",
        "steps",
        "a",
    ]
)
SCALARS: Any = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.sampled_from([1 << 31, 1 << 64, -1, 10**400, 1e308, -0.0, 0.5]),
    st.sampled_from(["", "a", "²", "9" * 5000, "RUNNING", "null", "\ud800", "\x00\x1b[2J", "x-1"]),
    st.text(max_size=5),
)
VALUES: Any = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(NAMES | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def mutated(draw: Any, valid: Any) -> Any:
    """``valid`` with one of its parts, at any depth, replaced by any value or taken away."""
    if isinstance(valid, dict) and valid and draw(st.integers(0, 4)):
        name = draw(st.sampled_from(sorted(valid)))
        if draw(st.integers(0, 5)) == 0:
            return {key: value for key, value in valid.items() if key != name}
        return valid | {name: draw(mutated(valid[name]))}
    if isinstance(valid, list) and valid and draw(st.integers(0, 4)):
        at = draw(st.integers(0, len(valid) - 1))
        return [*valid[:at], draw(mutated(valid[at])), *valid[at + 1 :]]
    return draw(VALUES)


@st.composite
def encodings(draw: Any, valid: Any) -> bytes:
    """Bytes: any, those of any JSON, and those of ``valid`` mutated, cut, or with one byte
    changed.
    """
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return bytes(draw(st.binary(max_size=20)))
    if kind == 1:
        return json.dumps(draw(VALUES)).encode()
    if kind == 2:
        return json.dumps(draw(mutated(valid))).encode()
    whole = json.dumps(valid).encode()
    at = draw(st.integers(0, len(whole) - 1))
    return (
        whole[:at]
        if kind == 3
        else bytes(whole[:at] + draw(st.binary(min_size=1, max_size=1)) + whole[at + 1 :])
    )
