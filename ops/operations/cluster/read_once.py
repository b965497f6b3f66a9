"""A client that reads each topic once per observation of a cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import KafkaReads
    from connectctl.ops.kafka.records import TopicImage


def read_once(kafka: KafkaReads, *, superseded: bool = False) -> KafkaReads:
    """Return ``kafka`` with a cache of the images that it has read, for one observation.

    It is unsuitable for waits. An image that open transactions held back is read again: they may
    have ended. ``superseded``: every image is read with superseded records.
    """
    cached = kafka if isinstance(kafka, _CachedImages) else _CachedImages(kafka, superseded)
    return cast("KafkaReads", cached)


def uncached(kafka: KafkaReads) -> KafkaReads:
    """Return the client without the cache of ``read_once``, for waits."""
    return kafka.kafka if isinstance(kafka, _CachedImages) else kafka


class _CachedImages:
    def __init__(self, kafka: KafkaReads, superseded: bool = False) -> None:
        self.kafka = kafka
        self._superseded = superseded
        self._images: dict[str, tuple[TopicImage, bool]] = {}
        self._reading = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kafka, name)

    def image(
        self,
        topics: Sequence[str],
        *,
        patience: float,
        superseded: bool = False,
        includes: Callable[[str], bool] | None = None,
    ) -> dict[str, TopicImage]:
        superseded = superseded or self._superseded
        with self._reading:
            found = {
                topic: self._images[topic][0] for topic in topics if self._has(topic, superseded)
            }
            missing = [topic for topic in topics if topic not in found]
            read = (
                self.kafka.image(
                    missing, patience=patience, superseded=superseded, includes=includes
                )
                if missing
                else {}
            )
            for topic, image in read.items():
                found[topic] = self._with_cached(image)
                if not image.left_out:  # an image with omitted records is incomplete
                    self._images[topic] = found[topic], superseded
            return {topic: found[topic] for topic in topics if topic in found}

    def _has(self, topic: str, superseded: bool) -> bool:
        image, with_superseded = self._images.get(topic, (None, False))
        return image is not None and not image.held_back and (with_superseded or not superseded)

    def _with_cached(self, image: TopicImage) -> TopicImage:
        """Return ``image`` with the records of the cached image and their parsed values, if the
        records are the same.
        """
        before, _ = self._images.get(image.topic, (image, False))
        if before.held_back or image.held_back or before.end_offsets != image.end_offsets:
            return image
        return replace(image, latest=before.latest, made=before.made)
