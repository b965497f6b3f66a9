"""The end of what Spark gives a task is proven by Spark's word behind it, and by nothing else."""

from __future__ import annotations

import io

import pytest
from connectctl.ops.clients.spark.task_input import END_OF_STREAM, BrokeOff, proven
from connectctl.ops.core.errors import ConnectctlError


def main(infile: io.BufferedReader) -> list[int]:
    """Stands for the function of PySpark's worker, by whose name and variable the connection is
    found.
    """
    return list(proven([1, 2]))


def reader(data: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(data))


def test_rows_with_sparks_end_behind_them_are_whole_and_the_word_is_left_to_the_worker() -> None:
    connection = reader(END_OF_STREAM + b"more")
    assert main(connection) == [1, 2]
    assert connection.read(4) == END_OF_STREAM


@pytest.mark.parametrize("behind", [b"", b"\xff\xff", b"\xff\xff\xff\xff"])
def test_rows_behind_which_there_is_anything_else_broke_off(behind: bytes) -> None:
    with pytest.raises(BrokeOff):
        main(reader(behind))


def test_where_the_connection_is_not_to_be_seen_nothing_is_taken_for_an_end() -> None:
    with pytest.raises(ConnectctlError, match=r"Use PySpark 4\.0"):
        list(proven([1]))
