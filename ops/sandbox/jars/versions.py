"""The Kafka versions that the embedded cluster can run, and the features of each.

The one place that names versions of jars. Sources: the artifacts in the default Maven repository
(each version in :data:`TRIED` was resolved and started), KIP-618 (exactly-once source support,
3.3), KIP-898 (``plugin.discovery``, 3.6), KIP-1013 (log4j 2 from 4.0).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from connectctl.ops.core.errors import BadInput

LATEST = "4.3.1"
"""The release that a sandbox has by default: the newest whose plugins the default Maven repository
has, too.
"""

NEWEST = "4.4.0"
"""The newest release that was started. Of its plugins, :mod:`older_releases` takes those of
``LATEST`` where the repository lacks them.
"""

TRIED = (
    "3.2.3", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.0", LATEST, NEWEST
)  # fmt: skip
"""Versions that were resolved and started, in their order; others of the form X.Y.Z from 3.2 on are
tried on request.
"""

LOG4J2 = "2.25.4"
SLF4J_RELOAD4J = "1.7.36"

_FORM = re.compile(r"(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True, order=True)
class KafkaVersion:
    """A Kafka release, ordered by number, and the differences between releases that the sandbox has
    to know.
    """

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def has_exactly_once_source(self) -> bool:
        """Return whether workers support ``exactly.once.source.support`` (KIP-618, released in
        3.3.0).
        """
        return (self.major, self.minor) >= (3, 3)

    @property
    def has_service_load(self) -> bool:
        """Return whether workers support ``plugin.discovery=service_load`` (KIP-898, 3.6.0), with
        which they start in half the time.
        """
        return (self.major, self.minor) >= (3, 6)

    @property
    def has_test_plugins(self) -> bool:
        """Return whether Kafka's test connectors are a separate plugin; before 4.0 they are part of
        connect-runtime.
        """
        return self.major >= 4

    @property
    def logs_with_log4j2(self) -> bool:
        """Return whether Kafka logs through log4j 2; before 4.0 its classes name log4j 1 (reload4j)
        directly.
        """
        return self.major >= 4

    @property
    def broker(self) -> KafkaVersion:
        """Return the version of the broker that workers of this version get.

        Broker and worker are one version from 4.0 on. Older workers get the newest broker: clients
        from 2.1 on are supported by 4.x brokers (KIP-896), and a broker of their own version would
        cost a second download.
        """
        return self if self.major >= 4 else parse_version(LATEST)


def parse_version(text: str) -> KafkaVersion:
    """Read ``X.Y.Z``, or ``X.Y`` for the release of that line that was tried.

    Raises BadInput for another form and for releases before 3.2, which have no
    ``Admin.fenceProducers``.
    """
    for tried in TRIED:
        if tried.rpartition(".")[0] == text:
            text = tried
    form = _FORM.fullmatch(text)
    version = KafkaVersion(*map(int, form.groups())) if form else None
    if version is None or version < KafkaVersion(3, 2, 0):
        raise BadInput(
            f"Invalid or unsupported Kafka version '{text}'",
            next_step=f"Use X.Y.Z of at least 3.2.0, for example one of {', '.join(TRIED)}.",
            code="unknown-kafka-version",
        )
    return version
