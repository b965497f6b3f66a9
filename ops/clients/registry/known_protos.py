"""The files of Protobuf that Confluent's converter imports, which confluent-kafka has compiled."""

from __future__ import annotations

from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.confluent.type import decimal_pb2

FIELD_META = meta_pb2.field_meta
"""The option of a field with what Protobuf's type does not say of Connect's."""
KNOWN: tuple[bytes, ...] = tuple(each.DESCRIPTOR.serialized_pb for each in (meta_pb2, decimal_pb2))
"""Descriptors of ``confluent/meta.proto`` and ``confluent/type/decimal.proto``."""
