"""What several checks look at: the goal, a connector with what the workers say of its configuration, what was not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from connectctl.ops.connect.worker import Support

if TYPE_CHECKING:
    from connectctl.ops.connect.connector import Connector
    from connectctl.ops.core.errors import ConnectctlError


class Goal(StrEnum):
    """What the cluster is to become; NOW asks whether it is right as it is."""

    NOW = "now"
    PREPARING = "preparing"
    ENABLED = "enabled"
    DOWNGRADE = "downgrade"


class PluginSays(StrEnum):
    """What a connector's class answers when it is asked whether it supports exactly-once with its configuration."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"
    FAILS = "fails"
    NOT_ASKED = "not asked"


@dataclass(frozen=True)
class Validation:
    """One worker's answer to the validation of one configuration: its error messages by property.

    ``worker`` is an address, ``host:port``; ``problem`` says why there is no answer. An error that concerns no property
    is under the empty name. ``plugin`` is what the connector's class says of exactly-once with this configuration, and
    ``detail`` what it says when it fails; ``kind`` is ``source`` or ``sink``. ``once_enabled`` are the errors that come
    to ``errors`` once the worker is enabled.
    """

    worker: str
    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problem: str | None = None
    support: Support = Support.UNKNOWN
    plugin: PluginSays = PluginSays.NOT_ASKED
    detail: str | None = None
    kind: str | None = None
    once_enabled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckedConnector:
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


def unseen_by(what: str, error: ConnectctlError) -> Unseen:
    """That ``what`` could not be looked at, in the words of the error."""
    return Unseen(what, reason(error), error.next_step)


def reason(error: ConnectctlError) -> str:
    """What went wrong, without what to do about it: for the middle of a sentence."""
    return (f"{error.what}: {error.why}" if error.why else error.what).rstrip(".")
