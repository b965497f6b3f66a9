"""The key of a record in an offsets topic: ``["connector",{source partition}]``, as bytes and as
meaning.

Connect identifies a key by its bytes (``KafkaOffsetBackingStore`` keeps a map of raw keys). So one
source partition in two spellings is two keys, and a worker finds only the one that it writes
itself. Connect's spelling is that of ``JsonConverter`` without schemas: no white space, no
unnecessary escapes, members in the order of the connector's own map.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from connectctl.ops.config.json_text import compact_encoder, decode_together, msgspec_json


class TooLarge(ValueError):
    """A JSON number that no double can hold; Java reads infinity."""


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise TooLarge(text)
    return value


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_PLAIN_OWNERS = re.compile(rb'^(?:\["([^"\\\n]*)")?', re.MULTILINE)
"""At the beginning of each line, the connector of a key without escapes."""
_JACKSONS = re.compile("\\\\.[0-9a-f]{0,4}|[\ud800-\udfff\U00010000-\U0010ffff]")
"""Escapes, and characters beyond 16 bits, which Jackson writes as two escapes."""

_NESTED = frozenset({dict, list})


class SourceKey(NamedTuple):
    """A key that Connect accepts. ``text`` is the raw key; ``partition`` is None for the null
    partition.

    ``nested``: the source partition holds objects or arrays, which a worker refuses.
    """

    connector: str
    partition: dict[str, Any] | None
    text: str
    spelled_as_connect: bool = True
    nested: bool = False

    @property
    def meaning(self) -> str:
        """Return a text that is equal for all spellings of one source partition."""
        return json.dumps([self.connector, self.partition], sort_keys=True)


def holds_nested(members: dict[str, Any]) -> bool:
    """Return whether a member is an object or an array."""
    return not _NESTED.isdisjoint(map(type, members.values()))


def decode_json(text: str) -> tuple[Any, bool]:
    """Return the JSON at the beginning of ``text``, and whether more text follows, which Connect's
    Jackson ignores.

    Raises ``ValueError`` if there is none; ``NaN`` and ``Infinity`` are not JSON.
    """
    quick, refused = msgspec_json()
    if quick is not None:
        try:
            return quick(text), False
        # Additional text, lone surrogates, numbers beyond doubles.
        except (refused, RecursionError):
            pass
    start = 0 if text[:1] > " " else len(text) - len(text.lstrip(" \t\r\n"))
    value, end = _DECODER.raw_decode(text, start)
    return value, end < len(text) and bool(text[end:].strip(" \t\r\n"))


def parse_key(raw: bytes | None) -> SourceKey | str:
    """Return the key in ``raw``, or the reason why Connect ignores it
    (``OffsetUtils.processPartitionKey``).
    """
    if raw is None:
        return "it has no key"
    if plain := _plain_keys([raw]):
        return plain[0]
    try:
        text = raw.decode()
        data, _ = decode_json(text)
    except (ValueError, RecursionError):
        return "its key is not JSON"
    if not isinstance(data, list):
        return "its key is not a JSON array"
    if len(data) != 2:
        return f"its key has {len(data)} elements and not 2"
    connector, partition = data
    if not isinstance(connector, str):
        return "its key does not begin with a connector's name"
    if partition is not None and not isinstance(partition, dict):
        return "its source partition is not a JSON object"
    nested = partition is not None and holds_nested(partition)
    return SourceKey(connector, partition, text, _is_spelled_as_connect(data, text), nested)


def _is_spelled_as_connect(data: Any, text: str) -> bool:
    try:
        return connect_json(data) == text
    except RecursionError:
        return False


TOGETHER = 1024
"""Keys that are decoded together; if one of them is not plain, they are parsed one by one."""
_PLAIN_KEY = tuple[str, dict[str, str | int | bool | None] | None]
_FLAT_KEY = tuple[str, dict[str, str | int | float | bool | None] | None]


def parse_keys(raws: Sequence[bytes | None]) -> Iterator[SourceKey | str]:
    """Yield ``parse_key`` of each key; plain ones are decoded together."""
    for start in range(0, len(raws), TOGETHER):
        some = raws[start : start + TOGETHER]
        yield from _plain_keys(some) or map(parse_key, some)


def _plain_keys(raws: Sequence[bytes | None]) -> list[SourceKey] | None:
    """Return the keys if all of them are spelled as Connect does, in ASCII, without escapes and
    anything nested; None if they are not, or without msgspec.
    """
    found, encode = decode_together(_PLAIN_KEY, raws, b"["), compact_encoder()
    if found is None or encode is None:
        return None
    texts = cast("Sequence[bytes]", raws)
    text = b",".join(texts)
    if not text.isascii() or b"\\" in text or encode(found) != b"[%b]" % text:
        return None
    return [
        SourceKey(connector, partition, key.decode())
        for (connector, partition), key in zip(found, texts, strict=True)
    ]


def connectors_of(raws: Sequence[bytes | None]) -> Iterator[str | None]:
    """Yield the connector of each key, None for a key that Connect ignores."""
    for start in range(0, len(raws), TOGETHER):
        some = raws[start : start + TOGETHER]
        found = decode_together(_FLAT_KEY, some, b"[")
        if found is not None:
            yield from (connector for connector, _ in found)
            continue
        for key in map(parse_key, some):
            yield key.connector if isinstance(key, SourceKey) else None


def connector_of(raw: bytes | None) -> str | None:
    """Return the connector of a key, None for a key that Connect ignores."""
    return next(connectors_of([raw]))


def owner_of(raw: bytes | None) -> bytes:
    """Return the name of a key's connector in UTF-8, to sort a connector's keys together.

    The result for a key of no connector is arbitrary.
    """
    if raw is None:
        return b""
    end = raw.find(b'"', 2) if raw.startswith(b'["') else -1
    if end > 0 and raw.find(b"\\", 2, end) < 0:
        return raw[2:end]
    key = parse_key(raw)
    return key.connector.encode(errors="surrogatepass") if isinstance(key, SourceKey) else b""


def owners_of(raws: Collection[bytes | None]) -> list[bytes]:
    """Return ``owner_of`` of each key. One regular expression finds the names without escapes."""
    text = b"\n".join([raw or b"" for raw in raws])
    if text.count(b"\n") != len(raws) - 1:  # a key has a line feed
        return list(map(owner_of, raws))
    found = _PLAIN_OWNERS.findall(text)
    return [owner or owner_of(raw) for owner, raw in zip(found, raws, strict=True)]


def respelled(key: SourceKey, connector: str) -> bytes:
    """Return ``key`` for another connector; the spelling of the source partition is kept."""
    _, after = _DECODER.raw_decode(key.text, key.text.index("[") + 1)
    rest = key.text[after:]
    return (connect_json([connector])[:-1] + rest).encode()


def spelled_by_rest(connector: str, partition: dict[str, Any] | None) -> bytes:
    """Return the key that a worker writes for ``partition`` when it is altered over REST, in the
    order of a HashMap.
    """
    return connect_json([connector, java_map(partition)]).encode()


def value_by_rest(offset: dict[str, Any] | None) -> bytes | None:
    """Return the value that a worker writes for ``offset`` when it is altered over REST; None is a
    tombstone.
    """
    return None if offset is None else connect_json(java_map(offset)).encode()


def java_map(members: dict[str, Any] | None, buckets: int = 16) -> dict[str, Any] | None:
    """Return ``members`` in the order of Java's ``HashMap``, which had so many ``buckets`` at first,
    a power of two, and to which they were added one by one, as ``JsonConverter`` adds them.

    Buckets are in order, and members of a bucket in insertion order; a resize keeps that order.
    Treeified buckets do not occur here.
    """
    if members is None:
        return None
    while len(members) > int(buckets * 0.75):
        buckets *= 2
    return dict(sorted(members.items(), key=lambda member: _spread(member[0]) & (buckets - 1)))


@lru_cache(1024)
def in_hash_order(names: tuple[str, ...]) -> bool:
    """Return whether a ``HashMap`` with members of these names, added one by one, has the same
    order.
    """
    return tuple(java_map(dict.fromkeys(names)) or ()) == names


@lru_cache(4096)
def _spread(text: str) -> int:
    """Return ``HashMap.hash`` of a string: its ``hashCode`` over UTF-16 units, with the upper bits
    folded in.
    """
    h = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        h = (31 * h + (high << 8 | low)) & 0xFFFFFFFF
    return h ^ (h >> 16)


def connect_json(value: Any) -> str:
    """Return ``value`` as Connect's ``JsonConverter`` writes it; members keep the order of the
    dictionaries.
    """
    text = _ENCODER.encode(value)
    if ("." in text or "e+" in text or "e-" in text) and _has_float(value):
        text = _with_java_floats(value)
    return text if text.isascii() and "\\u" not in text else _JACKSONS.sub(_as_jackson, text)


def _as_jackson(found: re.Match[str]) -> str:
    """Return an escape with Jackson's capital digits, or the escapes of the UTF-16 halves of a
    character.
    """
    text = found[0]
    if text.startswith("\\u"):
        return "\\u" + text[2:].upper()
    if text.startswith("\\"):
        return text
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(
        f"\\u{high << 8 | low:04X}" for high, low in zip(units[::2], units[1::2], strict=True)
    )


def _has_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_float, value.values()))
    if isinstance(value, list):
        return any(map(_has_float, value))
    return isinstance(value, float)


def _with_java_floats(value: Any) -> str:
    if isinstance(value, dict):
        members = (f"{_ENCODER.encode(k)}:{_with_java_floats(v)}" for k, v in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_with_java_floats, value)) + "]"
    return java_double(value) if isinstance(value, float) else _ENCODER.encode(value)


def java_double(value: float) -> str:
    """Return ``value`` as Java's ``Double.toString`` writes it: 1.0E10 where Python writes
    1e+10.
    """
    if not math.isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = _decimal(value)
    mantissa = digits[0] + "." + (digits[1:] or "0")
    return f"{sign}{mantissa}E{exponent}"


def _decimal(value: float) -> tuple[str, str, int]:
    """Return the sign, the shortest digits, and the exponent of the first digit."""
    mantissa, _, exponent = repr(value).partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    fraction = "" if fraction == "0" else fraction
    power = int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    shift = len(whole) - 1 if whole.strip("0") else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    return sign, digits.rstrip("0") or "0", power + shift
