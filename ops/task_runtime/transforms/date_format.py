"""``java.text.SimpleDateFormat`` in UTC and English: patterns of digits, names of months and days,
and time zones as offsets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from functools import partial

from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.spi.schema import DataError
from connectctl.ops.task_runtime.transforms.java_types import from_millis

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_NUMBERS: dict[str, Callable[[datetime], int]] = {
    "y": lambda t: t.year,
    "M": lambda t: t.month,
    "d": lambda t: t.day,
    "D": lambda t: t.timetuple().tm_yday,
    "H": lambda t: t.hour,
    "k": lambda t: t.hour or 24,
    "K": lambda t: t.hour % 12,
    "h": lambda t: t.hour % 12 or 12,
    "m": lambda t: t.minute,
    "s": lambda t: t.second,
    "S": lambda t: t.microsecond // 1000,
    "u": lambda t: t.isoweekday(),
}
_ALIASES = {"L": "M"}
_TOKENS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_ZONE = r"(?:GMT|UTC|Z)?(?:(?P<sign>[+-])(?P<zh>\d\d?):?(?P<zm>\d\d)?)?"


class DateFormat:
    """A pattern. Raises ``BadInput`` for one that is invalid, or has letters that are not supported
    here.
    """

    def __init__(self, pattern: str):
        self.pattern = pattern
        self._parts = list(_parts(pattern))
        found = "".join(
            text if letter is None else self._reads(number, letter, len(text))
            for number, (letter, text) in enumerate(self._escaped())
        )
        self._regex = re.compile(found, re.ASCII | re.IGNORECASE)

    def format(self, millis: int) -> str:
        """Return the text of a time. Raises ``DataError`` for one beyond the years 1 to 9999."""
        at = from_millis(millis)
        return "".join(
            text if letter is None else _written(letter, len(text), at)
            for letter, text in self._parts
        )

    def parse(self, text: str) -> int:
        """Return the milliseconds since the epoch of the beginning of ``text``; as in Java, what
        follows is ignored, and the 32nd of a month is the first of the next. Raises ``DataError``.
        """
        found = self._regex.match(text)
        if found is None:
            raise DataError(
                f"Could not parse timestamp: value ({text}) does not match pattern ({self.pattern})"
            )
        return _millis({name: each for name, each in found.groupdict().items() if each}, self)

    def _escaped(self) -> Iterator[tuple[str | None, str]]:
        return ((letter, text if letter else re.escape(text)) for letter, text in self._parts)

    def _reads(self, number: int, letter: str, width: int) -> str:
        """Return the expression for a part of the pattern."""
        if letter in "ZzX":
            return _ZONE
        if letter == "G":
            return "AD"
        if letter == "a":
            return "(?P<a>AM|PM)"
        if letter == "E" or (letter == "M" and width > 2):
            names = DAYS if letter == "E" else MONTHS
            every = [*names, *(name[:3] for name in names)]
            return f"(?P<{letter}{letter}>{'|'.join(every)})"
        following = self._parts[number + 1 : number + 2]
        is_exact = bool(following) and following[0][0] is not None and following[0][0] in _NUMBERS
        return rf"\s*(?P<{letter}>\d{{{width}}})" if is_exact else rf"\s*(?P<{letter}>-?\d+)"

    @property
    def short_year(self) -> bool:
        return any(letter == "y" and len(text) <= 2 for letter, text in self._parts)


def _parts(pattern: str) -> Iterator[tuple[str | None, str]]:
    """Yield letters with their repetitions, and literal text with None."""
    at, seen = 0, set[str]()
    while at < len(pattern):
        found = _TOKENS.match(pattern, at)
        if found is None:
            raise _invalid(pattern, "Unterminated quote")
        at = found.end()
        letter = _ALIASES.get(found[2], found[2])
        if letter is None:
            quoted = found[1]
            yield None, found[0] if quoted is None else quoted.replace("''", "'") or "'"
            continue
        if letter not in _NUMBERS and letter not in "aEGzZX":
            raise _invalid(pattern, f"the pattern letter {letter} is not supported here")
        if letter in seen:
            raise _invalid(pattern, f"the pattern letter {letter} occurs twice, not supported here")
        seen.add(letter)
        yield letter, letter * len(found[0])


def _invalid(pattern: str, why: str) -> BadInput:
    return BadInput(f"Invalid date format {pattern}", why=why)


def _written(letter: str, width: int, at: datetime) -> str:
    if letter == "a":
        return "AM" if at.hour < 12 else "PM"
    if letter == "G":
        return "AD"
    if letter == "z":
        return "UTC" if width < 4 else "Coordinated Universal Time"
    if letter in "ZX":
        return "Z" if letter == "X" else "+0000"
    if letter == "E" or (letter == "M" and width > 2):
        name = DAYS[at.weekday()] if letter == "E" else MONTHS[at.month - 1]
        return name if width > 3 else name[:3]
    number = _NUMBERS[letter](at)
    if letter == "y" and width == 2:
        number %= 100
    return f"{number:0{width}d}"


def _millis(found: dict[str, str], pattern: DateFormat) -> int:
    """Return the time of the parts of a text, as a lenient calendar does."""
    part = partial(_number, found)
    year = part("y", 1970)
    if pattern.short_year and re.fullmatch(r"\d\d", found.get("y", "")):
        this = datetime.now(UTC).year
        year += this - this % 100
        year -= 100 * (year > this + 20)
    month = part("M", 1)
    if name := found.get("MM"):
        month = 1 + [each[:3].lower() for each in MONTHS].index(name[:3].lower())
    years, month = divmod(month - 1, 12)
    days = part("D", part("d", 1))
    try:
        first = date(year + years, 1 if "D" in found else month + 1, 1)
    except (ValueError, OverflowError) as e:
        raise DataError(f"The year {year} is not in the years 1 to 9999") from e
    hours = part("H", part("k", -1))
    if hours < 0 or ("k" in found and hours == 24):
        hours = part("K", part("h", 0)) % 12 + 12 * (found.get("a", "").upper() == "PM")
        hours = 0 if found.get("k") == "24" else hours
    minutes = part("m", 0) - (-1 if found.get("sign") == "-" else 1) * (
        part("zh", 0) * 60 + part("zm", 0)
    )
    seconds = ((first.toordinal() - date(1970, 1, 1).toordinal() + days - 1) * 24 + hours) * 3600
    return (seconds + minutes * 60 + part("s", 0)) * 1000 + part("S", 0)


def _number(found: dict[str, str], name: str, default: int) -> int:
    return int(found[name]) if name in found else default
