"""Names that Confluent's ``ProtobufData`` gives to what Connect's schemas do not have, and its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connectctl.ops.clients.registry.settings import flag
from connectctl.ops.config.prefixed import full_name
from connectctl.ops.core.errors import BadInput

NAMESPACE = "io.confluent.connect.protobuf"
UNION, TAG = f"{NAMESPACE}.Union", f"{NAMESPACE}.Tag"
ENUM, TYPE = f"{NAMESPACE}.Enum", f"{NAMESPACE}.Type"
WRAPPER = f"{NAMESPACE}.Wrapper"
PRECISION = "connect.decimal.precision"
DECIMAL, DATE = "confluent.type.Decimal", "google.type.Date"
TIME, TIMESTAMP = "google.type.TimeOfDay", "google.protobuf.Timestamp"
WRAPPED = {
    "DoubleValue": "double",
    "FloatValue": "float",
    "Int64Value": "int64",
    "UInt64Value": "uint64",
    "Int32Value": "int32",
    "UInt32Value": "uint32",
    "BoolValue": "bool",
    "StringValue": "string",
    "BytesValue": "bytes",
}
WRAPPERS = tuple(f"google.protobuf.{name}" for name in WRAPPED)
"""The messages of a single value, in the order of their file."""
_FIXED = {
    "scrub.invalid.names": False,
    "int.for.enums": False,
    "flatten.unions": False,
    "generate.struct.for.nulls": False,
    "generalized.sum.type.support": False,
    "wrapper.for.raw.primitives": True,
    "optional.for.proto2": True,
}


@dataclass(frozen=True)
class Options:
    """How null, names and unions are mapped. Source: ``ProtobufDataConfig``."""

    optionals: bool
    wrappers: bool
    full_names: bool
    union_index: bool


def options_of(configs: Mapping[str, str]) -> Options:
    """Return the options in the properties of a converter. Raises ``BadInput`` for one that is not
    supported.
    """
    for name, default in _FIXED.items():
        if flag(configs, name, default) is not default:
            raise BadInput(
                f"Unsupported {full_name(configs, name)}={configs[name]}",
                next_step=f"Use {str(default).lower()}.",
            )
    return Options(
        flag(configs, "optional.for.nullables", False),
        flag(configs, "wrapper.for.nullables", False),
        flag(configs, "enhanced.protobuf.schema.support", False),
        flag(configs, "generate.index.for.unions", True),
    )
