"""Sequence numbers and source partitions in records, of a batch at once or of one record.

With pyarrow its JSON parser reads the numbers of a whole batch at once; what that cannot read is
read value by value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import methodcaller
from typing import Any

from connectctl.ops.audit import field_extractor
from connectctl.ops.audit.field_extractor import RecordPart, Spec
from connectctl.ops.kafka.record_batch_decoder import Columns, DecodedMessage
from connectctl.ops.task_runtime.spi.converters import BYTES, JSON, STRING, converter_class
from connectctl.ops.task_runtime.spi.reading_converters import Read, reading_converters
from connectctl.ops.task_runtime.spi.schema import DataError

HELD = 100_000
"""Runs that are held open for each Kafka partition: source partitions that alternate there."""


@dataclass(frozen=True)
class Numbered:
    """The ``rows`` of columns that have a number, and the numbers. ``codes`` are the indexes in
    ``names`` of their source partitions, None if all have the first. Rows and numbers are NumPy's
    int64.
    """

    rows: Any
    numbers: Any
    codes: Any
    names: Sequence[Any]

    def stretches(self) -> Iterator[tuple[Any, int, int, int, int]]:
        """Numbers of one source partition that follow each other: its name, the first and last
        number, and their rows.
        """
        import numpy as np

        rows, numbers, codes = self.rows, self.numbers, self.codes
        if not len(rows):
            return
        one = codes is None or not np.any(codes != codes[0])
        if not one:
            order = np.argsort(codes, kind="stable")
            rows, numbers, codes = rows[order], numbers[order], codes[order]
        # The largest number of 64 bits plus one is the smallest.
        cut = (numbers[1:] != numbers[:-1] + 1) | (numbers[1:] < numbers[:-1])
        if not one:
            cut |= codes[1:] != codes[:-1]
        ends = np.append(np.flatnonzero(cut), len(rows) - 1)
        begins = np.append(0, ends[:-1] + 1)
        which = np.zeros(len(ends), np.int64) if codes is None else codes[begins]
        columns = (which, numbers[begins], numbers[ends], rows[begins], rows[ends])
        for code, *span in zip(*(column.tolist() for column in columns), strict=True):
            yield (self.names[code], *span)


class Extraction:
    """Numbers and labels of messages. Remembers which type a label had, which the next one will
    have, too.

    ``converters`` are properties as of a sink: a key or value whose converter they name is read by
    it, each by itself. What it cannot read has neither number nor label.
    """

    def __init__(self, converters: Mapping[str, str] | None = None) -> None:
        self._types = {"by": "int64"}
        self._reads = _reads(converters or {})

    def __call__(
        self, some: Sequence[Any], sequence: Spec, by: Spec
    ) -> tuple[Sequence[int | None], Sequence[Any]]:
        """Return the sequence number and the name of the source partition of every message, or
        None.
        """
        bulk = self._bulk(some, sequence, by)
        labels = bulk.get("by") or self.labels(some, by)
        numbers = bulk.get("sequence")
        if numbers is None:
            return [self._number(message, sequence) for message in some], labels
        if None in numbers:
            numbers = [
                self._number(m, sequence) if n is None else n
                for m, n in zip(some, numbers, strict=True)
            ]
        return numbers, labels

    def labels(self, some: Sequence[Any], by: Spec) -> Sequence[Any]:
        """Return the value of ``by`` in every message, or None."""
        if by.part is RecordPart.RAW_KEY:
            return [message.key() for message in some]
        if by.part in (RecordPart.PARTITION, RecordPart.ALL):
            return [None] * len(some)
        if by.part is RecordPart.HEADER:
            return [_header(message, by.name) for message in some]
        if by.part is RecordPart.TEXT:
            return [field_extractor.matched(message.value(), by.name) for message in some]
        part = _PARTS[by.part]
        cache: dict[Any, str | None] = {}
        found = []
        for message in some:
            raw = part(message)
            if raw not in cache:
                if len(cache) > HELD:
                    cache.clear()
                cache[raw] = field_extractor.text_of(self._found(raw, by))
            found.append(cache[raw])
        return found

    def _bulk(self, some: Sequence[Any], sequence: Spec, by: Spec) -> dict[str, list[Any]]:
        """Return what pyarrow's parser finds in all messages; nothing without pyarrow, or if a
        value has another form than the others.
        """
        specs = self._read_at_once(sequence, by)
        if not specs:
            return {}
        table = self._table(
            b"\n".join([message.value() or b"{}" for message in some]), len(some), specs
        )
        if table is None:
            return {}
        found = {name: _plainly(_reach(table, spec.path)) for name, spec in specs.items()}
        if "by" in found and (None in found["by"] or self._types["by"] == "int64"):
            # Spelled as value by value they would be; one that is null may be of another type.
            found["by"] = self._spelled(some, found["by"], by)
        return found

    def columns(self, some: Columns, sequence: Spec, by: Spec) -> Numbered | None:
        """Return the numbers of columns; None if the values have to be read record by record."""
        specs = self._read_at_once(sequence, by)
        if not specs or not (
            "by" in specs or by.part in (RecordPart.RAW_KEY, RecordPart.PARTITION, RecordPart.ALL)
        ):
            return None
        text, rows = some.lines()
        table = self._table(text, len(rows), specs) if len(rows) else None
        if table is None:
            return None
        numbers, present = _with_nulls(_reach(table, sequence.path))
        for row in (~present).nonzero()[0].tolist():
            number = self._number(DecodedMessage(some, int(rows[row])), sequence)
            if number is not None:
                numbers[row], present[row] = number, True
        if "by" in specs:
            labels = _reach(table, by.path).combine_chunks()
        elif by.part is RecordPart.RAW_KEY:
            labels = some.keys if len(rows) == len(some) else some.keys.take(rows)
        else:
            return Numbered(rows[present], numbers[present], None, [None])
        if "by" in specs and labels.null_count:
            return None
        coded = labels.dictionary_encode("encode")
        names = coded.dictionary.to_pylist()
        if self._types["by"] == "int64" and "by" in specs:
            names = [str(name) for name in names]
        return Numbered(rows[present], numbers[present], coded.indices.to_numpy()[present], names)

    def _table(self, text: Any, count: int, wanted: dict[str, Spec]) -> Any:
        """Return the parts ``wanted`` of the JSON documents in ``text``, as columns; None if there
        are not ``count`` documents, if one has another form than the others, and without pyarrow.
        """
        try:
            import pyarrow as pa
            from pyarrow import json
        except ImportError:
            return None
        for kind in dict.fromkeys((self._types["by"], "int64", "string")):
            tree: dict[str, Any] = {}
            for name, spec in wanted.items():
                _plant(tree, spec.path, pa.int64() if name == "sequence" else getattr(pa, kind)())
            options = json.ParseOptions(
                explicit_schema=pa.schema(_fields(pa, tree)), unexpected_field_behavior="ignore"
            )
            reading = json.ReadOptions(use_threads=False, block_size=1 << 26)
            try:
                table = json.read_json(pa.BufferReader(text), reading, options)
            except pa.ArrowInvalid:
                continue
            if table.num_rows != count:
                return None
            self._types["by"] = kind
            return table
        return None

    def _read_at_once(self, sequence: Spec, by: Spec) -> dict[str, Spec]:
        """Return those of the two that pyarrow's parser finds; nothing if it does not find the
        sequence.
        """
        specs = {name: spec for name, spec in (("sequence", sequence), ("by", by)) if _plain(spec)}
        return specs if "sequence" in specs and RecordPart.VALUE not in self._reads else {}

    def _found(self, raw: bytes | None, spec: Spec) -> Any:
        """Return the element of a key or value that ``spec`` names; None if it has none."""
        read = self._reads.get(spec.part)
        if read is None:
            return field_extractor.found_in(raw, spec.path)
        with suppress(DataError):
            return field_extractor.follow(read("", raw)[1], spec.path)
        return None

    def _number(self, message: Any, spec: Spec) -> int | None:
        if spec.part is RecordPart.HEADER:
            return field_extractor.number_of(_header(message, spec.name))
        if spec.part is RecordPart.TEXT:
            return field_extractor.number_of(field_extractor.matched(message.value(), spec.name))
        raw = _PARTS[spec.part](message)
        plain = not spec.path and isinstance(raw, bytes) and spec.part not in self._reads
        if plain and raw.isdigit():
            return field_extractor.number_of(raw)
        return field_extractor.number_of(self._found(raw, spec))

    @staticmethod
    def _spelled(some: Sequence[Any], labels: list[Any], by: Spec) -> list[Any]:
        names: dict[Any, str] = {label: str(label) for label in set(labels)}
        return [
            names[label]
            if label is not None
            else field_extractor.text_of(field_extractor.found_in(message.value(), by.path))
            for message, label in zip(some, labels, strict=True)
        ]


def _reads(converters: Mapping[str, str]) -> dict[RecordPart, Read]:
    """Return how keys and values are read whose converter is named, and is not one of text, bytes and
    JSON, which are read without it. Raises ``BadInput``.
    """
    made = reading_converters(converters) if converters else None
    return {
        part: getattr(made, part).read
        for part in (RecordPart.KEY, RecordPart.VALUE)
        if converter_class(converters, f"{part}.converter") not in (JSON, STRING, BYTES)
    }


def _with_nulls(column: Any) -> tuple[Any, Any]:
    """Return a column of numbers, and which of them are there, for others to be put in."""
    plain = column.combine_chunks()
    present = plain.is_valid().to_numpy(zero_copy_only=False)
    return plain.fill_null(0).to_numpy(zero_copy_only=False).copy(), present.copy()


def _plainly(column: Any) -> list[Any]:
    """Return a column as a list; through numpy where it can be, which is quicker."""
    quick = column.null_count == 0 and str(column.type) == "int64"
    found: list[Any] = column.to_numpy().tolist() if quick else column.to_pylist()
    return found


def _plain(spec: Spec) -> bool:
    return (
        spec.part is RecordPart.VALUE
        and bool(spec.path)
        and all(isinstance(step, str) for step in spec.path)
    )


def _plant(tree: dict[str, Any], path: tuple[Any, ...], leaf: Any) -> None:
    for step in path[:-1]:
        tree = tree.setdefault(step, {})
        if not isinstance(tree, dict):
            return
    tree.setdefault(path[-1], leaf)


def _fields(pa: Any, tree: dict[str, Any]) -> list[Any]:
    return [
        pa.field(name, pa.struct(_fields(pa, node)) if isinstance(node, dict) else node)
        for name, node in tree.items()
    ]


def _reach(table: Any, path: tuple[Any, ...]) -> Any:
    import pyarrow.compute as pc

    column = table.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


_PARTS = {RecordPart.VALUE: methodcaller("value"), RecordPart.KEY: methodcaller("key")}


def _header(message: Any, name: str) -> bytes | None:
    """Return the last header called ``name``, as Kafka's ``Headers.lastHeader``."""
    found = None
    for each, value in message.headers() or ():
        found = value if each == name else found
    return found
