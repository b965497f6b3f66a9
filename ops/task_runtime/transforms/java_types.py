"""Java's numbers, and the names of classes that messages of Connect have."""

from __future__ import annotations

import base64
import math
import re
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from connectctl.ops.connect.source_keys import java_double
from connectctl.ops.task_runtime.spi.json_schemas import MS_OF_A_DAY
from connectctl.ops.task_runtime.spi.schema import DataError

_INTEGER = re.compile(r"[+-]?\d+")
_REAL = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?=[fFdD]?$)")
_CLASSES = {
    "NoneType": "null",
    "bool": "java.lang.Boolean",
    "int": "java.lang.Long",
    "Int8": "java.lang.Byte",
    "Int16": "java.lang.Short",
    "Int32": "java.lang.Integer",
    "float": "java.lang.Double",
    "Float32": "java.lang.Float",
    "str": "java.lang.String",
    "bytes": "[B",
    "list": "java.util.ArrayList",
    "dict": "java.util.HashMap",
    "Decimal": "java.math.BigDecimal",
    "date": "java.util.Date",
    "time": "java.util.Date",
    "datetime": "java.util.Date",
}


class Int8(int):
    """A ``Byte`` without a schema; the others likewise. JSON writes them as any number."""


class Int16(int):
    """A ``Short``."""


class Int32(int):
    """An ``Integer``."""


class Float32(float):
    """A ``Float``, whose text has as few digits as tell it from other floats."""

    def __repr__(self) -> str:
        if not math.isfinite(self):
            return float.__repr__(self)
        shortest = (f"{float(self):.{digits}g}" for digits in range(1, 10))
        return repr(float(next(text for text in shortest if single(float(text)) == float(self))))


def single(value: float) -> float:
    """Return the nearest float of 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def class_name(value: Any) -> str:
    """Return the name of Java's class of ``value``."""
    return _CLASSES.get(type(value).__name__, type(value).__name__)


def wrapped(number: int, bits: int) -> int:
    """Return ``number`` in two's complement of ``bits``."""
    half = 1 << (bits - 1)
    return ((number + half) & ((1 << bits) - 1)) - half


def to_integer(value: Any, bits: int) -> int:
    """Return ``byteValue``, ``shortValue``, ``intValue`` or ``longValue`` of a number; a real one is
    rounded to zero and saturates.
    """
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        limit = 1 << (max(bits, 32) - 1)
        value = max(-limit, min(limit - 1, value))
    return wrapped(int(value), bits)


def parse_integer(text: str, bits: int) -> int:
    """Return ``Long.parseLong`` and the like. Raises ``ValueError``."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number is None or wrapped(number, bits) != number:
        raise ValueError(text)
    return number


def parse_real(text: str) -> float:
    """Return ``Double.parseDouble``, without hexadecimal ones. Raises ``ValueError``."""
    found = _REAL.match(text.strip("".join(map(chr, range(33)))))
    if found is None:
        raise ValueError(text)
    return float(found[0])


def to_text(value: Any) -> str:
    """Return ``toString`` of a value; bytes as base64, and a date in the format of
    ``Values.dateFormatFor``, in UTC.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        special = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value)
        return special or ("NaN" if math.isnan(value) else java_double(value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, date | time):
        return _date_text(to_millis(value))
    return str(value)


def _date_text(millis: int) -> str:
    moment = from_millis(millis).isoformat(timespec="milliseconds").removesuffix("+00:00")
    if millis < MS_OF_A_DAY:
        return moment[11:] + "Z"
    return moment[:10] if millis % MS_OF_A_DAY == 0 else moment + "Z"


def to_millis(value: date | time) -> int:
    """Return ``java.util.Date.getTime``: milliseconds since the epoch."""
    if isinstance(value, time):
        value = datetime.combine(date(1970, 1, 1), value)
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())
    since = value.replace(tzinfo=value.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def from_millis(millis: int) -> datetime:
    """Return the time in UTC. Raises ``DataError`` for one beyond the years 1 to 9999."""
    seconds, rest = divmod(millis, 1000)
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)
    except (ValueError, OverflowError, OSError) as e:
        raise DataError(f"{millis} ms since the epoch are not in the years 1 to 9999") from e


ZERO = {
    bool: False,
    int: 0,
    Int8: Int8(0),
    Int16: Int16(0),
    Int32: Int32(0),
    float: 0.0,
    Float32: Float32(0),
    Decimal: Decimal(0),
    str: "",
    date: date(1970, 1, 1),
    time: time(),
    datetime: datetime(1970, 1, 1, tzinfo=UTC),
}
"""What ``MaskField`` writes in place of a value of each class."""
