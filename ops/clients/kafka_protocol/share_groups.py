"""DescribeShareGroupOffsets (KIP-932) for kafka-python, which does not know it: which topics a share group reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

_KEY = 90
_VERSIONS = {"apiKey": _KEY, "validVersions": "0", "flexibleVersions": "0+"}


def _field(name: str, kind: str, *fields: Mapping[str, Any], **more: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": "0+", **more, **({"fields": list(fields)} if fields else {})}


_ERROR = _field("ErrorCode", "int16"), _field("ErrorMessage", "string", nullableVersions="0+")
_ASKED_TOPIC = _field("TopicName", "string"), _field("Partitions", "[]int32")
_ASKED = _field("GroupId", "string"), _field("Topics", "[]AskedTopic", *_ASKED_TOPIC, nullableVersions="0+")
_PARTITION = _field("PartitionIndex", "int32"), _field("StartOffset", "int64"), _field("LeaderEpoch", "int32")
_TOPIC = (
    _field("TopicName", "string"),
    _field("TopicId", "uuid"),
    _field("Partitions", "[]ToldPartition", *_PARTITION, *_ERROR),
)
_GROUP = _field("GroupId", "string"), _field("Topics", "[]ToldTopic", *_TOPIC), *_ERROR
_REQUEST = {
    **_VERSIONS,
    "name": "DescribeShareGroupOffsetsRequest",
    "type": "request",
    "fields": [_field("Groups", "[]Asked", *_ASKED)],
}
_RESPONSE = {
    **_VERSIONS,
    "name": "DescribeShareGroupOffsetsResponse",
    "type": "response",
    "fields": [_field("ThrottleTimeMs", "int32"), _field("Groups", "[]Told", *_GROUP)],
}


@cache
def _messages() -> tuple[Any, Any]:
    """The request's class, and the response's, which must live as long: kafka-python keeps no reference to it."""
    from kafka.protocol.api_message import ApiMessage

    # kafka-python loads the schema that is called like the class, and lets the class replace it.
    def patch(wanted: Mapping[str, Any]) -> Any:
        return classmethod(lambda cls, loaded: dict(wanted))

    request = type(ApiMessage)("ListGroupsRequest", (ApiMessage,), {"json_patch": patch(_REQUEST)})
    response = type(ApiMessage)("ListGroupsResponse", (ApiMessage,), {"json_patch": patch(_RESPONSE)})
    return request, response


def offsets_request(groups: Sequence[str]) -> Any:
    request, _ = _messages()
    return request(groups=[request.Asked(group_id=group, topics=None) for group in groups])
