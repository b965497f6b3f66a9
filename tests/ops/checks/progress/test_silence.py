"""When a source is silent for too long: by its own past, and never for one that is idle as before."""

from __future__ import annotations

import pytest
from connectctl.ops.checks.progress.silence import LEAST_SILENCE, Certainty, unusual_silence
from connectctl.ops.kafka.rhythm import Rhythm
from fakes.kafkareads import rhythm_of
from hypothesis import given
from hypothesis import strategies as st

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
START = 1_000_000.0


def every(seconds: float, during: float, start: float = START) -> list[float]:
    """Times from ``start`` on, one every ``seconds``."""
    return [start + n * seconds for n in range(int(during / seconds) + 1)]


NIGHTLY = [at for night in range(7) for at in every(MINUTE, HOUR, START + night * DAY)]
BURSTY = [at for n in range(40) for at in every(1.0, 5.0, START + n * 2 * HOUR)]


def past(times: list[float]) -> Rhythm:
    found = rhythm_of(times)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("times", "silence", "unusual"),
    [
        (every(MINUTE, DAY), 6 * MINUTE, False),  # shorter than what is never too long
        (every(MINUTE, DAY), 11 * MINUTE, True),
        (every(MINUTE, 3 * DAY), 30 * DAY, True),  # nobody looked for a month
        (every(MINUTE, HOUR), 30 * MINUTE, True),
        (every(MINUTE, HOUR), 2 * HOUR, False),  # its past does not show that it never rests
        (every(5 * MINUTE, DAY), 20 * MINUTE, False),
        (every(5 * MINUTE, DAY), 26 * MINUTE, True),
        (every(MINUTE, 5 * MINUTE), 11 * MINUTE, False),  # too few to be a rhythm
        ([], DAY, False),
        ([START], DAY, False),
        (NIGHTLY, 20 * HOUR, False),
        (NIGHTLY, 3 * DAY, False),  # a holiday
        (NIGHTLY, 6 * DAY, True),
        (BURSTY, 5 * HOUR, False),
        (BURSTY, 11 * HOUR, True),
        (every(1.0, 31.0), DAY, False),  # the last seconds of a busy day are no past
    ],
)
def test_a_silence_is_held_against_the_connectors_own_past(
    times: list[float], silence: float, unusual: bool
) -> None:
    rhythms = [past(times)] if times else []
    now = (times[-1] if times else START) + silence
    assert (unusual_silence(rhythms, now) is not None) == unusual


def test_a_silence_is_that_of_all_source_partitions_together() -> None:
    busy, ended = every(MINUTE, 2 * DAY), every(MINUTE, DAY)
    assert unusual_silence([past(busy), past(ended)], busy[-1] + 5 * MINUTE) is None
    found = unusual_silence([past(busy), past(ended)], busy[-1] + HOUR)
    assert found is not None
    assert found.since == busy[-1]


def test_a_connector_that_was_resumed_begins_anew() -> None:
    times = every(MINUTE, 2 * DAY)
    now = times[-1] + 5 * HOUR
    assert unusual_silence([past(times)], now, started=now - 5 * MINUTE) is None
    found = unusual_silence([past(times)], now, started=now - HOUR)
    assert found is not None
    assert found.since == times[-1]


@given(
    st.lists(st.floats(0.1, 2 * DAY), min_size=1, max_size=200), st.floats(0, 1), st.floats(0, DAY)
)
def test_a_pause_as_long_as_one_before_is_never_unusual(
    gaps: list[float], share: float, started: float
) -> None:
    times = [START]
    for gap in gaps:
        times.append(times[-1] + gap)
    silence = share * max(gaps)
    assert unusual_silence([past(times)], times[-1] + silence, times[-1] - started) is None


@given(st.lists(st.floats(0.1, DAY), min_size=1, max_size=200), st.floats(0, 30 * DAY))
def test_an_unusual_silence_lasts_and_its_beginning_does_not_move(
    gaps: list[float], longer: float
) -> None:
    times = [START]
    for gap in gaps:
        times.append(times[-1] + gap)
    rhythm = past(times)
    now = times[-1] + LEAST_SILENCE + longer
    found = unusual_silence([rhythm], now)
    if found is not None:
        assert found.since == times[-1]
        assert now - found.since > 5 * rhythm.longest


@given(st.permutations(every(7.0, 200.0)))
def test_a_rhythm_does_not_depend_on_the_order_of_its_times(times: list[float]) -> None:
    assert rhythm_of(times) == Rhythm(START, START + 196.0, 7.0, 29)


MONDAY = 1_700_438_400.0  # 2023-11-20T00:00:00Z


def certainty(times: list[float], now: float) -> Certainty | None:
    found = unusual_silence([past([at for at in times if at <= now])], now)
    return found.certainty if found else None


OFFICE = [
    at for week in range(4) for at in every(MINUTE, 4 * DAY + 18 * HOUR, MONDAY + week * 7 * DAY)
]
"""A source that works from Monday to Friday evening without a break, and rests at weekends."""


def test_a_source_that_rests_at_weekends_is_no_alarm_at_any_hour_of_four_weeks() -> None:
    told = {certainty(OFFICE, MONDAY + hour * HOUR) for hour in range(1, 4 * 7 * 24)}
    assert told == {None, Certainty.POSSIBLE}
    second_weekend = MONDAY + 12 * DAY
    assert certainty(OFFICE, second_weekend) is None, "its past has a weekend by then"


@pytest.mark.parametrize(
    ("begin", "stop", "told"),
    [
        (-8 * DAY, 2 * DAY, Certainty.PROVEN),
        (-8 * DAY, 5 * DAY, Certainty.PROVEN),  # it worked on the Saturday before
        (-4 * DAY, 2 * DAY, Certainty.LIKELY),  # a Wednesday
        (0.0, 5 * DAY, Certainty.POSSIBLE),  # a Saturday
        (0.0, 3 * DAY + 11 * HOUR, Certainty.LIKELY),
    ],
)
def test_how_certain_a_silence_is_depends_on_the_same_time_of_an_earlier_week(
    begin: float, stop: float, told: Certainty
) -> None:
    times = every(MINUTE, stop - begin, MONDAY + begin)
    assert certainty(times, MONDAY + stop + 0.5 * HOUR) is told


def test_no_source_rests_for_a_week() -> None:
    times = every(MINUTE, 5 * DAY, MONDAY)
    assert certainty(times, MONDAY + 11 * DAY) is Certainty.POSSIBLE
    assert certainty(times, MONDAY + 12 * DAY) is Certainty.PROVEN


@given(st.floats(0, 14 * DAY), st.floats(2 * DAY, 6.9 * DAY), st.floats(LEAST_SILENCE + 1, 2 * DAY))
def test_a_past_of_less_than_a_week_never_proves_that_a_source_hangs(
    start: float, during: float, silence: float
) -> None:
    times = every(5 * MINUTE, during, MONDAY + start)
    assert certainty(times, times[-1] + silence) is not Certainty.PROVEN
