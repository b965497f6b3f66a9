"""Tables on terminals: what is one word stays one word."""

from __future__ import annotations

import pytest
from connectctl.cli.output.tables import Fitted, cells, fit, whole
from hypothesis import given
from hypothesis import strategies as st

NAME = "orders-of-a-shop-with-a-long-name"
COLUMNS = ["CONNECTOR", "STATE", "WORKERS", "WHY"]
ROWS = [
    [
        NAME,
        "RUNNING",
        "https://worker-1.example.org:8083",
        "nothing is wrong with it as far as anybody can see",
    ],
    ["b", "FAILED", "https://worker-2.example.org:8083", "x"],
]


def text(fitted: Fitted) -> list[str]:
    return ["".join(part for part, _ in line).rstrip() for line in fitted[0]]


def test_what_fits_is_one_line_for_each_row() -> None:
    fitted = fit(COLUMNS, ROWS, 200)
    assert (len(fitted[0]), fitted[1]) == (3, [])
    assert text(fitted) == list(whole(COLUMNS, ROWS))


def test_sentences_are_wrapped_between_words_and_names_are_not() -> None:
    fitted = fit(COLUMNS, ROWS, 110)
    assert fitted[1] == []
    assert len(fitted[0]) == 4
    assert all(cells(line) <= 110 for line in text(fitted))
    assert NAME in text(fitted)[1]


def test_columns_go_in_the_order_in_which_they_are_spare_and_are_named() -> None:
    fitted = fit(COLUMNS, ROWS, 80, ["WORKERS", "STATE"])
    assert fitted[1] == ["WORKERS"]
    assert text(fitted)[0].split() == ["CONNECTOR", "STATE", "WHY"]


def test_what_does_not_fit_at_all_is_a_block_for_each_row() -> None:
    fitted = fit(COLUMNS, ROWS, 40)
    assert fitted[1] == []
    assert text(fitted)[:3] == [
        f"CONNECTOR   {NAME}",
        "STATE       RUNNING",
        "WORKERS     https://worker-1.example.org:8083",
    ]
    assert "" in text(fitted)


def test_json_is_not_wrapped_at_its_blanks() -> None:
    assert '{"file": "a b c d"}' in "\n".join(
        text(fit(["A", "B"], [['{"file": "a b c d"}', "w " * 30]], 40))
    )


WORDS = st.text(st.sampled_from("ab7:-\u4e2d\u6587\U0001f600\u00e9"), min_size=1, max_size=30)
CELL = WORDS | st.lists(WORDS, min_size=3, max_size=9).map(" ".join)


@given(
    st.lists(st.lists(CELL, min_size=4, max_size=4), min_size=1, max_size=4),
    st.sampled_from([20, 80, 120]),
)
def test_no_word_is_ever_folded_and_none_is_lost(rows: list[list[str]], width: int) -> None:
    fitted = fit(COLUMNS, rows, width, ["WORKERS"])
    shown = [each for n, each in enumerate(COLUMNS) if each not in fitted[1]]
    words = {
        word
        for row in rows
        for name, cell in zip(COLUMNS, row, strict=True)
        if name in shown
        for word in cell.split()
    }
    assert words <= {word for line in text(fitted) for word in line.split()}
    tabular = text(fitted)[0].split() == shown
    assert not tabular or all(cells(line) <= width for line in text(fitted))


@pytest.mark.parametrize("wide", ["\u4e2d\u6587\u540d", "\U0001f600\U0001f680", "e\u0301te\u0301"])
def test_wide_characters_line_up_where_output_is_piped(wide: str) -> None:
    lines = list(whole(["NAME", "STATE"], [[wide, "RUNNING"], ["ascii-name", "STOPPED"]]))
    starts = {
        cells(line[: line.index(word)])
        for line, word in zip(lines, ["STATE", "RUNNING", "STOPPED"], strict=True)
    }
    assert starts == {len("ascii-name") + 3}
