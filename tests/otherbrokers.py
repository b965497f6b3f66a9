"""Another release of Kafka, or brokers with another ``transaction.version``, for all tests of a run.

``CONNECTCTL_TEST_KAFKA=4.4.0`` has the shared cluster and the campaigns run on brokers and workers
of that release. ``CONNECTCTL_TEST_BROKERS=3.9.2`` has the shared cluster and the campaigns run on brokers of that
release, whatever their workers are, ``CONNECTCTL_TEST_BROKERS=transaction.version=1`` on the latest
ones with that feature level. What is about transaction version 2 itself is left out there.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from connectctl.ops.sandbox.spec import SandboxSpec

_FEATURE = "transaction.version="
KAFKA = os.environ.get("CONNECTCTL_TEST_KAFKA", "")
ASKED = os.environ.get("CONNECTCTL_TEST_BROKERS", "")
VERSION_2 = not ASKED
"""Whether they have transaction version 2."""


def up_as_asked(spec: SandboxSpec) -> Sandbox:
    """``up`` with the release or the brokers that this run of the tests asks for."""
    from connectctl.ops.sandbox.cluster import up
    from connectctl.ops.sandbox.jars.versions import LATEST, KafkaVersion, parse_version

    if KAFKA and spec.kafka_version == LATEST:
        spec = replace(spec, kafka_version=KAFKA)
    if ASKED and not ASKED.startswith(_FEATURE):
        release = parse_version(ASKED)
        # a property of the class
        setattr(KafkaVersion, "broker", property(lambda self: release))  # noqa: B010
    sandbox = up(spec)
    if ASKED.startswith(_FEATURE):
        from live.brokerfeatures import set_feature

        set_feature(sandbox.bootstrap_servers, int(ASKED.removeprefix(_FEATURE)), 2)
    return sandbox
