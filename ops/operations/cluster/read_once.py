"""One look at a cluster reads each topic once, however many of its parts want to know what is in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import KafkaReads
    from connectctl.ops.kafka.records import TopicImage


def read_once(kafka: KafkaReads) -> KafkaReads:
    """``kafka`` for one look: an image that was read is the one that everybody gets.

    Not for who waits for something to change. One that open transactions held back is read again: they may have ended.
    """
    return cast("KafkaReads", kafka if isinstance(kafka, _CachedImages) else _CachedImages(kafka))


def uncached(kafka: KafkaReads) -> KafkaReads:
    """The client that ``read_once`` got: for who waits for something to change."""
    return kafka.kafka if isinstance(kafka, _CachedImages) else kafka


class _CachedImages:
    def __init__(self, kafka: KafkaReads) -> None:
        self.kafka = kafka
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
        with self._reading:
            found = {topic: self._images[topic][0] for topic in topics if self._has(topic, superseded)}
            missing = [topic for topic in topics if topic not in found]
            read = (
                self.kafka.image(missing, patience=patience, superseded=superseded, includes=includes)
                if missing
                else {}
            )
            for topic, image in read.items():
                found[topic] = self._with_cached(image)
                if not image.left_out:  # of others only a part was read
                    self._images[topic] = found[topic], superseded
            return {topic: found[topic] for topic in topics if topic in found}

    def _has(self, topic: str, superseded: bool) -> bool:
        image, with_superseded = self._images.get(topic, (None, False))
        return image is not None and not image.held_back and (with_superseded or not superseded)

    def _with_cached(self, image: TopicImage) -> TopicImage:
        """``image`` with the records of the one that was read before, and what was made of them, where they are the same."""
        before, _ = self._images.get(image.topic, (image, False))
        if before.held_back or image.held_back or before.end_offsets != image.end_offsets:
            return image
        return replace(image, latest=before.latest, made=before.made)
