"""``check_exactly_once``: a run without a failure, and one for each failure at each of its
occasions, give the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from connectctl.ops.task_runtime.testing.faults import FailAt, Fault
from connectctl.ops.task_runtime.testing.results import GroupRun, Run, SourceRun

_FAULTS = [fault for fault in Fault if fault is not Fault.PUT]


def check_exactly_once(run: Callable[[FailAt], SourceRun | GroupRun]) -> int:
    """Raise ``AssertionError`` if a failure loses, duplicates or reorders a record; return the
    number of runs::

        check_exactly_once(lambda fail_at: run_source(Tables, CONFIG, fail_at=fail_at))

    ``run`` is called without a failure first, then for each kind of failure at each of its
    occasions of that run. Each call has to read the same source: its changes
    meanwhile are differences. Compared are topic, partition, key, value and headers of the
    committed records, the order of those with the same key, and the offsets at the end; not
    timestamps, and not the partition of a record without a key. The order among several source
    partitions may differ after a failure.
    """
    plain = run({})
    if not plain.commits:
        raise AssertionError(
            "The run without a failure committed nothing: give the source some records"
        )
    count = 1
    for fault in _FAULTS:
        for occasion in range(1, plain.occasions[fault.occasion] + 1):
            _compare(plain, run({fault: occasion}), f"{fault} {occasion}")
            count += 1
    return count


def _compare(plain: SourceRun | GroupRun, failed: SourceRun | GroupRun, fault: str) -> None:
    expected, found = _contents(plain), _contents(failed)
    if expected != found:
        lost, twice = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
        what = [f"{_count(lost)} lost, such as {next(iter(lost))}"] if lost else []
        what += [f"{_count(twice)} too many, such as {next(iter(twice))}"] if twice else []
        if what or _by_key(expected) != _by_key(found):
            raise AssertionError(
                f"Not exactly-once after {fault}: {'; '.join(what) or 'a key has another order'}"
            )
    if plain.offsets != failed.offsets:
        raise AssertionError(
            f"Other offsets after {fault}: {failed.offsets}, and {plain.offsets} without it"
        )


def _count(records: Counter[Any]) -> str:
    number = sum(records.values())
    return f"{number} record{'s' if number > 1 else ''}"


def _by_key(records: list[tuple[Any, ...]]) -> dict[Any, list[Any]]:
    """Return the records of each key of a topic, in their order."""
    found: dict[Any, list[Any]] = {}
    for record in records:
        topic, _, key, *_ = record
        if key is not None:
            found.setdefault((topic, key), []).append(record)
    return found


def _contents(run: Run[Any]) -> list[tuple[Any, ...]]:
    return [
        (r.topic, None if r.key is None else r.partition, r.key, r.value, tuple(r.headers))
        for r in run.records
    ]
