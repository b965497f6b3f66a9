"""The two kinds of exactly-once producers of an application, by property and by transactional id
(KIP-447).

Kafka Streams: a producer for each task with the id ``<application.id>-<task>``, ``orders-0_1``; or
one for each thread with ``<application.id>-<process>-<thread>``, ``orders-76ed91fd-…-1``
(``StreamsProducer``).
"""

from __future__ import annotations

import re
from enum import StrEnum

PROPERTY = "processing.guarantee"
PER_PARTITION = "exactly_once"
BETA, V2 = "exactly_once_beta", "exactly_once_v2"
"""Two names of the same guarantee, from 2.6 and from 3.0 on; 4.0 supports only the second."""
_PROCESS = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OLD, _NEW = re.compile(r"\d+_\d+"), re.compile(rf"({_PROCESS})-\d+")


class ProducerModel(StrEnum):
    """How the tasks of an application share producers."""

    PER_PARTITION = "per-partition"
    GROUP_AWARE = "group-aware"


def model_of_value(value: str | None) -> ProducerModel | None:
    """Return the model of a value of ``processing.guarantee``, None if it is not exactly-once, or
    not known.
    """
    return {
        PER_PARTITION: ProducerModel.PER_PARTITION,
        BETA: ProducerModel.GROUP_AWARE,
        V2: ProducerModel.GROUP_AWARE,
    }.get((value or "").strip())


def model_of_id(application: str, id_: str) -> ProducerModel | None:
    """Return the kind of producer that a transactional id belongs to; None for ids that are not
    this application's.
    """
    if not id_.startswith(f"{application}-"):
        return None
    rest = id_[len(application) + 1 :]
    if _OLD.fullmatch(rest):
        return ProducerModel.PER_PARTITION
    return ProducerModel.GROUP_AWARE if _NEW.fullmatch(rest) else None


def process_of(application: str, id_: str) -> str | None:
    """Return the process that a group-aware producer's transactional id names."""
    found = (
        _NEW.fullmatch(id_[len(application) + 1 :]) if id_.startswith(f"{application}-") else None
    )
    return found.group(1) if found else None
