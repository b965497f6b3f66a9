"""A table of rows and columns that tests fill in cell by cell, and that is printed when the module
is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager


class MeanwhileTable:
    """What came of each cell; ``rows`` and ``columns`` in their order."""

    def __init__(self, rows: Sequence[str], columns: Sequence[str]):
        self.rows, self.columns = rows, columns
        self.cells: dict[tuple[str, str], str] = {}

    def tell(self, row: str, column: str, said: str) -> None:
        self.cells[row, column] = said

    def __str__(self) -> str:
        head = ("", *self.columns)
        told = [
            row for row in self.rows if any((row, column) in self.cells for column in self.columns)
        ]
        lines = [
            head,
            *(
                (row, *(self.cells.get((row, column), "") for column in self.columns))
                for row in told
            ),
        ]
        widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
        padded = (
            [cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines
        )
        return "\n".join(" | ".join(line).rstrip() for line in padded)


@contextmanager
def printed_table(rows: Iterable[str], columns: Iterable[str]) -> Iterator[MeanwhileTable]:
    """A table that is printed at the end."""
    table = MeanwhileTable(list(rows), list(columns))
    yield table
    print(table)
