"""Ids from files, in every form in which people and this program write them."""

from __future__ import annotations

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.fencing.id_file import parse_ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("a\n  b \r\n\nc\na\n", ("a", "b", "c")),
        ("\ufeffa\n", ("a",)),
        ("", ()),
        ('["a", "b"]', ("a", "b")),
        ('[{"transactionalId": "a", "state": "Empty"}]', ("a",)),
        ('{"kind": "TransactionList", "transactions": [{"transactionalId": "a"}]}', ("a",)),
        (
            '{"kind": "FenceResult", "results": [{"transactionalId": "a", "outcome": "failed"}]}',
            ("a",),
        ),
        ('{"transactionalId": "a"}\n{"transactionalId": "b"}\n', ("a", "b")),
        ('"a"\n"b"\n', ("a", "b")),
        ("with space\n#looks-like-a-comment", ("with space", "#looks-like-a-comment")),
    ],
)
def test_ids_are_read(text: str, ids: tuple[str, ...]) -> None:
    assert parse_ids(text, "file") == ids


@pytest.mark.parametrize("text", ['{"kind": "x"}', "[1]", '["a"', '[""]', '{"a": 1}\nnonsense'])
def test_what_has_no_ids_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput):
        parse_ids(text, "file")


def test_json_of_another_kind_says_what_the_file_should_have() -> None:
    with pytest.raises(
        BadInput, match=r"file has no transactional id: it has 1. Use one id per li"
    ):
        parse_ids("[1]", "file")
