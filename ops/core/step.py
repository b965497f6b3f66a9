"""A step: one action on one resource, as data. Everything that changes a cluster is a sequence of
steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from connectctl.ops.core.errors import BadInput
from connectctl.ops.kafka.acls import Right

C_contra = TypeVar("C_contra", contravariant=True)
_PLAIN = frozenset({str, int, float, bool, NoneType})


class Step(Generic[C_contra]):
    """The base of every step; subclasses are frozen dataclasses.

    Their fields are JSON values, enums, tuples, mappings by strings, and dataclasses of those. The
    context of an operation's steps is not a part of the plan.
    """

    read_only: ClassVar[bool] = False
    """True if the step makes no changes: an interruption or a failure then leaves nothing
    incomplete.
    """
    locked: ClassVar[bool] = True
    """True if the run holds the lock of the cluster for the step. It is released before a step that
    does not need it.
    """
    ends: ClassVar[type[Step[Any]] | None] = None
    """The kind of an earlier step whose effect the step ends: once that one was begun, the step is
    executed even if the run fails or is interrupted in between.
    """

    if TYPE_CHECKING:

        @property
        def subject(self) -> str:
            """The resource: a failure that does not end the run skips all later steps of the same
            resource.
            """

        @property
        def now(self) -> str:
            """The state of the resource when the plan was made, empty if the step does not depend
            on it.
            """

    def describe(self) -> str:
        """Return the step in one line, in the imperative: ``stop orders``."""
        raise NotImplementedError

    def rights(self, context: C_contra) -> Iterable[Right]:
        """Return the rights without which brokers would refuse the step; verified before the first
        step of a run.
        """
        return ()

    def is_done(self, context: C_contra) -> str | None:
        """Return why the step is not needed (``already STOPPED``), else None. Called before
        ``apply``.
        """
        return None

    def apply(self, context: C_contra) -> str | None:
        """Execute the step, and return its result in a few words. Raises ``ConnectctlError``."""
        raise NotImplementedError

    def decided(self, context: C_contra) -> Step[C_contra]:
        """Return the step to execute, if parts of it are decided only then."""
        return self


@dataclass(frozen=True)
class ResourceStep(Step[C_contra]):
    """A step on the resource ``subject``, whose state was ``now`` when the plan was made."""

    subject: str
    now: str = field(default="", kw_only=True)


OBSERVED = {"observed": True}
"""Metadata of a field that a step keeps to explain a refusal. No one confirms it: it is not part of
a plan's digest.
"""


def confirmed_data(step: Step[Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return ``data``, the JSON values of ``step``, without what is only observed."""
    kind: Any = type(step)
    observed = {f.name for f in fields(kind) if "observed" in f.metadata}
    return {key: value for key, value in data.items() if key not in observed} if observed else data


def step_to_data(step: Step[Any]) -> dict[str, Any]:
    """Return ``step`` as JSON values: class, fields and description. ``step_from_data`` is the
    inverse.
    """
    data = {
        "step": type(step).__name__,
        "subject": step.subject,
        "description": step.describe(),
        "now": step.now or None,
    }
    kind: Any = type(step)
    return data | {
        f.name: to_data(getattr(step, f.name)) for f in fields(kind) if f.name not in data
    }


def step_from_data(data: Mapping[str, Any], kinds: Mapping[str, type[Any]]) -> Any:
    """Return the step for its JSON values ``data``, one of ``kinds`` by name. Raises ``BadInput``
    for any other.
    """
    if not isinstance(data, Mapping):
        raise BadInput("The plan has a step that is not a JSON object")
    kind = kinds.get(str(data.get("step")))
    known = {f.name: f for f in fields(kind)} if kind is not None else {}
    needed = {
        name for name, f in known.items() if f.default is MISSING and f.default_factory is MISSING
    }
    given = {key: value for key, value in data.items() if key in known}
    unknown = data.keys() - known.keys() - {"step", "subject", "description", "now"}
    if kind is None or unknown or needed - given.keys():
        raise BadInput(
            f"The plan has a step that this version does not know: {data.get('step')}",
            next_step="Use the version of connectctl that made it.",
        )
    if "now" in given:
        given["now"] = given["now"] or ""
    try:
        return _dataclass(kind, given, kinds)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as e:
        raise BadInput(
            f"The plan has a step {kind.__name__} that cannot be read", why=str(e)
        ) from e


def to_data(value: Any) -> Any:
    """Return ``value`` as JSON values."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, Step):
        return step_to_data(value)
    if names := _names(kind):
        found = {name: getattr(value, name) for name in names}
        return {
            name: each if type(each) in _PLAIN else to_data(each) for name, each in found.items()
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [to_data(each) for each in value]
    return (
        {key: to_data(each) for key, each in value.items()} if isinstance(value, Mapping) else value
    )


def from_data(kind: Any, data: Any, kinds: Mapping[str, type[Any]]) -> Any:
    """Return the value of type ``kind`` for ``data``, the inverse of ``to_data``; steps in it are
    of ``kinds``.
    """
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (other,) = [arg for arg in args if arg is not NoneType]
        return None if data is None else from_data(other, data, kinds)
    if origin in (tuple, list) and not isinstance(data, list | tuple):
        raise TypeError(f"{data!r:.40} is not an array")
    if origin is tuple:
        each = [args[0]] * len(data) if args[-1] is Ellipsis else args
        return tuple(from_data(arg, value, kinds) for arg, value in zip(each, data, strict=True))
    if origin in (dict, Mapping):
        if not isinstance(data, Mapping):
            raise TypeError(f"{data!r:.40} is not an object")
        return {key: from_data(args[1], value, kinds) for key, value in data.items()}
    kind = origin or kind
    if kind is Any or not isinstance(kind, type):
        return data
    if kind in _PLAIN and type(data) is not kind and not (kind is float and type(data) is int):
        raise TypeError(f"{data!r:.40} is not of the type {kind.__name__}")
    if issubclass(kind, Step):
        return step_from_data(data, kinds)
    if is_dataclass(kind):
        return _dataclass(kind, data, kinds)
    if issubclass(kind, Enum):
        return kind(data)
    return kind(*data) if issubclass(kind, tuple) else data


def _dataclass(kind: Any, data: Mapping[str, Any], kinds: Mapping[str, type[Any]]) -> Any:
    if not isinstance(data, Mapping):
        raise TypeError(f"{data!r:.40} is not an object")
    hints = _hints(kind)
    return kind(**{name: from_data(hints[name], value, kinds) for name, value in data.items()})


@cache
def _names(kind: type) -> tuple[str, ...]:
    """Return the names of a dataclass's fields; none for another type."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()


_hints = cache(get_type_hints)
