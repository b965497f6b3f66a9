from __future__ import annotations

import pytest
from connectctl.ops.kafka.streams_eos import ProducerModel, model_of_id, model_of_value, process_of
from hypothesis import given
from hypothesis import strategies as st

PROCESS = "76ed91fd-1d80-402d-8790-6b6e8a98253c"
NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,12}", fullmatch=True)


@pytest.mark.parametrize(
    ("id_", "kind"),
    [
        ("app-0_1", ProducerModel.PER_PARTITION),
        ("app-12_345", ProducerModel.PER_PARTITION),
        (f"app-{PROCESS}-1", ProducerModel.GROUP_AWARE),
        (f"app-{PROCESS}", None),
        ("app-b-0_1", None),
        ("app-0_1-x", None),
        ("app2-0_1", None),
        ("ap-0_1", None),
        ("app", None),
        ("connect-cluster-app", None),
    ],
)
def test_an_id_is_of_one_kind_or_not_the_applications(id_: str, kind: ProducerModel | None) -> None:
    assert model_of_id("app", id_) is kind


@given(NAMES, st.integers(0, 99), st.integers(0, 999), st.uuids(), st.integers(1, 64))
def test_ids_are_told_apart_whatever_the_application_is_called(
    name: str, group: int, partition: int, process: object, thread: int
) -> None:
    old, new = f"{name}-{group}_{partition}", f"{name}-{process}-{thread}"
    assert (model_of_id(name, old), model_of_id(name, new)) == (
        ProducerModel.PER_PARTITION,
        ProducerModel.GROUP_AWARE,
    )
    assert (process_of(name, new), process_of(name, old)) == (str(process), None)


@given(NAMES, NAMES, st.integers(0, 9), st.integers(0, 9))
def test_an_application_whose_name_begins_another_ones_has_none_of_its_ids(
    name: str, more: str, group: int, partition: int
) -> None:
    assert model_of_id(name, f"{name}-{more}-{group}_{partition}") is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("exactly_once", ProducerModel.PER_PARTITION),
        (" exactly_once_v2 ", ProducerModel.GROUP_AWARE),
        ("exactly_once_beta", ProducerModel.GROUP_AWARE),
        ("at_least_once", None),
        (None, None),
    ],
)
def test_a_value_asks_for_a_kind(value: str | None, kind: ProducerModel | None) -> None:
    assert model_of_value(value) is kind
