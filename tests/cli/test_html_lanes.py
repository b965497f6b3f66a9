"""Lanes of a picture over time: what is drawn where, and what of the doctor's page is left out."""

from __future__ import annotations

import re
from itertools import pairwise

from connectctl.cli.output.html_lanes import (
    HEIGHT,
    MOST_MARKS,
    NARROWEST,
    WIDTH,
    Band,
    Lane,
    merged,
    picture,
)
from connectctl.cli.views import doctor_html
from fakes import pages
from hypothesis import given
from hypothesis import strategies as st

BEGIN, END = 1_700_000_000.0, 1_700_003_600.0
TIMES = st.floats(BEGIN - 10_000, END + 10_000)


def rects(*lanes: Lane) -> list[tuple[str, float, float, float, float]]:
    """Return kind, x, y, width and height of what is drawn."""
    drawn = picture(lanes, BEGIN, END)["rects"]
    return [
        (each["kind"], *(float(each[name]) for name in ("x", "y", "width", "height")))
        for each in drawn
    ]


def test_a_band_has_the_place_of_its_times_and_a_mark_lies_on_top() -> None:
    half = (BEGIN + END) / 2
    lane = Lane("task 0", [Band("good", "ran", BEGIN, half)], [Band("info", "changed", half, half)])
    drawn = picture([Lane("connector"), lane], BEGIN, END)
    assert drawn["labels"] == ["connector", "task 0"]
    assert drawn["height"] == 2 * HEIGHT
    assert drawn["times"] == ["2023-11-14 22:13:20", "2023-11-14 22:43:20", "2023-11-14 23:13:20"]
    assert rects(Lane("connector"), lane) == [
        ("good", 0.0, HEIGHT + 3, WIDTH / 2, HEIGHT - 6),
        ("info", WIDTH / 2, HEIGHT + 1, NARROWEST, HEIGHT - 2),
    ]


def test_what_began_before_is_cut_and_what_was_over_before_is_not_drawn() -> None:
    bands = [
        Band("rest", "over before", BEGIN - 20, BEGIN - 10),
        Band("good", "began before", BEGIN - 900, BEGIN + 900),
        Band("bad", "lasts", END - 900, END + 900),
        Band("doubt", "begins later", END + 10, END + 20),
    ]
    assert [(kind, x, width) for kind, x, _, width, _ in rects(Lane("", bands))] == [
        ("good", 0.0, WIDTH / 4),
        ("bad", WIDTH * 3 / 4, WIDTH / 4),
    ]


@given(st.lists(st.tuples(TIMES, TIMES), max_size=20), TIMES)
def test_all_that_is_drawn_can_be_seen_and_lies_within(
    spans: list[tuple[float, float]], at: float
) -> None:
    bands = [Band("good", "", min(span), max(span)) for span in spans]
    for _, x, y, width, height in rects(Lane("", bands, [Band("info", "", at, at)])):
        assert width >= NARROWEST
        assert x >= 0
        assert x + width <= WIDTH + 0.1
        assert y >= 0
        assert y + height <= HEIGHT


@given(st.lists(TIMES, max_size=200))
def test_merged_marks_count_every_time_within_once_and_do_not_touch(times: list[float]) -> None:
    found = merged(times, BEGIN, END)
    assert sum(count for _, count in found) == sum(BEGIN <= at <= END for at in times)
    step = (END - BEGIN) * NARROWEST / WIDTH
    starts = [at for at, _ in found]
    assert all(b - a >= step * 0.99 for a, b in pairwise(starts))


def test_of_very_many_marks_the_last_are_drawn() -> None:
    marks = [Band("info", str(n), BEGIN + n, BEGIN + n) for n in range(MOST_MARKS + 7)]
    drawn = picture([Lane("", marks=marks)], BEGIN, END)["rects"]
    assert [drawn[0]["title"], len(drawn)] == ["7", MOST_MARKS]


def test_a_picture_of_no_time_at_all_is_drawn() -> None:
    assert picture([Lane("", [Band("good", "", BEGIN, BEGIN)])], BEGIN, BEGIN)["rects"]


def test_the_page_of_doctor_shows_states_in_their_colours_and_says_what_it_leaves_out() -> None:
    page = pages.doctored(doctor_html.CONNECTORS + 2, doctor_html.TASKS + 3)
    assert "… and 2 connectors more; those that findings name come first." in page
    assert page.count("… and 3 tasks more, which failed earlier or not at all.") == (
        doctor_html.CONNECTORS
    )
    # Of the last four hours of twenty: three RUNNING, the newest FAILED.
    bands = re.findall(r'<rect class="(\w+)" x="([\d.]+)" y="19" width="([\d.]+)"', page)
    assert bands[:4] == [
        ("good", "0.0", "700.0"),
        ("rest", "700.0", "50.0"),
        ("good", "750.0", "200.0"),
        ("bad", "950.0", "50.0"),
    ]
