"""All operations by the name in their plans: those of ``ops``, and the upgrade, which knows the
migrations.
"""

from __future__ import annotations

from typing import Any

from connectctl.migrations.operation import Upgrade
from connectctl.ops import registry
from connectctl.ops.operations.operation import Operation

OPERATIONS: dict[str, Operation[Any, Any]] = {**registry.OPERATIONS, Upgrade.name: Upgrade()}
