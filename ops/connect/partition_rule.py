"""What is known of the source partitions of a connector class: a rule, as data, with the page that says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from connectctl.ops.connect.partition_fields import Config, FieldRule, SourcePartition


@dataclass(frozen=True)
class PartitionRule:
    """Source partitions of connector ``classes``; ``source`` is where that is written.

    ``fields`` are those that a configuration decides, ``whole`` where a source partition has no other. ``form`` says, of
    classes whose fields have no fixed names, why one is not read. ``offset_fields`` are fields of the source offset of
    which a task of a configuration needs at least one, None where any will do; ``offset_keys`` decide on them. ``where``
    are properties that say which source is read, ``inherits`` others that say what is read of it: none is in the source
    partition, so that the offsets stay when they change. ``older``: a form that is only read, and written no more.
    ``telling``: two connectors with the same source partition read the same.
    """

    classes: tuple[str, ...]
    fields: tuple[FieldRule, ...]
    source: str
    whole: bool = True
    form: Callable[[Config, SourcePartition], str | None] = lambda config, partition: None
    offset_fields: Callable[[Config], frozenset[str] | None] = lambda config: None
    offset_keys: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    inherits: tuple[str, ...] = ()
    older: bool = False
    telling: bool = True

    @property
    def keys(self) -> frozenset[str]:
        """The properties that matter to source offsets."""
        return frozenset(key for each in self.fields for key in each.keys) | {
            *self.offset_keys,
            *self.where,
            *self.inherits,
        }
