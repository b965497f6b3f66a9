"""Validates the source offsets that are set with a connector's configuration, with
``offset_rules``. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.offset_rules import validator_of
from connectctl.ops.connect.offset_shapes import Pair
from connectctl.ops.connect.partition_fields import Config
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.finding import some_of

NAMED = 3
"""Offsets that a message names; the others are counted."""


def refuse_invalid_offsets(
    name: str,
    config: Config,
    entries: Iterable[tuple[str, str]],
    stored: Iterable[Pair] = (),
    *,
    force: bool,
) -> None:
    """Raise ``Refused`` if the connector ``name`` with ``config`` would refuse one of ``entries``;
    ``stored`` are its current offsets.

    Workers validate the offsets of a sink.
    """
    validator = validator_of(config, stored)
    pairs = [(read_json(partition), read_json(offset)) for partition, offset in entries]
    if force or any("kafka_topic" in (partition or {}) for partition, _ in pairs):
        return
    if found := [problem for pair in pairs if (problem := validator.problem(*pair))]:
        raise Refused(
            f"{name} would refuse its offsets; nothing was changed",
            why=some_of(found, NAMED, separator="; "),
            next_step="Correct the offsets; --force sets them nevertheless.",
            code="invalid-offset",
        )
