"""What several checks look at: the wish, a connector with what the workers say of its configuration, what was not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectctl.ops.model.connector import Connector


class Wish(StrEnum):
    """What the cluster is to become; NOW asks whether it is right as it is."""

    NOW = "now"
    PREPARING = "preparing"
    ENABLED = "enabled"
    DOWNGRADE = "downgrade"


@dataclass(frozen=True)
class Validation:
    """One worker's answer to the validation of one configuration: its error messages by property.

    ``worker`` is an address, ``host:port``; ``problem`` says why there is no answer.
    """

    worker: str
    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True)
class Checked:
    """A connector of the cluster, and what each worker says of its configuration as it is."""

    connector: Connector
    validations: tuple[Validation, ...] = ()

    @property
    def name(self) -> str:
        """The connector's name."""
        return self.connector.name

    @property
    def config(self) -> Mapping[str, str]:
        """The connector's configuration."""
        return self.connector.config


@dataclass(frozen=True)
class Unseen:
    """Something that was to be looked at and could not be: never a silent pass."""

    what: str
    why: str
    next_step: str | None = None
