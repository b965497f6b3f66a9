"""Wishes go into a plan and come back from it as they were."""

from __future__ import annotations

import json

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.offsets.changes import (
    CopyOffsets,
    MergeOffsets,
    OffsetRequest,
    ResetOffsets,
    RestoreBackup,
    SetOffsets,
    from_data,
    to_data,
)
from hypothesis import given
from hypothesis import strategies as st

pairs = st.lists(st.tuples(st.text(), st.text())).map(tuple)
wishes = st.one_of(
    st.builds(
        MergeOffsets,
        st.text(),
        st.sampled_from(["global", "dedicated"]),
        st.text(),
        st.booleans(),
        st.none() | st.text(),
    ),
    st.builds(CopyOffsets, st.text(), st.text(), pairs),
    st.builds(SetOffsets, st.text(), pairs),
    st.builds(ResetOffsets, st.text(), st.none() | st.lists(st.text()).map(tuple)),
    st.builds(
        RestoreBackup,
        st.text(),
        st.text(),
        st.none() | st.text(),
        st.lists(st.tuples(st.text(), st.none() | st.text())).map(tuple),
    ),
)


@given(wishes)
def test_a_wish_comes_back_from_json_as_it_was(wish: OffsetRequest) -> None:
    assert from_data(json.loads(json.dumps(to_data(wish)))) == wish


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"kind": "destroy"},
        {"kind": "reset"},
        {"kind": "reset", "connector": "c", "x": 1},
        {"kind": "reset", "connector": "c", "partitions": "all"},
        {"kind": "set", "connector": "c", "entries": [["{}"]]},
    ],
)
def test_a_wish_of_another_version_is_bad_input(data: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="does not know"):
        from_data(data)
