"""The shapes of the workers' REST answers, by path: the one check whether an answer is from
Connect.

Sources: ``ConnectorsResource``, ``ConnectorPluginsResource``, ``LoggingResource``,
``RootResource``. Readers rely on these shapes. Members that no reader uses are not checked.
"""

from __future__ import annotations

import re
from typing import Any

from connectctl.ops.config.json_shape import (
    Shape,
    an_object,
    anything,
    array,
    between,
    either,
    mapping,
    or_null,
    text,
    texts,
)

_NUMBER = between(0, (1 << 31) - 1)
_PART = {"state": text}
_PART_DETAILS = {"worker_id": text, "trace": text}
_STATUS = an_object(
    {},
    {
        "connector": an_object(_PART, _PART_DETAILS),
        "tasks": array(an_object({"id": _NUMBER, **_PART}, _PART_DETAILS)),
        "type": text,
    },
)
_INFO = an_object({}, {"config": texts, "tasks": array(an_object({"task": _NUMBER})), "type": text})
_NAMED = array(an_object({}, {"name": text, "type": text}))
_VALUE = an_object({"name": text}, {"errors": array(text)})
_SHAPES: tuple[tuple[str, str, Shape], ...] = (
    ("GET", r"/", an_object({}, {"version": text, "kafka_cluster_id": text})),
    (
        "GET",
        r"/connectors",
        either(array(text), mapping(an_object({}, {"status": _STATUS, "info": _INFO}))),
    ),
    ("GET", r"/connectors/[^/]+", _INFO),
    ("GET", r"/connectors/[^/]+/status", _STATUS),
    ("GET", r"/connectors/[^/]+/config", texts),
    ("GET", r"/connectors/[^/]+/topics", mapping(an_object({"topics": array(text)}))),
    (
        "GET",
        r"/connectors/[^/]+/offsets",
        an_object(
            {
                "offsets": array(
                    an_object(
                        {
                            "partition": or_null(mapping(anything)),
                            "offset": or_null(mapping(anything)),
                        }
                    )
                )
            }
        ),
    ),
    (
        "GET",
        r"/connector-plugins",
        array(an_object({"class": text}, {"type": text, "version": text})),
    ),
    ("GET", r"/connector-plugins/[^/]+/config", _NAMED),
    ("GET", r"/admin/loggers", mapping(an_object({}, {"level": text}))),
    (
        "PUT",
        r"/connector-plugins/[^/]+/config/validate",
        an_object({"configs": array(an_object({"value": _VALUE}))}),
    ),
)
_BY_PATH = tuple((method, re.compile(path), shape) for method, path, shape in _SHAPES)


def check(method: str, path: str, answer: Any) -> None:
    """Raise ``Malformed`` if ``answer`` does not have the shape of Connect's answer to this
    request.
    """
    plain = path.partition("?")[0]
    for known, pattern, shape in _BY_PATH:
        if known == method and pattern.fullmatch(plain):
            shape(answer)
            return
