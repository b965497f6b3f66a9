"""Which transactional ids of input partitions a new generation of a transform fences."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from connectctl.ops.kafka.visibility import Complete, Gap, Reason, observation_of
from connectctl.ops.task_runtime.job.partition_ids import PartitionIds

TASKS = {"topics": "in"}
PARTITIONS = {"topics": "in", "guarantee": "exactly-once-per-partition"}


class Cluster:
    """Topics with their partitions, and the ids that its coordinators list."""

    def __init__(self, ids: Sequence[str], *, hidden: bool = False):
        self.topics = {"in": 2, "other": 1, "in-2": 1}
        self.ids, self.hidden = ids, hidden

    def topic_names(self) -> frozenset[str]:
        return frozenset(self.topics)

    def partition_counts(self, topics: Sequence[str]) -> dict[str, int]:
        return {topic: self.topics[topic] for topic in topics}

    def listed(self, *, prefixes: Sequence[str]) -> Any:
        found = tuple(SimpleNamespace(id=id_) for id_ in self.ids if id_.startswith(tuple(prefixes)))
        gaps = (Gap("transactional ids", Reason.NOT_PROVEN, None),)
        return observation_of(found, gaps) if self.hidden else Complete(found)


def ids(of: Cluster, *configs: dict[str, str], notes: list[str] | None = None) -> list[str]:
    told: Any = (notes if notes is not None else []).append
    same: Any = of
    return PartitionIds(same, same, "g", "c", told)(configs)


def test_one_kind_is_found_by_its_prefix_when_the_other_takes_over_whatever_the_configuration_of_before() -> None:
    there = Cluster(["g-c-0", "g-c-in_0", "g-c-in_7", "g-c-other_0", "g-c-d-in_0", "g-c-in_x"])
    assert ids(there, TASKS, TASKS) == ["g-c-in_0", "g-c-in_7"]
    assert ids(there, {}, {"topics.regex": "o.*"}) == ["g-c-other_0"]


def test_those_of_known_inputs_are_named_where_partitions_have_producers_because_ids_may_be_hidden() -> None:
    notes: list[str] = []
    there = Cluster([], hidden=True)
    assert ids(there, PARTITIONS, TASKS, notes=notes) == ["g-c-in_0", "g-c-in_1"]
    assert "transactional ids of topics that c read before may not all be fenced" in notes[0]
    regex = {"topics.regex": "in.*", "guarantee": "exactly-once-per-partition"}
    assert ids(there, TASKS, regex) == ["g-c-in_0", "g-c-in_1", "g-c-in-2_0"]


def test_where_no_partition_ever_had_a_producer_nothing_is_named_or_told() -> None:
    notes: list[str] = []
    assert ids(Cluster([], hidden=True), TASKS, TASKS, notes=notes) == []
    assert notes == []
